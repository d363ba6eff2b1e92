"""Turns verdicts into text, JSON, YAML, SARIF, JUnit and Markdown; chooses no outcomes."""
