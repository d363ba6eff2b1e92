"""Quantities as Kubernetes parses, rounds, compares and prints them; knows no resource's meaning.

Source: k8s.io/apimachinery v0.37.2 pkg/api/resource (quantity.go, suffix.go, amount.go,
scale_int.go, math.go), compared with that code on generated texts.

Rules of this module
1. A quantity is a whole number of nanos; whatever is finer is rounded up, away from zero.
2. Two quantities are equal, or in order, by their amount alone (``Quantity.Cmp``); the format is
   only how it is printed.
3. Kubernetes keeps an amount in one of two forms, an int64 with a scale (short texts) or a big
   decimal (``scale`` is None: long texts, fractions of Ki, Mi …). ``Value()`` differs between them
   where it cannot be exact: the int64 rounds away from zero and gives 0, or for some scales the low
   64 bits, on overflow; the decimal adds one to the truncated number, also to a negative one
   (``-1.1Ki`` is -1125), and keeps the low 64 bits. So ``memory: 10E`` counts as 0 bytes in
   Kubernetes, and here.
4. The documented cap of 2**63-1 holds for binary suffixes alone: that is what the code does.
5. Narrower than Kubernetes in one place: exponents beyond ±1000 and texts beyond 1,000 characters
   are refused. The API would accept them, and compute for minutes on some.
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
"""Largest amount with a binary suffix, in nanos."""

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
# The API's scanner: no part is mandatory, so "k", "." and "-" are legal texts for 0.
_SHAPE = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(c) for c in range(0x2000, 0x200B)
)
"""What Go's strings.TrimSpace strips: the API still does so around a quantity."""
_LONGEST = 1000
_FAST_DIGITS = 18
_ONE_MULTIPLICATION = (1, 2, 3, 6, 9)
"""Scales for which positiveScaleInt64 multiplies once and returns the overflown product."""

TEMPLATE = re.compile(r"\$\{[^}]*\}?|\$\([^)]*\)|\$[A-Za-z_]\w*|\{\{.*|<%.*|__[A-Z][A-Z0-9_]*__")
"""Text that a template engine should have replaced: ``${N:-1}``, ``$N``, ``{{ .Values.n }}``."""


class QuantityError(ValueError):
    """The text is no quantity. ``str()`` says why; ``hint`` what to write instead, or ''."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Quantity(Struct, frozen=True, eq=False):
    """An amount. Equal and ordered by ``nano`` alone, as ``Quantity.Cmp``."""

    nano: int
    """The value in 10**-9."""
    format: Format = "DecimalSI"
    """How the API prints it again."""
    scale: int | None = 0
    """Power of ten of the int64 that Kubernetes keeps; None for a big decimal. See rule 3."""
    text: str = ""
    """The text as written where ``Quantity.String()`` repeats it instead of the canonical form."""

    def value(self) -> int:
        """Whole units, rounded up, as ``Quantity.Value()``; an int64 even on overflow."""
        return self._scaled(NANO)

    def milli(self) -> int:
        """Thousandths, rounded up, as ``Quantity.MilliValue()``; an int64 even on overflow."""
        return self._scaled(MILLI)

    def canonical(self) -> str:
        """The canonical form: largest suffix without a fraction, as ``CanonicalizeBytes``."""
        return canonical(self.nano, self.format)

    def _scaled(self, unit: int) -> int:
        nano = self.nano
        if self.scale is not None:
            amount = -(-nano // unit) if nano >= 0 else nano // unit
            if -(2**63) <= amount < 2**63:
                return amount
            steps = self.scale + (0 if unit == NANO else 3)
            return _int64(amount) if steps in _ONE_MULTIPLICATION else 0
        if nano < 2**63 - 1:  # an int64 division, after the low 64 bits were taken
            low = _int64(nano)
            whole = abs(low) // unit
            whole = whole if low >= 0 else -whole
            return whole + 1 if low % unit else whole
        return _int64(-(-nano // unit))

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __str__(self) -> str:
        """As ``Quantity.String()``: the text as written if that counts as canonical."""
        return self.text or canonical(self.nano, self.format)


def _int64(number: int) -> int:
    """The low 64 bits of the magnitude, as Go's big.Int.Int64()."""
    low = abs(number) & (2**64 - 1)
    low = -low if number < 0 else low
    return (low + 2**63) % 2**64 - 2**63


