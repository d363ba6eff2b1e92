"""Rule topology/residue."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Allotment, Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/residue",
    reasons={
        "topology/residue": "The node counts GPUs as free on which memory is in use by nobody, and "
        "a process that gets one of them runs out of memory and crash-loops. Reset them, or use "
        "other nodes."
    },
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
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
    with ``everywhere`` as soon as it may land on one of them. DRA knows nothing of such memory
    either: where the GPUs come by resource claim, those count that the scheduler would choose. Only
    the agent sees this: nodes without its map, or with one older than ``maxAge``, are *unknown*.
    """
    count = landing.whole_gpus(ask)
    allotments, missing = landing.allotments(ask, cluster, max_age=max_age)
    good: list[Landing] = []
    bad: list[Landing] = []
    shown: list[Evidence] = []
    unknown = [missing] if missing else []
    for allotted in allotments:
        found = _dirty(allotted)
        if isinstance(found, Evidence):
            bad.append(allotted.landing)
            shown.append(found)
        elif found:
            unknown.append(found)
        else:
            good.append(allotted.landing)
    for one in landing.landings(ask, cluster, max_age=max_age) if count else ():
        now, told = one.now, one.map
        if now is None or told is None or told.stale:
            unknown.append(one.unknown)
        elif any(gpu.residue_mib is None for gpu in told.gpus if gpu.index in now.free):
            unknown.append(f"memory in use on node {one.name}: not told by {one.rests_on}")
        elif now.unfree and now.free_count < count:
            bad.append(one)
            shown.append(_evidence(one, count))
        else:
            good.append(one)
    if bad and (everywhere or (not good and not unknown)):
        yield Finding(
            reason="topology/residue",
            detail=f"{landing.listed(one.name for one in bad)}: GPUs that count as free are not, "
            + (f"and the pod asks for {count}" if count else "and the pod's claims would get them"),
            evidence=tuple(shown[:4]),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, good),
        )
    elif unknown and (everywhere or not good):
        yield Unknown(
            rule="topology/residue",
            missing=landing.listed(unknown, 1),
            hint="" if missing else "kubectl gpu-admit agent",
        )


def _dirty(allotted: Allotment) -> Evidence | str:
    """The devices with memory in use that the first pod would get, what is missing to tell, or ''
    for none."""
    if allotted.unknown:
        return allotted.unknown
    one = allotted.landing
    assert one.map is not None and one.now is not None
    chosen = allotted.sets[0]
    if any(gpu.residue_mib is None for gpu in one.map.gpus if gpu.index in chosen):
        return f"memory in use on node {one.name}: not told by {one.rests_on}"
    left = {i: why for i, why in one.now.unfree.items() if i in chosen}
    if not left:
        return ""
    why = ", ".join(f"GPU {index} {text}" for index, text in left.items())
    what = f"GPUs really free of {landing.listed(allotted.devices[0], 8)}"
    return Evidence(f"Node {one.name}", what, len(chosen) - len(left), len(chosen), why, "least")


def _evidence(one: Landing, count: int) -> Evidence:
    assert one.now is not None
    why = ", ".join(f"GPU {index} {text}" for index, text in one.now.unfree.items())
    return Evidence(f"Node {one.name}", "GPUs really free", one.now.free_count, count, why, "least")
