"""Which devices, shares and amounts are allocated already: the scheduler's allocated state.

Source: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, v1.37.2. What a claim
has with admin access counts as free.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.devices.model import Allocation, DeviceId


class State:
    """Changes only by ``add``."""

    def __init__(self, features: Features) -> None:
        self._consumable = features.consumable_capacity
        self.taken: set[tuple[str, str, str]] = set()
        """Devices that one claim has as a whole."""
        self.shared: set[tuple[str, str, str]] = set()
        """Devices of which claims have shares."""
        self.amounts: dict[tuple[str, str, str], dict[str, int]] = {}
        """What shares have taken of a device, in nanos, by the capacity's name as written."""
        self._of_pool: dict[tuple[str, str], set[str]] = {}
        self._held: dict[tuple[str, str], tuple[object, ...]] = {}

    @classmethod
    def of(cls, allocations: Iterable[Allocation], features: Features) -> State:
        state = cls(features)
        for allocation in allocations:
            state.add(allocation)
        return state

    def add(self, allocation: Allocation) -> None:
        for result in allocation.devices:
            if result.admin_access:
                continue
            driver, pool, device = result.device
            self._of_pool.setdefault((driver, pool), set()).add(device)
            self._held.pop((driver, pool), None)
            if not (self._consumable and result.share):
                self.taken.add(result.device)
                continue
            self.shared.add(result.device)
            if result.consumed is not None:
                held = self.amounts.setdefault(result.device, {})
                for name, amount in result.consumed.items():
                    held[name] = held.get(name, 0) + amount.nano

    def copy(self) -> State:
        twin = State.__new__(State)
        twin._consumable = self._consumable
        twin.taken = set(self.taken)
        twin.shared = set(self.shared)
        twin.amounts = {device: dict(held) for device, held in self.amounts.items()}
        twin._held = {}
        twin._of_pool = {pool: set(names) for pool, names in self._of_pool.items()}
        return twin

    def held(self, pool: tuple[str, str]) -> tuple[object, ...]:
        """What is allocated of a pool, by device: equal where as much is."""
        names = self._of_pool.get(pool)
        if not names:
            return ()
        found = self._held.get(pool)
        if found is None:
            found = self._held[pool] = tuple(
                self._of_device((*pool, device)) for device in sorted(names)
            )
        return found

    def _of_device(self, key: tuple[str, str, str]) -> tuple[object, ...]:
        held = self.amounts.get(key)
        amounts = tuple(sorted(held.items())) if held else ()
        return key[2], key in self.taken, key in self.shared, amounts

    def is_allocated(self, device: DeviceId) -> bool:
        """As a whole or in part."""
        return device in self.taken or device in self.shared
