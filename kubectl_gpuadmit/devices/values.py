"""What a device's attributes and capacities hold, from the text of its driver to one form.

Apart from ``normal``, because devices are turned into this form one by one when asked.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import QuantityText
from kubectl_gpuadmit.kube.quantity import Quantity, parse

T = TypeVar("T")


class Version(Struct, frozen=True):
    """A semantic version: never equal to the same text as a string."""

    text: str

    def __str__(self) -> str:
        return self.text


Scalar = bool | int | str | Version
Value = Scalar | tuple[Scalar, ...] | None
"""Of an attribute. None: of a type that is not known here. Compare with ``same``."""


def same(one: Value, other: Value) -> bool:
    """Whether two values are of one type and equal: True is not 1."""
    return type(one) is type(other) and one == other


class Capacity(Struct, frozen=True):
    """How much of something a device has, and in which portions it may be asked for."""

    value: Quantity
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None
    has_policy: bool = False
    has_range: bool = False


def qualified(driver: str, named: dict[str, T] | None) -> list[tuple[str, T]]:
    """Names with their domain; a name that is written with the driver's own domain wins."""
    if not named:
        return []
    return [
        (name if "/" in name else f"{driver}/{name}", held)
        for name, held in named.items()
        if "/" in name or f"{driver}/{name}" not in named
    ]


def value_of(attribute: dra.DeviceAttribute) -> Value:
    if attribute.string is not None:
        return attribute.string
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.version is not None:
        return Version(attribute.version)
    if attribute.versions is not None:
        return tuple(Version(text) for text in attribute.versions)
    return attribute.strings or attribute.ints or attribute.bools


def capacity_of(written: dra.DeviceCapacity) -> Capacity:
    """Raises QuantityError."""
    value = parse(written.value)
    policy = written.requestPolicy
    if policy is None:
        return Capacity(value)
    span = policy.validRange
    return Capacity(
        value,
        default=_maybe(policy.default),
        valid_values=tuple(parse(one) for one in policy.validValues or ()),
        min=_maybe(span.min) if span is not None else None,
        max=_maybe(span.max) if span is not None else None,
        step=_maybe(span.step) if span is not None else None,
        has_policy=True,
        has_range=span is not None,
    )


def _maybe(written: QuantityText | None) -> Quantity | None:
    return None if written is None else parse(written)
