"""What a search has tried in vain, so that it does not try the same again in another order.

Devices are of one *kind* where nothing that the claims look at tells them apart. Two points of a
search that have as many devices of each kind left, and the same still to do, end alike: only points
that ended badly are remembered, so that what is found first stays what it is. An error ends the
whole search, so that no point that leads to one is ever remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec
from msgspec import structs

from kubectl_gpuadmit.devices.allocator.shop import Item
from kubectl_gpuadmit.devices.allocator.state import State
from kubectl_gpuadmit.kube.dra import SliceDevice

Key = tuple[str, str, str]

_MOST = 400_000
"""So many points are remembered at most."""


class Kinds:
    """Numbers for devices of a kind. ``told``: what selectors and constraints see of a device."""

    def __init__(self, state: State, told: Callable[[Item], Hashable]) -> None:
        self._state = state
        self._told = told
        self._of: dict[Key, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, item: Item) -> int:
        found = self._of.get(item.key)
        if found is None:
            number = self._numbers.setdefault(self._seen(item), len(self._numbers))
            found = self._of[item.key] = number
        return found

    def _seen(self, item: Item) -> Hashable:
        device = item.device
        bare = structs.replace(device.raw, attributes=None)
        if isinstance(bare, SliceDevice):
            bare = structs.replace(bare, name="")
        key = item.key
        return (
            msgspec.json.encode(bare),
            device.slice.kind,
            item.pool.id if device.consumes else None,
            device.taints,
            item.shareable,
            key in self._state.taken,
            key in self._state.shared,
            tuple(sorted(self._state.amounts.get(key, {}).items())),
            self._told(item),
        )


class DeadEnds:
    """Points of the search that have ended badly, and how."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}

    def get(self, point: Hashable) -> object | None:
        return self._known.get(point)

    def add(self, point: Hashable, end: object) -> None:
        if len(self._known) < _MOST:
            self._known[point] = end
