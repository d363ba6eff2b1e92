"""Turns verdicts into text, JSON, YAML, SARIF, JUnit and Markdown; chooses words, never outcomes."""
