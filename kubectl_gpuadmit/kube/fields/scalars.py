"""One JSON value against the Go type that should hold it, in the words of Kubernetes' decoder.

Knows single values alone: what is inside a struct, a list or a map is for ``decoding``. Quantities,
times and numbers-or-texts read their JSON themselves; what they are given, they judge as a whole.

Source: sigs.k8s.io/json v0.0.0-20250730193827 internal/golang/encoding/json/decode.go,
k8s.io/apimachinery v0.37.2 pkg/util/intstr, pkg/api/resource/quantity.go, pkg/apis/meta/v1/time.go;
Go's encoding/base64, strconv and time for their messages.
"""

from __future__ import annotations

import re
from typing import Any

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.fields.table import Type

MISFIT = "json: cannot unmarshal "
"""What a message begins with that goes on to say which field it is about."""

_NOT_A_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def complaint(value: Any, of: Type) -> tuple[str, bool]:
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
    return f"{MISFIT}{found} into Go value of type {go}"


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


def quoted(text: str) -> str:
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
