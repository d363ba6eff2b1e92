"""Prints our answers beside measured starts, row by row."""

from __future__ import annotations

from tests.sizing.report import report

if __name__ == "__main__":
    for line in report():
        print(line)
