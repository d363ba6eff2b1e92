"""Plain data in the form that Kubernetes' own types give it: what the API server shows to CEL.

Fields that the type does not have are dropped, empty ones are left out where the type says so, and
structs that are no pointers are always there (``resources: {}``). Quantities become canonical.

``types.json`` holds the fields of the types: ``?`` before a field that is left out when empty,
``!`` when zero, ``*`` for a pointer, ``[]`` and ``{}`` for a list and a map; and how lists and maps
are merged by server-side apply. It is made from Kubernetes' Go types by the referee (question
``fields``), and a test compares the two.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.kube import quantity


class Types(Struct, frozen=True):
    types: dict[str, dict[str, str]]
    lists: dict[str, str]


@cache
def table() -> Types:
    text = resources.files(__package__).joinpath("types.json").read_bytes()
    return msgspec.json.decode(text, type=Types)


def typed(data: Any, name: str) -> Any:
    """``data`` as the type of this name (``v1.Pod``) would be written again."""
    return _struct(data if isinstance(data, dict) else {}, name)


def unreadable(data: Any, name: str) -> tuple[list[str], list[str]]:
    """Fields that the type does not have, and those whose value cannot be of their type."""
    unknown: list[str] = []
    wrong: list[str] = []
    _check(data, name, "", unknown, wrong)
    return unknown, wrong


def _check(value: Any, kind: str, path: str, unknown: list[str], wrong: list[str]) -> None:
    if value is None:
        return
    if kind.startswith("[]"):
        for place, one in enumerate(value if isinstance(value, list) else ()):
            _check(one, kind[2:].lstrip("*"), f"{path}[{place}]", unknown, wrong)
    elif kind.startswith("{}"):
        for key, one in value.items() if isinstance(value, dict) else ():
            _check(one, kind[2:].lstrip("*"), f"{path}.{key}", unknown, wrong)
    elif kind in table().types:
        fields = table().types[kind]
        for key, one in value.items() if isinstance(value, dict) else ():
            here = f"{path}.{key}" if path else str(key)
            if key in fields:
                _check(one, fields[key].lstrip("?!*"), here, unknown, wrong)
            else:
                unknown.append(here)
    if not _may_be(value, kind):
        wrong.append(path)


def _may_be(value: Any, kind: str) -> bool:
    if value.__class__ not in (str, bool, int, float, dict, list):
        return True
    if kind.startswith("[]"):
        return isinstance(value, list)
    if kind.startswith("{}") or kind in table().types:
        return isinstance(value, dict)
    expected = {"string": str, "bool": bool, "int": int, "time": str, "bytes": str}.get(kind)
    return expected is None or value.__class__ is expected


_ABSENT = object()
_ZERO = {"string": "", "bool": False, "int": 0}


def _struct(data: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, mark in table().types[name].items():
        value = _field(data.get(field), mark)
        if value is not _ABSENT:
            found[field] = value
    return found


def _field(value: Any, mark: str) -> Any:
    leave_out = mark.startswith("?")
    kind = mark.lstrip("?")
    drop_zero = kind.startswith("!")
    kind = kind.lstrip("!")
    if kind.startswith("*"):
        if value is None:
            return _ABSENT if leave_out else None
        return _value(value, kind.lstrip("*"))
    if kind.startswith(("[]", "{}")) or kind == "bytes":
        if not value and isinstance(value, list | dict | str | None):
            return _ABSENT if leave_out else None
        return _value(value, kind)
    if kind in _ZERO:
        value = _ZERO[kind] if value is None else value
        empty = leave_out and value == _ZERO[kind] and value.__class__ is _ZERO[kind].__class__
        return _ABSENT if empty else value
    if kind == "time":
        return (_ABSENT if drop_zero else None) if value is None else value
    if kind in ("any", "quantity"):
        return _ABSENT if value is None else _value(value, kind)
    return _value({} if value is None else value, kind)


def _value(value: Any, kind: str) -> Any:
    if kind.startswith("*"):
        return None if value is None else _value(value, kind[1:])
    if kind.startswith("[]"):
        return [_value(one, kind[2:]) for one in value] if isinstance(value, list) else value
    if kind.startswith("{}"):
        if not isinstance(value, dict):
            return value
        return {key: _value(one, kind[2:]) for key, one in value.items()}
    if kind == "quantity":
        return _quantity(value)
    if kind in table().types:
        return _struct(value, kind) if isinstance(value, dict) else value
    return value


def _quantity(value: Any) -> Any:
    if isinstance(value, str | int | float):
        try:
            return str(quantity.parse(value))
        except quantity.QuantityError:
            return value
    return value
