"""Regular expressions as Go's regexp package reads them, matched in time linear in the text.

A pattern is parsed here, for Python's own syntax differs (``$``, ``\\s``, flags in the middle), and
for its errors are part of CEL's messages. Simple patterns are then handed to Python's ``re``;
patterns with a repetition inside of a repetition, on which ``re`` may need exponential time, run on
a small state machine. Classes by Unicode property and ``\\Q…\\E`` are not evaluated (Unsure).

Source: Go regexp/syntax (parse.go, perl_groups.go); the machine is Pike's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubectl_gpuadmit.cel.regex_machine import Machine
from kubectl_gpuadmit.cel.regex_reader import (
    Alt,
    Assert,
    Cat,
    Chars,
    Node,
    Reader,
    RegexError,
    Repeat,
)

__all__ = ["Pattern", "RegexError", "compiled"]


class Pattern:
    """A compiled pattern."""

    def __init__(self, node: Node) -> None:
        self._python = re.compile(_emit(node)) if _tame(node) else None
        self._machine = None if self._python else Machine(node)

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        return self.find(text, 0) is not None

    def find(self, text: str, begin: int) -> tuple[int, int] | None:
        """The leftmost match from ``begin`` on; as Go prefers, not the longest."""
        if self._python is not None:
            found = self._python.search(text, begin)
            return found.span() if found else None
        assert self._machine is not None
        return self._machine.find(text, begin)

    def find_all(self, text: str, most: int) -> list[str]:
        """Matches that do not overlap; ``most`` < 0 for all."""
        found: list[str] = []
        begin, last = 0, -1
        while begin <= len(text) and (most < 0 or len(found) < most):
            span = self.find(text, begin)
            if span is None:
                break
            if span[0] == span[1]:
                if span[0] != last:  # an empty match right behind a match does not count
                    found.append("")
                begin = span[1] + 1
            else:
                found.append(text[span[0] : span[1]])
                begin = span[1]
            last = span[1]
        return found


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    """Raises RegexError, or Unsure for syntax that is not evaluated here."""
    reader = Reader(pattern)
    node = reader.alternatives()
    if reader.at < len(pattern):
        raise RegexError("unexpected )", pattern)
    return Pattern(node)


def _tame(node: Node) -> bool:
    """Whether backtracking stays cheap: few repetitions, none inside of another."""
    return _loops(node) <= 4


def _loops(node: Node) -> int:
    match node:
        case Cat() | Alt():
            return sum(_loops(part) for part in node.parts)
        case Repeat():
            inner = _loops(node.part)
            simple = isinstance(node.part, Chars)
            if node.most == 1:
                return inner if inner == 0 else 99
            return 1 if simple else (1 if inner == 0 and node.most >= 0 else 99)
        case _:
            return 0


def _emit(node: Node) -> str:
    match node:
        case Chars():
            if not node.ranges:
                return r"(?!)"
            return "[" + "".join(_range(low, high) for low, high in node.ranges) + "]"
        case Assert():
            return {
                "A": r"\A",
                "z": r"\Z",
                "^": "(?m:^)",
                "$": "(?m:$)",
                "b": r"(?a:\b)",
                "B": r"(?a:\B)",
            }[node.kind]
        case Cat():
            return "".join(_emit(part) for part in node.parts)
        case Alt():
            return "(?:" + "|".join(_emit(part) for part in node.parts) + ")"
        case Repeat():
            most = "" if node.most < 0 else str(node.most)
            lazy = "" if node.greedy else "?"
            return f"(?:{_emit(node.part)}){{{node.least},{most}}}{lazy}"


def _range(low: int, high: int) -> str:
    def one(code: int) -> str:
        return f"\\U{code:08x}"

    return one(low) if low == high else f"{one(low)}-{one(high)}"


# -- on the machine --------------------------------------------------------------------------------
