"""In which order pools and their slices are tried, where the scheduler has no fixed one.

The stable allocator, and all before 1.36, go through pools as a Go map gives them and through the
slices of a pool as an informer lists them. Whether a search finds devices does not hang on that;
whether it comes to something that ends the attempt before it has found them does.
Source: k8s.io/dynamic-resource-allocation v0.34.12 and v0.37.2 structured/internal/*/pools_*.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from kubectl_gpuadmit.devices.allocator.outcome import Fatal, NodeRefused, Unsure

if TYPE_CHECKING:
    from kubectl_gpuadmit.devices.allocator.pools import NodePool
    from kubectl_gpuadmit.devices.allocator.shop import Item

T = TypeVar("T")
MOST = 64
"""So many orders are tried on one node."""


class Order(Struct, frozen=True):
    """The order by name, turned so that another pool, and of each pool another slice, is first."""

    pools: int = 0
    slices: int = 0

    def of_pools(self, pools: tuple[NodePool, ...]) -> tuple[NodePool, ...]:
        return (*pools[self.pools :], *pools[: self.pools])

    def of_items(self, items: Sequence[Item]) -> Sequence[Item]:
        if not self.slices:
            return items
        slices = list(dict.fromkeys(item.device.slice for item in items))
        turned = slices[self.slices % len(slices) :] if slices else []
        first = frozenset(turned)
        return [
            *(item for item in items if item.device.slice in first),
            *(item for item in items if item.device.slice not in first),
        ]


BY_NAME = Order()


def of(pools: Sequence[NodePool]) -> Iterator[Order]:
    """Orders in which each pool, and each slice of it, comes first once; by name first."""
    slices = max((len(pool.holds) for pool in pools), default=1)
    for number, (one, other) in enumerate(product(range(len(pools) or 1), range(slices or 1))):
        if number < MOST:
            yield Order(one, other)


def settled(search: Callable[[Order], T], orders: Iterator[Order]) -> T:
    """What ``search`` gives in every order, or raises in every one. Raises Unsure else."""
    kinds: dict[str, str] = {}
    first: T | Fatal | NodeRefused | None = None
    for order in orders:
        found: T | Fatal | NodeRefused
        try:
            found = search(order)
        except (Fatal, NodeRefused) as problem:
            found = problem
        if not kinds:
            first = found
        kind = type(found).__name__ if isinstance(found, Exception) else str(found is not None)
        kinds.setdefault(kind, str(found) if isinstance(found, Exception) else "")
    if len(kinds) > 1:
        ends = next((text for text in kinds.values() if text), "")
        raise Unsure(
            "whether devices are found hangs on the order in which pools are tried, which this"
            f" scheduler has not fixed: one order ends with {ends}"
        )
    if isinstance(first, Exception):
        raise first
    assert kinds, "there is at least one order"
    return first  # type: ignore[return-value]
