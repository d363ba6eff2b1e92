"""Plain data against the fields of its type, as Kubernetes' strict JSON decoder reads it.

What is found is told in the decoder's own words and order. Keys are sorted first: so does kubectl
before it sends an object. Nothing is said of doubled keys (``manifests`` warns of them, kubectl
sends the last) and nothing of values that fit their type.

Rules of the decoder
1. Names are compared exactly, upper and lower case too. ``null`` fits every type.
2. Unknown fields are collected, each path once and a hundred at most.
3. The first value of a wrong type is the error, and unknown fields are then not told. A type that
   reads its JSON itself (a quantity, a time, a number-or-text) ends the reading at once and wins
   over an earlier wrong type.

Source: sigs.k8s.io/json v0.0.0-20250730193827 internal/golang/encoding/json (decode.go,
kubernetes_patch.go), k8s.io/apimachinery v0.37.2 pkg/runtime/error.go, pkg/util/intstr,
pkg/api/resource/quantity.go, pkg/apis/meta/v1/time.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.fields.table import Type, table
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.kube.workloads.pointers import token

_MOST = 100
"""Unknown fields that the decoder keeps."""

_NOT_A_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class Problem(Struct, frozen=True):
    """One field that the decoder does not know or whose value does not fit."""

    what: Literal["unknown", "type"]
    pointer: str
    """RFC 6901, from the root of the data."""
    path: str
    """As the decoder writes it: ``spec.containers[0].resources.limit``."""
    message: str
    """The decoder's words on this one."""
    holder: Type
    """The struct that has no such field, or whose field has the wrong value."""
    name: str
    """The last key."""
    wanted: Type | None = None
    """The type that the value should have had."""
    ends: bool = False
    """Whether the decoder stops here."""
    around: dict[str, Type] = {}
    """Pointer -> the structs on the way from the root."""


class Decoded(Struct, frozen=True):
    """What the decoder makes of one object."""

    problems: tuple[Problem, ...] = ()
    """All of them, in the order of reading; the decoder itself tells fewer."""
    message: str = ""
    """The one text in which the API server refuses it, '' where it does not."""


def decoded(data: dict[str, Any], *, kubernetes: str = LATEST) -> Decoded:
    """Reads an object whose kind the table has; any other is taken for good."""
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return Decoded()
    of = table(kubernetes).of(api_version, kind)
    if of is None or fits(data, of):
        return Decoded()
    found = problems_of(data, of)
    version = api_version.rpartition("/")[2]
    return Decoded(
        found, f'{kind} in version "{version}" cannot be handled as a {kind}: {_said(found)}'
    )


def problems_of(data: Any, of: Type, pointer: str = "") -> tuple[Problem, ...]:
    """Everything that does not fit. ``pointer``: where the data lies in the manifest."""
    return tuple(_walk(data, of, _Spot(pointer, "", of, (), "", {})))


def _said(found: tuple[Problem, ...]) -> str:
    wrong = [one for one in found if one.what == "type"]
    if wrong:
        return next((one for one in wrong if one.ends), wrong[0]).message
    texts = list(dict.fromkeys(one.message for one in found))[:_MOST]
    return "strict decoding error: " + ", ".join(texts)


def fits(value: Any, of: Type) -> bool:
    """Whether nothing is wrong: the same walk without words, for nearly all documents."""
    if value is None:
        return True
    kind = of.kind
    if kind == "string":
        return value.__class__ is str
    if kind == "struct":
        if value.__class__ is not dict:
            return False
        fields = of.fields
        for name, inner in value.items():
            field = fields.get(name)
            if field is None or not fits(inner, field.type):
                return False
        return True
    if kind == "list" or (kind == "bytes" and value.__class__ is not str):
        if value.__class__ is not list:
            return False
        item = of.item
        return all(fits(one, item) for one in value)
    if kind == "map":
        if value.__class__ is not dict:
            return False
        item = of.item
        return all(fits(one, item) for one in value.values())
    return not _complaint(value, of)[0]


