"""The operators of CEL on values: arithmetic, order, membership, selection, and ``&&``, ``||``.

Source: github.com/google/cel-go v0.29.2 common/stdlib/standard.go, common/types/overflow.go,
interpreter/attributes.go (refQualify).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kubectl_gpuadmit.cel.texts import shown
from kubectl_gpuadmit.cel.values import (
    NONE,
    DomainMap,
    Duration,
    Fail,
    MessageValue,
    Opt,
    Timestamp,
    Uint,
    Unknown,
    Unsure,
    compare,
    equals,
    has_order,
    same,
    to_key,
    type_name,
)

Env = dict[str, Any]
Run = Callable[[Env], Any]
text = shown

_NO = "no such overload"
_EARLIEST = -62135596800 * 10**9
_LATEST = 253402300799 * 10**9 + 999_999_999


def _known(value: Any) -> Any:
    if value.__class__ is Unknown:
        raise Unsure(value.what)
    return value


def all_of(terms: list[Run]) -> Run:
    """``&&``: false where a term is false, whatever the others are."""
    return _chain(terms, decisive=False)


def any_of(terms: list[Run]) -> Run:
    return _chain(terms, decisive=True)


def _chain(terms: list[Run], *, decisive: bool) -> Run:
    def run(env: Env) -> Any:
        failed: Fail | None = None
        unsure: Unsure | None = None
        for term in terms:
            try:
                value = term(env)
            except Fail as fault:
                failed = failed or fault
                continue
            except Unsure as fault:
                unsure = unsure or fault
                continue
            if value is decisive:
                return decisive
            if value is not (not decisive):
                failed = failed or Fail(_NO)
        if unsure is not None:
            raise unsure
        if failed is not None:
            raise failed
        return not decisive

    return run


# -- selection -------------------------------------------------------------------------------------


def index(holder: Any, key: Any) -> Any:
    """``holder[key]`` and ``holder.key``; of an optional the result is optional again."""
    if isinstance(holder, dict):
        try:
            return _known(holder[to_key(key)])
        except KeyError:
            raise Fail(f"no such key: {shown(key)}") from None
    if isinstance(holder, list | tuple):
        place = _place(key)
        if not 0 <= place < len(holder):
            raise Fail(f"index out of bounds: {shown(key)}")
        return _known(holder[place])
    if isinstance(holder, Opt):
        return optional_index(holder, key)
    if isinstance(holder, MessageValue):
        if key not in holder.fields:
            raise Fail(f"no such key: {shown(key)}")
        return holder.fields[key]
    raise Fail(f"no such key: {shown(key)}")


def optional_index(holder: Any, key: Any) -> Opt:
    """``holder[?key]`` and ``holder.?key``."""
    if isinstance(holder, Opt):
        if not holder.has:
            return NONE
        holder = holder.value
    if isinstance(holder, dict):
        try:
            return Opt(_known(holder[to_key(key)]))
        except KeyError:
            return NONE
    if isinstance(holder, list | tuple):
        place = _place(key)
        return Opt(_known(holder[place])) if 0 <= place < len(holder) else NONE
    if isinstance(holder, MessageValue):
        return Opt(holder.fields[key]) if key in holder.fields else NONE
    return NONE


def present(holder: Any, field: str) -> bool:
    """``has(holder.field)``."""
    if isinstance(holder, Opt):
        if not holder.has:
            return False
        holder = holder.value
    if isinstance(holder, dict):
        return isinstance(holder, DomainMap) or field in holder
    if isinstance(holder, list | tuple):
        _place(field)
    if isinstance(holder, MessageValue):
        return field in holder.fields
    return False


def _place(key: Any) -> int:
    if key.__class__ is bool or not isinstance(key, int | float):
        raise Fail(f"unsupported index type '{type_name(key)}' in list")
    if isinstance(key, float) and not key.is_integer():
        raise Fail(f"unsupported index value {shown(key)} in list")
    return int(key)


def contains(item: Any, holder: Any) -> bool:
    """``item in holder``."""
    if isinstance(holder, dict):
        return to_key(item) in holder
    if isinstance(holder, list | tuple):
        unsure: Unsure | None = None
        for one in holder:
            try:
                if same(item, one):
                    return True
            except Unsure as fault:
                unsure = fault
        if unsure is not None:
            raise unsure
        return False
    raise Fail(_NO)


# -- arithmetic ------------------------------------------------------------------------------------


def _int(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise Fail("integer overflow")
    return number


def _uint(number: int) -> Uint:
    if not 0 <= number < 2**64:
        raise Fail("unsigned integer overflow")
    return Uint(number)


def _duration(nanos: int) -> Duration:
    if not -(2**63) <= nanos < 2**63:
        raise Fail("duration overflow")
    return Duration(nanos)


def _timestamp(nanos: int, offset: int) -> Timestamp:
    if not _EARLIEST <= nanos <= _LATEST:
        raise Fail("timestamp overflow")
    return Timestamp(nanos, offset)


def no_overload(one: Any, name: str) -> Fail:
    """What is said where an operator or function has nothing for the type of its first operand."""
    if isinstance(one, str | Timestamp | Duration):
        return Fail(_NO)
    return Fail(f"{_NO}: {name}")


def add(one: Any, other: Any) -> Any:
    kind, second = one.__class__, other.__class__
    if kind is second:
        if kind is int:
            return _int(one + other)
        if kind is Uint:
            return _uint(int(one) + int(other))
        if kind in (float, str, bytes):
            return one + other
        if kind is Duration:
            return _duration(one.nanos + other.nanos)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return [*one, *other]
    if (kind, second) in ((Duration, Timestamp), (Timestamp, Duration)):
        offset = (one if kind is Timestamp else other).offset
        return _timestamp(one.nanos + other.nanos, offset)
    if isinstance(one, int | float | bytes | list | tuple) and kind is not bool:
        raise Fail(_NO)
    raise no_overload(one, "_+_")


def subtract(one: Any, other: Any) -> Any:
    kind, second = one.__class__, other.__class__
    if kind is second:
        if kind is int:
            return _int(one - other)
        if kind is Uint:
            return _uint(int(one) - int(other))
        if kind is float:
            return one - other
        if kind is Duration or kind is Timestamp:
            return _duration(one.nanos - other.nanos)
    if kind is Timestamp and second is Duration:
        return _timestamp(one.nanos - other.nanos, one.offset)
    if kind in (int, Uint, float):
        raise Fail(_NO)
    raise no_overload(one, "_-_")


def multiply(one: Any, other: Any) -> Any:
    kind = one.__class__
    if kind is other.__class__:
        if kind is int:
            return _int(one * other)
        if kind is Uint:
            return _uint(int(one) * int(other))
        if kind is float:
            return one * other
    if kind in (int, Uint, float):
        raise Fail(_NO)
    raise no_overload(one, "_*_")


def divide(one: Any, other: Any) -> Any:
    kind = one.__class__
    if kind is other.__class__:
        if kind is float:
            return _float_ratio(one, other)
        if kind in (int, Uint):
            if other == 0:
                raise Fail("division by zero")
            whole = abs(int(one)) // abs(int(other))
            signed = whole if (one < 0) == (other < 0) else -whole
            return _int(signed) if kind is int else Uint(signed)
    if kind in (int, Uint, float):
        raise Fail(_NO)
    raise no_overload(one, "_/_")


def _float_ratio(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def modulo(one: Any, other: Any) -> Any:
    kind = one.__class__
    if kind in (int, Uint) and kind is other.__class__:
        if other == 0:
            raise Fail("modulus by zero")
        if one == -(2**63) and other == -1:
            raise Fail("integer overflow")
        rest = abs(int(one)) % abs(int(other))
        signed = -rest if one < 0 else rest
        return signed if kind is int else Uint(signed)
    if kind in (int, Uint):
        raise Fail(_NO)
    raise no_overload(one, "_%_")


def negate(one: Any) -> Any:
    if one.__class__ is int:
        return _int(-one)
    if one.__class__ is float:
        return -one
    if one.__class__ is Duration:
        return _duration(-one.nanos)
    if one.__class__ is bool:
        raise Fail(_NO)
    raise no_overload(one, "-_")


def invert(one: Any) -> bool:
    if one.__class__ is bool:
        return not one
    raise Fail(_NO)


def _ordering(sign: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def order(one: Any, other: Any) -> bool:
        if not has_order(one):
            raise Fail(f"{_NO}: _{sign}_")
        return holds(compare(one, other))

    return order


def _differ(one: Any, other: Any) -> bool:
    try:
        return not equals(one, other)
    except Fail:
        return True


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "_==_": equals,
    "_!=_": _differ,
    "_<_": _ordering("<", lambda c: c < 0),
    "_<=_": _ordering("<=", lambda c: c <= 0),
    "_>_": _ordering(">", lambda c: c > 0),
    "_>=_": _ordering(">=", lambda c: c >= 0),
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "@in": contains,
    "_[_]": index,
    "_[?_]": optional_index,
}
UNARY: dict[str, Callable[[Any], Any]] = {"!_": invert, "-_": negate}
