"""Rule topology/group-links."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/group-links",
    reasons={
        "topology/group-not-linked": "The nodes that a multi-node group could use are not all "
        "linked with each other, by one NVLink domain or by InfiniBand or RoCE that is up. Use "
        "nodes of one fabric, or repair the links that are named.",
        "topology/group-link-degraded": "A node of a multi-node group has lost a part of its "
        "links: the whole group runs at the pace of the slowest. Repair it, or move that pod.",
    },
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
)
def topology_group_links(
    ask: Ask,
    cluster: Cluster,
    *,
    key: str = "topology-group",
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """Each two nodes of a multi-node group must be linked.

    Pods with the same value of the label or annotation ``key``, in one namespace, are a group. Two
    nodes are linked when they are of one NVLink domain that is up, or when both have an RDMA
    interface of the same kind (InfiniBand, or Ethernet for RoCE) that is active. The nodes where
    pods of the group run, and enough of those where the new ones could land, must be linked among
    each other. Interfaces and NVLinks that are down are named. Maps that do not tell, or are older
    than ``maxAge``, make the group *unknown*.
    """
    group = ask.pod.labels.get(key) or ask.pod.annotations.get(key)
    if not group:
        return
    each = landing.whole_gpus(ask)
    allotments, missing = landing.allotments(ask, cluster, max_age=max_age)
    if not each and not allotments and not missing:
        return
    members = [pod for pod in cluster.pods_in(ask.namespace) if _group(pod, key) == group]
    named = sorted({pod.spec.nodeName for pod in members if pod.spec.nodeName} - {None})
    fixed = [
        landing.of_node(cluster.nodes[name], cluster, ask.now, max_age=max_age)
        for name in named
        if name in cluster.nodes
    ]
    count = sum(
        one.count
        for one in ask.workload.groups
        if (_group(one.pod, key) or ask.pod.annotations.get(key)) == group
    )
    if count < 2 and not fixed:
        return
    rooms = [
        (one, _room(one, each))
        for one in (landing.landings(ask, cluster, max_age=max_age) if each else ())
    ]
    rooms += [(one.landing, len(one.sets)) for one in allotments]
    links: dict[str, frozenset[str]] = {}
    faults: list[Evidence] = []
    unknown = [missing] if missing else []
    for one in {one.name: one for one in (*fixed, *(at for at, _ in rooms))}.values():
        told = _links(one)
        if told is None:
            unknown.append(one.unknown or f"links of node {one.name} to others: nobody tells")
            continue
        links[one.name] = told
        faults += _faults(one)
    need = max(count, 1)
    best = _best(fixed, rooms, links, need)
    if best is None and not unknown:
        yield Finding(
            reason="topology/group-not-linked",
            detail=f"group {group} needs {need} more places on nodes that are linked with each "
            f"other{' and with ' + ', '.join(named) if named else ''}: there are none",
            evidence=tuple(faults[:4])
            or tuple(
                Evidence(f"Node {name}", "links", ", ".join(sorted(kinds)) or "none", "one shared")
                for name, kinds in list(links.items())[:4]
            ),
            permanent=False,
            field=ask.field("/spec"),
        )
    elif best is None:
        yield Unknown(
            rule="topology/group-links",
            missing=landing.listed(unknown, 1),
            hint="" if missing else "kubectl gpu-admit agent",
        )
    elif worn := [fault for fault in faults if fault.subject.removeprefix("Node ") in best]:
        yield Finding(
            reason="topology/group-link-degraded",
            detail=f"group {group}: {landing.listed(f'{f.subject} {f.what}' for f in worn)}",
            evidence=tuple(worn[:4]),
            permanent=False,
            field=ask.field("/spec"),
        )


def _group(pod: Pod, key: str) -> str:
    return pod.labels.get(key) or pod.annotations.get(key) or ""


def _links(one: Landing) -> frozenset[str] | None:
    """What the node can be linked by, None where its map does not tell."""
    found = one.map
    if found is None or found.stale or (found.fabric is None and found.nics is None):
        return None
    kinds = set()
    if found.fabric and found.fabric.clique and found.fabric.usable:
        kinds.add(f"NVLink domain {found.fabric.clique}")
    for nic in found.nics or ():
        if nic.state == "Active" and nic.link_layer in ("InfiniBand", "Ethernet"):
            kinds.add("InfiniBand" if nic.link_layer == "InfiniBand" else "RoCE")
    if not kinds and found.nics is None:
        return None
    return frozenset(kinds)


def _faults(one: Landing) -> Iterator[Evidence]:
    found = one.map
    assert found is not None
    for nic in found.nics or ():
        if nic.state not in (None, "Active"):
            yield Evidence(f"Node {one.name}", f"{nic.name} is {nic.state}", nic.state, "Active")
    if found.fabric and found.fabric.clique and not found.fabric.usable:
        state = "unhealthy" if found.fabric.healthy is False else found.fabric.state
        yield Evidence(f"Node {one.name}", f"NVLink fabric is {state}", state, "completed")
    for gpu in found.gpus:
        if gpu.nvlinks is not None and gpu.nvlinks_total and gpu.nvlinks < gpu.nvlinks_total:
            yield Evidence(
                f"Node {one.name}",
                f"GPU {gpu.index} has {gpu.nvlinks} of {gpu.nvlinks_total} NVLinks up",
                gpu.nvlinks,
                gpu.nvlinks_total,
                bound="least",
            )


def _best(
    fixed: list[Landing],
    rooms: list[tuple[Landing, int]],
    links: dict[str, frozenset[str]],
    need: int,
) -> frozenset[str] | None:
    """Nodes of the kind of link that all of ``fixed`` share and that has room for ``need`` pods;
    None where there is none. One node alone needs no link. ``rooms``: for how many pods each open
    node has devices."""
    kinds = sorted({kind for one in links.values() for kind in one})
    for kind in (*kinds, ""):
        if any(kind not in links.get(one.name, ()) for one in fixed) and (kind or len(fixed) > 1):
            continue
        if kind:
            usable = [at for at in rooms if kind in links.get(at[0].name, ())]
        else:
            usable = [max(rooms, key=lambda at: at[1])] if rooms else []
            if fixed and usable and usable[0][0].name != fixed[0].name:
                continue
        if sum(number for _, number in usable) >= need:
            return frozenset(one.name for one in (*fixed, *(at for at, _ in usable)))
    return None


def _room(one: Landing, each: int) -> int:
    """How many such pods the node's free GPUs are enough for."""
    free = one.now.free_count if one.now is not None else 0
    return free // each
