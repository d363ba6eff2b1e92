"""Which fields a type has, by Kubernetes version; reads the shipped table and judges no value.

A field stands as ``TYPE``, ``TYPE@A.B`` where Go promotes it from the embedded structs A.B, and
``TYPE#1.36-`` or ``TYPE#-1.34`` where it came or went between the first and the last version that
the table knows; both may occur.

Source: k8s.io/api and k8s.io/apimachinery v0.34.12, v0.35.4, v0.36.3 and v0.37.2.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.kube.versions import LATEST, version

OLDEST = "1.34"
"""Fields that came before are known to every version; the table goes no further back."""

_NUMBERS = {
    "int": ("int", 64),
    "int32": ("int", 32),
    "int64": ("int", 64),
    "uint8": ("uint", 8),
    "float64": ("float", 64),
}


class Field(Struct, frozen=True):
    """One field of a struct."""

    name: str
    type: Type
    embedded: tuple[str, ...]
    """Go structs that it is promoted from; the decoder's messages name them."""


class Type:
    """One Go type. ``kind``: struct, list, map, string, bool, int, uint, float, bytes, or custom
    (reads its JSON itself)."""

    def __init__(self, table: Table, name: str) -> None:
        self.name = name
        """As in the table: ``core/v1.PodSpec``, ``[]core/v1.Container``."""
        self.kind: str
        self.bits = 0
        self._table = table
        self._declared: dict[str, str] = {}
        self._item = ""
        made: Any = name
        while isinstance(made, str) and made in table.types:
            made = table.types[made]
        if isinstance(made, dict):
            self.kind, self._declared = "struct", made
        elif made in _NUMBERS:
            self.kind, self.bits = _NUMBERS[made]
        elif made == "[]uint8":
            self.kind, self._item = "bytes", "uint8"
        elif made.startswith("[]"):
            self.kind, self._item = "list", made[2:].removeprefix("*")
        elif made.startswith("map["):
            self.kind, self._item = "map", made.partition("]")[2].removeprefix("*")
        else:
            self.kind = made

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Of a struct: what this version has."""
        return dict(self._fields())

    def _fields(self) -> Iterator[tuple[str, Field]]:
        for name, text in self._declared.items():
            text, _, when = text.partition("#")
            if when and not served(when, self._table.minor):
                continue
            made, _, through = text.partition("@")
            steps = tuple(through.split(".")) if through else ()
            yield name, Field(name, self._table.type(made), steps)

    @cached_property
    def item(self) -> Type:
        """Of a list, a map or bytes: what its elements are."""
        return self._table.type(self._item)

    @property
    def go(self) -> str:
        """As Go prints it: ``v1.PodSpec``, ``map[string]string``."""
        return _printed(self.name)

    @property
    def short(self) -> str:
        """Without its package: ``PodSpec``."""
        return self.name.rpartition(".")[2]

    def when(self, field: str) -> str:
        """``1.36-``, ``-1.34``: the versions that have a field, '' where all or none have it."""
        return self._declared.get(field, "").partition("#")[2]


class Table:
    """The types of one Kubernetes version."""

    def __init__(
        self, kinds: dict[str, str], types: dict[str, Any], minor: tuple[int, int]
    ) -> None:
        self.kinds = kinds
        self.types = types
        self.minor = minor
        self._made: dict[str, Type] = {}

    def type(self, name: str) -> Type:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = Type(self, name)
        return made

    def of(self, api_version: str, kind: str) -> Type | None:
        """The type of an object, None where the table does not have the kind in this version."""
        name = self.kinds.get(f"{api_version} {kind}")
        return self.type(name) if name else None

    def versions(self, api_version: str, kind: str) -> list[str]:
        """Other versions of the same kind, newest first as they are written."""
        group, _, _ = api_version.rpartition("/")
        found = []
        for known in self.kinds:
            other, _, named = known.partition(" ")
            if named == kind and other.rpartition("/")[0] == group and other != api_version:
                found.append(other)
        return sorted(found, reverse=True)


def table(kubernetes: str = LATEST) -> Table:
    """The types of this version; of the nearest that the table knows where it knows it not."""
    return _table(min(max(version(kubernetes), version(OLDEST)), version(LATEST)))


@cache
def _table(minor: tuple[int, int]) -> Table:
    kinds, types = _shipped()
    return Table(kinds, types, minor)


@cache
def _shipped() -> tuple[dict[str, str], dict[str, Any]]:
    raw = pkgutil.get_data(__package__, "table.json") or b""
    found: dict[str, dict[str, Any]] = msgspec.json.decode(raw)
    return found["kinds"], found["types"]


def served(when: str, minor: tuple[int, int]) -> bool:
    """Whether a version has a field that is marked ``1.36-``, ``-1.34`` or ``1.35-1.35``."""
    first, _, last = when.partition("-")
    return (not first or minor >= version(first)) and (not last or minor <= version(last))


def _printed(name: str) -> str:
    if name.startswith("[]"):
        return "[]" + _printed(name[2:])
    if name.startswith("*"):
        return "*" + _printed(name[1:])
    if name.startswith("map["):
        key, _, item = name[4:].partition("]")
        return f"map[{_printed(key)}]{_printed(item)}"
    return name.rpartition("/")[2]
