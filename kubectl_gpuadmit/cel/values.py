"""Values of CEL while an expression runs: their types, equality, order and texts.

null, bool, int, double, string, bytes, list and map are Python's own None, bool, int, float, str,
bytes, list and dict. Keys of maps are kept so that 1, 1u and 1.0 are one key and ``true`` is not 1:
see ``to_key``. The rest are the classes below.

Source: github.com/google/cel-go v0.29.2 common/types; k8s.io/apiserver v0.37.2 pkg/cel/quantity.go,
semver.go (Equal: a Quantity made by ``add`` or ``sub`` is compared as another type).
"""

from __future__ import annotations

import datetime as dt
import math
import re
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


def shown(value: Any) -> str:
    """As Go prints the value with ``%v`` in a message."""
    if value is None:
        return "null"
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return str(value)


def double_text(value: float) -> str:
    """As Go's ``%g``: the shortest text that reads back, with an exponent from 1e+06 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    digits, _, exponent = f"{value!r}".partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, part = digits.lstrip("-").partition(".")
    part = "" if part == "0" else part
    power = int(exponent or 0)
    if whole == "0":
        stripped = part.lstrip("0")
        power -= len(part) - len(stripped) + 1
        significant = stripped
    else:
        power += len(whole) - 1
        significant = whole + part
    significant = significant.rstrip("0") or "0"
    if power < -4 or power >= 6:
        mantissa = significant[0] + (f".{significant[1:]}" if significant[1:] else "")
        return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{significant}"
    if len(significant) <= power + 1:
        return f"{sign}{significant.ljust(power + 1, '0')}"
    return f"{sign}{significant[: power + 1]}.{significant[power + 1 :]}"


_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


def duration(text: str) -> Duration | None:
    """As Go's time.ParseDuration; None where that refuses."""
    rest, sign = text, 1
    if rest[:1] in ("+", "-"):
        sign, rest = (-1 if rest[0] == "-" else 1), rest[1:]
    if rest == "0":
        return Duration(0)
    if not rest:
        return None
    total, at = 0, 0
    while at < len(rest):
        match = _DURATION.match(rest, at)
        if not match or not (match[1] or match[2]):
            return None
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        part = match[2] or ""
        if part:
            total += int(part) * unit // 10 ** len(part)
        at = match.end()
    total *= sign
    return Duration(total) if -(2**63) <= total < 2**63 else None


_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


def timestamp(text: str) -> Timestamp | None:
    """As Go reads RFC 3339; None where that refuses."""
    match = _RFC3339.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    if year == 0:
        return None
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
    except ValueError:
        return None
    seconds = int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds())
    zone, east = match[8], 0
    if zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 24 or minutes > 60:
            return None
        east = (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
    nanos = (seconds - east) * 10**9 + int((match[7] or "0")[:9].ljust(9, "0"))
    return Timestamp(nanos, east)


def timestamp_text(moment: Timestamp) -> str:
    """RFC 3339 with as many fractional digits as are needed."""
    seconds, nanos = divmod(moment.nanos, 10**9)
    when = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds + moment.offset)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = "Z"
    if moment.offset:
        minutes = abs(moment.offset) // 60
        zone = f"{'-' if moment.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{when.year:04d}{when:-%m-%dT%H:%M:%S}{fraction}{zone}"


def duration_text(span: Duration) -> str:
    """Seconds, as CEL's string(duration)."""
    seconds, nanos = divmod(abs(span.nanos), 10**9)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{'-' if span.nanos < 0 else ''}{seconds}{fraction}s"


_SEMVER_NUMBERS = re.compile(r"[0-9]+", re.ASCII)
_SEMVER_LETTERS = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


def semver(text: str) -> Semver:
    """As github.com/blang/semver/v4 Parse. Raises Fail with its words."""
    if not text:
        raise Fail("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise Fail("No Major.Minor.Patch elements found")
    patch, plus, build_text = parts[2].partition("+")
    patch, dash, pre_text = patch.partition("-")
    numbers = []
    for what, digits in (("major", parts[0]), ("minor", parts[1]), ("patch", patch)):
        if not digits:
            raise Fail('strconv.ParseUint: parsing "": invalid syntax')
        if not _SEMVER_NUMBERS.fullmatch(digits):
            raise Fail(f"Invalid character(s) found in {what} number {go_quoted(digits)}")
        if len(digits) > 1 and digits[0] == "0":
            title = what.capitalize()
            raise Fail(f"{title} number must not contain leading zeroes {go_quoted(digits)}")
        number = int(digits)
        if number >= 2**64:
            raise Fail(f'strconv.ParseUint: parsing "{digits}": value out of range')
        numbers.append(number)
    pre = tuple(pre_text.split(".")) if dash else ()
    for one in pre:
        if not one:
            raise Fail("Prerelease is empty")
        if _SEMVER_NUMBERS.fullmatch(one):
            if len(one) > 1 and one[0] == "0":
                raise Fail(
                    "Numeric PreRelease version must not contain leading zeroes " + go_quoted(one)
                )
        elif not _SEMVER_LETTERS.fullmatch(one):
            raise Fail(f"Invalid character(s) found in prerelease {go_quoted(one)}")
    build = tuple(build_text.split(".")) if plus else ()
    for one in build:
        if not one:
            raise Fail("Build meta data is empty")
        if not _SEMVER_LETTERS.fullmatch(one):
            raise Fail(f"Invalid character(s) found in build meta data {go_quoted(one)}")
    return Semver(numbers[0], numbers[1], numbers[2], pre, build)


def go_quoted(text: str) -> str:
    """A text as Go's ``%q`` writes it."""
    out = []
    for letter in text:
        if letter in '"\\':
            out.append("\\" + letter)
        elif letter in "\a\b\f\n\r\t\v":
            out.append("\\" + "abfnrtv"["\a\b\f\n\r\t\v".index(letter)])
        elif letter.isprintable():
            out.append(letter)
        elif ord(letter) < 0x80:
            out.append(f"\\x{ord(letter):02x}")
        elif ord(letter) < 0x10000:
            out.append(f"\\u{ord(letter):04x}")
        else:
            out.append(f"\\U{ord(letter):08x}")
    return '"' + "".join(out) + '"'
