"""Amounts that are known within bounds, and their sums."""

from __future__ import annotations

from msgspec import Struct


class Range(Struct, frozen=True):
    """Bytes, tokens or sequences; ``likely`` lies within ``low`` and ``high``."""

    low: float
    likely: float
    high: float


def certain(value: float) -> Range:
    """An amount without doubt."""
    return Range(value, value, value)


def total(*parts: Range) -> Range:
    """The sum, with all low ends and all high ends together."""
    return Range(
        sum(part.low for part in parts),
        sum(part.likely for part in parts),
        sum(part.high for part in parts),
    )


def scaled(amount: Range, factor: float) -> Range:
    """The amount times a factor that is not negative."""
    return Range(amount.low * factor, amount.likely * factor, amount.high * factor)


def left(whole: Range, *taken: Range) -> Range:
    """What is left of ``whole``: low where all that is taken is high. May be negative."""
    return Range(
        whole.low - sum(part.high for part in taken),
        whole.likely - sum(part.likely for part in taken),
        whole.high - sum(part.low for part in taken),
    )


def widened(value: float, *, below: float, above: float) -> Range:
    """Around a value by shares of it."""
    return Range(value * (1 - below), value, value * (1 + above))
