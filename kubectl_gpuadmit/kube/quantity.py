"""Quantities exactly as Kubernetes parses, rounds, compares and prints them.

Source: k8s.io/apimachinery v0.37.2 pkg/api/resource (quantity.go, suffix.go, amount.go). A quantity
is kept as a whole number of nanos: the API rounds anything finer up, away from zero.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

NANO = 10**9
MILLI = 10**6
MAX = (2**63 - 1) * NANO

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[A-Za-z]*)", re.ASCII)


class QuantityError(ValueError):
    """The text is no quantity; the message says which part is wrong."""


class Quantity(Struct, frozen=True, order=True):
    """``nano`` is the value in 10**-9; ``format`` is how the API prints it again."""

    nano: int
    format: Format = "DecimalSI"

    def value(self) -> int:
        """Whole units, rounded up (away from zero), as Quantity.Value()."""
        return _up(self.nano, NANO)

    def milli(self) -> int:
        """Thousandths, rounded up (away from zero), as Quantity.MilliValue()."""
        return _up(self.nano, MILLI)

    def __str__(self) -> str:
        return canonical(self.nano, self.format)


def _up(nano: int, unit: int) -> int:
    return -(-nano // unit) if nano >= 0 else -(-(nano // unit))


@lru_cache(maxsize=1 << 16)
def parse(text: str | int | float) -> Quantity:
    """Reads one quantity as written in a manifest. Raises QuantityError."""
    raw = text if isinstance(text, str) else repr(text)
    match = _SHAPE.fullmatch(raw)
    if not match or not (match[2] or match[3]):
        raise QuantityError(f"{raw!r} is not a quantity")
    sign, whole, fraction, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    digits = int(whole + fraction)
    form: Format
    if suffix in _BINARY:
        form, num, den = "BinarySI", digits * _BINARY[suffix] * NANO, 10 ** len(fraction)
    elif suffix in _DECIMAL:
        form = "DecimalSI"
        exponent = _DECIMAL[suffix] + 9 - len(fraction)
        num, den = digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
    elif suffix[:1] in ("e", "E") and len(suffix) > 1:
        form = "DecimalExponent"
        exponent = int(suffix[1:]) + 9 - len(fraction)
        if abs(exponent) > 400:
            raise QuantityError(f"{raw!r} has an exponent out of range")
        num, den = digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
    else:
        raise QuantityError(f"{raw!r} has an unknown suffix {suffix!r}")
    nano = min(-(-num // den), MAX)
    return Quantity(-nano if sign == "-" else nano, form)


def value(text: str | int | float) -> int:
    """Whole units of a quantity as written, rounded up."""
    return parse(text).value()


def milli(text: str | int | float) -> int:
    """Thousandths of a quantity as written, rounded up."""
    return parse(text).milli()


def canonical(nano: int, format: Format = "DecimalSI") -> str:
    """The text that the API server prints for this value and format."""
    raise NotImplementedError
