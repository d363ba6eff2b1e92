"""Durations and instants as people write them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.kube import times

START = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("4h", 14400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
        ("1w", 604800),
        ("500ms", 0.5),
        ("0s", 0),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert times.parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "4", "h", "4 h", "-4h", "4H", "4h,", "٤h", "99999d", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(times.TimeError):
        times.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-29T12:00:00Z", START),
        ("2026-11-29t12:00:00z", START),
        ("2026-11-29T13:00:00+01:00", START),
        ("2026-11-29T12:00:00.25Z", START + dt.timedelta(seconds=0.25)),
        ("2026-11-29", dt.datetime(2026, 11, 29, 23, 59, 59, tzinfo=dt.UTC)),
    ],
)
def test_an_instant_is_read(text: str, instant: dt.datetime) -> None:
    assert times.parse_instant(text) == instant


@pytest.mark.parametrize(
    "text", ["", "2026-13-01", "2026-11-29T12:00:00", "12:00", "2026-11-29T25:00:00Z", "tomorrow"]
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(times.TimeError):
        times.parse_instant(text)


def test_a_duration_ends_after_its_start_and_an_instant_where_it_says() -> None:
    assert times.parse_end("4h", START) == START + dt.timedelta(hours=4)
    assert times.parse_end("4h", None) is None
    assert times.parse_end("2026-11-29T12:00:00Z", None) == START
    with pytest.raises(times.TimeError, match="neither a duration"):
        times.parse_end("soon", START)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_an_error(text: str) -> None:
    for parse in (times.parse_duration, times.parse_instant):
        try:
            parse(text)
        except times.TimeError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.6, "1m"),
        (5400, "1h30m"),
        (90061, "1d1h"),
        (43201, "12h"),
        (172800, "2d"),
        (-60, "1m"),
    ],
)
def test_a_length_of_time_is_spelled_in_two_units(seconds: float, text: str) -> None:
    assert times.spell(dt.timedelta(seconds=seconds)) == text
