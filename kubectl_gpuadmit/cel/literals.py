"""What the API server asks of literals once the types are right.

Arguments of duration(), timestamp() and matches() that are written out must be valid; elements of a
list and entries of a map must have one type, except in the arguments of ``format``.

Source: github.com/google/cel-go v0.29.2 cel/validator.go; k8s.io/apiserver v0.37.2
pkg/cel/environment/base.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kubectl_gpuadmit.cel import formats
from kubectl_gpuadmit.cel.regex import RegexError, compiled
from kubectl_gpuadmit.cel.syntax import Call, Const, ListOf, MapOf, Node, children, every
from kubectl_gpuadmit.cel.texts import duration, timestamp
from kubectl_gpuadmit.cel.types import Type
from kubectl_gpuadmit.cel.values import Unsure


class Typed(Protocol):
    """What the check found."""

    errors: list[tuple[int, str]]

    def of(self, node: Node) -> Type: ...


def validate(node: Node, checked: Typed) -> None:
    """Adds to ``checked.errors``."""
    for one in every(node):
        if isinstance(one, Call) and one.function in _ARGUMENTS and one.args:
            arg = one.args[0]
            if isinstance(arg, Const) and not _ARGUMENTS[one.function](arg.value):
                checked.errors.append((arg.at, f"invalid {one.function} argument"))
        if isinstance(one, Call) and one.function == "format":
            fault = formats.check(one, checked.of)
            if fault is not None:
                checked.errors.append(fault)
    _same_types(node, checked)


def _regex(pattern: Any) -> bool:
    try:
        compiled(pattern)
    except RegexError:
        return False
    except Unsure:
        return True
    return True


def _duration(value: Any) -> bool:
    return not isinstance(value, str) or duration(value) is not None


def _timestamp(value: Any) -> bool:
    if isinstance(value, int):
        return -62135596800 <= value <= 253402300799
    return not isinstance(value, str) or timestamp(value) is not None


_ARGUMENTS: dict[str, Callable[[Any], bool]] = {
    "duration": _duration,
    "timestamp": _timestamp,
    "matches": _regex,
}


def _same_types(node: Node, checked: Typed) -> None:
    if isinstance(node, ListOf):
        first: Type | None = None
        for place, item in enumerate(node.items):
            found = _entry(checked.of(item), optional=place in node.optional)
            if first is None:
                first = found
            elif found != first:
                checked.errors.append((item.at, _mismatch(first, found)))
                break
    if isinstance(node, MapOf):
        pairs = [
            (key, value, checked.of(key), _entry(checked.of(value), optional=optional))
            for key, value, optional in node.entries
        ]
        for key, value, key_type, value_type in pairs[1:]:
            if key_type != pairs[0][2]:
                checked.errors.append((key.at, _mismatch(pairs[0][2], key_type)))
            if value_type != pairs[0][3]:
                checked.errors.append((value.at, _mismatch(pairs[0][3], value_type)))
    if isinstance(node, Call) and node.function == "format":
        return
    for child in children(node):
        _same_types(child, checked)


def _entry(one: Type, *, optional: bool) -> Type:
    return one.params[0] if optional and one.params else one


def _mismatch(wanted: Type, found: Type) -> str:
    return f"expected type '{wanted}' but found '{found}'"
