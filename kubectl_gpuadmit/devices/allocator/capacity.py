"""How much of a device's capacity a request takes, and whether that is left.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(consumable_capacity.go). Amounts are whole nanos; rounding goes through int64 as it does there.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_gpuadmit.devices.values import Capacity
from kubectl_gpuadmit.kube.quantity import MILLI, NANO, Quantity

Amounts = dict[str, int]
"""Capacity's name as written -> nanos."""

_MAX = 2**63 - 1


class NotRepresentable(Exception):
    """The request cannot be rounded in int64, or is negative. ``str()``: Kubernetes' own text."""


def fits(
    capacities: Mapping[str, Capacity],
    requests: Mapping[str, Quantity] | None,
    taken: Mapping[str, int],
    *,
    fractional: bool,
) -> bool:
    """Whether a device has left what a request takes. ``taken``: what others have of it, in nanos.

    A capacity that the device has and the request does not name is taken as its policy says, or
    whole. Raises NotRepresentable, which aborts the attempt.
    """
    if requests and any(name not in capacities for name in requests):
        return False
    portions = {
        name: portion(capacities[name], (requests or {}).get(name), name, fractional)
        for name in sorted(capacities)
    }
    return all(
        not _violates(capacities[name], amount, fractional)
        and amount.nano + taken.get(name, 0) <= capacities[name].value.nano
        for name, amount in portions.items()
    )


def consumed(
    capacities: Mapping[str, Capacity],
    requests: Mapping[str, Quantity] | None,
    *,
    fractional: bool,
) -> dict[str, Quantity]:
    """What a share of the device takes of each capacity. Raises NotRepresentable."""
    return {
        name: portion(capacity, (requests or {}).get(name), name, fractional)
        for name, capacity in sorted(capacities.items())
    }


def portion(capacity: Capacity, asked: Quantity | None, name: str, fractional: bool) -> Quantity:
    """What a request takes: the amount asked for, rounded up to a portion that is given out."""
    try:
        found = _portion(capacity, asked, fractional)
    except NotRepresentable as problem:
        raise NotRepresentable(f'capacity "{name}": {problem}') from None
    if found.nano < 0:
        raise NotRepresentable(f'capacity "{name}": capacity value is negative')
    return found


def _portion(capacity: Capacity, asked: Quantity | None, fractional: bool) -> Quantity:
    if asked is None:
        return capacity.default if capacity.default is not None else capacity.value
    if not capacity.has_policy:
        return asked
    if capacity.min is not None:
        return _in_range(capacity, capacity.min, asked, fractional)
    for valid in capacity.valid_values if not capacity.has_range else ():
        if asked.nano <= valid.nano:
            return valid
    return asked


def _in_range(capacity: Capacity, low: Quantity, asked: Quantity, fractional: bool) -> Quantity:
    if asked.nano < low.nano:
        return low
    step = capacity.step
    if step is None:
        return asked
    cannot = "capacity request cannot be represented in the device's range arithmetic"
    if _in_milli(capacity, fractional):
        if not _is_milli(asked):
            raise NotRepresentable(f"{cannot}: request {asked} is not a representable milli value")
        begin, by = low.milli(), step.milli()
        steps = -(-(asked.milli() - begin) // by)
        if steps > (_MAX - begin) // by:
            raise NotRepresentable(
                f"{cannot}: rounding request {asked} up to the next step passes the milli-value"
                " range"
            )
        return Quantity((begin + by * steps) * MILLI, step.format)
    if asked.nano > _MAX * NANO:
        raise NotRepresentable(f"{cannot}: request {asked} exceeds MaxInt64")
    begin, by = low.value(), step.value()
    steps = -(-(asked.value() - begin) // by)
    if begin >= 0 and steps > (_MAX - begin) // by:
        raise NotRepresentable(
            f"{cannot}: rounding request {asked} up to the next step passes MaxInt64"
        )
    return Quantity((begin + by * steps) * NANO, step.format)


def _violates(capacity: Capacity, amount: Quantity, fractional: bool) -> bool:
    if not capacity.has_policy:
        return False
    default = capacity.default
    if default is not None and _alike(default, amount):
        return False
    if capacity.has_range:
        if capacity.max is not None and amount.nano > capacity.max.nano:
            return True
        if capacity.step is None or capacity.min is None:
            return False
        if _in_milli(capacity, fractional):
            if not _is_milli(amount):
                return True
            offset, by = amount.milli() - capacity.min.milli(), capacity.step.milli()
        else:
            offset, by = amount.value() - capacity.min.value(), capacity.step.value()
        return offset % by != 0
    return bool(capacity.valid_values) and all(
        amount.nano != valid.nano for valid in capacity.valid_values
    )


def _alike(one: Quantity, other: Quantity) -> bool:
    """Go's == on the struct: also the format and how the amount is kept."""
    return (one.nano, one.format, one.scale, one.text) == (
        other.nano,
        other.format,
        other.scale,
        other.text,
    )


def _in_milli(capacity: Capacity, fractional: bool) -> bool:
    bounds = [b for b in (capacity.min, capacity.max, capacity.step) if b is not None]
    if not fractional or not all(map(_is_milli, bounds)):
        return False
    return capacity.step is None or capacity.step.milli() >= 1


def _is_milli(amount: Quantity) -> bool:
    return amount.milli() * MILLI == amount.nano
