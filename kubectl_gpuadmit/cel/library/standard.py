"""The standard functions and the types of the operators.

Source: github.com/google/cel-go v0.29.2 common/stdlib/standard.go, common/types (ConvertToType),
cel/library.go (optional types).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.regex import RegexError, compiled
from kubectl_gpuadmit.cel.texts import (
    double_text,
    duration,
    duration_text,
    timestamp,
    timestamp_text,
)
from kubectl_gpuadmit.cel.values import (
    NONE,
    Duration,
    Fail,
    Opaque,
    Opt,
    Timestamp,
    TypeValue,
    Uint,
    Unsure,
    type_name,
)

_NUMBERS = ("double", "int", "uint")
_COMPARED = (
    *("bool,bool", "int,int", "int,double", "int,uint", "uint,uint", "uint,double", "uint,int"),
    *("double,double", "double,int", "double,uint", "string,string", "bytes,bytes"),
    *("timestamp,timestamp", "duration,duration"),
)
"""In cel-go's order: of several overloads that fit, the first binds the types that are open."""


def _operators() -> list[Overload]:
    found = [
        declare("_&&_(bool,bool): bool"),
        declare("_||_(bool,bool): bool"),
        declare("_?_:_(bool,A,A): A"),
        declare("!_(bool): bool"),
        declare("_==_(A,A): bool"),
        declare("_!=_(A,A): bool"),
        declare("-_(double): double"),
        declare("-_(int): int"),
        declare("_[_](list<A>,int): A"),
        declare("_[_](map<A,B>,A): B"),
        declare("_[_](?list<A>,int): ?A"),
        declare("_[_](?map<A,B>,A): ?B"),
        declare("_[?_](list<A>,int): ?A"),
        declare("_[?_](?list<A>,int): ?A"),
        declare("_[?_](map<A,B>,A): ?B"),
        declare("_[?_](?map<A,B>,A): ?B"),
        declare("@in(A,list<A>): bool"),
        declare("@in(A,map<A,B>): bool"),
        declare("?A::or(?A): ?A"),
        declare("?A::orValue(A): A"),
        declare("_+_(bytes,bytes): bytes"),
        declare("_+_(double,double): double"),
        declare("_+_(duration,duration): duration"),
        declare("_+_(duration,timestamp): timestamp"),
        declare("_+_(timestamp,duration): timestamp"),
        declare("_+_(int,int): int"),
        declare("_+_(list<A>,list<A>): list<A>"),
        declare("_+_(string,string): string"),
        declare("_+_(uint,uint): uint"),
        declare("_-_(double,double): double"),
        declare("_-_(duration,duration): duration"),
        declare("_-_(int,int): int"),
        declare("_-_(timestamp,duration): timestamp"),
        declare("_-_(timestamp,timestamp): duration"),
        declare("_-_(uint,uint): uint"),
        declare("_%_(int,int): int"),
        declare("_%_(uint,uint): uint"),
    ]
    for sign in ("*", "/"):
        found += [declare(f"_{sign}_({n},{n}): {n}") for n in _NUMBERS]
    for sign in ("<", "<=", ">", ">="):
        found += [declare(f"_{sign}_({both}): bool") for both in _COMPARED]
    return found


def _cannot(value: Any, wanted: str) -> Fail:
    return Fail(f"type conversion error from '{type_name(value)}' to '{wanted}'")


_GO_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_GO_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"
    r"|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if _GO_INT.fullmatch(value) and -(2**63) <= int(value) < 2**63:
            return int(value)
        raise _cannot(value, "int")
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
            raise Fail("integer overflow")
        return int(value)
    if isinstance(value, Timestamp):
        return value.nanos // 10**9
    if isinstance(value, Duration):
        return value.nanos
    if value.__class__ is Uint and value >= 2**63:
        raise Fail("integer overflow")
    return int(value)


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]+", value, re.ASCII) and int(value) < 2**64:
            return Uint(int(value))
        raise _cannot(value, "uint")
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value) or not 0 <= value < 2.0**64:
            raise Fail("unsigned integer overflow")
        return Uint(int(value))
    if value < 0:
        raise Fail("unsigned integer overflow")
    return Uint(int(value))


