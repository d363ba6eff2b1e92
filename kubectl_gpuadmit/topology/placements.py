"""The best GPUs for a request, and how many clean placements a node has left.

A set is *joined* if NVLink connects each two of it. A placement of k GPUs is *clean* if it is
joined and lies on as few NUMA nodes as the machine allows for k; placements are counted disjoint,
as many as can be had together. GPUs that are alike (same NUMA node, same links to all others) are
counted and not listed, so that an eight-way machine has a handful of cases and not thousands.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from functools import lru_cache

from msgspec import Struct

from kubectl_gpuadmit.topology import islands
from kubectl_gpuadmit.topology.model import PCIE_LEVELS, Link, NodeMap

SIZES = (1, 2, 4, 8)

Counts = tuple[int, ...]
"""How many GPUs of each kind of ``Wiring.kinds``."""


class Wiring(Struct, frozen=True, eq=False):
    """What matters of a node for choosing sets; the same object for machines that are built alike,
    so that answers are kept by its identity.

    ``inside`` and ``between`` count NVLinks, ``far`` ranks PCIe levels, nearest 0.
    """

    kinds: tuple[tuple[int, ...], ...]
    """GPU indexes that are alike, each ascending."""
    numa: tuple[int, ...]
    """NUMA node of each kind; all 0 where not known."""
    lanes: tuple[tuple[int, ...], ...]
    """NVLinks between a GPU of one kind and another GPU of the other, or of the same, kind."""
    far: tuple[tuple[int, ...], ...]


_WIRINGS: dict[tuple[object, ...], tuple[tuple[Link, ...], Wiring]] = {}
_MOST = 512
"""By the identity of the links: machines that are wired alike share them."""


def wiring(found: NodeMap) -> Wiring | None:
    """None where what joins the GPUs is not known."""
    if not islands.known(found):
        return None
    assert found.links is not None
    indexes = tuple([gpu.index for gpu in found.gpus])
    numas = tuple([gpu.numa for gpu in found.gpus])
    key = (id(found.links), indexes, numas)
    known = _WIRINGS.get(key)
    if known is None or known[0] is not found.links:
        links = tuple((link.a, link.b, link.lanes, _rank(link.type)) for link in found.links)
        if len(_WIRINGS) >= _MOST:
            _WIRINGS.clear()
        known = _WIRINGS[key] = (found.links, _wiring(indexes, numas, links))
    return known[1]


def _rank(type: str) -> int:
    return PCIE_LEVELS.index(type) if type in PCIE_LEVELS else 0


@lru_cache(maxsize=256)
def _wiring(
    indexes: tuple[int, ...],
    numas: tuple[int | None, ...],
    links: tuple[tuple[int, int, int, int], ...],
) -> Wiring:
    node = dict(zip(indexes, numas, strict=True))
    where = {index: 0 if None in numas else node[index] or 0 for index in indexes}
    joined: dict[tuple[int, int], tuple[int, int]] = {}
    for a, b, lanes, far in links:
        joined[a, b] = joined[b, a] = (lanes, far)
    kinds: list[list[int]] = []
    for index in indexes:
        for kind in kinds:
            if where[kind[0]] == where[index] and _alike(kind, index, indexes, joined):
                kind.append(index)
                break
        else:
            kinds.append([index])
    table = [
        [
            joined[a[0], b[0]] if a is not b else joined[a[0], a[1]] if len(a) > 1 else (0, 0)
            for b in kinds
        ]
        for a in kinds
    ]
    return Wiring(
        tuple(tuple(kind) for kind in kinds),
        tuple(where[kind[0]] for kind in kinds),
        tuple(tuple(lanes for lanes, _ in row) for row in table),
        tuple(tuple(far for _, far in row) for row in table),
    )


def _alike(
    kind: list[int],
    index: int,
    indexes: tuple[int, ...],
    joined: dict[tuple[int, int], tuple[int, int]],
) -> bool:
    """Whether ``index`` can stand for each of ``kind``: all links among them are the same, and to
    everybody else they have the same ones."""
    first = kind[0]
    own = joined[first, index]
    if any(joined[member, index] != own for member in kind):
        return False
    if len(kind) > 1 and joined[first, kind[1]] != own:
        return False
    rest = [one for one in indexes if one != index and one not in kind]
    return all(joined[first, other] == joined[index, other] for other in rest)


def _counts(wires: Wiring, gpus: Collection[int]) -> Counts:
    return tuple(sum(1 for index in kind if index in gpus) for kind in wires.kinds)


def _choices(have: Counts, size: int) -> Iterator[Counts]:
    if not have:
        if size == 0:
            yield ()
        return
    for taken in range(min(have[0], size), -1, -1):
        for rest in _choices(have[1:], size - taken):
            yield (taken, *rest)


@lru_cache(maxsize=65536)
def _least_lanes(wires: Wiring, taken: Counts) -> int:
    """NVLinks of the pair that has least; -1 for a set without a pair."""
    used = [kind for kind, count in enumerate(taken) if count]
    pairs = [wires.lanes[a][b] for a, b in itertools.combinations(used, 2)]
    pairs += [wires.lanes[a][a] for a in used if taken[a] > 1]
    return min(pairs, default=-1)


def _joined(wires: Wiring, taken: Counts) -> bool:
    return _least_lanes(wires, taken) != 0


def _nodes(wires: Wiring, taken: Counts) -> int:
    return len({wires.numa[kind] for kind, count in enumerate(taken) if count})


@lru_cache(maxsize=4096)
def _fewest_nodes(wires: Wiring, size: int) -> int:
    """NUMA nodes of the best joined set of the whole machine, 0 where it has no joined set."""
    have = tuple(len(kind) for kind in wires.kinds)
    found = (_nodes(wires, one) for one in _choices(have, size) if _joined(wires, one))
    return min(found, default=0)


@lru_cache(maxsize=65536)
def _packed(wires: Wiring, have: Counts, size: int, nodes: int) -> int:
    """The most disjoint joined sets of ``size`` on at most ``nodes`` NUMA nodes (0: any)."""
    if sum(have) < size:
        return 0
    first = next(kind for kind, count in enumerate(have) if count)
    without = tuple(c - 1 if kind == first else c for kind, c in enumerate(have))
    most = _packed(wires, without, size, nodes)
    best = sum(have) // size
    for taken in _choices(have, size):
        if most == best:
            break
        if (
            not taken[first]
            or not _joined(wires, taken)
            or (nodes and _nodes(wires, taken) > nodes)
        ):
            continue
        left = tuple(h - t for h, t in zip(have, taken, strict=True))
        most = max(most, 1 + _packed(wires, left, size, nodes))
    return most


def groups(found: NodeMap, free: Collection[int], size: int) -> int | None:
    """How many joined sets of ``size`` can be had together out of ``free``; None if not known."""
    wires = wiring(found)
    return None if wires is None else _packed(wires, _counts(wires, free), size, 0)


def groups_left(
    found: NodeMap, free: Collection[int], loose: int, size: int
) -> tuple[int, int] | None:
    """The same where ``loose`` of ``free`` are taken and nobody says which: at worst, at best."""
    wires = wiring(found)
    if wires is None:
        return None
    have = _counts(wires, free)
    told = [
        _packed(wires, tuple(h - t for h, t in zip(have, taken, strict=True)), size, 0)
        for taken in _choices(have, min(loose, sum(have)))
    ]
    return min(told), max(told)


def clean_placements(
    found: NodeMap, free: Collection[int], sizes: tuple[int, ...] = SIZES
) -> dict[int, int] | None:
    """Size -> clean placements that ``free`` holds; None if links are not known."""
    wires = wiring(found)
    return None if wires is None else _clean(wires, _counts(wires, free), sizes)


def _clean(wires: Wiring, have: Counts, sizes: tuple[int, ...]) -> dict[int, int]:
    told = {}
    for size in sizes:
        nodes = _fewest_nodes(wires, size) if sum(have) >= size else 0
        told[size] = _packed(wires, have, size, nodes) if nodes else 0
    return told


def best_set(found: NodeMap, free: Collection[int], size: int) -> tuple[int, ...] | None:
    """The GPUs of ``free`` to take for ``size``; () where they are too few, None if not known.

    First what is joined, by the NVLinks of its weakest pair; then few NUMA nodes; then near on
    PCIe; then what leaves most clean placements behind, the big ones first; then low indexes.
    """
    wires = wiring(found)
    if wires is None:
        return None
    have = _counts(wires, free)
    if size < 1 or sum(have) < size:
        return ()
    nearest: list[Counts] = []
    head: tuple[int, int, int] | None = None
    for taken in _choices(have, size):
        key = (-_least_lanes(wires, taken), _nodes(wires, taken), _distance(wires, taken))
        if head is None or key < head:
            nearest, head = [taken], key
        elif key == head:
            nearest.append(taken)
    # what is left is weighed only among those: it is by far the dearest to tell
    available = [[index for index in kind if index in free] for kind in wires.kinds]
    best: tuple[int, ...] = ()
    score: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    for taken in nearest:
        chosen = tuple(
            sorted(index for kind, n in zip(available, taken, strict=True) for index in kind[:n])
        )
        clean: dict[int, int] = {}
        if len(nearest) > 1:
            left = tuple(h - t for h, t in zip(have, taken, strict=True))
            clean = _clean(wires, left, SIZES)
        after = (tuple(-clean.get(one, 0) for one in reversed(SIZES)), chosen)
        if score is None or after < score:
            best, score = chosen, after
    return best


def _distance(wires: Wiring, taken: Counts) -> int:
    """Sum of the PCIe ranks of the pairs, 0 where NVLink joins them."""
    total = 0
    for a, first in enumerate(taken):
        total += wires.far[a][a] * (first * (first - 1) // 2)
        total += sum(wires.far[a][b] * first * taken[b] for b in range(a + 1, len(taken)))
    return total
