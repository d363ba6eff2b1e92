"""Why a claim finds no device: how many are left after each thing that it asks, which was near.

For each request: the devices in usable pools, those of the class, after each selector, on nodes
that the pod may use, free, untainted, with amounts left, as many as one node has together, and of
those as many as agree with the claim's constraints. It explains; ``allocator`` decides. Where every
number is high enough the requests stand in each other's way, which only the allocator sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from kubectl_gpuadmit.devices import lots
from kubectl_gpuadmit.devices.allocator import Features, State, capacity, taints
from kubectl_gpuadmit.devices.allocator.shop import counters_of
from kubectl_gpuadmit.devices.allocator.situations import attributes_of
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.lots import Entry, Gone, Lot, losses
from kubectl_gpuadmit.devices.model import (
    Claim,
    Constraint,
    Device,
    DeviceId,
    Pool,
    PoolId,
    Request,
    Taint,
    Want,
)
from kubectl_gpuadmit.devices.selected import Selected
from kubectl_gpuadmit.devices.stages import Funnel, Lack, Loss, Near, Stage, StageName, spelt
from kubectl_gpuadmit.kube.objects import NodeSelector
from kubectl_gpuadmit.kube.quantity import Quantity, QuantityError, parse

__all__ = [
    "Funnel",
    "Lack",
    "Loss",
    "Near",
    "Stage",
    "StageName",
    "Surroundings",
    "of_claims",
    "spelt",
]


class Surroundings(Struct, frozen=True):
    """What a pod brings to its claims: which nodes it may use, and what others have already."""

    nodes: frozenset[str] | None = None
    """Nodes that nothing else speaks against; None for all."""
    every: Callable[[NodeSelector], frozenset[str]] | None = None
    """Names of the nodes that a slice's or device's node selector selects."""


def of_claims(
    claims: Sequence[Claim],
    inventory: Inventory,
    *,
    features: Features,
    kubernetes: str,
    around: Surroundings | None = None,
) -> tuple[Funnel, ...]:
    """The funnels of all requests of claims that have no devices yet, in order."""
    around = around or Surroundings()
    state = State.of((c.allocation for c in inventory.claims.values() if c.allocation), features)
    reads = attributes_of(claims, inventory.classes)
    look = _Look(inventory, state, features, kubernetes, around, reads)
    needs = _needs(claims)
    found = []
    for claim in claims:
        if claim.allocation is not None:
            continue
        for request in claim.requests:
            for want in request.wants:
                found.append(look.funnel(claim, request, want, needs))
    return tuple(found)


def _kind(want: Want) -> tuple[object, ...]:
    """Requests of one kind draw on the same devices."""
    amounts = tuple(sorted((want.capacity or {}).items(), key=lambda pair: pair[0]))
    return want.device_class, want.selectors, want.tolerations, amounts, bool(want.admin_access)


def _needs(claims: Iterable[Claim]) -> Counter[tuple[object, ...]]:
    """How many devices requests of one kind ask for together; of alternatives none is added up."""
    total: Counter[tuple[object, ...]] = Counter()
    for claim in claims:
        for request in claim.requests if claim.allocation is None else ():
            if request.exactly is not None and request.exactly.mode != "All":
                total[_kind(request.exactly)] += request.exactly.count
    return total


class _Look:
    """One look at the cluster's devices, for several requests."""

    def __init__(
        self,
        inventory: Inventory,
        state: State,
        features: Features,
        kubernetes: str,
        around: Surroundings,
        reads: frozenset[str] | None,
    ) -> None:
        self.inventory = inventory
        self.state = state
        self.features = features
        self.kubernetes = kubernetes
        self.around = around
        self._lost: list[Gone] = []
        self._published = 0
        for order, pool in enumerate(inventory.pools.values()):
            if why := self._unusable(pool):
                if pool.size:
                    self._lost.append((why, pool.size, str(pool.devices[0].id), (order, 0)))
            else:
                self._published += pool.size
        self._lots = lots.of(
            inventory.published,
            state=state,
            nodes=around.nodes,
            reads=reads,
            usable=lambda pool: not self._unusable(pool),
        )
        self._left: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        self._reach: dict[int, frozenset[str] | None] = {}

    def funnel(
        self, claim: Claim, request: Request, want: Want, needs: Counter[tuple[object, ...]]
    ) -> Funnel:
        everything = want.mode == "All"
        number = 1 if everything else max(want.count, needs[_kind(want)])
        stages = [Stage("pools", "devices published", self._published, losses(self._lost))]
        class_ = self.inventory.classes.get(want.device_class)
        chosen = Selected(self._lots, want, class_, self.kubernetes)
        stages += chosen.stages()
        left = chosen.left
        checks: list[tuple[StageName, str, Callable[[Device], str]]] = [
            ("nodes", "on nodes that the pod may use", self._is_away),
            ("free", "not in use", lambda d: "" if want.admin_access else self._in_use(d)),
            ("untainted", "without taints that keep it away", lambda d: self._taint(want, d)),
            ("amounts", "with what is asked of it left", lambda d: self._amounts(want, d)),
        ]
        for name, asks, why_not in checks:
            if name == "nodes" and self.around.nodes is None:
                continue
            kept: list[Entry] = []
            gone: list[Gone] = []
            for entry in left:
                if why := why_not(entry.device):
                    gone += self._gone(entry, name, why)
                else:
                    kept.append(entry)
            left = kept
            count = sum(len(entry.lot.pools) for entry in left)
            stages.append(Stage(name, asks, count, losses(gone)))
        best_node, best = self._together(left)
        stages.append(Stage("together", f"together on one node{_at(best_node)}", best))
        for constraint in claim.constraints:
            if _concerns(constraint, request, want):
                best_node, agreeing = self._agreeing(left, constraint)
                kind = "one" if constraint.match else "different"
                asks = f"of {kind} {constraint.match or constraint.distinct}{_at(best_node)}"
                stages.append(Stage("constraint", asks, agreeing))
        return Funnel(
            claim=str(claim) if claim.name else "",
            request=request.full_name(want),
            device_class=want.device_class,
            needs=number,
            everything=everything,
            stages=tuple(stages),
            nearest=chosen.nearest() if not chosen.left else None,
            best_node=best_node,
            unsure=chosen.unsure,
        )

    def _unusable(self, pool: Pool) -> str:
        if pool.invalid:
            return f"pool {pool.id} is invalid: {pool.invalid}"
        if not pool.complete and self.features.skips_incomplete_pools:
            return f"pool {pool.id} has {len(pool.slices)} of {pool.expected} slices"
        return ""

    # -- one device --------------------------------------------------------------------------

    def _gone(self, entry: Entry, stage: StageName, why: str) -> Iterator[Gone]:
        """Who has a device differs from pool to pool, all other reasons hold for the lot."""
        if stage == "free" and entry.device.id in self.state.taken:
            for id, at in entry.each():
                yield f"allocated to {self._holder(id)}", 1, str(id), at
        else:
            yield why, len(entry.lot.pools), entry.example, entry.at

    def _holder(self, id: DeviceId) -> str:
        holders = self.inventory.holders.get(id, ())
        return next((str(claim) for claim, held in holders if not held.admin_access), "")

    def nodes_of(self, device: Device) -> frozenset[str] | None:
        """Nodes that can use it; None for all."""
        slice = device.slice
        if slice.node_name:
            return frozenset((slice.node_name,))
        raw = device.raw
        if slice.per_device:
            if raw.nodeName:
                return frozenset((raw.nodeName,))
            return self._selected(raw.nodeSelector)
        return self._selected(slice.node_selector)

    def _selected(self, selector: NodeSelector | None) -> frozenset[str] | None:
        if selector is None or self.around.every is None:
            return None
        if id(selector) not in self._reach:
            self._reach[id(selector)] = self.around.every(selector)
        return self._reach[id(selector)]

    def _is_away(self, device: Device) -> str:
        mine, its = self.around.nodes, self.nodes_of(device)
        if mine is None or its is None or mine & its:
            return ""
        return "on a node that the pod may not use"

    def _in_use(self, device: Device) -> str:
        if device.id in self.state.taken:
            return f"allocated to {self._holder(device.id)}"
        if device.id in self.state.shared and not self._is_shared(device):
            return "shares of it are allocated"
        return ""

    def _is_shared(self, device: Device) -> bool:
        return self.features.consumable_capacity and device.shareable

    def _taint(self, want: Want, device: Device) -> str:
        if not self.features.device_taints or not device.taints:
            return ""
        kept = taints.untolerated(device, want.tolerations)
        return "taint " + ", ".join(map(_taint_text, kept)) if kept else ""

    def _amounts(self, want: Want, device: Device) -> str:
        if device.raw.consumesCounters and self.features.partitionable_devices:
            left = self._counters(device)
            short = [
                name for (held, name), n in counters_of(device) if left.get((held, name), 0) < n
            ]
            if short:
                return f"its GPU has too little left of {', '.join(short[:3])}"
        if self.features.consumable_capacity and (want.capacity or self._is_shared(device)):
            taken = self.state.amounts.get(device.id, {}) if self._is_shared(device) else {}
            try:
                fits = capacity.fits(
                    device.capacity_as_written,
                    want.capacity,
                    taken,
                    fractional=self.features.fractional_range,
                )
            except (capacity.NotRepresentable, QuantityError):
                return "its capacity cannot be compared"
            if not fits:
                return _shortage(device, want, taken)
        return ""

    def _counters(self, device: Device) -> dict[tuple[str, str], int]:
        """What is left of the counters of the device's pool."""
        key = (device.driver, device.pool)
        left = self._left.get(key)
        if left is None:
            pool = self.inventory.pools[PoolId(*key)]
            left = {
                (held.name, name): parse(counter.value).nano
                for slice in pool.slices
                for held in slice.counter_sets
                for name, counter in (held.counters or {}).items()
            }
            for one in pool.devices:
                if self.state.is_allocated(one.id):
                    for counted, amount in counters_of(one):
                        left[counted] = left.get(counted, 0) - amount
            self._left[key] = left
        return left

    # -- several devices ---------------------------------------------------------------------

    def _by_node(
        self, entries: Iterable[Entry]
    ) -> Iterator[tuple[str, object, Callable[[], list[Device]]]]:
        """By name, each node, what is equal for nodes with alike devices, and how to get those.

        Devices that any node can use come after the node's own, and once by themselves under ''.
        """
        of_lot: dict[Lot, list[int]] = {}
        for entry in entries:
            of_lot.setdefault(entry.lot, []).append(entry.place)
        parts: dict[str, list[tuple[int, Lot, Pool, tuple[int, ...]]]] = {}
        for lot, indices in of_lot.items():
            if lot.first.node:
                for order, pool, node in lot.pools:
                    if self.around.nodes is None or node in self.around.nodes:
                        parts.setdefault(node, []).append((order, lot, pool, tuple(indices)))
                continue
            order, pool, _ = lot.first
            where: dict[str, list[int]] = {}
            for index in indices:
                names = self.nodes_of(lot.devices[index])
                for name in ("",) if names is None else names:
                    if name == "" or self.around.nodes is None or name in self.around.nodes:
                        where.setdefault(name, []).append(index)
            for name, those in where.items():
                parts.setdefault(name, []).append((order, lot, pool, tuple(those)))
        everywhere = sorted(parts.get("", []), key=lambda part: part[0])
        for name in sorted(parts):
            own = sorted(parts[name], key=lambda part: part[0])
            mine = [*own, *(everywhere if name else ())]
            alike = tuple((lot, those) for _, lot, _, those in mine)
            yield (
                name,
                alike,
                lambda mine=mine: [  # type: ignore[misc]
                    pool.devices[index] for _, _, pool, those in mine for index in those
                ],
            )

    def _best(
        self, entries: Iterable[Entry], size: Callable[[list[Device]], int]
    ) -> tuple[str, int]:
        """The first node where most devices are, and how many."""
        best = ("", 0)
        sizes: dict[object, int] = {}
        for name, alike, devices in self._by_node(entries):
            if alike not in sizes:
                sizes[alike] = size(devices())
            if sizes[alike] > best[1]:
                best = (name, sizes[alike])
        return best

    def _together(self, entries: Iterable[Entry]) -> tuple[str, int]:
        """The node with most devices that can be had at a time, and how many those are."""
        return self._best(entries, lambda devices: len(self._compatible(devices)))

    def _compatible(self, devices: list[Device]) -> list[Device]:
        """Those that fit into their counters beside each other, the smallest first."""
        if not any(device.raw.consumesCounters for device in devices):
            return devices
        spent: Counter[tuple[str, str, str, str]] = Counter()
        kept = []
        for device in sorted(devices, key=lambda d: sum(n for _, n in counters_of(d))):
            left = self._counters(device) if device.raw.consumesCounters else {}
            takes = [((device.driver, device.pool, *key), key, n) for key, n in counters_of(device)]
            if all(left.get(key, 0) - spent[place] >= n for place, key, n in takes):
                kept.append(device)
                spent.update({place: n for place, _, n in takes})
        return kept

    def _agreeing(self, entries: Iterable[Entry], constraint: Constraint) -> tuple[str, int]:
        def size(devices: list[Device]) -> int:
            groups: dict[object, list[Device]] = {}
            for device in devices:
                value = device.attributes.get(constraint.match or constraint.distinct)
                if value is not None and not isinstance(value, tuple):
                    groups.setdefault((type(value), value), []).append(device)
            if constraint.match:
                return max((len(self._compatible(g)) for g in groups.values()), default=0)
            return len(groups)

        return self._best(entries, size)


def _shortage(device: Device, want: Want, taken: dict[str, int]) -> str:
    said = []
    for name, asked in (want.capacity or {}).items():
        held = device.capacity_as_written.get(name)
        if held is None:
            said.append(f"it has no {name}")
            continue
        left = held.value.nano - taken.get(name, 0)
        if asked.nano > left:
            of = Quantity(left, held.value.format)
            said.append(f"{name}: asked {asked}, {of} of {held.value} left")
    return ", ".join(said) or "what it gives out does not fit the amount asked for"


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _at(node: str) -> str:
    return f" ({node})" if node else ""


def _concerns(constraint: Constraint, request: Request, want: Want) -> bool:
    named = constraint.requests
    return not named or request.name in named or request.full_name(want) in named