def _to_double(value: Any) -> float:
    if isinstance(value, str):
        if not _GO_FLOAT.fullmatch(value):
            raise _cannot(value, "double")
        number = float(value)
        if math.isinf(number) and "inf" not in value.lower():
            raise _cannot(value, "double")
        return number
    return float(value)


def _to_bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _cannot(text, "bool")


def to_string(value: Any) -> str:
    """``string(value)`` of the types that have one."""
    if isinstance(value, str):
        return value
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise Fail("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Opaque):
        return str(value.value)
    return str(int(value))


def _to_duration(text: str) -> Duration:
    found = duration(text)
    if found is None:
        raise _cannot(text, "google.protobuf.Duration")
    return found


def _to_timestamp(text: str) -> Timestamp:
    found = timestamp(text)
    if found is None:
        raise _cannot(text, "google.protobuf.Timestamp")
    return found


def _seconds_to_timestamp(seconds: int) -> Timestamp:
    if not -62135596800 <= seconds <= 253402300799:
        raise Fail("timestamp overflow")
    return Timestamp(seconds * 10**9)


def matches(text: str, pattern: str) -> bool:
    try:
        return compiled(pattern).matches(text)
    except RegexError as fault:
        raise Fail(str(fault)) from None


def _conversions() -> list[Overload]:
    def same(value: Any) -> Any:
        return value

    return [
        declare("bool(bool): bool", same),
        declare("bool(string): bool", _to_bool),
        declare("bytes(bytes): bytes", same),
        declare("bytes(string): bytes", lambda text: text.encode("utf-8", "surrogatepass")),
        *(declare(f"double({one}): double", _to_double) for one in ("double", "int", "string")),
        declare("double(uint): double", _to_double),
        declare("duration(duration): duration", same),
        declare("duration(string): duration", _to_duration),
        declare("dyn(A): dyn", same),
        *(
            declare(f"int({one}): int", _to_int)
            for one in ("int", "double", "duration", "string", "timestamp", "uint")
        ),
        *(
            declare(f"string({one}): string", to_string)
            for one in (
                *("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint"),
                *("ip", "cidr"),
            )
        ),
        declare("timestamp(timestamp): timestamp", same),
        declare("timestamp(int): timestamp", _seconds_to_timestamp),
        declare("timestamp(string): timestamp", _to_timestamp),
        *(declare(f"uint({one}): uint", _to_uint) for one in ("uint", "double", "int", "string")),
        declare("type(A): type<A>", lambda value: TypeValue(type_name(value))),
    ]


_SIZED = ("bytes", "list<A>", "map<A,B>", "string")


def _plain() -> list[Overload]:
    return [
        *(declare(f"size({one}): int", len) for one in _SIZED),
        *(declare(f"{one}::size(): int", len) for one in _SIZED),
        declare("string::contains(string): bool", lambda text, part: part in text),
        declare("string::endsWith(string): bool", lambda text, part: text.endswith(part)),
        declare("string::startsWith(string): bool", lambda text, part: text.startswith(part)),
        declare("matches(string,string): bool", matches),
        declare("string::matches(string): bool", matches),
    ]


# -- dates -----------------------------------------------------------------------------------------

_EPOCH = dt.datetime(1970, 1, 1)


def _moment(when: Timestamp, zone: str = "UTC") -> dt.datetime:
    """The wall clock in a zone: ``UTC``, ``±HH:MM``; names of zones are not evaluated here."""
    seconds = when.nanos // 10**9
    if zone not in ("UTC", "Z", ""):
        offset = re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone, re.ASCII)
        if not offset:
            raise Unsure(f"the time zone {zone}")
        minutes = int(offset[2]) * 60 + int(offset[3])
        if int(offset[3]) > 59:
            raise Fail(f"timezone offset minutes out of range [0, 59]: {zone}")
        seconds += -minutes * 60 if offset[1] == "-" else minutes * 60
    return _EPOCH + dt.timedelta(seconds=seconds)


