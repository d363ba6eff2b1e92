"""Tests of the policy file: reading, lint, levels, edits, usage."""
