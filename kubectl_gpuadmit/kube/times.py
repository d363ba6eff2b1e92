"""Instants and lengths of time as manifests and policies write them; never asks what time it is.

Lengths: Go durations (``90m``, ``4h``, ``1h30m``, ``500ms``) and, because people write them, days
and weeks (``2d``, ``1w``). Instants: RFC 3339 as the API prints them; a bare date means its last
moment in UTC.
"""

from __future__ import annotations

import datetime as dt
import re

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_PART = r"[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d|w)"
DURATION_PATTERN = rf"^(?:{_PART})+$"
"""ECMA and Python regular expression of a duration, for the policy's JSON Schema."""

_DURATION = re.compile(DURATION_PATTERN[1:-1], re.ASCII)
_ONE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h|d|w)", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


class TimeError(ValueError):
    """The text is neither a duration nor an instant; the message says what would be."""


def parse_duration(text: str) -> dt.timedelta:
    """Reads ``1h30m`` and the like; more than 10,000 days is refused. Raises TimeError."""
    if not _DURATION.fullmatch(text):
        raise TimeError(f"{text!r} is not a duration such as 90m, 4h or 2d")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _ONE.findall(text))
    if seconds > 864e6:
        raise TimeError(f"{text!r} is longer than 10,000 days")
    return dt.timedelta(seconds=seconds)


def parse_instant(text: str) -> dt.datetime:
    """Reads RFC 3339, or a date as the end of that day in UTC. Raises TimeError."""
    try:
        if _DATE.fullmatch(text):
            day = dt.date.fromisoformat(text)
            return dt.datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=dt.UTC)
        if _INSTANT.fullmatch(text):
            return dt.datetime.fromisoformat(text.upper()).astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        raise TimeError(f"{text!r} is not a time: {error}") from None
    raise TimeError(f"{text!r} is not a time such as 2026-12-31T18:00:00Z")


def parse_end(text: str, start: dt.datetime | None) -> dt.datetime | None:
    """When a time-to-live ends: an instant as it stands, a duration counted from ``start``.

    None where a duration has no start yet. Raises TimeError.
    """
    if _DURATION.fullmatch(text):
        length = parse_duration(text)
        try:
            return None if start is None else start + length
        except OverflowError:
            raise TimeError(f"{text!r} ends after the year 9999") from None
    try:
        return parse_instant(text)
    except TimeError:
        raise TimeError(
            f"{text!r} is neither a duration such as 90m or 4h nor a time such as "
            "2026-12-31T18:00:00Z"
        ) from None


def spell(length: dt.timedelta) -> str:
    """A short Go-like text for a length of time: ``1h30m``, ``2d``, ``45s``; seconds rounded."""
    seconds = round(abs(length.total_seconds()))
    sizes = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for (unit, size), (below, smaller) in zip(sizes, (*sizes[1:], ("", 1)), strict=True):
        if seconds >= size:
            rest = seconds % size // smaller if below else 0
            return f"{seconds // size}{unit}" + (f"{rest}{below}" if rest else "")
    return "0s"


def stamp(instant: dt.datetime) -> str:
    """RFC 3339 in UTC to the second, as the API prints times."""
    return instant.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
