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

from msgspec import Struct

from kubectl_gpuadmit.cel.values import Unsure

Ranges = tuple[tuple[int, int], ...]

_TOP = 0x10FFFF
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


class _Chars(Struct, frozen=True):
    ranges: Ranges


class _Assert(Struct, frozen=True):
    kind: str
    """``^`` ``$`` of a line, ``A`` ``z`` of the text, ``b`` ``B``."""


class _Cat(Struct, frozen=True):
    parts: tuple[_Node, ...]


class _Alt(Struct, frozen=True):
    parts: tuple[_Node, ...]


class _Repeat(Struct, frozen=True):
    part: _Node
    least: int
    most: int
    """-1: without end."""
    greedy: bool


_Node = _Chars | _Assert | _Cat | _Alt | _Repeat


class Pattern:
    """A compiled pattern."""

    def __init__(self, node: _Node) -> None:
        self._python = re.compile(_emit(node)) if _tame(node) else None
        self._machine = None if self._python else _Machine(node)

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
    reader = _Reader(pattern)
    node = reader.alternatives()
    if reader.at < len(pattern):
        raise RegexError("unexpected )", pattern)
    return Pattern(node)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.text, self.at = pattern, 0
        self._fold = self._lines = self._dot_all = False
        self._depth = 0

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def alternatives(self) -> _Node:
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
        return parts[0] if len(parts) == 1 else _Alt(tuple(parts))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
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
            parts[-1] = _Repeat(parts[-1], least, most, greedy)
        return parts[0] if len(parts) == 1 else _Cat(tuple(parts))

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

    def _atom(self) -> _Node | None:
        letter = self._peek()
        self.at += 1
        if letter == "(":
            return self._group()
        if letter == "[":
            return _Chars(self._folded(self._class()))
        if letter == ".":
            return _Chars(((0, _TOP),) if self._dot_all else ((0, 9), (11, _TOP)))
        if letter == "^":
            return _Assert("^" if self._lines else "A")
        if letter == "$":
            return _Assert("$" if self._lines else "z")
        if letter == "\\":
            return self._escape()
        return self._literal(ord(letter))

    def _literal(self, code: int) -> _Node:
        return _Chars(self._folded(((code, code),)))

    def _folded(self, ranges: Ranges) -> Ranges:
        if not self._fold:
            return ranges
        more = list(ranges)
        for low, high in ranges:
            if high > 127 and high != _TOP:
                raise Unsure("a case-insensitive regular expression beyond ASCII")
            for code in range(max(low, 65), min(high, 122) + 1):
                if chr(code).isalpha():
                    lower = code | 0x20
                    more += [(lower, lower), (lower - 32, lower - 32)]
                    if lower in _FOLD_EXTRA:
                        more.append((_FOLD_EXTRA[lower],) * 2)
        return tuple(more)

    def _group(self) -> _Node | None:
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

    def _close(self) -> _Node:
        node = self.alternatives()
        if self._peek() != ")":
            raise RegexError("missing closing )", self.text)
        self.at += 1
        return node

    def _escape(self) -> _Node:
        letter = self._peek()
        if letter == "":
            raise RegexError("trailing backslash at end of expression", "")
        if letter in "AzbB":
            self.at += 1
            return _Assert(letter)
        if letter in "pPQC":
            raise Unsure(f"\\{letter} in a regular expression")
        kind = letter.lower()
        if kind in _PERL:
            self.at += 1
            return _Chars(_PERL[kind] if letter == kind else _outside(_PERL[kind]))
        return self._literal(self._code())

    def _code(self) -> int:
        """The character of an escape, from behind the backslash."""
        begin = self.at - 1
        letter = self._peek()
        self.at += 1
        if letter == "x":
            digits = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(self.text, self.at)
            if not digits or (code := int(digits[1] or digits[2], 16)) > _TOP:
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
    if begin <= _TOP:
        found.append((begin, _TOP))
    return tuple(found)


# -- on Python's own engine ------------------------------------------------------------------------


def _tame(node: _Node) -> bool:
    """Whether backtracking stays cheap: few repetitions, none inside of another."""
    return _loops(node) <= 4


def _loops(node: _Node) -> int:
    match node:
        case _Cat() | _Alt():
            return sum(_loops(part) for part in node.parts)
        case _Repeat():
            inner = _loops(node.part)
            simple = isinstance(node.part, _Chars)
            if node.most == 1:
                return inner if inner == 0 else 99
            return 1 if simple else (1 if inner == 0 and node.most >= 0 else 99)
        case _:
            return 0


