"""Islands: the GPUs of a node that NVLink joins, directly or through each other."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.topology.model import NodeMap


class Island(Struct, frozen=True, gc=False):
    """A connected component of the NVLink graph, also one of a single GPU."""

    gpus: tuple[int, ...]
    mesh: Literal["all-to-all", "partial", "unknown"]
    """Unknown: NVLink joins all pairs that are known, and not all are."""
    lanes: int
    """Active NVLinks between the two of its known pairs that have least, 0 for a pair without."""


def islands(found: NodeMap) -> tuple[Island, ...] | None:
    """By their first GPU. None where links are not known, or where a pair that is not known could
    join what would be counted apart."""
    if found.links is None or len(found.gpus) != found.count or not found.count:
        return None
    group = {gpu.index: [gpu.index] for gpu in found.gpus}
    for link in found.links:
        if link.lanes and group[link.a] is not group[link.b]:
            merged = group[link.a] + group[link.b]
            for index in merged:
                group[index] = merged
    lanes = {(link.a, link.b): link.lanes for link in found.links}
    if not known(found) and any(
        (a.index, b.index) not in lanes and group[a.index] is not group[b.index]
        for n, a in enumerate(found.gpus)
        for b in found.gpus[n + 1 :]
    ):
        return None
    told: list[Island] = []
    for members in sorted({tuple(sorted(one)) for one in group.values()}):
        pairs = [(a, b) for n, a in enumerate(members) for b in members[n + 1 :]]
        there = [lanes[pair] for pair in pairs if pair in lanes]
        least = min(there, default=0)
        mesh: Literal["all-to-all", "partial", "unknown"] = "all-to-all"
        if there and not least:
            mesh = "partial"
        elif len(there) < len(pairs):
            mesh = "unknown"
        told.append(Island(members, mesh, least))
    return tuple(told)


def known(found: NodeMap) -> bool:
    """Whether what joins each pair is known, so that sets of GPUs can be weighed."""
    count = len(found.gpus)
    return (
        found.links is not None
        and count == found.count > 0
        and len(found.links) == count * (count - 1) // 2
    )