@lru_cache(maxsize=1 << 16, typed=True)
def parse(text: str | int | float) -> Quantity:
    """Reads one quantity as the API reads it from JSON, where it may be a string or a number.

    Raises QuantityError. Space around the text is ignored, as the API does. A float is read in the
    spelling in which kubectl sends it on (``0.5``, ``1e+21``).
    """
    return _parse(written(text).strip(_SPACE))


def written(text: str | int | float) -> str:
    """A quantity as the text that the API receives: numbers as Go's encoding/json spells them."""
    if isinstance(text, str):
        return text
    if isinstance(text, bool):
        return "true" if text else "false"
    if isinstance(text, int):
        return str(text) if abs(text) < 10**_LONGEST else "9" * (_LONGEST + 1)
    if text != text or text in (float("inf"), float("-inf")):
        raise QuantityError(f"{text} is not a quantity: it is not a number that JSON can carry")
    digits, _, exponent = repr(text).partition("e")
    if exponent and 1e-6 <= abs(text) < 1e21:
        digits, exponent = _plain(digits, int(exponent)), ""
    digits = digits.removesuffix(".0")
    return f"{digits}e{int(exponent):+d}" if exponent else digits


def _plain(digits: str, exponent: int) -> str:
    """``1.5`` and ``-5`` -> ``0.000015``: positional notation of a shortest float."""
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    moved = whole + fraction
    point = len(whole) + exponent
    if point <= 0:
        return f"{sign}0.{'0' * -point}{moved}"
    return f"{sign}{moved[:point].ljust(point, '0')}.{moved[point:] or '0'}"


def _parse(text: str) -> Quantity:
    if len(text) > _LONGEST:
        raise QuantityError(f"a quantity of {len(text)} characters is beyond anything meant")
    match = _SHAPE.fullmatch(text)
    if not match or not text:
        raise _refused(text)
    sign, zeros, digits, fraction, suffix = match.groups()
    whole, fraction = digits or "0", fraction or ""
    form, base, exponent = _suffix(suffix, text)
    number = int(whole + fraction)
    negative = sign == "-"

    # the int64 form, where the digits are few enough to fit
    scale, factor = 0, 1
    if base == 10:
        scale = exponent
        room = _FAST_DIGITS - len(whole) - len(fraction)
    elif not fraction:
        factor = 1 << exponent
        room = 14 - len(whole) - exponent * 3 // 10
    else:
        room = -1
    scale -= len(fraction)
    if room >= 0 and scale >= -9 and number * factor < 2**63:
        nano = number * factor * 10 ** (scale + 9) if number else 0
        if base == 2:
            kept = number % 8 != 0
        else:
            shifted = whole + fraction
            kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        return Quantity(-nano if negative else nano, form, scale, text if kept else "")

    # the big decimal
    if not (zeros or digits or fraction):
        raise _refused(text)
    if base == 2:
        numerator, denominator = (number << exponent) * NANO, 10 ** len(fraction)
    else:
        power = exponent + 9 - len(fraction)
        numerator, denominator = number * 10 ** max(power, 0), 10 ** max(-power, 0)
    nano = -(-numerator // denominator)
    kept_as = None
    if form == "BinarySI":
        if nano > MAX:
            nano, kept_as = MAX, 0  # the cap has no decimals: it behaves as an int64
        elif 0 < nano < NANO:
            form = "DecimalSI"
    return Quantity(-nano if negative else nano, form, kept_as)


def _suffix(suffix: str, text: str) -> tuple[Format, int, int]:
    """Format, base and exponent. An exponent beyond int32 wraps, as it does in the API."""
    if suffix in _DECIMAL:
        return "DecimalSI", 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return "BinarySI", 2, _BINARY[suffix]
    if re.fullmatch(r"[eE][+-]?[0-9]+", suffix):
        exponent = int(suffix[1:])
        if -(2**63) <= exponent < 2**63:
            exponent = (exponent + 2**31) % 2**32 - 2**31
            if abs(exponent) > _LONGEST:
                raise QuantityError(f"{shown(text)} has an exponent beyond 1000")
            return "DecimalExponent", 10, exponent
    raise _refused(text)


def canonical(nano: int, format: Format = "DecimalSI") -> str:
    """The text that the API server prints for an amount in nanos.

    A binary format falls back to the decimal one below 1024 and where a fraction would be lost. A
    decimal amount of 10**21 and more has no suffix in the API, which then prints none: ``1000E``
    becomes ``1``.
    """
    if nano == 0:
        return "0"
    if format == "BinarySI" and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        number, power = nano // NANO, 0
        while number % 1024 == 0:
            number, power = number // 1024, power + 10
        return f"{number}{_BINARY_SUFFIX.get(power, '')}"
    power = -9
    while nano % 1000 == 0:
        nano, power = nano // 1000, power + 3
    if format == "DecimalExponent":
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX.get(power, '')}"