def _emit(node: _Node) -> str:
    match node:
        case _Chars():
            if not node.ranges:
                return r"(?!)"
            return "[" + "".join(_range(low, high) for low, high in node.ranges) + "]"
        case _Assert():
            return {
                "A": r"\A",
                "z": r"\Z",
                "^": "(?m:^)",
                "$": "(?m:$)",
                "b": r"(?a:\b)",
                "B": r"(?a:\B)",
            }[node.kind]
        case _Cat():
            return "".join(_emit(part) for part in node.parts)
        case _Alt():
            return "(?:" + "|".join(_emit(part) for part in node.parts) + ")"
        case _Repeat():
            most = "" if node.most < 0 else str(node.most)
            lazy = "" if node.greedy else "?"
            return f"(?:{_emit(node.part)}){{{node.least},{most}}}{lazy}"


def _range(low: int, high: int) -> str:
    def one(code: int) -> str:
        return f"\\U{code:08x}"

    return one(low) if low == high else f"{one(low)}-{one(high)}"


# -- on the machine --------------------------------------------------------------------------------

_Step = tuple[str, object, int]
"""What to do, with what, and where to go on."""


class _Machine:
    """Runs all threads side by side; the first in the list is the one that Go prefers."""

    def __init__(self, node: _Node) -> None:
        self._code: list[list[object]] = []
        self._build(node)
        self._code.append(["match"])
        if len(self._code) > 20_000:
            raise Unsure("the regular expression is too large")

    def _build(self, node: _Node) -> None:
        code = self._code
        if len(code) > 20_000:
            raise Unsure("the regular expression is too large")
        match node:
            case _Chars():
                code.append(["chars", node.ranges])
            case _Assert():
                code.append(["assert", node.kind])
            case _Cat():
                for part in node.parts:
                    self._build(part)
            case _Alt():
                jumps = []
                for part in node.parts[:-1]:
                    split: list[object] = ["split", len(code) + 1, 0]
                    code.append(split)
                    self._build(part)
                    jump: list[object] = ["jump", 0]
                    code.append(jump)
                    jumps.append(jump)
                    split[2] = len(code)
                self._build(node.parts[-1])
                for jump in jumps:
                    jump[1] = len(code)
            case _Repeat():
                for _ in range(node.least):
                    self._build(node.part)
                if node.most < 0:
                    begin = len(code)
                    loop: list[object] = ["split", 0, 0]
                    code.append(loop)
                    self._build(node.part)
                    code.append(["jump", begin])
                    inside, outside = begin + 1, len(code)
                    loop[1:] = [inside, outside] if node.greedy else [outside, inside]
                else:
                    splits = []
                    for _ in range(node.most - node.least):
                        split = ["split", 0, 0]
                        splits.append((split, len(code) + 1))
                        code.append(split)
                        self._build(node.part)
                    for split, inside in splits:
                        ends = [inside, len(code)]
                        split[1:] = ends if node.greedy else ends[::-1]

    def find(self, text: str, begin: int) -> tuple[int, int] | None:
        threads: list[tuple[int, int]] = []
        found: tuple[int, int] | None = None
        for at in range(begin, len(text) + 1):
            if found is None:
                self._add(threads, {pc for pc, _ in threads}, 0, at, text, at)
            if not threads:
                if found is not None:
                    break
                continue
            letter = ord(text[at]) if at < len(text) else -1
            following: list[tuple[int, int]] = []
            seen: set[int] = set()
            for pc, start in threads:
                step = self._code[pc]
                if step[0] == "match":
                    found = (start, at)
                    break
                ranges: Ranges = step[1]  # type: ignore[assignment]
                if any(low <= letter <= high for low, high in ranges):
                    self._add(following, seen, pc + 1, start, text, at + 1)
            threads = following
        return found

    def _add(
        self,
        threads: list[tuple[int, int]],
        seen: set[int],
        pc: int,
        start: int,
        text: str,
        at: int,
    ) -> None:
        stack = [pc]
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            step = self._code[pc]
            if step[0] == "jump":
                stack.append(step[1])  # type: ignore[arg-type]
            elif step[0] == "split":
                stack += [step[2], step[1]]  # type: ignore[list-item]
            elif step[0] == "assert":
                if _holds(str(step[1]), text, at):
                    stack.append(pc + 1)
            else:
                threads.append((pc, start))


def _holds(kind: str, text: str, at: int) -> bool:
    if kind == "A":
        return at == 0
    if kind == "z":
        return at == len(text)
    if kind == "^":
        return at == 0 or text[at - 1] == "\n"
    if kind == "$":
        return at == len(text) or text[at] == "\n"
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return (before != after) == (kind == "b")


def _is_word(letter: str) -> bool:
    return letter == "_" or (letter.isascii() and letter.isalnum())
