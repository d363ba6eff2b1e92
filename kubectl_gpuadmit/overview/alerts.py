"""What a person on call should look at, gravest first: what is, and what it does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import owners, ownership
from kubectl_gpuadmit.kube.objects import Taint
from kubectl_gpuadmit.overview.ages import spell
from kubectl_gpuadmit.overview.model import Alert, NodeView
from kubectl_gpuadmit.overview.nodes import size

_ORDER = (
    "gpu-lost",
    "ecc",
    "link-down",
    "two-owners",
    "residue",
    "xid",
    "missing-gpus",
    "leaked-claim",
    "unreadable-map",
    "stale-map",
    "cordon",
)
_FATAL_XIDS = frozenset({31, 48, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140, 143, 154})
"""Hardware or driver, not the application (NVIDIA, "XID Errors", r575)."""
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OURS = "gpu-admit.io/cordoned-by"
"""Annotation by which ``drain`` marks its own cordons."""


def alerts(cluster: Cluster, nodes: Sequence[NodeView], now: dt.datetime) -> tuple[Alert, ...]:
    """Gravest first, then by node and GPU; missing facts come last."""
    found = [alert for node in nodes for alert in _of_node(cluster, node, now)]
    found += _two_owners(cluster, nodes)
    found += _leaked_claims(cluster, nodes)
    rank = {code: place for place, code in enumerate(_ORDER)}
    found.sort(
        key=lambda a: (
            a.severity == "unknown",
            rank[a.code],
            a.node,
            -1 if a.gpu is None else a.gpu,
            a.what,
        )
    )
    return tuple(found)


def _of_node(cluster: Cluster, node: NodeView, now: dt.datetime) -> Iterator[Alert]:
    name = node.name
    for view in node.gpus:
        gpu = view.gpu
        if view.state == "unhealthy":
            code = "gpu-lost" if gpu.health.lost else "ecc"
            who = f" · held by {view.holders[0].name}" if view.holders else ""
            yield Alert(
                code,
                "alert",
                name,
                f"GPU {gpu.index}   {view.why}{who}",
                "takes no work",
                gpu.index,
                f"kubectl gpu-admit topo {name}",
            )
        elif gpu.residue_mib:
            beside = " beside its pod" if view.holders else ""
            since = f" since {_clock(gpu.residue_since, now)}" if gpu.residue_since else ""
            effect = f"unfree until reset{since}" if not view.holders else f"leaks{since}"
            yield Alert(
                "residue",
                "alert",
                name,
                f"GPU {gpu.index}   {size(gpu.residue_mib)} in use by nobody (residue){beside}",
                effect,
                gpu.index,
            )
        for xid in gpu.health.xids:
            if xid.code in _FATAL_XIDS:
                at = f" at {_clock(xid.at, now)}" if xid.at else ""
                times = f", {xid.count} times" if xid.count > 1 else ""
                yield Alert(
                    "xid",
                    "alert",
                    name,
                    f"GPU {gpu.index}   Xid {xid.code}{at}{times}",
                    "",
                    gpu.index,
                )
    yield from _links(node, now)
    yield from _map(node)
    yield from _counts(node)
    yield from _cordon(cluster, node)


def _links(node: NodeView, now: dt.datetime) -> Iterator[Alert]:
    """Broken NVLinks: told of pairs where they are known, else of the GPU's own links."""
    told: set[int] = set()
    by_index = {view.index: view.gpu for view in node.gpus}
    broken = [link for link in node.map.links or () if link.degraded]
    down = {i for i, gpu in by_index.items() if gpu.nvlinks_down}
    for index in sorted(down):
        # behind a switch every pair of a GPU with a dead link looks broken: the GPU is meant
        gpu = by_index[index]
        since = gpu.nvlinks_down_since
        effect = f"degraded since {_clock(since, now)}" if since else "degraded"
        total = gpu.nvlinks_total
        up = gpu.nvlinks if gpu.nvlinks is not None else None
        count = (
            f"{up} of {total} links up"
            if up is not None and total
            else (f"{len(gpu.nvlinks_down)} links down")
        )
        links = ", ".join(str(one) for one in gpu.nvlinks_down)
        yield Alert(
            "link-down",
            "alert",
            node.name,
            f"GPU {index}   NVLink {count} (down: {links})",
            effect,
            index,
        )
        told.add(index)
    for link in broken:
        if link.a in told or link.b in told:
            continue
        yield Alert(
            "link-down",
            "alert",
            node.name,
            f"GPU {link.a}-{link.b}   NVLink {link.lanes} of {link.lanes_total} links up",
            "degraded",
            link.a,
        )


def _map(node: NodeView) -> Iterator[Alert]:
    if node.map.stale:
        yield Alert(
            "stale-map",
            "unknown",
            node.name,
            f"map {spell(node.age_seconds or 0)} old, agent silent",
            "treated as unknown",
            next=f"kubectl -n gpu-admit get pods --field-selector spec.nodeName={node.name}",
        )
    for problem in node.map.problems:
        yield Alert("unreadable-map", "unknown", node.name, problem)


def _counts(node: NodeView) -> Iterator[Alert]:
    if not node.gpus and node.unhealthy:
        count = f"{node.unhealthy} GPU{'s' * (node.unhealthy > 1)}"
        yield Alert(
            "missing-gpus",
            "alert",
            node.name,
            f"{count} in capacity and not in allocatable: unhealthy to the device plugin",
            "takes no work",
        )


def _cordon(cluster: Cluster, node: NodeView) -> Iterator[Alert]:
    """A cordon that our own drain did not set."""
    info = cluster.nodes[node.name]
    if not info.unschedulable or OURS in info.node.annotations:
        return
    since = _since(info.taints)
    yield Alert(
        "cordon",
        "alert",
        node.name,
        f"cordoned by somebody else{since}: {node.free or 0} free GPUs are out of reach",
        "",
        next=f"kubectl uncordon {node.name}",
    )


def _since(taints: Iterable[Taint]) -> str:
    for taint in taints:
        if taint.key == _UNSCHEDULABLE and taint.timeAdded:
            return f" at {taint.timeAdded}"
    return ""


def _two_owners(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Alert]:
    names = {node.name for node in nodes}
    for both in owners.in_both_modes(cluster):
        if both.node in names:
            yield Alert(
                "two-owners",
                "alert",
                both.node,
                f"{both.advertised} {both.resource} of the device plugin and {both.published} GPUs"
                f" of {both.driver}",
                "one GPU may be given to two pods",
            )


def _leaked_claims(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Alert]:
    """Claims that nobody uses and that keep devices of these nodes all the same."""
    names = {node.name for node in nodes}
    for one in ownership.of_cluster(cluster):
        if one.state not in ownership.ALARMING:
            continue
        held = [device.device.split("/") for device in one.devices]
        for node in sorted({path[1] for path in held if path[1] in names}):
            devices = ", ".join(path[2] for path in held if path[1] == node)
            yield Alert(
                "leaked-claim",
                "alert",
                node,
                f"claim {one.claim} keeps {devices}: {one.kept_by}",
                one.state,
                next="kubectl gpu-admit topo --claims",
            )


def _clock(stamp: str | None, now: dt.datetime) -> str:
    """``09:12`` today, with the date otherwise; as it stands where it is no time."""
    try:
        at = dt.datetime.fromisoformat((stamp or "").replace("Z", "+00:00")).astimezone(dt.UTC)
    except ValueError:
        return stamp or ""
    return at.strftime("%H:%M UTC" if at.date() == now.date() else "%Y-%m-%d %H:%M UTC")
