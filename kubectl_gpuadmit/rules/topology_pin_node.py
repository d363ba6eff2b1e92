"""Rule topology/pin-node."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Allotment, Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation


@rule(
    "topology/pin-node",
    reasons={},
    stage="mutate",
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
)
def topology_pin_node(
    ask: Ask,
    cluster: Cluster,
    *,
    by_count: bool = True,
    most: int = 8,
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """Binds a tensor-parallel pod to nodes that have a whole NVLink island free for each group.

    Writes a required node affinity for ``kubernetes.io/hostname``, of the ``most`` nodes that keep
    most clean placements when the pod is on them. Only the node is pinned: which of its GPUs the
    device plugin hands out cannot be, so the message names those that it is likely to choose; of
    GPUs that come by resource claim a node is good if those that the scheduler would choose there
    are joined. A pod that names its node, one whose nodes are all good anyway, and one for which no
    node is known to be good are left alone; ``topology/island-integrity`` answers for them. Groups
    are told as there; maps older than ``maxAge`` do not count.
    """
    count = landing.whole_gpus(ask)
    allotments, _ = landing.allotments(ask, cluster, max_age=max_age)
    most_gpus = max([count, *(len(each.devices[0]) for each in allotments if each.devices)])
    said, _ = landing.tensor_parallel(ask, cluster) if most_gpus > 1 else (0, "")
    size = min(said or (most_gpus if by_count else 0), most_gpus)
    if size < 2 or ask.pod.spec.nodeName:
        return
    good: list[tuple[tuple[int, ...], Landing, str]] = []
    every = landing.landings(ask, cluster, max_age=max_age) if count else []
    for one in every:
        if likely := _likely(one, count, size):
            good.append((likely[0], one, likely[1]))
    for allotted in allotments:
        if certain := _certain(allotted, size):
            good.append((certain[0], allotted.landing, certain[1]))
    if not good or len(good) == len(every) + len(allotments):
        return
    good.sort(key=lambda entry: (entry[0], entry[1].name))
    chosen = [entry for entry in good if entry[1].info.labels.get(landing.HOSTNAME)][:most]
    if not chosen:
        return
    names = landing.hostnames(one for _, one, _ in chosen)
    yield Mutation(
        ops=landing.affinity_ops(ask, names),
        summary=f"pin to {landing.listed(names)}, where NVLink joins {size} free GPUs: "
        f"{chosen[0][2]}",
    )


def _likely(one: Landing, count: int, size: int) -> tuple[tuple[int, ...], str] | None:
    """(clean placements lost, in order of size; what the device plugin is likely to choose and what
    is left) for a node that is good for certain."""
    from kubectl_gpuadmit.topology import placements, standing

    if one.unknown or one.map is None or one.now is None:
        return None
    joined = standing.joined(one.map, one.now, size)
    if joined is None or joined[0] < count // size:
        return None
    chosen = placements.best_set(one.map, one.now.free, count)
    which = "GPUs " + ",".join(map(str, chosen or ())) if not one.now.loose else "any of its GPUs"
    return _after(one, chosen or (), f"the device plugin likely takes {which}")


def _certain(allotted: Allotment, size: int) -> tuple[tuple[int, ...], str] | None:
    """The same where the devices are known that the scheduler would choose."""
    from kubectl_gpuadmit.topology import placements

    one = allotted.landing
    if allotted.unknown or allotted.parts or one.map is None:
        return None
    chosen = allotted.sets[0]
    if len(chosen) < size or (placements.groups(one.map, chosen, size) or 0) < len(chosen) // size:
        return None
    names = landing.listed(allotted.devices[0], 8)
    return _after(one, chosen, f"the scheduler takes {names}")


def _after(one: Landing, chosen: tuple[int, ...], what: str) -> tuple[tuple[int, ...], str] | None:
    from kubectl_gpuadmit.topology import placements

    if one.map is None or one.now is None or not chosen:
        return None
    before = placements.clean_placements(one.map, one.now.free)
    if before is None:
        return None
    left = tuple(index for index in one.now.free if index not in chosen)
    after = placements.clean_placements(one.map, left) or {}
    harm = tuple(before[n] - after.get(n, 0) for n in sorted(before, reverse=True))
    kept = " ".join(f"{n}:{amount}" for n, amount in sorted(after.items()))
    return harm, f"on {one.name} {what}, clean left {kept}"
