"""Rule topology/shared-switch."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from math import ceil

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import Policy, landing
from kubectl_gpuadmit.policy.landing import Allotment, Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/shared-switch",
    reasons={
        "topology/shared-switch": "The pod would fill a PCIe switch on which another pod that "
        "answers requests works already: together they saturate its way up, and both become slow "
        "at times. Use a node with a switch of its own for it."
    },
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
)
def topology_shared_switch(
    ask: Ask,
    cluster: Cluster,
    *,
    latency: tuple[str, ...] = ("inference",),
    saturated_percent: float = 100.0,
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """No two pods of a latency class share a PCIe switch that they fill.

    ``latency`` names the classes whose pods answer requests. A switch counts as saturated when
    pods hold so many percent of the GPUs below it; the traffic itself nobody measures here. A node
    is a place for the pod if it has enough free GPUs that do not fill a switch on which another
    such pod holds one; where its GPUs come by resource claim, if the devices that the scheduler
    would choose fill none. The pod is refused where no node is. PCIe switches are in the agent's
    map alone: a node without one, or with one older than ``maxAge``, is *unknown* where such pods
    run.
    """
    count = landing.whole_gpus(ask)
    policy = ask.policy
    if policy.workload_class(ask.pod, ask.workload.ref.kind) not in latency:
        return
    allotments, missing = landing.allotments(ask, cluster, max_age=max_age)
    bad: list[Evidence] = []
    names: list[str] = []
    unknown = [missing] if missing else []
    plugged = landing.landings(ask, cluster, max_age=max_age) if count else []
    places: list[tuple[Landing, Allotment | None]] = [(one, None) for one in plugged]
    places += [(each.landing, each) for each in allotments]
    for one, allotted in places:
        found = _shared(one, allotted, policy, latency, count, saturated_percent)
        if isinstance(found, Evidence):
            bad.append(found)
            names.append(one.name)
        elif found:
            unknown.append(found)
        else:
            return
    if unknown:
        yield Unknown(
            rule="topology/shared-switch",
            missing=landing.listed(unknown, 1),
            hint="" if missing else "kubectl gpu-admit agent",
        )
    elif bad:
        yield Finding(
            reason="topology/shared-switch",
            detail=f"on {landing.listed(names)} the pod would fill a PCIe switch with another pod "
            f"of class {' or '.join(latency)} on it",
            evidence=tuple(bad[:4]),
            permanent=False,
            field=ask.field("/spec"),
        )


def _shared(
    one: Landing,
    allotted: Allotment | None,
    policy: Policy,
    latency: tuple[str, ...],
    count: int,
    percent: float,
) -> Evidence | str:
    """The switches that leave too little room, what is missing to tell, or '' where there is room.
    ``allotted``: the devices that the pod would get; None where a device plugin chooses them.

    Below a switch with such a pod the newcomer may take as many as do not fill it.
    """
    held, loose = landing.held_by(one, policy, latency)
    if not held and not loose:
        return ""
    if why := allotted.unknown if allotted is not None else one.unknown:
        return why
    assert one.map is not None and one.now is not None
    if any(gpu.pcie_switch is None for gpu in one.map.gpus):
        return f"PCIe switches of node {one.name}: not told by {one.rests_on}"
    if loose:
        return f"which GPUs {loose} holds on node {one.name}: not told by {one.rests_on}"
    switch = {gpu.index: gpu.pcie_switch or f"GPU {gpu.index}" for gpu in one.map.gpus}
    size = Counter(switch.values())
    taken = Counter(switch[index] for index in one.now.held)
    theirs = {switch[index] for index in held}
    if allotted is not None:
        mine = Counter(switch[index] for index in allotted.sets[0])
        filled = [
            at
            for at in mine
            if at in theirs and size[at] > 1 and taken[at] + mine[at] >= size[at] * percent / 100
        ]
        if not filled:
            return ""
        pods = ", ".join(sorted({pod for index, pod in held.items() if switch[index] in filled}))
        return Evidence(
            f"Node {one.name}",
            f"PCIe switches of {pods} that {landing.listed(allotted.devices[0], 8)} would fill",
            len(filled),
            0,
            one.rests_on,
            "most",
        )
    free = Counter(switch[index] for index in one.now.free)
    room = sum(
        min(n, max(ceil(size[at] * percent / 100) - 1 - taken[at], 0))
        if at in theirs and size[at] > 1
        else n
        for at, n in free.items()
    )
    if room - one.now.loose >= count:
        return ""
    pods = ", ".join(sorted(set(held.values())))
    return Evidence(
        f"Node {one.name}",
        f"free GPUs that fill no switch of {pods}",
        max(room - one.now.loose, 0),
        count,
        one.rests_on,
        "least",
    )
