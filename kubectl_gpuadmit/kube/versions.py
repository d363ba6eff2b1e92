"""Kubernetes versions as numbers to compare; what changed with which is said where it matters."""

from __future__ import annotations

LATEST = "1.37"
"""The minor version whose rules are followed where no other is named."""


def version(text: str) -> tuple[int, int]:
    """``v1.36.2`` or ``1.36`` -> (1, 36)."""
    major, _, rest = text.lstrip("v").partition(".")
    minor = rest.split(".", 1)[0].rstrip("+") or "0"
    return int(major), int(minor)
