"""Merges the hints of all resources into the one set of NUMA nodes that a policy accepts or not.

Source: pkg/kubelet/cm/topologymanager/policy.go (HintMerger) and policy_*.go of Kubernetes 1.37.

The kubelet walks through all combinations of one hint of each resource. Its comparison is a total
order, so that walking is not needed: a merged hint is preferred only where all resources prefer the
very same set, and any other is the intersection of one set of each resource. Both can be computed
resource by resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_gpuadmit.placement.kubelet.hints import Affinity, Hint, Hints
from kubectl_gpuadmit.placement.kubelet.machine import ids, members
from kubectl_gpuadmit.placement.kubelet.settings import Settings

Distances = Mapping[int, Sequence[int]]
"""NUMA node -> its distance to every NUMA node by ID."""


def merged(
    settings: Settings, nodes: Sequence[int], provided: Sequence[Hints], distances: Distances
) -> tuple[Affinity, bool]:
    """The best affinity, and whether the policy lets the container or pod in.

    ``provided`` has one entry per resource that was asked for, and one None for each manager with
    no resource at all. Of what is refused only the refusal counts.
    """
    everything = members(nodes)
    single = settings.policy == "single-numa-node"
    if single:
        provided = [_only_single(hints) for hints in provided]
    wild, lists = _split(provided)
    closest = settings.prefer_closest and not single
    if wild:
        preferred = _common(lists, everything)
        if preferred:
            best = min(preferred, key=lambda mask: _order(mask, distances, closest=closest))
            if single and best == everything:
                return (None, True), True
            return (best, True), True
    if settings.policy != "best-effort":
        return (everything, False), False
    reached = _intersections(lists, everything)
    if not reached:
        return (everything, False), True
    wanted = max(min(mask.bit_count() for mask, _ in hints) for hints in lists) if lists else 0
    best = min(reached, key=lambda mask: _second_best(mask, wanted, distances, closest=closest))
    return (best, False), True


def _split(provided: Sequence[Hints]) -> tuple[bool, list[list[Hint]]]:
    """Whether nothing is impossible yet, and the hints of the resources that have any."""
    lists = [hints for hints in provided if hints]
    return not any(hints == [] for hints in provided), lists


def _only_single(hints: Hints) -> Hints:
    if hints is None:
        return None
    return [(mask, True) for mask, preferred in hints if preferred and mask.bit_count() == 1]


def _common(lists: Sequence[Sequence[Hint]], everything: int) -> set[int]:
    """Sets of NUMA nodes that every resource prefers."""
    if not lists:
        return {everything}
    first, *rest = ({mask for mask, preferred in hints if preferred} for hints in lists)
    return {mask & everything for mask in first.intersection(*rest) if mask & everything}


def _intersections(lists: Sequence[Sequence[Hint]], everything: int) -> set[int]:
    reached = {everything}
    for hints in lists:
        masks = {mask for mask, _ in hints}
        reached = {one & mask for one in reached for mask in masks}
    return {mask for mask in reached if mask}


def _order(mask: int, distances: Distances, *, closest: bool) -> tuple[float, ...]:
    """The narrower set; of equally narrow ones the closer, then the one with lower IDs."""
    return (mask.bit_count(), average(mask, distances) if closest else 0, mask)


def _second_best(
    mask: int, wanted: int, distances: Distances, *, closest: bool
) -> tuple[float, ...]:
    """As many nodes as the neediest resource needs, else the most below that, else the fewest."""
    count = mask.bit_count()
    if count <= wanted:
        return (0, wanted - count, *_order(mask, distances, closest=closest))
    return (1, count, *_order(mask, distances, closest=closest))


def average(mask: int, distances: Distances) -> float:
    """Mean distance over all pairs of NUMA nodes of the set, each with itself included."""
    chosen = list(ids(mask))
    return sum(float(distances[a][b]) for a in chosen for b in chosen) / len(chosen) ** 2
