"""Functions on strings: the strings library (with ``format``) and the regular expressions.

Source: github.com/google/cel-go v0.29.2 ext/strings.go, ext/formatting.go; k8s.io/apiserver v0.37.2
pkg/cel/library/regex.go.
"""

from __future__ import annotations

import math
from typing import Any

from kubectl_gpuadmit.cel.formats import REFUSALS, clauses
from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.library.standard import to_string
from kubectl_gpuadmit.cel.regex import RegexError, compiled
from kubectl_gpuadmit.cel.texts import go_quoted, shown
from kubectl_gpuadmit.cel.values import (
    Duration,
    Fail,
    Timestamp,
    TypeValue,
    Uint,
    Unsure,
    from_key,
    type_name,
)
from kubectl_gpuadmit.kube.quantity import _SPACE as GO_SPACE


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise Fail(f"index out of range: {place}")
    return text[place : place + 1]


def _index_of(text: str, part: str, begin: int = 0) -> int:
    if begin < 0:
        raise Fail(f"index out of range: {begin}")
    if not part:
        return min(begin, len(text))
    return -1 if begin >= len(text) else text.find(part, begin)


def _last_index_of(text: str, part: str, begin: int | None = None) -> int:
    if begin is None:
        if not part:
            return len(text)
        if len(text.encode()) < len(part.encode()):
            return -1
        begin = len(text) - 1
    if begin < 0:
        raise Fail(f"index out of range: {begin}")
    if not part:
        return min(begin, len(text))
    if begin >= len(text):
        return -1
    return text.rfind(part, 0, begin + len(part))


def _ascii(text: str, *, upper: bool) -> str:
    return "".join(
        (one.upper() if upper else one.lower()) if one.isascii() else one for one in text
    )


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


def _split(text: str, by: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not by:
        letters = list(text)
        if 0 < count < len(letters):
            return [*letters[: count - 1], "".join(letters[count - 1 :])]
        return letters
    return text.split(by) if count < 0 else text.split(by, count - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise Fail(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise Fail(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise Fail(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise Fail(f"index out of range: {end}")
    return text[start:end]


def _join(items: list[Any], by: str = "") -> str:
    for one in items:
        if not isinstance(one, str):
            raise Fail(f"join: invalid input: {shown(one)}")
    return by.join(items)


_QUOTED = {
    **{one: "\\" + name for one, name in zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True)},
    "\\": "\\\\",
    '"': '\\"',
}


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(one, one) for one in text) + '"'


# -- format ----------------------------------------------------------------------------------------


def _format(text: str, args: list[Any]) -> str:
    out: list[str] = []
    place = 0
    for clause in clauses(text):
        if clause.verb == "?":
            raise Unsure("a format clause that cannot be read")
        if not clause.verb:
            out.append(clause.text)
            continue
        if place >= len(args):
            raise Fail(f"index {place} out of range")
        out.append(_clause(args[place], clause.verb, clause.places))
        place += 1
    return "".join(out)


def _clause(value: Any, verb: str, places: int | None) -> str:
    whole = value.__class__ in (int, Uint)
    if verb == "s":
        return _text(value)
    if verb in "fe" and isinstance(value, float | str):
        if verb == "f" and isinstance(value, float) and abs(value) < 1000:
            return f"{value:.{6 if places is None else places}f}"
        raise Unsure(f"how %{verb} writes this value")
    if verb == "b" and value.__class__ is bool:
        return "1" if value else "0"
    if verb in "dbo" and whole:
        return format(int(value), verb)
    if verb in "xX" and (whole or isinstance(value, str | bytes)):
        digits = _hex(value)
        return digits.upper() if verb == "X" else digits
    raise _bad(verb, value)


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    return value.hex() if isinstance(value, bytes) else f"{int(value):x}"


def _bad(verb: str, value: Any) -> Fail:
    return Fail(f"error during formatting: {REFUSALS[verb]}, was given {type_name(value)}")


def _text(value: Any) -> str:
    """``%s``."""
    if value is None:
        return "null"
    if isinstance(value, list | tuple | dict):
        return _literal(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, str | bytes | bool | int | float | Timestamp | Duration):
        return to_string(value)
    raise _bad("s", value)


def _literal(value: Any) -> str:
    """A value inside of a list or a map."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, bytes):
        raise Unsure("how bytes are written by format")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Unsure("how an infinite number is written by format")
        return f"{value:.6f}"
    if isinstance(value, Timestamp):
        return f'timestamp("{to_string(value)}")'
    if isinstance(value, Duration):
        return f'duration("{to_string(value)}")'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(one) for one in value) + "]"
    if isinstance(value, dict):
        pairs = sorted((_literal(from_key(key)), _literal(one)) for key, one in value.items())
        return "{" + ", ".join(f"{key}:{one}" for key, one in pairs) + "}"
    if value is None or isinstance(value, bool | int | TypeValue):
        return _text(value)
    raise Fail(f"error during formatting: no formatting function for {type_name(value)}")


# -- regular expressions ---------------------------------------------------------------------------


def _find(text: str, pattern: str) -> str:
    try:
        span = compiled(pattern).find(text, 0)
    except RegexError as fault:
        raise Fail(f"Illegal regex: {fault}") from None
    return text[span[0] : span[1]] if span else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    try:
        return compiled(pattern).find_all(text, most)
    except RegexError as fault:
        raise Fail(f"Illegal regex: {fault}") from None


OVERLOADS: list[Overload] = [
    declare("string::charAt(int): string", _char_at),
    declare("string::indexOf(string): int", _index_of),
    declare("string::indexOf(string,int): int", _index_of),
    declare("string::lastIndexOf(string): int", _last_index_of),
    declare("string::lastIndexOf(string,int): int", _last_index_of),
    declare("string::lowerAscii(): string", lambda text: _ascii(text, upper=False)),
    declare("string::upperAscii(): string", lambda text: _ascii(text, upper=True)),
    declare("string::replace(string,string): string", _replace),
    declare("string::replace(string,string,int): string", _replace),
    declare("string::split(string): list<string>", _split),
    declare("string::split(string,int): list<string>", _split),
    declare("string::substring(int): string", _substring),
    declare("string::substring(int,int): string", _substring),
    declare("string::trim(): string", lambda text: text.strip(GO_SPACE)),
    declare("list<string>::join(): string", _join),
    declare("list<string>::join(string): string", _join),
    declare("string::format(list<dyn>): string", _format, since=29),
    declare("strings.quote(string): string", _quote, since=29),
    declare("string::find(string): string", _find),
    declare("string::findAll(string): list<string>", _find_all),
    declare("string::findAll(string,int): list<string>", _find_all),
]
