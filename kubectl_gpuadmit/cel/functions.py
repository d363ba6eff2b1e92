"""The functions that expressions may call: declared with their types, found by name and arguments.

A signature is one line: ``string::charAt(int): string`` is called on a string,
``size(list<A>): int`` is not. ``since`` is the Kubernetes minor version that brought it.

Source: github.com/google/cel-go v0.29.2 common/decls/decls.go (how an overload is found while the
expression runs, and what is said where there is none).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel.operators import no_overload
from kubectl_gpuadmit.cel.syntax import Call
from kubectl_gpuadmit.cel.types import Type, read, split
from kubectl_gpuadmit.cel.values import (
    Fail,
    Unknown,
    Unsure,
    type_name,
)

Impl = Callable[..., Any]


class Overload(Struct, frozen=True):
    name: str
    member: bool
    params: tuple[Type, ...]
    """With the receiver first."""
    result: Type
    impl: Impl | None
    since: int
    key: str
    """The signature without the result, by which costs know it: ``_+_(string,string)``."""


_SIGNATURE = re.compile(r"(?:(?P<on>[^:]+)::)?(?P<name>[^(]+)\((?P<args>.*)\): (?P<result>.+)")


def declare(signature: str, impl: Impl | None = None, *, since: int = 0) -> Overload:
    match = _SIGNATURE.fullmatch(signature)
    assert match, signature
    params = tuple(read(part) for part in split(match["args"]))
    if match["on"]:
        params = (read(match["on"]), *params)
    key = signature[: match.start("result") - len(": ")]
    result = read(match["result"])
    return Overload(match["name"], bool(match["on"]), params, result, impl, since, key)


class Table:
    """Overloads by name, in the order of declaration."""

    def __init__(self, overloads: Iterable[Overload]) -> None:
        self._by_name: dict[str, list[Overload]] = {}
        for one in overloads:
            self._by_name.setdefault(one.name, []).append(one)

    def named(self, name: str) -> list[Overload]:
        return self._by_name.get(name, [])


_RUNTIME = {
    "bool": "bool",
    "int": "int",
    "uint": "uint",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "null": "null_type",
    "list": "list",
    "map": "map",
    "type": "type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def accepts(param: Type, value: Any) -> bool:
    """Whether a value may be passed; of a list or a map only the first element is looked at."""
    kind = param.kind
    if kind in ("dyn", "any", "param"):
        return True
    name = type_name(value)
    if kind in ("struct", "opaque"):
        return name == param.name
    if name != _RUNTIME[kind]:
        return False
    if kind == "list" and param.params and value:
        return accepts(param.params[0], value[0])
    return True


_UNGUARDED = {"contains", "startsWith", "endsWith"}
_ONE_FOR_ALL = {"size", "matches", "sort"}
"""Functions of which cel-go has one implementation for all types: it says less where none fits."""


def caller(node: Call, table: Table, version: int) -> Impl:
    """A Python function that calls the first overload which takes the arguments.

    Where the check found one overload to fit, only that is tried."""
    name = node.function
    member = node.target is not None
    fitting = [
        one
        for one in table.named(name)
        if one.since <= version
        and one.member == member
        and len(one.params) == len(node.args) + member
        and (not node.key or node.key == one.key or name in _ONE_FOR_ALL)
    ]

    def call(*args: Any) -> Any:
        for one in fitting:
            if all(accepts(param, arg) for param, arg in zip(one.params, args, strict=True)):
                assert one.impl is not None
                return one.impl(*args)
        for arg in args:
            if isinstance(arg, Unknown):
                raise Unsure(arg.what)
        if name in _UNGUARDED:
            raise Fail("no such overload")
        if name in _ONE_FOR_ALL:
            raise no_overload(args[0], name)
        raise Fail(f"no such overload: {name}({', '.join(type_name(arg) for arg in args)})")

    return call
