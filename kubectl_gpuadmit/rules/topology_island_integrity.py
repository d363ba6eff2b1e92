"""Rule topology/island-integrity."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

NAMED = 4
"""Nodes that the evidence shows."""


@rule(
    "topology/island-integrity",
    reasons={
        "topology/no-island": "No node that the pod may use joins as many free GPUs by NVLink as a "
        "tensor-parallel group has, so every step would cross PCIe. Ask for smaller groups, use "
        "other nodes, or free an island.",
        "topology/may-split": "The pod may land on a node where NVLink does not join all GPUs of a "
        "tensor-parallel group. Pin it to the nodes where it does.",
    },
    reads={"Node", "Pod", "GpuTopology", "ResourceSlice"},
)
def topology_island_integrity(
    ask: Ask,
    cluster: Cluster,
    *,
    by_count: bool = True,
    everywhere: bool = True,
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """The GPUs of a tensor-parallel group must all be joined by NVLink.

    How large a group is, say the annotation or label ``gpu-admit.io/tensor-parallel`` or the
    arguments of the serving engine; with ``byCount``, all GPUs of a pod that says nothing are one
    group. A group that spans pods counts with its part in one pod; the rest is of
    ``topology/group-links``. Looked at are the nodes with room for the pod now: with ``everywhere``
    each of them must hold its groups, otherwise one is enough for each pod. Which GPUs a device
    plugin hands out nobody can promise: what is judged is whether the node has such GPUs free, and
    where any choice will do, that is certain. Links that are not known, and maps older than
    ``maxAge``, are *unknown*; so are GPUs that come by resource claim.
    """
    count = landing.whole_gpus(ask)
    if not count and ask.pod.spec.resourceClaims:
        said, by = landing.tensor_parallel(ask, cluster)
        if said > 1:
            yield Unknown(
                rule="topology/island-integrity",
                missing=f"whether NVLink joins {said} GPUs ({by}) that the pod gets by claim: "
                "ResourceSlices do not tell NVLink",
            )
        return
    said, by = landing.tensor_parallel(ask, cluster) if count > 1 else (0, "")
    size = min(said or (count if by_count else 0), count)
    if size < 2:
        return
    by = by or "GPUs of the pod"
    groups = max(count // size, 1)
    good: list[tuple[Landing, int]] = []
    bad: list[tuple[Landing, int]] = []
    unknown: list[str] = []
    for one in landing.landings(ask, cluster, max_age=max_age):
        found = _joined(one, size)
        if isinstance(found, str):
            unknown.append(found)
        elif found >= groups:
            good.append((one, found))
        else:
            bad.append((one, found))
    if not good and not bad and not unknown:
        yield from _never(ask, cluster, size, by, max_age)
        return
    places = sum(found // groups for _, found in good)
    what = f"tensor-parallel group of {size} ({by})"
    if not unknown and places < ask.group.count:
        yield Finding(
            reason="topology/no-island",
            detail=f"a {what} needs {size} free GPUs that NVLink joins: "
            f"{_room(good, bad, places, ask.group.count)}",
            evidence=tuple(_evidence(one, size, found, groups) for one, found in bad[:NAMED])
            or tuple(_evidence(one, size, found, groups) for one, found in good[:NAMED]),
            permanent=False,
            field=ask.field("/spec"),
        )
    elif bad and everywhere:
        yield Finding(
            reason="topology/may-split",
            detail=f"the pod may land on {_names(bad)}, with no {size} free GPUs that NVLink "
            f"joins, as a {what} needs",
            evidence=tuple(_evidence(one, size, found, groups) for one, found in bad[:NAMED]),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, (one for one, _ in good)),
        )
    elif unknown and (not good or everywhere):
        yield Unknown(
            rule="topology/island-integrity",
            missing=landing.listed(unknown, 1),
            hint="kubectl gpu-admit agent",
        )


def _joined(one: Landing, size: int) -> int | str:
    """Sets of joined free GPUs that there are for certain, or what is missing to tell."""
    from kubectl_gpuadmit.topology import standing

    if one.unknown:
        return one.unknown
    assert one.map is not None and one.now is not None
    found = standing.joined(one.map, one.now, size)
    if found is None:
        return f"NVLink of node {one.name}: not told by {one.rests_on}"
    sure, likely = found
    if sure == likely:
        return sure
    return sure or f"which GPUs of node {one.name} are free: not told by {one.rests_on}"


def _never(
    ask: Ask, cluster: Cluster, size: int, by: str, max_age: dt.timedelta
) -> Iterator[Found]:
    """No node has room now: whether one has such an island at all."""
    from kubectl_gpuadmit.topology import placements

    largest = 0
    subject = ""
    for info in landing.open_nodes(cluster, ask.pod):
        one = landing.of_node(info, cluster, ask.now, max_age=max_age)
        if one.map is None:
            continue
        every = [gpu.index for gpu in one.map.gpus]
        if len(every) < size:
            continue
        found = placements.groups(one.map, every, size)
        if found is None or found:
            return  # it may be there, and who waits is told by the placement
        largest, subject = max((largest, subject), (len(every), one.name))
    if largest:
        yield Finding(
            reason="topology/no-island",
            detail=f"no node that the pod may use joins {size} GPUs by NVLink, as a "
            f"tensor-parallel group of {size} ({by}) needs",
            evidence=(Evidence(f"Node {subject}", f"islands of {size} GPUs", 0, 1, bound="least"),),
            field=ask.field("/spec"),
        )


def _evidence(one: Landing, size: int, found: int, groups: int) -> Evidence:
    return Evidence(
        f"Node {one.name}", f"free sets of {size} joined GPUs", found, groups, one.rests_on, "least"
    )


def _room(
    good: list[tuple[Landing, int]], bad: list[tuple[Landing, int]], places: int, pods: int
) -> str:
    if not places:
        return f"{_names(bad)} {'has' if len(bad) == 1 else 'have'} none"
    return f"{_names(good)} {'has' if len(good) == 1 else 'have'} room for {places} of {pods} pods"


def _names(nodes: list[tuple[Landing, int]]) -> str:
    return landing.listed(one.name for one, _ in nodes)
