"""Values of CEL as texts: how durations, timestamps and versions are read, and how Go prints.

Source: github.com/google/cel-go v0.29.2 common/types; Go's strconv and time;
github.com/blang/semver/v4.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from kubectl_gpuadmit.cel.values import Duration, Fail, Semver, Timestamp


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
