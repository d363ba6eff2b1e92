"""How old something is, in words."""

from __future__ import annotations


def spell(seconds: int) -> str:
    """``12 s``, ``41 min``, ``3 h``, ``2 d``."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= (size if unit == "min" else 2 * size):
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
