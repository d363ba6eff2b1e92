"""Pools that no question about a claim tells apart, so that one of them is looked at for all.

5,000 nodes of one kind have a handful of lots. What a lot's devices are called differs from pool to
pool: an example is of the first, unless it is about one pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubectl_gpuadmit.devices.allocator import State
from kubectl_gpuadmit.devices.allocator.situations import own_names
from kubectl_gpuadmit.devices.model import Device, DeviceId, Pool
from kubectl_gpuadmit.devices.stages import Loss
from kubectl_gpuadmit.kube.listed import own_texts


class Placed(NamedTuple):
    """A pool, where it stands among all, and its node; '' where it is not of one node alone."""

    order: int
    pool: Pool
    node: str


class Lot:
    """Pools that are alike, in order."""

    def __init__(self, first: Placed) -> None:
        self.pools = [first]
        self.devices: tuple[Device, ...] = first.pool.devices
        """Of the first."""

    @property
    def first(self) -> Placed:
        return self.pools[0]


class Entry(NamedTuple):
    """A device of each pool of a lot."""

    lot: Lot
    place: int

    @property
    def device(self) -> Device:
        """That of the first pool."""
        return self.lot.devices[self.place]

    @property
    def example(self) -> str:
        return str(self.device.id)

    @property
    def at(self) -> tuple[int, int]:
        """Where it stands among all devices."""
        return self.lot.first.order, self.place

    def each(self) -> Iterator[tuple[DeviceId, tuple[int, int]]]:
        """The device of every pool, and where it stands."""
        for order, pool, _ in self.lot.pools:
            yield DeviceId(*pool.id, self.device.name), (order, self.place)


def of(
    pools: Iterable[tuple[int, Pool]],
    *,
    state: State,
    nodes: frozenset[str] | None,
    reads: frozenset[str] | None,
) -> tuple[Lot, ...]:
    """By their first pools. ``nodes``: those that the pod may use; ``reads``: full names of the
    attributes that anybody looks at, None for all."""
    found: dict[object, Lot] = {}
    for order, pool in pools:
        names = {slice.node_name for slice in pool.slices}
        alone = len(names) != 1 or any(slice.per_device for slice in pool.slices)
        node = "" if alone else next(iter(names))
        key: object = pool.id
        if node:
            key = (
                pool.id.driver,
                tuple(
                    (
                        slice.template,
                        own_texts(slice.raw.spec.devices, own)
                        if (own := own_names(slice, reads))
                        else (),
                        tuple(map(id, slice.rules)),
                        id(slice.counter_sets) if slice.counter_sets else 0,
                    )
                    for slice in pool.slices
                ),
                state.held(pool.id),
                nodes is None or node in nodes,
            )
        placed = Placed(order, pool, node)
        if key in found:
            found[key].pools.append(placed)
        else:
            found[key] = Lot(placed)
    return tuple(found.values())


Gone = tuple[str, int, str, tuple[int, int]]
"""Why, how many devices, one of them, where that stands."""


def losses(gone: Iterable[Gone]) -> tuple[Loss, ...]:
    """The four reasons for which most were lost; of those for as many, the first met."""
    total: dict[str, int] = {}
    first: dict[str, tuple[tuple[int, int], str]] = {}
    for why, count, example, at in gone:
        total[why] = total.get(why, 0) + count
        if why not in first or at < first[why][0]:
            first[why] = (at, example)
    ranked: Sequence[str] = sorted(total, key=lambda why: (-total[why], first[why][0]))
    return tuple(Loss(why, total[why], first[why][1]) for why in ranked[:4])