class _Spot(Struct, frozen=True):
    """Where the reading is, in the three ways of writing it."""

    pointer: str
    path: str
    """``spec.containers[0].env``"""
    holder: Type
    """The struct that the decoder's messages name."""
    stack: tuple[str, ...]
    """Its fields from the root, embedded structs between them, no indices."""
    name: str
    around: dict[str, Type]

    def key(self, name: str) -> _Spot:
        """Inside a map."""
        path = f"{self.path}.{name}" if self.path else name
        return _Spot(
            f"{self.pointer}/{token(name)}", path, self.holder, self.stack, name, self.around
        )

    def index(self, number: int) -> _Spot:
        path = f"{self.path}[{number}]"
        return _Spot(
            f"{self.pointer}/{number}", path, self.holder, self.stack, self.name, self.around
        )


def _walk(value: Any, of: Type, at: _Spot) -> Iterator[Problem]:
    if value is None:
        return
    if of.kind == "struct" and isinstance(value, dict):
        fields = of.fields
        around = {**at.around, at.pointer: of}
        for name in sorted(value):
            below = at.key(name)
            field = fields.get(name)
            if field is None:
                message = f"unknown field {_quoted(below.path)}"
                yield Problem(
                    "unknown", below.pointer, below.path, message, of, name, around=around
                )
            else:
                stack = (*at.stack, *field.embedded, name)
                spot = _Spot(below.pointer, below.path, of, stack, name, around)
                yield from _walk(value[name], field.type, spot)
    elif of.kind == "map" and isinstance(value, dict):
        for name in sorted(value):
            yield from _walk(value[name], of.item, at.key(name))
    elif of.kind in ("list", "bytes") and isinstance(value, list):
        for number, one in enumerate(value):
            yield from _walk(one, of.item, at.index(number))
    else:
        text, ends = _complaint(value, of)
        if text:
            message = _in_context(text, at) if text.startswith(_MISFIT) else text
            yield Problem(
                "type", at.pointer, at.path, message, at.holder, at.name, wanted=of, ends=ends
            )


_MISFIT = "json: cannot unmarshal "


def _in_context(text: str, at: _Spot) -> str:
    if not at.stack:
        return text
    head, _, tail = text.partition(" into Go value of type ")
    field = f"{at.holder.short}.{'.'.join(at.stack)}"
    return f"{head} into Go struct field {field} of type {tail}"


def _complaint(value: Any, of: Type) -> tuple[str, bool]:
    """What is wrong with a value as a whole, '' if nothing; whether the decoder stops at it."""
    if value is None:
        return "", False
    match of.kind:
        case "custom":
            return _custom(value, of), True
        case "string":
            good = isinstance(value, str)
        case "bool":
            good = isinstance(value, bool)
        case "int" | "uint":
            good = _is_whole(value) and _holds(int(value), of)
            if not good and _is_number(value):
                return _misfit(f"number {_written(value)}", of.go), False
        case "float":
            good = _is_number(value)
        case "bytes" if isinstance(value, str):
            return _base64(value), False
        case _:
            good = False
    return ("" if good else _misfit(_json_kind(value), of.go)), False


def _misfit(found: str, go: str) -> str:
    return f"{_MISFIT}{found} into Go value of type {go}"


def _json_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: int | float) -> str:
    """Beyond 64 bits a whole number is a float by the time that kubectl sends it."""
    return quantity.written(value if -(2**63) <= value < 2**63 else float(value))


