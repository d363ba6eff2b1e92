"""Which nodes the search cannot tell apart: one is searched, and the answer holds for all.

A situation is all that ``search`` looks at but names: the pools in their order, what is taken of
them, which devices reach the node, and of the texts that name devices those that a selector or
constraint reads. 5,000 nodes of one kind are in a handful of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator.given import OPTIONAL_OPERATIONS, Chosen
from kubectl_gpuadmit.devices.allocator.pools import NodePool
from kubectl_gpuadmit.devices.allocator.results import allocation
from kubectl_gpuadmit.devices.allocator.shop import Shop
from kubectl_gpuadmit.devices.model import Allocation, Claim, Class, Slice
from kubectl_gpuadmit.devices.selection import attributes_read
from kubectl_gpuadmit.kube.listed import own_texts

Situation = tuple[object, ...]
Pools = tuple[NodePool, ...]


class Situations:
    """For the claims of one pod, in one order."""

    def __init__(self, shop: Shop, claims: Sequence[Claim]) -> None:
        self._shop = shop
        self.claims = tuple(claims)
        """Held, so that their identity stands for them."""
        self._reads = attributes_of(claims, shop.classes)
        self._own: dict[int, tuple[tuple[int, int, frozenset[str]], ...]] = {}

    def of(self, info: NodeInfo, pools: Pools) -> Situation:
        """Equal for nodes that would fare alike."""
        layout = self._shop.layout(info)
        own = self._own.get(layout)
        if own is None:
            own = self._own[layout] = self._differing(pools)
        held = self._shop.state.held
        taken = tuple(held(pool.id) for pool in pools)
        declared: tuple[str, ...] = ()
        if self._shop.features.optional_node_operations:
            declared = info.node.status.declaredFeatures or ()
        told = self._told(info, pools, own) if own else ()
        return (layout, taken, told, OPTIONAL_OPERATIONS in declared)

    def _differing(self, pools: Pools) -> tuple[tuple[int, int, frozenset[str]], ...]:
        """(pool, slice, attributes): what else is looked at of nodes with this layout."""
        found = []
        for number, pool in enumerate(pools):
            for place, slice in enumerate(pool.holds):
                names = own_names(slice, self._reads)
                if names or slice.per_device:
                    found.append((number, place, names))
        return tuple(found)

    def _told(
        self, info: NodeInfo, pools: Pools, own: tuple[tuple[int, int, frozenset[str]], ...]
    ) -> tuple[object, ...]:
        slices = ((pools[number].holds[place], names) for number, place, names in own)
        return tuple(
            (
                own_texts(slice.raw.spec.devices, names),
                tuple(self._shop.reaches(device, info) for device in slice.devices)
                if slice.per_device
                else (),
            )
            for slice, names in slices
        )


def own_names(slice: Slice, reads: frozenset[str] | None) -> frozenset[str]:
    """Of the attributes that name the slice's devices, those that are read, as written."""
    return frozenset(
        name
        for name in slice.template.varying
        if reads is None or (name if "/" in name else f"{slice.driver}/{name}") in reads
    )


def attributes_of(claims: Iterable[Claim], classes: Mapping[str, Class]) -> frozenset[str] | None:
    """Attributes that selectors and constraints look at, by full name; None: maybe any."""
    names: set[str] = set()
    for claim in claims:
        names |= {one.match or one.distinct for one in claim.constraints}
        for request in claim.requests:
            for want in request.wants:
                class_ = classes.get(want.device_class)
                texts = (*(class_.selectors if class_ else ()), *want.selectors)
                for text in (*texts, *(expression for _, expression in want.derived)):
                    read = attributes_read(text or "")
                    if read is None:
                        return None
                    names |= read
    return frozenset(names)


class Place:
    """A chosen device by where it stands: at the same place of the same pool on every node."""

    __slots__ = ("at", "chosen", "pool")

    def __init__(self, chosen: Chosen, pools: Pools, shop: Shop) -> None:
        self.chosen = chosen
        self.pool = next(n for n, pool in enumerate(pools) if pool is chosen.item.pool)
        items = shop.items(chosen.item.pool)
        self.at = next(n for n, item in enumerate(items) if item is chosen.item)


class Found:
    """What a node would give. Its devices are named when somebody asks for them."""

    def __init__(
        self, places: tuple[tuple[Place, ...], ...], shop: Shop, pools: Pools, node: str
    ) -> None:
        self._places = places
        self._shop = shop
        self._pools = pools
        self._node = node

    def requests(self, claim: int) -> frozenset[str]:
        """Names of the requests and alternatives that the claim at this place gets."""
        return frozenset(place.chosen.request for place in self._places[claim])

    @cached_property
    def allocations(self) -> tuple[Allocation, ...]:
        """One for each claim, in their order. Raises Fatal."""
        return tuple(
            allocation(
                [
                    place.chosen._replace(item=self._shop.items(self._pools[place.pool])[place.at])
                    for place in of_claim
                ],
                self._node,
                self._shop.features,
            )
            for of_claim in self._places
        )
