"""Texts of which a part is not known: the part is marked, and why it is not known is kept.

A mark is a number between two characters of Unicode's private use area, so that it passes through
quoting and splitting like any other character. What users wrote is cleared of them first.
"""

from __future__ import annotations

import re

_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


class Blanks:
    """The reasons of one container's marks."""

    def __init__(self) -> None:
        self._reasons: list[str] = []

    def mark(self, reason: str) -> str:
        """A text that stands for what is not known; ``reason`` names what is missing."""
        if reason not in self._reasons:
            self._reasons.append(reason)
        return f"{_OPEN}{self._reasons.index(reason)}{_CLOSE}"

    def reasons(self, text: str) -> tuple[str, ...]:
        """Why ``text`` is not known, () where it is."""
        found = (self._reasons[int(number)] for number in _MARK.findall(text))
        return tuple(dict.fromkeys(found))

    def shown(self, text: str) -> str:
        """For a person: ``…`` in place of each mark."""
        return _MARK.sub("…", text)


def is_known(text: str) -> bool:
    return _OPEN not in text


def cleared(text: str) -> str:
    """A user's text without the characters that marks are made of."""
    return text.replace(_OPEN, "�").replace(_CLOSE, "�")