def _is_whole(value: Any) -> bool:
    """A number that kubectl sends without a fraction or an exponent."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 1e21
    return isinstance(value, int) and not isinstance(value, bool)


def _holds(number: int, of: Type) -> bool:
    if of.kind == "uint":
        return 0 <= number < 1 << of.bits
    return -(1 << (of.bits - 1)) <= number < 1 << (of.bits - 1)


# -- types that read their JSON themselves ---------------------------------------------------------


def _custom(value: Any, of: Type) -> str:
    match of.name:
        case "resource.Quantity":
            return _quantity(value)
        case "intstr.IntOrString":
            return _int_or_string(value)
        case "meta/v1.Time":
            return _time(value)
        case _:
            return ""  # any JSON (RawExtension, FieldsV1)


_QUANTITY = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_SUFFIX = re.compile(r"(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?", re.ASCII)


def _quantity(value: Any) -> str:
    if isinstance(value, list | dict | bool):
        return _NOT_A_QUANTITY
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        shape = _QUANTITY.fullmatch(str(value).strip())
        if shape is None or not str(value).strip():
            return _NOT_A_QUANTITY
        if not _SUFFIX.fullmatch(shape["suffix"]):
            return "unable to parse quantity's suffix"
        return "unable to parse numeric part of quantity"
    return ""


def _int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return ""
    if _is_number(value):
        if _is_whole(value) and -(2**31) <= value < 2**31:
            return ""
        return _misfit(f"number {_written(value)}", "int32")
    return _misfit(_json_kind(value), "int32")


_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,]\d+)?(?:Z|[+-](\d\d):(\d\d))", re.ASCII
)


def _time(value: Any) -> str:
    if not isinstance(value, str):
        return _misfit(_json_kind(value), "string")
    found = _RFC3339.fullmatch(value)
    if found is None:
        return f'parsing time {_bytes_quoted(value)} as "2006-01-02T15:04:05Z07:00"'
    year, month, day, hour, minute, second, east, past = (int(n or 0) for n in found.groups())
    over = {
        "month": not 1 <= month <= 12,
        "hour": hour > 23,
        "minute": minute > 59,
        "second": second > 59,
        "time zone offset hour": east > 24,
        "time zone offset minute": past > 60,
    }
    if not any(over.values()):
        over["day"] = not 1 <= day <= _days(year, month)
    part = next((name for name, is_over in over.items() if is_over), "")
    return f"parsing time {_bytes_quoted(value)}: {part} out of range" if part else ""


def _bytes_quoted(text: str) -> str:
    """As Go's time package quotes: byte by byte, whatever is not ASCII as a number."""
    raw = text.encode("utf-8", "surrogatepass")
    return (
        '"'
        + "".join(
            _ESCAPES.get(c, c) if " " <= c < "\x80" else f"\\x{ord(c):02x}"
            for c in raw.decode("latin-1")
        )
        + '"'
    )


def _days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (
        29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    )


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _base64(text: str) -> str:
    """Standard base64 with padding; line breaks may stand anywhere."""
    raw = text.encode("utf-8", "surrogatepass")
    at = 0
    while True:
        taken = 0
        while taken < 4:
            if at == len(raw):
                return "" if taken == 0 else _illegal(at - taken)
            one = chr(raw[at])
            at += 1
            if one in "\r\n":
                continue
            if one in _ALPHABET:
                taken += 1
            elif one != "=" or taken < 2:
                return _illegal(at - 1)
            else:
                return _padding(raw, at, taken)


def _padding(raw: bytes, at: int, taken: int) -> str:
    """After the first ``=`` of the last four characters."""

    def after_breaks(at: int) -> int:
        while at < len(raw) and raw[at] in b"\r\n":
            at += 1
        return at

    if taken == 2:
        at = after_breaks(at)
        if at == len(raw):
            return _illegal(len(raw))
        if raw[at : at + 1] != b"=":
            return _illegal(at - 1)
        at += 1
    at = after_breaks(at)
    return "" if at == len(raw) else _illegal(at)


def _illegal(at: int) -> str:
    return f"illegal base64 data at input byte {at}"


def _quoted(text: str) -> str:
    """As Go's strconv.Quote."""
    return '"' + "".join(_ESCAPES.get(c, c) if c.isprintable() else _escaped(c) for c in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_SHORT = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _escaped(c: str) -> str:
    if c in _SHORT:
        return _SHORT[c]
    code = ord(c)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
