"""The clauses of ``format``: what a text holds, and which types each may be given.

Source: github.com/google/cel-go v0.29.2 ext/formatting.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from kubectl_gpuadmit.cel.syntax import Call, Const, ListOf, MapOf, Node
from kubectl_gpuadmit.cel.types import Type


class Clause(Struct, frozen=True):
    """A piece of text (``verb`` is '') or one ``%.2f``."""

    text: str
    verb: str = ""
    places: int | None = None


_CLAUSE = re.compile(r"%(?:\\.([0-9]+))?([a-zA-Z])")

_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types,"
    " durations, and timestamps"
)
REFUSALS = {
    "s": _STRING,
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
"""What is said of a value that a clause cannot take, before ``, was given TYPE``."""

_TAKES = {
    "s": {
        *("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes"),
        *("duration", "type", "null"),
    },
    "d": {"int", "uint"},
    "f": {"double", "string"},
    "e": {"double", "string"},
    "b": {"int", "uint", "bool"},
    "x": {"int", "uint", "string", "bytes"},
    "X": {"int", "uint", "string", "bytes"},
    "o": {"int", "uint"},
}


def clauses(text: str) -> Iterator[Clause]:
    """In order. A clause that cannot be read has the verb ``?``."""
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent < 0:
            yield Clause(text[at:])
            return
        if percent > at:
            yield Clause(text[at:percent])
        if text.startswith("%%", percent):
            yield Clause("%")
            at = percent + 2
            continue
        match = _CLAUSE.match(text, percent)
        if not match or match[2] not in _TAKES:
            yield Clause("", "?")
            return
        yield Clause("", match[2], int(match[1]) if match[1] else None)
        at = match.end()


def check(call: Call, type_of: Callable[[Node], Type]) -> tuple[int, str] | None:
    """What is wrong with a written text and a written list of arguments: place and message."""
    args = call.args[0] if len(call.args) == 1 else None
    if not isinstance(call.target, Const) or not isinstance(args, ListOf):
        return None
    if not isinstance(call.target.value, str):
        return None
    place = 0
    for clause in clauses(call.target.value):
        if clause.verb == "?":
            return None
        if not clause.verb:
            continue
        if place >= len(args.items):
            return None
        bad = _bad(args.items[place], clause.verb, type_of)
        if bad is not None:
            found = type_of(bad)
            name = found.name or _GO_NAMES.get(found.kind, found.kind)
            said = f"{REFUSALS[clause.verb]}, was given {name}"
            return bad.at, f"error during formatting: {said}"
        place += 1
    return None


_GO_NAMES = {
    "any": "google.protobuf.Any",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def _bad(node: Node, verb: str, type_of: Callable[[Node], Type]) -> Node | None:
    """The node that the clause cannot take, also inside of written lists and maps."""
    found = type_of(node)
    if not (found.kind == "dyn" or found.kind in _TAKES[verb]):
        return node
    if verb != "s":
        return None
    inner: list[Node] = []
    if isinstance(node, ListOf):
        inner = node.items
    if isinstance(node, MapOf):
        inner = [one for key, value, _ in node.entries for one in (key, value)]
    for one in inner:
        bad = _bad(one, verb, type_of)
        if bad is not None:
            return bad
    return None
