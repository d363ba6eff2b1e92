"""Which fields of one object differ between two versions of it, of those that the engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.snapshots.trim import trimmed

MANY = 12
"""Fields of one object that are listed; after them only the first is news to anybody."""

_IDLE = ("/metadata/resourceVersion",)


class FieldChange(Struct, frozen=True):
    """One field: RFC 6901 pointer, value before and after, None for absent."""

    field: str
    before: Any
    after: Any


def changed_fields(before: KubeObject, after: KubeObject) -> tuple[FieldChange, ...]:
    """At most ``MANY``, in the order of the object's fields."""
    found: list[FieldChange] = []
    for change in _between("", trimmed(before), trimmed(after)):
        if change.field not in _IDLE:
            found.append(change)
        if len(found) == MANY:
            break
    return tuple(found)


def _between(at: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if before == after:
        return
    match before, after:
        case dict(), dict():
            for key in [*before, *(key for key in after if key not in before)]:
                yield from _between(f"{at}/{token(str(key))}", before.get(key), after.get(key))
        case list(), list() if len(before) == len(after):
            for number, (old, new) in enumerate(zip(before, after, strict=True)):
                yield from _between(f"{at}/{number}", old, new)
        case _:
            yield FieldChange(at, before, after)
