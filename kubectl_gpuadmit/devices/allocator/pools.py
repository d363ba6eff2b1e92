"""The resource pools that a node can take devices from, as the scheduler gathers them.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(pools_incubating.go); of 1.34 the completeness rule. A pool is looked at from one node: slices for
other nodes count for completeness and counters, not for device names.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.devices.allocator.outcome import Fatal
from kubectl_gpuadmit.devices.model import Device, PoolId, Slice
from kubectl_gpuadmit.kube import selectors
from kubectl_gpuadmit.kube.objects import NodeSelector

Counters = dict[tuple[str, str], int]
"""(counter set, counter) -> amount in nanos."""


class NodePool:
    """One pool as one node sees it."""

    __slots__ = ("complete", "counters", "devices", "elsewhere", "generation", "id", "invalid")

    def __init__(
        self,
        id: PoolId,
        generation: int,
        devices: tuple[Device, ...] = (),
        elsewhere: tuple[Device, ...] = (),
        *,
        complete: bool = True,
        invalid: str = "",
    ) -> None:
        self.id = id
        self.generation = generation
        self.devices = devices
        """Of the slices for this node, in the order in which they are tried."""
        self.elsewhere = elsewhere
        self.complete = complete
        self.invalid = invalid
        self.counters: Counters = {}

    @property
    def usable(self) -> bool:
        return self.complete and not self.invalid


class Shelves:
    """All slices, arranged so that the pools of a node are found without looking at the others."""

    def __init__(self, slices: Iterable[Slice], features: Features) -> None:
        self.features = features
        self._of_node: dict[str, list[Slice]] = {}
        self._shared: list[Slice] = []
        self._of_pool: dict[PoolId, list[Slice]] = {}
        self._matches: dict[tuple[int, str], bool] = {}
        self._counting: dict[PoolId, list[Slice]] = {}
        """Slices with counters, where these are looked at from every node."""
        self._troubled: dict[PoolId, NodePool] | None = None
        for slice in slices:
            self._of_pool.setdefault(PoolId(slice.driver, slice.pool), []).append(slice)
            if _ignored(slice, features):
                continue
            if features.counters_everywhere and slice.counter_sets:
                self._counting.setdefault(PoolId(slice.driver, slice.pool), []).append(slice)
                continue
            if slice.node_name:
                self._of_node.setdefault(slice.node_name, []).append(slice)
            else:
                self._shared.append(slice)
        self._pools: dict[tuple[int, ...], NodePool] = {}

    def pools(self, info: NodeInfo) -> tuple[NodePool, ...]:
        """By driver and name, those with binding conditions last.

        Raises Fatal where a node selector cannot be parsed.
        """
        gathered: dict[PoolId, list[Slice]] = {}
        for slice in (*self._of_node.get(info.name, ()), *self._shared):
            if slice.node_name or self._is_for(slice, info):
                _add(gathered, slice)
        found: list[NodePool] = []
        last: list[NodePool] = []
        for id in gathered.keys() & self._counting.keys():
            for slice in self._counting[id]:
                _add(gathered, slice)
        pools = {id: self._pool(id, gathered[id]) for id in gathered}
        for id, troubled in self._in_the_way().items():
            pools.setdefault(id, troubled)
        for id in sorted(pools):
            pool = pools[id]
            if pool is not None:
                binding = any(device.raw.bindingConditions is not None for device in pool.devices)
                (last if binding else found).append(pool)
        return (*found, *last)

    def _in_the_way(self) -> dict[PoolId, NodePool]:
        """Pools of which a node sees no more than counters, and that is incomplete or invalid."""
        if self._troubled is None:
            self._troubled = {}
            for id, slices in self._counting.items():
                newest: dict[PoolId, list[Slice]] = {}
                for slice in slices:
                    _add(newest, slice)
                pool = self._pool(id, newest[id])
                if pool is not None and not pool.usable:
                    self._troubled[id] = pool
        return self._troubled

    def nodes_of(self, pools: Iterable[tuple[str, str]]) -> set[str] | None:
        """Names of the nodes to which slices of these pools belong; None: not to single nodes."""
        names: set[str] = set()
        for driver, pool in pools:
            for slice in self._of_pool.get(PoolId(driver, pool), ()):
                if slice.node_name:
                    names.add(slice.node_name)
                elif slice.devices:
                    return None
        return names

    def concerns(self, slice: Slice, info: NodeInfo) -> bool:
        """Whether the slice is for the node, or may be by one of its devices."""
        if slice.node_name:
            return slice.node_name == info.name
        return slice.per_device or self._is_for(slice, info)

    def _is_for(self, slice: Slice, info: NodeInfo) -> bool:
        if slice.all_nodes:
            return True
        if slice.node_selector is not None:
            return self.selects(slice.node_selector, info)
        if slice.per_device:
            return any(self.reaches(device, info) for device in slice.devices)
        return False

    def reaches(self, device: Device, info: NodeInfo) -> bool:
        """Of a slice with perDeviceNodeSelection: whether the device is for the node."""
        raw = device.raw
        if raw.nodeName:
            return raw.nodeName == info.name
        if raw.allNodes:
            return True
        return raw.nodeSelector is not None and self.selects(raw.nodeSelector, info)

    def selects(self, selector: NodeSelector, info: NodeInfo) -> bool:
        key = (id(selector), info.name)
        found = self._matches.get(key)
        if found is None:
            found = selectors.node_selector_matches(selector, info.labels, info.name)
            self._matches[key] = found
        return found

    def _pool(self, id: PoolId, slices: list[Slice]) -> NodePool | None:
        """None for a pool whose newer generation is elsewhere."""
        key = tuple(map(_identity, slices))
        if key in self._pools:
            return self._pools[key]
        generation = slices[0].generation
        if not self.features.skips_incomplete_pools:
            pool = self._built(id, slices, ())  # other nodes' slices were not looked at
            pool.complete = len(slices) == slices[0].slice_count
        elif len(slices) == slices[0].slice_count:
            pool = self._built(id, slices, ())
        else:
            every = self._of_pool[id]
            if any(slice.generation > generation for slice in every):
                return None
            current = [slice for slice in every if slice.generation == generation]
            if self.features.knows_groups and not self.features.compatibility_groups:
                current = [slice for slice in current if not has_groups(slice)]
            if len(current) != slices[0].slice_count:
                pool = NodePool(id, generation, complete=False)
            else:
                mine = set(map(_identity, slices))
                others = [slice for slice in current if _identity(slice) not in mine]
                pool = self._built(id, slices, others)
        self._pools[key] = pool
        return pool

    def _built(self, id: PoolId, slices: list[Slice], others: Iterable[Slice]) -> NodePool:
        partitions = self.features.partitionable_devices
        slices = sorted(slices, key=lambda slice: slice.name)
        holds = [slice for slice in slices if not (partitions and slice.counter_sets)]
        counts = [slice for slice in slices if partitions and slice.counter_sets]
        far = [slice for slice in others if not (partitions and slice.counter_sets)]
        counts += [slice for slice in others if partitions and slice.counter_sets]
        generation = slices[0].generation
        devices = tuple(device for slice in holds for device in slice.devices)
        elsewhere = tuple(device for slice in far for device in slice.devices)
        names: set[str] = set()
        for device in devices:
            if device.name in names:
                return NodePool(id, generation, invalid=f"duplicate device name {device.name}")
            names.add(device.name)
        pool = NodePool(id, generation, devices, elsewhere)
        if partitions:
            known: set[str] = set()
            for slice in counts:
                for counters in slice.counter_sets:
                    if counters.name in known:
                        return NodePool(
                            id, generation, invalid=f"duplicate counter set name {counters.name}"
                        )
                    known.add(counters.name)
                    for name, counter in (counters.counters or {}).items():
                        pool.counters[counters.name, name] = nanos(counter.value)
            for device in (*devices, *elsewhere):
                wrong = _unknown_counter(device, known, pool.counters)
                if wrong:
                    return NodePool(id, generation, invalid=wrong)
        return pool


def nanos(written: str | int | float) -> int:
    """Raises Fatal where the amount is none: the API server holds no such object."""
    from kubectl_gpuadmit.kube.quantity import QuantityError, parse

    try:
        return parse(written).nano
    except QuantityError as problem:
        raise Fatal(str(problem)) from None


_identity = id


def _unknown_counter(device: Device, sets: set[str], counters: Counters) -> str:
    for consumption in device.consumes:
        if consumption.counterSet not in sets:
            return f"counter set {consumption.counterSet} not found"
        for name in consumption.counters or ():
            if (consumption.counterSet, name) not in counters:
                return f"counter {name} not found in counter set {consumption.counterSet}"
    return ""


def _ignored(slice: Slice, features: Features) -> bool:
    """Slices that use what this scheduler does not know."""
    if features.knows_groups and not features.compatibility_groups and has_groups(slice):
        return True
    return not features.partitionable_devices and (
        slice.raw.spec.perDeviceNodeSelection is not None
        or (bool(slice.counter_sets) and features.leaves_counter_slices_out)
    )


def has_groups(slice: Slice) -> bool:
    """Whether a device names compatibility groups: while these are off, its pool is incomplete."""
    return any(one.compatibilityGroups for device in slice.devices for one in device.consumes)


def _add(gathered: dict[PoolId, list[Slice]], slice: Slice) -> None:
    id = PoolId(slice.driver, slice.pool)
    held = gathered.get(id)
    if held is None or slice.generation > held[0].generation:
        gathered[id] = [slice]
    elif slice.generation == held[0].generation:
        held.append(slice)
