"""Rule topology/residue."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/residue",
    reasons={
        "topology/residue": "The node counts GPUs as free on which memory is in use by nobody, and "
        "a process that gets one of them runs out of memory and crash-loops. Reset them, or use "
        "other nodes."
    },
    reads={"Node", "Pod", "GpuTopology"},
)
def topology_residue(
    ask: Ask,
    cluster: Cluster,
    *,
    everywhere: bool = False,
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """Memory left behind on a "free" GPU makes it unfree.

    When a process dies without its CUDA context being torn down, the device plugin sees a free GPU
    and the driver one with gibibytes in use (512 MiB and more count). A node is no place for the
    pod if it has not enough GPUs without such memory; the pod is refused where that leaves no node,
    with ``everywhere`` as soon as it may land on one of them. Only the agent sees this: nodes
    without its map, or with one older than ``maxAge``, are *unknown*.
    """
    count = landing.whole_gpus(ask)
    if not count:
        return
    good: list[Landing] = []
    bad: list[Landing] = []
    unknown: list[str] = []
    for one in landing.landings(ask, cluster, max_age=max_age):
        now, found = one.now, one.map
        if now is None or found is None or found.stale:
            unknown.append(one.unknown)
        elif any(gpu.residue_mib is None for gpu in found.gpus if gpu.index in now.free):
            unknown.append(f"memory in use on node {one.name}: not told by {one.rests_on}")
        elif now.unfree and now.free_count < count:
            bad.append(one)
        else:
            good.append(one)
    if bad and (everywhere or (not good and not unknown)):
        yield Finding(
            reason="topology/residue",
            detail=f"{landing.listed(one.name for one in bad)}: GPUs that count as free are not, "
            f"and the pod asks for {count}",
            evidence=tuple(_evidence(one, count) for one in bad[:4]),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, good),
        )
    elif unknown and (everywhere or not good):
        yield Unknown(
            rule="topology/residue",
            missing=landing.listed(unknown, 1),
            hint="kubectl gpu-admit agent",
        )


def _evidence(one: Landing, count: int) -> Evidence:
    assert one.now is not None
    why = ", ".join(f"GPU {index} {text}" for index, text in one.now.unfree.items())
    return Evidence(f"Node {one.name}", "GPUs really free", one.now.free_count, count, why, "least")
