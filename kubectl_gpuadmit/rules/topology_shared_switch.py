"""Rule topology/shared-switch."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from math import ceil

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import Policy, landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/shared-switch",
    reasons={
        "topology/shared-switch": "The pod would fill a PCIe switch on which another pod that "
        "answers requests works already: together they saturate its way up, and both become slow "
        "at times. Use a node with a switch of its own for it."
    },
    reads={"Node", "Pod", "GpuTopology"},
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
    such pod holds one. The pod is refused where no node is. PCIe switches are in the agent's map
    alone: a node without one, or with one older than ``maxAge``, is *unknown* where such pods run.
    """
    count = landing.whole_gpus(ask)
    policy = ask.policy
    if not count or policy.workload_class(ask.pod, ask.workload.ref.kind) not in latency:
        return
    bad: list[Evidence] = []
    names: list[str] = []
    unknown: list[str] = []
    for one in landing.landings(ask, cluster, max_age=max_age):
        found = _shared(one, policy, latency, count, saturated_percent)
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
            hint="kubectl gpu-admit agent",
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
    one: Landing, policy: Policy, latency: tuple[str, ...], count: int, percent: float
) -> Evidence | str:
    """The switches that leave too little room, what is missing to tell, or '' where there is room.

    Below a switch with such a pod the newcomer may take as many as do not fill it.
    """
    held, loose = landing.held_by(one, policy, latency)
    if not held and not loose:
        return ""
    if one.unknown:
        return one.unknown
    assert one.map is not None and one.now is not None
    if any(gpu.pcie_switch is None for gpu in one.map.gpus):
        return f"PCIe switches of node {one.name}: not told by {one.rests_on}"
    if loose:
        return f"which GPUs {loose} holds on node {one.name}: not told by {one.rests_on}"
    switch = {gpu.index: gpu.pcie_switch or f"GPU {gpu.index}" for gpu in one.map.gpus}
    size = Counter(switch.values())
    taken = Counter(switch[index] for index in one.now.held)
    theirs = {switch[index] for index in held}
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
