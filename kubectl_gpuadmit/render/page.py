"""Lines of styled text at a fixed width; lays out, does not decide what to say.

Everything that enters is cleaned here, so that no value of a cluster can carry markup or an escape.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kubectl_gpuadmit.render.wording import cells, clean, cut, wrap

Part = tuple[str, str]
"""(text, style)."""

RED, YELLOW, GREEN, DIM, BOLD = "red", "yellow", "green", "dim", "bold"

MARKS = {"ok": "✓", "no": "✗", "warn": "!", "unknown": "?", "change": "~", "note": "·"}
ASCII_MARKS = {"ok": "ok", "no": "no", "warn": "! ", "unknown": "? ", "change": "~ ", "note": "- "}
MARK_STYLES = {
    "ok": GREEN,
    "no": RED,
    "warn": YELLOW,
    "unknown": YELLOW,
    "change": "cyan",
    "note": DIM,
}


class Page:
    """Collects lines; ``text`` is the result. ``ascii`` writes every line in ASCII alone."""

    def __init__(self, width: int, *, ascii: bool = False) -> None:
        self.width = max(width, 40)
        self.ascii = ascii
        self._done: list[Part] = []
        self._open: list[Part] = []

    @property
    def text(self) -> Text:
        """Everything so far."""
        return Text.assemble(*self._done, end="", no_wrap=True)

    def _put(self, text: str, style: str = "") -> None:
        if text:
            self._open.append((text, style))

    def mark(self, name: str) -> Part:
        """``✓`` and its kin in their colour, a blank after it."""
        marks = ASCII_MARKS if self.ascii else MARKS
        return (marks[name] + " ", MARK_STYLES[name])

    def clean(self, text: object) -> str:
        return clean(text, ascii=self.ascii)

    def cut(self, text: object, width: int) -> str:
        """A cleaned name in at most ``width`` columns."""
        return cut(self.clean(text), width, ascii=self.ascii)

    def line(self, *parts: Part, right: Part | None = None) -> None:
        """One line of cleaned parts, cut at the width; ``right`` stands at its end, whole."""
        tail = self.clean(right[0]) if right else ""
        room = self.width - (cells(tail) + 2 if tail else 0)
        used = 0
        for text, style in parts:
            piece = self._blanks(text)
            if used + cells(piece) > room:
                piece = cut(piece, max(room - used, 0), ascii=self.ascii)
            self._put(piece, style)
            used += cells(piece)
        if tail and right:
            self._put(" " * (self.width - used - cells(tail)))
            self._put(tail, right[1])
        self._end()

    def _blanks(self, text: str) -> str:
        """Cleaned, but with the blanks of our own layout at both ends."""
        bare = text.strip(" ")
        lead = len(text) - len(text.lstrip(" "))
        return text[:lead] + self.clean(bare) + (text[lead + len(bare) :] if bare else "")

    def block(
        self, head: Sequence[Part], sentence: object, *, indent: int, style: str = ""
    ) -> None:
        """``head`` and then the sentence, wrapped; later lines begin at column ``indent``."""
        used = 0
        for text, part_style in head:
            piece = self._blanks(text)
            self._put(piece, part_style)
            used += cells(piece)
        if used < indent:
            self._put(" " * (indent - used))
            used = indent
        lines = wrap(self.clean(sentence), self.width - indent, first=self.width - used)
        for number, piece in enumerate(lines):
            if number:
                self._put(" " * indent)
            self._put(piece, style)
            self._end()

    def units(
        self, head: Sequence[Part], units: Sequence[str], *, indent: int, style: str = ""
    ) -> None:
        """``head`` and then the units, a middle dot between them, each on one line if it can be."""
        row: list[str] = []
        rows: list[str] = []
        for unit in map(self.clean, units):
            if row and cells(" · ".join([*row, unit])) > self.width - indent:
                rows.append(" · ".join(row))
                row = []
            row.append(unit)
        for number, text in enumerate([*rows, " · ".join(row)]):
            self.block([] if number else head, text, indent=indent, style=style)

    def blank(self) -> None:
        """One empty line, never two, and none at the top."""
        if self._done and self._done[-2:] != [("\n", ""), ("\n", "")]:
            self._done.append(("\n", ""))

    def _end(self) -> None:
        while self._open:
            text, style = self._open.pop()
            if bare := text.rstrip(" "):
                self._open.append((bare, style))
                break
        self._done += [*self._open, ("\n", "")]
        self._open = []
