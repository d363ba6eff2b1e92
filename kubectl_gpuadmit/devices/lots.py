"""Pools that no question about a claim tells apart, so that one of them is looked at for all.

5,000 nodes of one kind have a handful of lots. What a lot's devices are called differs from pool to
pool: an example is of the first, unless it is about one pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kubectl_gpuadmit.devices.allocator import State
from kubectl_gpuadmit.devices.allocator.situations import own_names
from kubectl_gpuadmit.devices.inventory import Published
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
    published: Published,
    *,
    state: State,
    nodes: frozenset[str] | None,
    reads: frozenset[str] | None,
    usable: Callable[[Pool], bool],
) -> tuple[Lot, ...]:
    """By their first pools. ``nodes``: those that the pod may use; ``reads``: full names of the
    attributes that anybody looks at, None for all."""
    found: dict[object, Lot] = {}
    own: dict[int, tuple[tuple[int, frozenset[str]], ...]] = {}
    for order, (id, pool) in enumerate(published.pools.items()):
        if not usable(pool):
            continue
        key: object = id
        kind, node = published.kinds.get(id, (-1, ""))
        if node:
            if kind not in own:
                named = ((n, own_names(slice, reads)) for n, slice in enumerate(pool.slices))
                own[kind] = tuple((n, names) for n, names in named if names)
            told = tuple(
                own_texts(pool.slices[n].raw.spec.devices, names) for n, names in own[kind]
            )
            key = (kind, told, state.held(id), nodes is None or node in nodes)
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
