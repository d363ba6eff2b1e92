"""Ranges of sizes as cel-go reckons with them: unsigned, and at their end where they overflow.

Source: github.com/google/cel-go v0.29.2 checker/cost.go.
"""

from __future__ import annotations

import math

MOST = 2**64 - 1
Size = tuple[int, int]
"""The least and the greatest size: characters, bytes, elements or entries."""

UNKNOWN: Size = (0, MOST)
ONE: Size = (1, 1)

TRAVERSAL = 0.1
"""Cost of one character of a text that is gone through (common.StringTraversalCostFactor)."""
PATTERN = 0.25
"""Cost of one character of a regular expression, for each unit that the text costs."""
LIST, MAP, STRUCT = 10, 30, 40
"""Cost of making one."""


def fixed(size: int) -> Size:
    return (size, size)


def plus(one: int, *others: int) -> int:
    return min(one + sum(others), MOST)


def times(one: int, other: int) -> int:
    return min(one * other, MOST)


def scaled(size: int, factor: float) -> int:
    """Rounded up."""
    number = float(size)
    if number > 0 and factor > 0 and number > 2.0**64 / factor:
        return MOST
    return min(math.ceil(number * factor), MOST)


def both(one: Size, other: Size) -> Size:
    """The sum of two sizes."""
    return (plus(one[0], other[0]), plus(one[1], other[1]))


def product(one: Size, other: Size) -> Size:
    return (times(one[0], other[0]), times(one[1], other[1]))


def union(one: Size, other: Size) -> Size:
    return (min(one[0], other[0]), max(one[1], other[1]))
