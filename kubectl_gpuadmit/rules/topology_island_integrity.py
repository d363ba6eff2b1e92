"""Rule topology/island-integrity."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import NamedTuple

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Allotment, Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

NAMED = 4
"""Nodes that the evidence shows."""


class _Judged(NamedTuple):
    """One node: so many joined sets of ``size`` it has for a pod that needs ``groups`` of them."""

    one: Landing
    size: int
    groups: int
    found: int
    places: int
    """Pods whose groups would all be joined."""
    devices: tuple[str, ...] = ()
    """What DRA would give the first pod whose groups are not joined, or the first if all are; ()
    where a device plugin chooses."""
    others: bool = False
    """Joined sets are free there, and DRA would give others."""

    @property
    def good(self) -> bool:
        return self.found >= self.groups


@rule(
    "topology/island-integrity",
    reasons={
        "topology/no-island": "No node that the pod may use joins as many free GPUs by NVLink as a "
        "tensor-parallel group has, so every step would cross PCIe. Ask for smaller groups, use "
        "other nodes, or free an island.",
        "topology/may-split": "The pod may land on a node where NVLink does not join all GPUs of a "
        "tensor-parallel group. Pin it to the nodes where it does.",
        "topology/claim-splits": "The devices that the scheduler would choose for the pod are not "
        "joined by NVLink, though others on the node are. Let the claim say which belong together "
        "(a constraint with matchAttribute), or use nodes where any choice is joined.",
    },
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
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
    where any choice will do, that is certain. Of GPUs that come by resource claim, or for a
    resource that a DeviceClass backs, the very devices are judged that the scheduler would choose,
    joined with the map by UUID or PCI address; parts of GPUs are joined by nothing. Links that are
    not known, and maps older than ``maxAge``, are *unknown*.
    """
    count = landing.whole_gpus(ask)
    allotments, missing = landing.allotments(ask, cluster, max_age=max_age)
    most = max([count, *(len(one) for each in allotments for one in each.devices)])
    asks = most > 1 or bool(missing or allotments)
    said, by = landing.tensor_parallel(ask, cluster) if asks else (0, "")
    size = min(said or (most if by_count else 0), most)
    if size < 2 and not (said > 1 and (missing or any(one.missing for one in allotments))):
        return
    by = by or "GPUs of the pod"
    told: list[_Judged] = []
    unknown = [missing] if missing else []
    for one in landing.landings(ask, cluster, max_age=max_age) if count else ():
        groups = max(count // size, 1)
        found = _joined(one, size)
        if isinstance(found, str):
            unknown.append(found)
        else:
            told.append(_Judged(one, size, groups, found, found // groups))
    for allotted in allotments:
        judged = _allotted(allotted, said, by_count=by_count)
        if isinstance(judged, str):
            unknown.append(judged)
        elif judged is not None:
            told.append(judged)
    good = [one for one in told if one.good]
    bad = [one for one in told if not one.good]
    if not told and not unknown:
        if count:
            yield from _never(ask, cluster, size, by, max_age)
        return
    places = sum(one.places for one in told)
    size = size or said
    what = f"tensor-parallel group of {size} ({by})"
    others = [one for one in bad if one.others]
    if others and (everywhere or (not unknown and places < ask.group.count)):
        yield Finding(
            reason="topology/claim-splits",
            detail=f"on {_names(others)} the scheduler would choose "
            f"{landing.listed(others[0].devices, 8)}, which NVLink does not join as a {what} "
            "needs, though it joins others that are free there",
            evidence=tuple(map(_evidence, others[:NAMED])),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, (one.one for one in good)),
        )
    elif not unknown and places < ask.group.count:
        yield Finding(
            reason="topology/no-island",
            detail=f"a {what} needs {size} free GPUs that NVLink joins: "
            f"{_room(told, places, ask.group.count)}",
            evidence=tuple(map(_evidence, bad[:NAMED])) or tuple(map(_evidence, good[:NAMED])),
            permanent=False,
            field=ask.field("/spec"),
        )
    elif bad and everywhere:
        yield Finding(
            reason="topology/may-split",
            detail=f"the pod may land on {_names(bad)}, with no {size} free GPUs that NVLink "
            f"joins, as a {what} needs",
            evidence=tuple(map(_evidence, bad[:NAMED])),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, (one.one for one in good)),
        )
    elif unknown and (not good or everywhere):
        yield Unknown(
            rule="topology/island-integrity",
            missing=landing.listed(unknown, 1),
            hint="" if missing else "kubectl gpu-admit agent",
        )


def _allotted(allotted: Allotment, said: int, *, by_count: bool) -> _Judged | str | None:
    """What DRA would give on one node, what is missing to judge it, or None: no group is given."""
    from kubectl_gpuadmit.topology import placements

    if allotted.unknown:
        return allotted.unknown
    one = allotted.landing
    assert one.map is not None and one.now is not None
    count = len(allotted.sets[0])
    size = min(said or (count if by_count else 0), count)
    if size < 2:
        return None
    groups = count // size
    if allotted.parts:  # partitions reach no peer, by NVLink or otherwise (MIG user guide)
        return _Judged(one, size, groups, 0, 0, allotted.devices[0])
    free = set(one.now.free)
    judged = _Judged(one, size, groups, groups, 0, allotted.devices[0])
    for chosen, names in zip(allotted.sets, allotted.devices, strict=True):
        joined = placements.groups(one.map, chosen, size)
        left = placements.groups(one.map, free, size)
        if joined is None or left is None:
            return f"NVLink of node {one.name}: not told by {one.rests_on}"
        if joined >= groups:
            judged = judged._replace(places=judged.places + 1)
        elif judged.good:
            others = left >= groups
            judged = judged._replace(found=joined, devices=names, others=others)
        free -= set(chosen)
    return judged


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


def _evidence(judged: _Judged) -> Evidence:
    one, size = judged.one, judged.size
    if not judged.devices:
        what = f"free sets of {size} joined GPUs"
        return Evidence(
            f"Node {one.name}", what, judged.found, judged.groups, one.rests_on, "least"
        )
    what = f"sets of {size} joined GPUs among {landing.listed(judged.devices, 8)}"
    return Evidence(f"Node {one.name}", what, judged.found, judged.groups, one.rests_on, "least")


def _room(told: list[_Judged], places: int, pods: int) -> str:
    if not places:
        return f"{_names(told)} {'has' if len(told) == 1 else 'have'} none"
    roomy = [one for one in told if one.places]
    return (
        f"{_names(roomy)} {'has' if len(roomy) == 1 else 'have'} room for {places} of {pods} pods"
    )


def _names(nodes: list[_Judged]) -> str:
    return landing.listed(judged.one.name for judged in nodes)