def _dates() -> list[Overload]:
    parts: dict[str, Any] = {
        "getFullYear": lambda m: m.year,
        "getMonth": lambda m: m.month - 1,
        "getDayOfYear": lambda m: m.timetuple().tm_yday - 1,
        "getDayOfMonth": lambda m: m.day - 1,
        "getDate": lambda m: m.day,
        "getDayOfWeek": lambda m: m.isoweekday() % 7,
        "getHours": lambda m: m.hour,
        "getMinutes": lambda m: m.minute,
        "getSeconds": lambda m: m.second,
    }
    found = []
    for name, part in parts.items():
        found += [
            declare(f"timestamp::{name}(): int", lambda when, p=part: p(_moment(when))),
            declare(f"timestamp::{name}(string): int", lambda when, z, p=part: p(_moment(when, z))),
        ]
    units = {
        "getHours": 3600 * 10**9,
        "getMinutes": 60 * 10**9,
        "getSeconds": 10**9,
        "getMilliseconds": 10**6,
    }

    def whole(span: Duration, unit: int) -> int:
        return span.nanos // unit if span.nanos >= 0 else -(-span.nanos // unit)

    for name, unit in units.items():
        found.append(declare(f"duration::{name}(): int", lambda span, u=unit: whole(span, u)))
    for args in ("()", "(string)"):
        found.append(
            declare(
                f"timestamp::getMilliseconds{args}: int",
                lambda when, *_: when.nanos % 10**9 // 10**6,
            )
        )
    return found


# -- optionals -------------------------------------------------------------------------------------


def _non_zero(value: Any) -> Opt:
    if value is None or value is False or (not isinstance(value, bool) and value in (0, "", b"")):
        return NONE
    if isinstance(value, list | tuple | dict) and not value:
        return NONE
    if isinstance(value, Opt) and not value.has:
        return NONE
    if isinstance(value, Duration) and value.nanos == 0:
        return NONE
    return Opt(value)


def _value(optional: Opt) -> Any:
    if not optional.has:
        raise Fail("optional.none() dereference")
    return optional.value


def _optionals() -> list[Overload]:
    def unwrapped(items: list[Opt]) -> list[Any]:
        return [one.value for one in items if one.has]

    return [
        declare("optional.of(A): ?A", Opt),
        declare("optional.ofNonZeroValue(A): ?A", _non_zero),
        declare("optional.none(): ?A", lambda: NONE),
        declare("?A::value(): A", _value),
        declare("?A::hasValue(): bool", lambda optional: optional.has),
        declare("list<A>::first(): ?A", lambda items: Opt(items[0]) if items else NONE),
        declare("list<A>::last(): ?A", lambda items: Opt(items[-1]) if items else NONE),
        declare("optional.unwrap(list<?A>): list<A>", unwrapped),
        declare("list<?A>::unwrapOpt(): list<A>", unwrapped),
    ]


_WRITTEN_OUT = [
    declare("@not_strictly_false(bool): bool"),
    declare("cel.@mapInsert(map<K,V>,K,V): map<K,V>"),
    declare("cel.@mapInsert(map<K,V>,map<K,V>): map<K,V>"),
    *(
        declare(f"list<A>::@sortByAssociatedKeys(list<{one}>): list<A>")
        for one in ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
    ),
]
"""Functions that only macros call."""

OVERLOADS = [
    *(*_operators(), *_conversions(), *_plain(), *_dates(), *_optionals()),
    *_WRITTEN_OUT,
]
