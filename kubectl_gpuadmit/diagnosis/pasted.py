"""Takes pasted text apart into statements whose words can be found however they were wrapped.

Knows terminals, ``kubectl describe`` and ``get events`` tables, YAML and JSON around a message,
quotes
and escapes; knows no message. What is ambiguous stays so: of a line's end nobody can tell whether a
blank stood there, therefore patterns are matched on the text without white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

LONGEST = 1_000_000
"""Characters of a text that are read; of JSON everything is."""

STATEMENT = 8_000
"""Characters of one statement: a message has a few hundred, an event 1,024 at most."""

_ESCAPES = re.compile(
    r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
    r"|[\u200b-\u200f\u2060\ufeff\xad]"
)
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\xa0": " ",
                         "\u2028": "\n", "\u2029": "\n", "\x85": "\n"})  # fmt: skip
_FOLDED = re.compile(r"\\\n[ \t]*(?:\\(?=[ \t]))?")
"""A line of a double-quoted YAML scalar that goes on: ``\\`` at its end, ``\\ `` for a blank."""

_START = re.compile(
    r"""\s*(?:
      (?:Normal|Warning)\s+[A-Z][A-Za-z]+(?:\s|$)
    | (?:<unknown>|\d+[smhdy]\S*(?:\s+\(x\d+\s+over\s+\S+\))?)\s+(?:Normal|Warning)\s
    | Error\ from\ server
    | error:\s(?:unable\ to|pods\ |[Yy]ou\ must|cannot\ |resource\ mapping|timed\ out|no\ matches)
    | [IWEF]\d{4}\s\d\d:\d\d:\d\d
    | (?:Message|Reason|Status|Events|Event|Conditions|Type|Node|Labels
        |Annotations|Controlled\ By):\s
    | (?:Message|Reason|Status|Events|Event|Conditions):$
    | (?:-\s+)?["']?(?:apiVersion|kind|metadata|spec|status|reason|message|type|phase|count
        |firstTimestamp|last(?:Transition|Probe|Timestamp)\w*|observedGeneration|involvedObject|source|qosClass
        |reportingComponent|note|regarding|eventTime|action|namespace|resourceVersion|uid)["']?\s*:(?:\s|$)
    | \#\s | \$\s | ---(?:\s|$) | NAME\s{2,}\S | LAST\ SEEN\s | Type\s+Reason\s
    )""",
    re.VERBOSE,
)


_GOES_ON = re.compile(r"denied the request:\s*$|blocked due to the following policies")
"""Messages that have empty lines within."""


class Statement(msgspec.Struct, frozen=True, dict=True):
    """One message, or a few that could not be told apart. ``text`` has one blank where white space
    stood, and a line feed where a line ended."""

    text: str
    hard: bool = False
    """True where lines were cut at a width, words and all."""

    @cached_property
    def _bare(self) -> tuple[str, tuple[int, ...]]:
        at = tuple(i for i, char in enumerate(self.text) if not char.isspace())
        return "".join(self.text[i] for i in at), at

    @property
    def bare(self) -> str:
        """The text without white space, which patterns are matched on."""
        return self._bare[0]

    def gap(self, index: int) -> str:
        """What stood after a character of the bare text: '', a blank, or a line feed."""
        at = self._bare[1]
        return self.text[at[index] + 1 : at[index + 1]] if index + 1 < len(at) else ""

    def said(self, start: int, end: int) -> str:
        """The words of ``[start, end)`` of the bare text, on one line."""
        if start >= end:
            return ""
        at = self._bare[1]
        part = self.text[at[start] : at[end - 1] + 1]
        part = re.sub(r"(?<=[^\s\-/]-|[^\s/]/)\n", "", part)
        return " ".join(part.replace("\n", "" if self.hard else " ").split())

    def token(self, start: int, end: int) -> str:
        """The same as one word: it ends at the first blank that no comma or the like announces."""
        for i in range(start + 1, end):
            if " " in self.gap(i - 1) and self.bare[i - 1] not in ",:=":
                end = i
                break
        return self.bare[start:end].rstrip(".,;:")

    def beside(self, start: int, end: int) -> str:
        """``[start, end)`` with the blanks that surely stood in it, for amounts at its end."""
        return "".join(
            (" " if i > start and " " in self.gap(i - 1) else "") + self.bare[i]
            for i in range(start, end)
        )


def statements(raw: str) -> Iterator[Statement]:
    """Every statement of a paste, in order; messages inside JSON come one by one."""
    objects = _json(raw)
    if objects is not None:
        for message in objects:
            yield from _split(_unescaped(_plain(message)))
        return
    yield from _split(_unescaped(_plain(raw[:LONGEST])))


def _plain(raw: str) -> str:
    """Without what a terminal or an editor has put in."""
    text = _ESCAPES.sub("", raw.replace("\r\n", "\n").replace("\r", "\n"))
    return text.translate(_QUOTES)


def _unescaped(text: str) -> str:
    """Without the escapes of JSON, YAML, Go's %q and shells: quotes as they were meant."""
    text = _FOLDED.sub("", text)
    for _ in range(3):  # an escaped text may have been escaped again
        shorter = text.replace('\\"', '"').replace("\\'", "'").replace("\\n", "\n")
        shorter = shorter.replace("\\t", " ").replace("\\u003c", "<").replace("\\u003e", ">")
        if shorter == text:
            break
        text = shorter.replace("\\\\", "\\")
    return re.sub(r"(?<=\w)''(?=\w)|(?<=\w)'\\''(?=\w)", "'", text)


def _split(text: str) -> Iterator[Statement]:
    block: list[str] = []
    room = STATEMENT
    for line in _lines(text):
        blank = not line.strip()
        if blank and block and _GOES_ON.search(" ".join(block)):
            continue
        if block and (blank or len(line) > room or _START.match(line)):
            yield _statement(block)
            block, room = [], STATEMENT
        if not blank:
            block.append(line)
            room -= len(line) + 1
    if block:
        yield _statement(block)


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for at in range(0, max(len(line), 1), STATEMENT):
            yield line[at : at + STATEMENT]


def _statement(lines: list[str]) -> Statement:
    indent = min((len(line) - len(line.lstrip()) for line in lines[1:]), default=0)
    lines = [lines[0], *(line[indent:] for line in lines[1:])]
    widths = {len(line) for line in lines[:-1]}
    hard = len(lines) > 2 and len(widths) == 1 and len(lines[-1]) <= max(widths)
    out = ""
    for number, line in enumerate(lines):
        folded = " ".join(line.split())
        if number:
            sure = lines[number - 1][-1:].isspace() or (hard and line[:1].isspace())
            out += " " if sure else "\n"
        out += folded
    if found := _SCALAR.match(out):
        out = (found["single"] or "").replace("''", "'") or found["double"] or out
    return Statement(out, hard)


_SCALAR = re.compile(
    r"""(?:-[ ])?["']?(?:message|note)["']?:\s(?:'(?P<single>.+?)'?|"(?P<double>.+?)"?)$""",
    re.DOTALL,
)
"""A quoted YAML scalar: its quotes are not the message's."""

_MESSAGES = ("message", "note")


def _json(text: str) -> list[str] | None:
    """Messages of a JSON object, list or lines of objects; None where the text is none of these."""
    bare = text.strip()
    if not bare.startswith(("{", "[")):
        return None
    try:
        return list(_messages(msgspec.json.decode(bare), 0))
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        lines = [msgspec.json.decode(line) for line in bare.splitlines() if line.strip()]
        return [message for line in lines for message in _messages(line, 0)]
    except (msgspec.DecodeError, RecursionError):
        return None


def _messages(value: Any, depth: int) -> Iterator[str]:
    if depth > 50:
        return
    if isinstance(value, list):
        for item in value:
            yield from _messages(item, depth + 1)
    elif isinstance(value, dict):
        message = next((value[k] for k in _MESSAGES if isinstance(value.get(k), str)), None)
        if message is not None:
            kind = value.get("type") if value.get("type") in ("Normal", "Warning") else ""
            reason = value.get("reason") if isinstance(value.get("reason"), str) else ""
            yield f"{kind or ''} {reason or ''} {message}".strip()
        elif value.get("reason") and isinstance(value.get("phase"), str):
            yield f"{value['phase']} {value['reason']}"
        for item in value.values():
            if isinstance(item, dict | list):
                yield from _messages(item, depth + 1)
