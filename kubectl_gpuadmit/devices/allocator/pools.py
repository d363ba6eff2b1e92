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
from kubectl_gpuadmit.kube.dra import BasicDevice
from kubectl_gpuadmit.kube.listed import contents
from kubectl_gpuadmit.kube.objects import Node, NodeSelector

Counters = dict[tuple[str, str], int]
"""(counter set, counter) -> amount in nanos."""


Shape = tuple[object, ...]
"""Equal for pools that the search cannot tell apart while nothing is taken of them."""


class NodePool:
    """One pool as one node sees it."""

    __slots__ = (
        "_devices",
        "_elsewhere",
        "_shape",
        "complete",
        "counters",
        "far",
        "generation",
        "holds",
        "id",
        "invalid",
    )

    def __init__(
        self,
        id: PoolId,
        generation: int,
        holds: tuple[Slice, ...] = (),
        far: tuple[Slice, ...] = (),
        *,
        complete: bool = True,
        invalid: str = "",
        counters: Counters | None = None,
    ) -> None:
        self.id = id
        self.generation = generation
        self.holds = holds
        """Slices with devices for this node."""
        self.far = far
        """Slices with devices for others."""
        self.complete = complete
        self.invalid = invalid
        self.counters: Counters = counters or {}
        """Of no pool alone: not to be changed."""
        self._devices: tuple[Device, ...] | None = None
        self._elsewhere: tuple[Device, ...] | None = None
        self._shape: Shape = ()

    @property
    def shape(self) -> Shape:
        if not self._shape:
            self._shape = (
                self.id.driver,
                self.complete,
                bool(self.invalid),
                tuple(map(_shape, self.holds)),
                tuple(map(_shape, self.far)),
                _identity(self.counters) if self.counters else 0,
            )
        return self._shape

    @property
    def usable(self) -> bool:
        return self.complete and not self.invalid

    @property
    def devices(self) -> tuple[Device, ...]:
        """Of the slices for this node, in the order in which they are tried."""
        if self._devices is None:
            self._devices = tuple(device for slice in self.holds for device in slice.devices)
        return self._devices

    @property
    def elsewhere(self) -> tuple[Device, ...]:
        if self._elsewhere is None:
            self._elsewhere = tuple(device for slice in self.far for device in slice.devices)
        return self._elsewhere


def _shape(slice: Slice) -> Shape:
    """Identity stands for content where different things are rare: then less is shared."""
    return (
        slice.template,
        slice.kind,
        tuple(map(_identity, slice.rules)),
        _identity(slice.node_selector) if slice.node_selector is not None else 0,
    )


class Shelves:
    """All slices, arranged so that the pools of a node are found without looking at the others."""

    def __init__(self, slices: Iterable[Slice], features: Features) -> None:
        self.features = features
        self._of_node: dict[str, list[Slice]] = {}
        self._shared: list[Slice] = []
        self._of_pool: dict[PoolId, list[Slice]] = {}
        self._matches: dict[tuple[int, str], tuple[Node, bool]] = {}
        self._of: dict[str, tuple[Node, tuple[NodePool, ...], int]] = {}
        self._layouts: dict[tuple[Shape, ...], int] = {}
        self._checked: dict[object, tuple[str, Counters]] = {}
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

        Raises Fatal where an amount is none.
        """
        return self._seen(info)[1]

    def layout(self, info: NodeInfo) -> int:
        """Equal for nodes whose pools have the same shapes in the same order."""
        return self._seen(info)[2]

    def _seen(self, info: NodeInfo) -> tuple[Node, tuple[NodePool, ...], int]:
        held = self._of.get(info.name)
        if held is None or held[0] is not info.node:
            pools = self._gathered(info)
            shapes = tuple(pool.shape for pool in pools)
            layout = self._layouts.setdefault(shapes, len(self._layouts))
            held = self._of[info.name] = (info.node, pools, layout)
        return held

    def _gathered(self, info: NodeInfo) -> tuple[NodePool, ...]:
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
                binding = any(slice.template.binds for slice in pool.holds)
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
                elif slice.template.devices:
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
        if found is None or found[0] is not info.node:
            matches = selectors.node_selector_matches(selector, info.labels, info.name)
            found = self._matches[key] = (info.node, matches)
        return found[1]

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
                current = [slice for slice in current if not slice.template.grouped]
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
        holds = tuple(slice for slice in slices if not (partitions and slice.counter_sets))
        counts = [slice for slice in slices if partitions and slice.counter_sets]
        far = tuple(slice for slice in others if not (partitions and slice.counter_sets))
        counts += [slice for slice in others if partitions and slice.counter_sets]
        generation = slices[0].generation
        key = (
            tuple(slice.template for slice in holds),
            tuple(slice.template for slice in far),
            tuple(_identity(slice.counter_sets) for slice in counts),
        )
        if key not in self._checked:
            self._checked[key] = _checked(holds, far, counts if partitions else None)
        invalid, counters = self._checked[key]
        if invalid:
            return NodePool(id, generation, invalid=invalid)
        return NodePool(id, generation, holds, far, counters=counters)


def _checked(
    holds: Iterable[Slice], far: Iterable[Slice], counts: Iterable[Slice] | None
) -> tuple[str, Counters]:
    """Why the slices contradict each other, and their counters; None: these are not looked at.

    Depends on nothing that slices with equal templates and counters do not share.
    """
    names: set[str] = set()
    for slice in holds:
        for listed in slice.template.devices:
            if listed.name in names:
                return f"duplicate device name {listed.name}", {}
            names.add(listed.name)
    found: Counters = {}
    if counts is None:
        return "", found
    known: set[str] = set()
    for slice in counts:
        for counters in slice.counter_sets:
            if counters.name in known:
                return f"duplicate counter set name {counters.name}", {}
            known.add(counters.name)
            for name, counter in (counters.counters or {}).items():
                found[counters.name, name] = nanos(counter.value)
    for slice in (*holds, *far):
        for content in contents(slice.template):
            wrong = _unknown_counter(content, known, found)
            if wrong:
                return wrong, {}
    return "", found


def nanos(written: str | int | float) -> int:
    """Raises Fatal where the amount is none: the API server holds no such object."""
    from kubectl_gpuadmit.kube.quantity import QuantityError, parse

    try:
        return parse(written).nano
    except QuantityError as problem:
        raise Fatal(str(problem)) from None


_identity = id


def _unknown_counter(device: BasicDevice, sets: set[str], counters: Counters) -> str:
    for consumption in device.consumesCounters or ():
        if consumption.counterSet not in sets:
            return f"counter set {consumption.counterSet} not found"
        for name in consumption.counters or ():
            if (consumption.counterSet, name) not in counters:
                return f"counter {name} not found in counter set {consumption.counterSet}"
    return ""


def _ignored(slice: Slice, features: Features) -> bool:
    """Slices that use what this scheduler does not know."""
    if features.knows_groups and not features.compatibility_groups and slice.template.grouped:
        return True
    return not features.partitionable_devices and (
        slice.raw.spec.perDeviceNodeSelection is not None
        or (bool(slice.counter_sets) and features.leaves_counter_slices_out)
    )


def _add(gathered: dict[PoolId, list[Slice]], slice: Slice) -> None:
    id = PoolId(slice.driver, slice.pool)
    held = gathered.get(id)
    if held is None or slice.generation > held[0].generation:
        gathered[id] = [slice]
    elif slice.generation == held[0].generation:
        held.append(slice)