@lru_cache(maxsize=1 << 16, typed=True)
def value(text: str | int | float) -> int:
    """Whole units of a quantity as written, rounded up. Raises QuantityError."""
    return parse(text).value()


@lru_cache(maxsize=1 << 16, typed=True)
def milli(text: str | int | float) -> int:
    """Thousandths of a quantity as written, rounded up. Raises QuantityError."""
    return parse(text).milli()


def shown(text: str) -> str:
    """A text quoted for a message, cut if it is long."""
    return f"{text!r}" if len(text) <= 60 else f"{text[:57]!r}…"


_UNITS = "n, u, m, k, M, G, T, P, E or Ki, Mi, Gi, Ti, Pi, Ei"
_BYTES = re.compile(r"([+-]?[0-9.]+) *([kKmMgGtTpPeE])(i?)([bB](?:ytes?)?)?")


def _refused(text: str) -> QuantityError:
    """Says what is wrong with a text that is no quantity, and what was probably meant."""
    if not text:
        return QuantityError("an empty text is not a quantity", "write a number such as 1 or 16Gi")
    if TEMPLATE.search(text):
        return QuantityError(
            f"{shown(text)} is a template placeholder, not a quantity",
            "render the manifest first (envsubst, helm template, kustomize build)",
        )
    slip = _BYTES.fullmatch(text.strip())
    if slip:
        number, letter, binary, _ = slip.groups()
        letter = "k" if letter in "kK" and not binary else letter.upper()
        meant = f"{number}{letter}i" if binary else f"{number}{letter}"
        hint = f"write {meant}"
        if not binary:
            hint += f" (powers of 1000) or {number}{letter.upper()}i (powers of 1024)"
        return QuantityError(f"{shown(text)} is not a quantity", hint)
    if re.fullmatch(r"[+-]?[0-9]{1,3}([,_'][0-9]{3})+", text):
        plain = re.sub(r"[,_']", "", text)
        return QuantityError(f"{shown(text)} is not a quantity", f"write {plain}")
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]*[A-Za-z]*", text):
        return QuantityError(f"{shown(text)} is not a quantity", f"write {text.replace(',', '.')}")
    number = re.match(r"[+-]?[0-9.]+", text)
    if number and number[0] != text:
        rest = text[number.end() :]
        return QuantityError(
            f"{shown(text)} is not a quantity: unknown suffix {shown(rest)}",
            f"suffixes are {_UNITS}",
        )
    return QuantityError(f"{shown(text)} is not a quantity", f"a number, then one of {_UNITS}")
