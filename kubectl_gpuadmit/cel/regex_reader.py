"""Reads a regular expression as Go does (RE2) into nodes; runs nothing.

Source: Go regexp/syntax (parse.go).
"""

from __future__ import annotations

import re

from msgspec import Struct

from kubectl_gpuadmit.cel.values import Unsure

Ranges = tuple[tuple[int, int], ...]
"""Characters, by first and last code point."""

TOP = 0x10FFFF
_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_PERL = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_LETTERS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_FOLD_EXTRA = {ord("k"): 0x212A, ord("s"): 0x17F}
_MOST = 1000


class RegexError(Exception):
    """The pattern is not one of Go's; ``str()`` is Go's message."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {what}: `{where}`")


class Chars(Struct, frozen=True):
    ranges: Ranges


class Assert(Struct, frozen=True):
    kind: str
    """``^`` ``$`` of a line, ``A`` ``z`` of the text, ``b`` ``B``."""


class Cat(Struct, frozen=True):
    parts: tuple[Node, ...]


class Alt(Struct, frozen=True):
    parts: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    part: Node
    least: int
    most: int
    """-1: without end."""
    greedy: bool


Node = Chars | Assert | Cat | Alt | Repeat


class Reader:
    def __init__(self, pattern: str) -> None:
        self.text, self.at = pattern, 0
        self._fold = self._lines = self._dot_all = False
        self._depth = 0

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def alternatives(self) -> Node:
        self._depth += 1
        if self._depth > 200:
            raise Unsure("the regular expression nests too deeply")
        before = (self._fold, self._lines, self._dot_all)
        parts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence())
        self._fold, self._lines, self._dot_all = before
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Alt(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        repeated = ""
        while self.at < len(self.text) and self._peek() not in "|)":
            begin = self.at
            sign = self._repetition()
            if sign is None:
                repeated = ""
                node = self._atom()
                if node is not None:
                    parts.append(node)
                continue
            shown = self.text[begin : self.at]
            if repeated:
                raise RegexError("invalid nested repetition operator", repeated + shown)
            if not parts:
                raise RegexError("missing argument to repetition operator", shown)
            repeated = shown
            least, most, greedy = sign
            parts[-1] = Repeat(parts[-1], least, most, greedy)
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def _repetition(self) -> tuple[int, int, bool] | None:
        letter = self._peek()
        if letter in ("*", "+", "?"):
            self.at += 1
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[letter]
        elif letter == "{":
            braces = re.compile(r"\{(\d+)(,(\d*))?\}", re.ASCII).match(self.text, self.at)
            if not braces:
                return None
            least = int(braces[1])
            most = (int(braces[3]) if braces[3] else -1) if braces[2] else least
            if least > _MOST or most > _MOST or -1 < most < least:
                raise RegexError("invalid repeat count", braces[0])
            self.at = braces.end()
        else:
            return None
        greedy = self._peek() != "?"
        if not greedy:
            self.at += 1
        return least, most, greedy

    def _atom(self) -> Node | None:
        letter = self._peek()
        self.at += 1
        if letter == "(":
            return self._group()
        if letter == "[":
            return Chars(self._folded(self._class()))
        if letter == ".":
            return Chars(((0, TOP),) if self._dot_all else ((0, 9), (11, TOP)))
        if letter == "^":
            return Assert("^" if self._lines else "A")
        if letter == "$":
            return Assert("$" if self._lines else "z")
        if letter == "\\":
            return self._escape()
        return self._literal(ord(letter))

    def _literal(self, code: int) -> Node:
        return Chars(self._folded(((code, code),)))

    def _folded(self, ranges: Ranges) -> Ranges:
        if not self._fold:
            return ranges
        more = list(ranges)
        for low, high in ranges:
            if high > 127 and high != TOP:
                raise Unsure("a case-insensitive regular expression beyond ASCII")
            for code in range(max(low, 65), min(high, 122) + 1):
                if chr(code).isalpha():
                    lower = code | 0x20
                    more += [(lower, lower), (lower - 32, lower - 32)]
                    if lower in _FOLD_EXTRA:
                        more.append((_FOLD_EXTRA[lower],) * 2)
        return tuple(more)

    def _group(self) -> Node | None:
        if not self.text.startswith("?", self.at):
            return self._close()
        named = re.compile(r"\?P?<(\w+)>", re.ASCII).match(self.text, self.at)
        if named:
            self.at = named.end()
            return self._close()
        flags = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])").match(self.text, self.at)
        if not flags or (not flags[1] and not flags[2] and flags[3] == ")"):
            shown = self.text[self.at - 1 : self.at + 2]
            raise RegexError("invalid or unsupported Perl syntax", shown)
        self.at = flags.end()
        if "U" in flags[1] + (flags[2] or ""):
            raise Unsure("the flag U of regular expressions")
        before = (self._fold, self._lines, self._dot_all)
        for letters, on in ((flags[1], True), (flags[2] or "", False)):
            self._fold = on if "i" in letters else self._fold
            self._lines = on if "m" in letters else self._lines
            self._dot_all = on if "s" in letters else self._dot_all
        if flags[3] == ")":
            return None
        node = self._close()
        self._fold, self._lines, self._dot_all = before
        return node

    def _close(self) -> Node:
        node = self.alternatives()
        if self._peek() != ")":
            raise RegexError("missing closing )", self.text)
        self.at += 1
        return node

    def _escape(self) -> Node:
        letter = self._peek()
        if letter == "":
            raise RegexError("trailing backslash at end of expression", "")
        if letter in "AzbB":
            self.at += 1
            return Assert(letter)
        if letter in "pPQC":
            raise Unsure(f"\\{letter} in a regular expression")
        kind = letter.lower()
        if kind in _PERL:
            self.at += 1
            return Chars(_PERL[kind] if letter == kind else _outside(_PERL[kind]))
        return self._literal(self._code())

    def _code(self) -> int:
        """The character of an escape, from behind the backslash."""
        begin = self.at - 1
        letter = self._peek()
        self.at += 1
        if letter == "x":
            digits = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(self.text, self.at)
            if not digits or (code := int(digits[1] or digits[2], 16)) > TOP:
                raise RegexError("invalid escape sequence", self.text[begin : self.at + 1])
            self.at = digits.end()
            return code
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.text, self.at - 1)
        if octal:
            self.at = octal.end()
            return int(octal[0], 8)
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter and ord(letter) < 128 and not letter.isalnum():
            return ord(letter)
        raise RegexError("invalid escape sequence", self.text[begin : self.at])

    def _class(self) -> Ranges:
        begin = self.at - 1
        inverted = self._peek() == "^"
        self.at += inverted
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            if self.at >= len(self.text):
                raise RegexError("missing closing ]", self.text[begin:])
            if self._peek() == "-" and not first and self.text[self.at + 1 : self.at + 2] != "]":
                shown = self.text[self.at : self.at + 2]
                raise RegexError("invalid character class range", shown)
            first = False
            ranges += self._class_item()
        self.at += 1
        found = tuple(ranges)
        return _outside(self._folded(found)) if inverted else found

    def _class_item(self) -> Ranges:
        posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.text, self.at)
        if posix:
            if posix[2] not in _POSIX:
                raise RegexError("invalid character class range", posix[0])
            self.at = posix.end()
            named = _POSIX[posix[2]]
            return _outside(named) if posix[1] else named
        begin = self.at
        letter = self._peek()
        if letter == "\\":
            follows = self.text[self.at + 1 : self.at + 2]
            if follows and follows in "pPQ":
                raise Unsure(f"\\{follows} in a regular expression")
            if follows and follows.lower() in _PERL:
                self.at += 2
                named = _PERL[follows.lower()]
                return named if follows.islower() else _outside(named)
        low = self._class_char()
        if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            high = self._class_char()
            if high < low:
                raise RegexError("invalid character class range", self.text[begin : self.at])
            return ((low, high),)
        return ((low, low),)

    def _class_char(self) -> int:
        letter = self._peek()
        self.at += 1
        return self._code() if letter == "\\" else ord(letter)


def _outside(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    begin = 0
    for low, high in sorted(ranges):
        if low > begin:
            found.append((begin, low - 1))
        begin = max(begin, high + 1)
    if begin <= TOP:
        found.append((begin, TOP))
    return tuple(found)


# -- on Python's own engine ------------------------------------------------------------------------
