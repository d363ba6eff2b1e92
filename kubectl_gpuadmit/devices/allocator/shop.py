"""What all nodes of one attempt share: slices, classes, what is taken, answers found already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator.compatibility import Company, groups_of
from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.devices.allocator.outcome import Fatal
from kubectl_gpuadmit.devices.allocator.pools import Counters, NodePool, Shelves, nanos
from kubectl_gpuadmit.devices.allocator.state import State
from kubectl_gpuadmit.devices.model import Class, Device
from kubectl_gpuadmit.devices.selection import Selectors
from kubectl_gpuadmit.devices.values import Capacity
from kubectl_gpuadmit.kube.quantity import QuantityError

MOST_STEPS = 200_000
"""After so many devices tried on a node the search is given up; the scheduler's ends after 10 s."""
ALL_STEPS = 2_000_000
"""The same for all nodes together, those aside that took less than ``LEAST_STEPS``."""
LEAST_STEPS = 5_000


class Item(Struct, gc=False, eq=False):
    """A device as one node sees it, with what the search asks of it again and again."""

    device: Device
    pool: NodePool
    key: tuple[str, str, str]
    """Equal to the device's id, and cheaper."""
    binds: bool
    shareable: bool
    plain: bool
    """Without a request for an amount, the whole of an unused device always fits."""
    _counters: tuple[tuple[tuple[str, str], int], ...] | None = None
    _capacities: Mapping[str, Capacity] | None = None

    @classmethod
    def of(cls, device: Device, pool: NodePool, features: Features) -> Item:
        raw = device.raw
        return cls(
            device,
            pool,
            (pool.id.driver, pool.id.pool, device.name),
            bool(raw.bindingConditions),
            features.consumable_capacity and bool(raw.allowMultipleAllocations),
            not raw.capacity
            or all(
                one.requestPolicy is None and str(one.value)[:1] != "-"
                for one in raw.capacity.values()
            ),
        )

    @property
    def counters(self) -> tuple[tuple[tuple[str, str], int], ...]:
        """What it consumes, as ``counters_of`` gives it."""
        if self._counters is None:
            self._counters = counters_of(self.device)
        return self._counters

    @property
    def capacities(self) -> Mapping[str, Capacity]:
        """By the driver's own names. Raises Fatal."""
        if self._capacities is None:
            try:
                self._capacities = self.device.capacity_as_written
            except QuantityError as problem:
                raise Fatal(str(problem)) from None
        return self._capacities


def counters_of(device: Device) -> tuple[tuple[tuple[str, str], int], ...]:
    """((counter set, counter), nanos) of all that the device consumes."""
    return tuple(
        ((consumption.counterSet, name), nanos(counter.value))
        for consumption in device.consumes
        for name, counter in sorted((consumption.counters or {}).items())
    )


class Stock:
    """What drivers and administrators have published, arranged for the search; used by many."""

    def __init__(
        self, shelves: Shelves, classes: Mapping[str, Class], selectors: Selectors
    ) -> None:
        self.features = shelves.features
        self.shelves = shelves
        self.classes = classes
        self.selectors = selectors
        self._items: dict[NodePool, tuple[Item, ...]] = {}
        self.selected: dict[tuple[object, ...], dict[Device, bool]] = {}
        """(class, selectors of the request) -> device -> whether both select it."""

    def items(self, pool: NodePool) -> tuple[Item, ...]:
        found = self._items.get(pool)
        if found is None:
            found = tuple(Item.of(device, pool, self.features) for device in pool.devices)
            self._items[pool] = found
        return found


class Shop:
    """The stock and what is taken of it: of one pod's attempt."""

    def __init__(self, stock: Stock, state: State) -> None:
        self.features = stock.features
        self.classes = stock.classes
        self.selectors = stock.selectors
        self.state = state
        self.selected = stock.selected
        self._stock = stock
        self._spent = 0
        self._available: dict[object, tuple[Counters, bool]] = {}
        self._company: dict[object, dict[str, Company]] = {}

    def pools(self, info: NodeInfo) -> tuple[NodePool, ...]:
        return self._stock.shelves.pools(info)

    def layout(self, info: NodeInfo) -> int:
        return self._stock.shelves.layout(info)

    def items(self, pool: NodePool) -> tuple[Item, ...]:
        return self._stock.items(pool)

    def reaches(self, device: Device, info: NodeInfo) -> bool:
        return self._stock.shelves.reaches(device, info)

    def steps_left(self) -> int:
        """How many devices may be tried on the next node."""
        return max(min(MOST_STEPS, ALL_STEPS - self._spent), LEAST_STEPS)

    def spend(self, steps: int) -> None:
        if steps > LEAST_STEPS:
            self._spent += steps

    def forget(self) -> None:
        self._available.clear()
        self._company.clear()

    def nodes_of(self, pools: Iterable[tuple[str, str]]) -> set[str] | None:
        return self._stock.shelves.nodes_of(pools)

    def available(self, pool: NodePool) -> tuple[Counters, bool]:
        """What is left of the pool's counters, and whether one is overdrawn: then no device that
        consumes counters is to be had, whichever they are."""
        found = self._available.get(pool.id)
        if found is None:
            left = dict(pool.counters)
            for device in _allocated((*pool.devices, *pool.elsewhere), self.state):
                for key, amount in counters_of(device):
                    if key in left:
                        left[key] -= amount
            found = left, any(amount < 0 for amount in left.values())
            self._available[pool.id] = found
        return found

    def company(self, pool: NodePool) -> dict[str, Company]:
        """Counter set -> the devices of the pool that are allocated already, whoever has them."""
        found = self._company.get(pool.id)
        if found is None:
            found = self._company[pool.id] = {}
            for device in _allocated((*pool.devices, *pool.elsewhere), self.state):
                for name, groups in groups_of(device):
                    found[name] = found.get(name, Company()).joined(groups)
        return found


def _allocated(devices: Iterable[Device], state: State) -> Iterable[Device]:
    return (device for device in devices if state.is_allocated(device.id))
