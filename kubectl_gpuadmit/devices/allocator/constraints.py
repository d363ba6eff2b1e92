"""matchAttribute and distinctAttribute: which device may join those already chosen for a claim.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go, constraint.go). A list-valued attribute matches nothing there.
"""

from __future__ import annotations

from kubectl_gpuadmit.devices.model import Constraint, Device, Request, Value, Want, same


class Kept:
    """One constraint during a search, with what it has seen."""

    def __init__(self, constraint: Constraint, *, among_all: bool = True) -> None:
        self._among_all = among_all
        self._of: list[str] = []
        self.attribute = constraint.match or constraint.distinct
        self._match = bool(constraint.match)
        self._requests = frozenset(constraint.requests)
        self._seen: list[Value] = []

    def concerns(self, request: Request, want: Want) -> bool:
        return (
            not self._requests
            or request.name in self._requests
            or (bool(request.first_available) and request.full_name(want) in self._requests)
        )

    def add(self, device: Device, request: str) -> bool:
        """Whether the device may join for this request; if so, it has."""
        value = lookup(device, self.attribute)
        if isinstance(value, _Absent):
            return False
        if self._match:
            if self._seen and not (_comparable(value) and same(value, self._seen[0])):
                return False
        elif self._seen and (
            not _comparable(value) or any(same(value, other) for other in self._counted())
        ):
            return False
        self._seen.append(value)
        self._of.append(request)
        return True

    def _counted(self) -> list[Value]:
        """The values that the next one must differ from."""
        if self._among_all:
            return self._seen
        return list(dict(zip(self._of, self._seen, strict=True)).values())

    @property
    def state(self) -> object:
        """What decides who may join: equal where the same devices may, in whatever order these
        have come; where the order matters, that too."""
        if self._among_all or self._match:
            return frozenset((type(value), repr(value)) for value in self._seen)
        return tuple(zip(self._of, map(repr, self._seen), strict=True))

    @property
    def in_order(self) -> bool:
        """Whether it matters in which order devices join."""
        return not (self._among_all or self._match)

    def remove(self) -> None:
        """The device that joined last leaves."""
        self._seen.pop()
        self._of.pop()


class _Absent:
    pass


_ABSENT = _Absent()


def lookup(device: Device, name: str) -> Value | _Absent:
    """The attribute's value by its fully qualified name, ``_ABSENT`` if the device has none."""
    return device.attributes.get(name, _ABSENT)


def _comparable(value: Value) -> bool:
    return value is not None and not isinstance(value, tuple)
