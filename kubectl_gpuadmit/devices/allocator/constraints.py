"""matchAttribute and distinctAttribute: which device may join those already chosen for a claim.

Sources: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating and experimental
(constraint.go and the matchAttributeConstraint beside Allocate). Where lists are off, an attribute
with a list matches nothing; where they are on, one value stands for a list of one.
"""

from __future__ import annotations

from typing import NamedTuple

from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.devices.model import Constraint, Device, Request, Want
from kubectl_gpuadmit.devices.values import Scalar, Value, same


class _Set(NamedTuple):
    """Values of one type: True is not 1, and a version is not a text."""

    kind: type
    values: frozenset[Scalar]


class Kept:
    """One constraint during a search, with what it has seen."""

    def __init__(self, constraint: Constraint, features: Features) -> None:
        self._features = features
        self._of: list[str] = []
        self.attribute = constraint.match or constraint.distinct
        self._match = bool(constraint.match)
        self._requests = frozenset(constraint.requests)
        self._seen: list[Value] = []
        self._last: dict[str, Value] = {}
        """Request -> value of the device that joined last for it; gone with that device."""
        self._shared: list[_Set] = []
        """What all that are there have in common, after each that joined; with lists."""

    def concerns(self, request: Request, want: Want) -> bool:
        return (
            not self._requests
            or request.name in self._requests
            or (bool(request.first_available) and request.full_name(want) in self._requests)
        )

    def add(self, value: Value | Absent, request: str) -> bool:
        """Whether a device with this value may join for the request; if so, it has."""
        if isinstance(value, Absent):
            return False
        admits = self._admits_lists if self._features.list_attributes else self._admits
        if not admits(value):
            return False
        self._seen.append(value)
        self._of.append(request)
        self._last[request] = value
        return True

    def _admits(self, value: Value) -> bool:
        if not self._seen:
            return True
        if self._match:
            return _comparable(value) and same(value, self._seen[0])
        if not _comparable(value):
            return False
        return not self._features.distinct_compares or not any(
            same(value, other) for other in self._counted()
        )

    def _admits_lists(self, value: Value) -> bool:
        own = _as_set(value)
        if own is None:
            return False
        if self._match:
            if self._shared:
                own = _common(self._shared[-1], own)
                if own is None:
                    return False
            self._shared.append(own)
            return True
        others = map(_as_set, self._counted())
        return not any(one is not None and _common(own, one) is not None for one in others)

    def _counted(self) -> list[Value]:
        """The values that the next one must differ from."""
        return self._seen if self._features.distinct_among_all else list(self._last.values())

    @property
    def state(self) -> object:
        """What decides who may join: equal where the same devices may, in whatever order these
        have come; where the order matters, that too."""
        if self.in_order:
            return tuple(zip(self._of, map(repr, self._seen), strict=True))
        return frozenset((type(value), repr(value)) for value in self._seen)

    @property
    def in_order(self) -> bool:
        """Whether it matters in which order devices join."""
        return not (self._features.distinct_among_all or self._match)

    def remove(self) -> None:
        """The device that joined last leaves."""
        self._seen.pop()
        self._last.pop(self._of.pop(), None)
        if self._shared:
            self._shared.pop()


class Absent:
    """In the place of a value: the device has no such attribute."""


ABSENT = Absent()


def lookup(device: Device, name: str) -> Value | Absent:
    """The attribute's value by its fully qualified name, ``ABSENT`` if the device has none."""
    return device.attributes.get(name, ABSENT)


def _comparable(value: Value) -> bool:
    return value is not None and not isinstance(value, tuple)


def _as_set(value: Value) -> _Set | None:
    """None for a list without values and for a type that is not known here."""
    listed = value if isinstance(value, tuple) else (value,)
    if not listed or listed[0] is None:
        return None
    return _Set(type(listed[0]), frozenset(one for one in listed if one is not None))


def _common(one: _Set, other: _Set) -> _Set | None:
    values = one.values & other.values
    return _Set(one.kind, values) if values and one.kind is other.kind else None
