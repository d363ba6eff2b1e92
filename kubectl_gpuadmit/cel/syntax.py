"""What a CEL expression consists of once it is read; macros are nodes of their own.

``at`` is the place in the source text (characters from 0) that an error of the node names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct


class Const(Struct):
    at: int
    value: Any
    """bool, int, values.Uint, float, str, bytes or None."""


class Ident(Struct):
    at: int
    name: str


class Select(Struct):
    """``operand.field``; ``has(operand.field)`` with ``test``; ``operand.?field``."""

    at: int
    operand: Node
    field: str
    test: bool = False
    optional: bool = False


class Call(Struct):
    """A function or an operator (``_+_``); ``_&&_`` and ``_||_`` hold all terms of a chain."""

    at: int
    function: str
    args: list[Node]
    target: Node | None = None
    key: str = ""
    """The one overload that the check found to fit; '' where there are several."""


class ListOf(Struct):
    at: int
    items: list[Node]
    optional: frozenset[int] = frozenset()


class MapOf(Struct):
    at: int
    entries: list[tuple[Node, Node, bool]]
    """Key, value, and whether the entry is optional (``?key: value``)."""


class Message(Struct):
    """``Name{field: value}``: the objects of MutatingAdmissionPolicies."""

    at: int
    name: str
    fields: list[tuple[str, Node, bool, int]]


Loop = Literal[
    "all", "exists", "exists_one", "map", "filter", "transformMap", "transformMapEntry", "sortBy"
]


class Fold(Struct):
    """A comprehension. ``second`` is the second variable, or ''; ``keep`` the filter of a map."""

    at: int
    loop: Loop
    over: Node
    first: str
    second: str
    body: Node
    keep: Node | None = None
    counted: bool = False
    """sortBy alone: the check knows the type of the keys."""


class Bind(Struct):
    """``cel.bind(name, value, body)``."""

    at: int
    name: str
    value: Node
    body: Node


class OptMap(Struct):
    """``target.optMap(name, body)``; ``flat`` is optFlatMap."""

    at: int
    target: Node
    name: str
    body: Node
    flat: bool


class Comprehension(Struct):
    """What a macro stands for (``expand``): ``accu`` is carried from turn to turn."""

    at: int
    over: Node
    first: str
    second: str
    accu: str
    init: Node
    condition: Node
    step: Node
    result: Node


Node = (
    Const | Ident | Select | Call | ListOf | MapOf | Message | Fold | Bind | OptMap | Comprehension
)


def children(node: Node) -> list[Node]:
    """The nodes directly below, in source order."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target is not None else []), *node.args]
        case ListOf():
            return node.items
        case MapOf():
            return [one for key, value, _ in node.entries for one in (key, value)]
        case Message():
            return [value for _, value, _, _ in node.fields]
        case Fold():
            return [node.over, *([node.keep] if node.keep is not None else []), node.body]
        case Bind():
            return [node.value, node.body]
        case OptMap():
            return [node.target, node.body]
        case _:
            return []


def every(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in children(node):
        yield from every(child)


def dotted(node: Node | None) -> str:
    """``a.b.c`` as text where the node is nothing but names, else ''."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        head = dotted(node.operand)
        return f"{head}.{node.field}" if head else ""
    return ""
