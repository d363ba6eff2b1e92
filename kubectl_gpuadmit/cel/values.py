"""Values of CEL while an expression runs: their types, equality and order; texts: ``texts``.

null, bool, int, double, string, bytes, list and map are Python's own None, bool, int, float, str,
bytes, list and dict. Keys of maps are kept so that 1, 1u and 1.0 are one key and ``true`` is not 1:
see ``to_key``. The rest are the classes below.

Source: github.com/google/cel-go v0.29.2 common/types; k8s.io/apiserver v0.37.2 pkg/cel/quantity.go,
semver.go (Equal: a Quantity made by ``add`` or ``sub`` is compared as another type).
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.quantity import Quantity as Amount


class Fail(Exception):
    """The expression failed, with cel-go's own words."""


class Crash(Exception):
    """cel-go's own code breaks on this, and no other term makes up for it; ``str()`` as it says."""


class Unsure(Exception):
    """The expression reads something that is not known here, or cannot be evaluated here."""


class Unknown(Struct, frozen=True):
    """In the place of a value that is not known; reading it raises Unsure."""

    what: str


class Uint(int):
    """An unsigned integer, told apart from int by its class."""


class BoolKey(Struct, frozen=True):
    """``true`` or ``false`` as a key of a map: Python's True is equal to 1."""

    value: bool


class Quantity(Struct, frozen=True):
    amount: Amount
    computed: bool = False
    """Made by add or sub: cel-go holds a pointer then, and does not take it for a Quantity."""


class Semver(Struct, frozen=True):
    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    def order(self) -> tuple[Any, ...]:
        """Sorts as semver 2.0 says; the build does not count."""
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, parts)


class Duration(Struct, frozen=True):
    nanos: int


class Timestamp(Struct, frozen=True):
    nanos: int
    """Since 1970, UTC."""
    offset: int = 0
    """Seconds east of UTC as written: ``string()`` keeps it, nothing else looks at it."""


class TypeValue(Struct, frozen=True):
    name: str


class Opt(Struct, frozen=True):
    """optional.of(value); ``NONE`` is the empty one."""

    value: Any = None
    has: bool = True


NONE = Opt(None, False)


class Opaque(Struct, frozen=True):
    """A value of a library: an address, a network, a URL, a named format."""

    kind: str
    value: Any


class DomainMap(dict[str, Any]):
    """A map whose absent keys hold an empty map: ``device.attributes`` (resource.k8s.io)."""

    def __missing__(self, key: str) -> dict[str, Any]:
        return {}


class MessageValue(Struct):
    """An object of a mutation: its type's name and the fields that were set."""

    name: str
    fields: dict[str, Any]


def type_name(value: Any) -> str:
    """The name that ``type()`` and error messages of cel-go use."""
    known = _NAMES.get(value.__class__)
    if known is not None:
        return known
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list | tuple):
        return "list"
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, MessageValue):
        return value.name
    return "unknown"


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    Opt: "optional_type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
}
_GO = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
    "kubernetes.URL": "cel.URL",
}


def go_type(value: Any) -> str:
    """What Go's ``%T`` prints for the value."""
    name = _GO.get(type_name(value), type_name(value))
    return f"*{name}" if isinstance(value, Quantity) and value.computed else name


def to_key(value: Any) -> Any:
    """A value as a key of a map. Raises Fail for what cannot be one."""
    if value.__class__ is str:
        return value
    if value.__class__ is bool:
        return BoolKey(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return ("double", value)
    return ("never", type_name(value))


def from_key(key: Any) -> Any:
    if key.__class__ is BoolKey:
        return key.value
    return key


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value.__class__ is not bool


def _met(one: Any, other: Any) -> tuple[Any, Any]:
    """Two numbers as they are compared: beside a double an integer counts as the nearest double
    (cel-go common/types/compare.go), so that 2**63 - 1 equals double(2**63)."""
    if (one.__class__ is float) != (other.__class__ is float):
        return float(one), float(other)
    return one, other


def equals(one: Any, other: Any) -> bool:
    """``==``. Raises Fail where cel-go has no answer, Unsure where a part is not known."""
    if one is None or other is None:
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            raise Unsure(one.what if isinstance(one, Unknown) else other.what)
        return one is other
    kind = one.__class__
    if kind is str or kind is bool or kind is bytes:
        if other.__class__ is Unknown:
            raise Unsure(other.what)
        return kind is other.__class__ and bool(one == other)
    if isinstance(one, int | float):
        if other.__class__ is Unknown:
            raise Unsure(other.what)
        if not is_number(other):
            return False
        one, other = _met(one, other)
        return bool(one == other)
    return _equal_others(one, other)


def _equal_others(one: Any, other: Any) -> bool:
    for side in (one, other):
        if side.__class__ is Unknown:
            raise Unsure(side.what)
    if isinstance(one, list | tuple):
        return (
            isinstance(other, list | tuple)
            and len(one) == len(other)
            and all(_alike(a, b) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all(key in other and _alike(value, other[key]) for key, value in one.items())
    if isinstance(one, Quantity):
        if not isinstance(other, Quantity) or other.computed:
            raise Fail("no such overload")
        return one.amount == other.amount
    if isinstance(one, Semver):
        if not isinstance(other, Semver):
            raise Fail("no such overload")
        return one.order() == other.order()
    if isinstance(one, Opaque):
        if not isinstance(other, Opaque) or one.kind != other.kind:
            raise Fail("no such overload")
        return bool(one.value == other.value)
    if isinstance(one, Opt):
        if not isinstance(other, Opt) or one.has != other.has:
            return False
        return not one.has or equals(one.value, other.value)
    if isinstance(one, Timestamp):
        return isinstance(other, Timestamp) and one.nanos == other.nanos
    if isinstance(one, MessageValue):
        return (
            isinstance(other, MessageValue)
            and one.name == other.name
            and equals(one.fields, other.fields)
        )
    return one.__class__ is other.__class__ and bool(one == other)


def _alike(one: Any, other: Any) -> bool:
    """Inside of lists and maps an impossible comparison does not count as a difference."""
    try:
        return equals(one, other)
    except Fail:
        return True


def same(one: Any, other: Any) -> bool:
    """Equality where an impossible comparison means no: ``in``, ``indexOf``, sets."""
    try:
        return equals(one, other)
    except Fail:
        return False


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1. Raises Fail where the two have no order."""
    kind, second = one.__class__, other.__class__
    if is_number(one):
        if math.isnan(one):
            raise Fail("NaN values cannot be ordered")
        if not is_number(other):
            raise Fail("no such overload")
        if math.isnan(other):
            raise Fail("NaN values cannot be ordered")
        one, other = _met(one, other)
        return int(one > other) - int(one < other)
    if kind is not second or kind not in _ORDERED:
        raise Fail("no such overload")
    if kind is str:
        if one == other:
            return 0
        # bytes of UTF-8 order as code points do
        return 1 if one > other else -1
    if kind is Duration or kind is Timestamp:
        one, other = one.nanos, other.nanos
    return int(one > other) - int(one < other)


_ORDERED = {bool, str, bytes, Duration, Timestamp}


def has_order(value: Any) -> bool:
    """Whether the value's type takes part in ``<`` at all."""
    return is_number(value) or value.__class__ in _ORDERED
