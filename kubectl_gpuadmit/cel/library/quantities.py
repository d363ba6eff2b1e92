"""Quantities and semantic versions.

Source: k8s.io/apiserver v0.37.2 pkg/cel/library/quantity.go, semverlib.go;
k8s.io/apimachinery v0.37.2 pkg/api/resource/quantity.go (AsInt64).
"""

from __future__ import annotations

from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.texts import semver
from kubectl_gpuadmit.cel.values import (
    Fail,
    Quantity,
    Semver,
    Unsure,
)
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.quantity import NANO

_FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def _quantity(text: str) -> Quantity:
    if text != text.strip() or len(text) > 100:
        if text.strip() == text:
            raise Unsure("a quantity of more than 100 characters")
        raise Fail(_FORMAT)
    try:
        return Quantity(quantity.parse(text))
    except quantity.QuantityError:
        raise Fail(_refusal(text)) from None


def _refusal(text: str) -> str:
    """Which of its three messages ParseQuantity gives."""
    if not text:
        return _FORMAT
    rest = text.lstrip("+-") if text[:1] in "+-" else text
    rest = text[1:] if text[:1] in ("+", "-") else rest
    number = rest.lstrip("0123456789")
    if number.startswith("."):
        number = number[1:].lstrip("0123456789")
    suffix = number
    scanned = suffix.lstrip("eEinumkKMGTP").lstrip("+-").lstrip("0123456789")
    if scanned:
        return _FORMAT
    return "unable to parse quantity's suffix" if suffix else _FORMAT


def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except Fail:
        return False
    return True


def _order(one: Quantity, other: Quantity) -> int:
    a, b = one.amount, other.amount
    return int(a > b) - int(a < b)


def _whole(one: Quantity) -> int | None:
    """AsInt64: only of the short form, and only without a fraction."""
    amount = one.amount
    if amount.scale is None or amount.nano % NANO:
        return None
    if amount.scale < 0:
        # an int64 with decimals has no AsInt64, whatever its value
        return None
    value = amount.nano // NANO
    return value if -(2**63) <= value < 2**63 else None


def _as_integer(one: Quantity) -> int:
    value = _whole(one)
    if value is None:
        raise Fail("cannot convert value to integer")
    return value


def _plus(one: Quantity, other: Quantity | int, sign: int) -> Quantity:
    """The sum keeps the finer of the two scales, as int64Amount.Add does."""
    more = (
        other.amount
        if isinstance(other, Quantity)
        else quantity.Quantity(other * NANO, "DecimalExponent")
    )
    total = one.amount.nano + sign * more.nano
    first, second = one.amount.scale, more.scale
    scale: int | None = None
    if first is not None and second is not None:
        finer = second if not one.amount.nano else min(first, second)
        scale = finer if more.nano else first
        if not -(2**63) <= total // 10 ** (scale + 9) < 2**63:
            scale = None
    format = more.format if not one.amount.nano else one.amount.format
    return Quantity(quantity.Quantity(total, format, scale), computed=True)


def _float(one: Quantity) -> float:
    """AsApproximateFloat64: the number in its scale, times a power of ten."""
    amount = one.amount
    if amount.scale is None:
        return amount.nano / NANO
    if amount.scale == 0:
        return float(amount.nano // NANO)
    number = amount.nano // 10 ** (amount.scale + 9)
    return float(number) * float(f"1e{amount.scale}")


def _normalised(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part.encode()) > 1:
            stripped = part.lstrip("0")
            if not stripped or stripped[0] not in "0123456789":
                stripped = "0" + stripped
            parts[place] = stripped
    if len(parts) < 3:
        if any(sign in parts[-1] for sign in "+-"):
            raise Fail("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalise: bool = False) -> Semver:
    return semver(_normalised(text) if normalise else text)


def _is_semver(text: str, normalise: bool = False) -> bool:
    try:
        _semver(text, normalise)
    except Fail:
        return False
    return True


def _versions(one: Semver, other: Semver) -> int:
    a, b = one.order(), other.order()
    return int(a > b) - int(a < b)


OVERLOADS: list[Overload] = [
    declare("quantity(string): quantity", _quantity),
    declare("isQuantity(string): bool", _is_quantity),
    declare("sign(quantity): int", lambda one: int(one.amount.nano > 0) - int(one.amount.nano < 0)),
    declare("quantity::isGreaterThan(quantity): bool", lambda a, b: _order(a, b) > 0),
    declare("semver::isGreaterThan(semver): bool", lambda a, b: _versions(a, b) > 0, since=33),
    declare("quantity::isLessThan(quantity): bool", lambda a, b: _order(a, b) < 0),
    declare("semver::isLessThan(semver): bool", lambda a, b: _versions(a, b) < 0, since=33),
    declare("quantity::compareTo(quantity): int", _order),
    declare("semver::compareTo(semver): int", _versions, since=33),
    declare("quantity::asApproximateFloat(): double", _float),
    declare("quantity::asInteger(): int", _as_integer),
    declare("quantity::isInteger(): bool", lambda one: _whole(one) is not None),
    declare("quantity::add(quantity): quantity", lambda a, b: _plus(a, b, 1)),
    declare("quantity::add(int): quantity", lambda a, b: _plus(a, b, 1)),
    declare("quantity::sub(quantity): quantity", lambda a, b: _plus(a, b, -1)),
    declare("quantity::sub(int): quantity", lambda a, b: _plus(a, b, -1)),
    declare("semver(string): semver", _semver, since=33),
    declare("semver(string,bool): semver", _semver, since=33),
    declare("isSemver(string): bool", _is_semver, since=33),
    declare("isSemver(string,bool): bool", _is_semver, since=33),
    declare("semver::major(): int", lambda one: one.major, since=33),
    declare("semver::minor(): int", lambda one: one.minor, since=33),
    declare("semver::patch(): int", lambda one: one.patch, since=33),
]
