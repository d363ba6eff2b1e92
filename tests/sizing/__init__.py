"""Sizing against what engines measured: ``python -m tests.sizing`` prints the table."""
