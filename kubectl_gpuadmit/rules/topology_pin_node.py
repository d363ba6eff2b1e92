"""Rule topology/pin-node."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation


@rule("topology/pin-node", reasons={}, stage="mutate", reads={"Node", "Pod", "GpuTopology"})
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
    device plugin hands out cannot be, so the message names those that it is likely to choose. A
    pod that names its node, one whose nodes are all good anyway, and one for which no node is known
    to be good are left alone; ``topology/island-integrity`` answers for them. Groups are told as
    there; maps older than ``maxAge`` do not count.
    """
    count = landing.whole_gpus(ask)
    said, _ = landing.tensor_parallel(ask, cluster) if count > 1 else (0, "")
    size = min(said or (count if by_count else 0), count)
    if size < 2 or ask.pod.spec.nodeName:
        return
    good: list[tuple[tuple[int, ...], Landing, str]] = []
    every = landing.landings(ask, cluster, max_age=max_age)
    for one in every:
        if likely := _likely(one, count, size):
            good.append((likely[0], one, likely[1]))
    if not good or len(good) == len(every):
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
    before = placements.clean_placements(one.map, one.now.free)
    chosen = placements.best_set(one.map, one.now.free, count)
    if before is None or not chosen:
        return None
    left = tuple(index for index in one.now.free if index not in chosen)
    after = placements.clean_placements(one.map, left) or {}
    harm = tuple(before[n] - after.get(n, 0) for n in sorted(before, reverse=True))
    kept = " ".join(f"{n}:{amount}" for n, amount in sorted(after.items()))
    which = "GPUs " + ",".join(map(str, chosen)) if not one.now.loose else "any of its GPUs"
    return harm, f"on {one.name} the device plugin likely takes {which}, clean left {kept}"
