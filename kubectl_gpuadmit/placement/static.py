"""What Node objects alone decide about a pod, computed once per signature and group of nodes.

Kept in ``cluster.static_memo``, which is emptied when a Node changes: nodes are put into groups
that no rule of the pod can tell apart (same taints, cordon, and values of the labels that the pod
reads), and the filters are asked once per group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.filters import (
    node_affinity,
    node_name,
    node_unschedulable,
    taint_toleration,
)
from kubectl_gpuadmit.verdict import Shortfall

_KEPT = 256
"""Signatures whose view is kept. One view of 5,000 nodes is 80 kB."""

Signature = tuple[object, ...]


class View(Struct, frozen=True, eq=False):
    """One pod signature against all nodes; lists are in node name order."""

    shortfalls: list[tuple[Shortfall, ...]]
    """Static filters' answer per node, () where all pass."""
    preference: list[tuple[int, int]]
    """(untolerated PreferNoSchedule taints, minus preferred affinity weight): less is better."""


def positions(cluster: Cluster) -> dict[str, int]:
    """Node name -> its place in all per-node lists."""
    return cast(
        dict[str, int],
        _remembered(cluster, "positions", lambda: {n: i for i, n in enumerate(cluster.nodes)}),
    )


def signature(pod: Pod) -> Signature:
    """Everything in a pod that its static answers depend on, by value."""
    spec = pod.spec
    affinity = spec.affinity
    return (
        spec.nodeName or "",
        spec.tolerations or (),
        tuple(sorted(spec.nodeSelector.items())) if spec.nodeSelector else (),
        affinity.nodeAffinity if affinity is not None else None,
    )


def judge(pod: Pod, info: NodeInfo) -> tuple[Shortfall, ...]:
    """The static filters on one node, in the scheduler's order and without any memory."""
    node = info.node
    return (
        *node_name.judge(pod, node),
        *node_unschedulable.judge(pod, node),
        *taint_toleration.judge(pod, node),
        *node_affinity.judge(pod, node),
    )


def view(cluster: Cluster, pod: Pod, key: Signature) -> View:
    """The static answers of all nodes for pods of this signature."""
    views = cast(dict[Signature, View], _remembered(cluster, "views", dict))
    found = views.get(key)
    if found is None:
        if len(views) >= _KEPT:
            del views[next(iter(views))]
        found = views[key] = _view(cluster, pod)
    return found


def _view(cluster: Cluster, pod: Pod) -> View:
    size = len(cluster.nodes)
    shortfalls: list[tuple[Shortfall, ...]] = [()] * size
    preference = [(0, 0)] * size
    for info, members in _groups(cluster, pod):
        found = judge(pod, info)
        wish = (
            taint_toleration.untolerated_preferences(pod, info.node),
            -node_affinity.weight(pod, info.node),
        )
        if found:
            for i in members:
                shortfalls[i] = found
        if wish != (0, 0):
            for i in members:
                preference[i] = wish
    return View(shortfalls, preference)


def _groups(cluster: Cluster, pod: Pod) -> Iterator[tuple[NodeInfo, list[int]]]:
    """(any node of the group, positions of its nodes) for nodes that the pod cannot tell apart."""
    keys, by_name = node_affinity.label_keys(pod)

    def group() -> dict[object, list[int]]:
        groups: dict[object, list[int]] = {}
        for i, (info, taints) in enumerate(
            zip(cluster.nodes.values(), _taint_classes(cluster), strict=True)
        ):
            get = info.labels.get
            group_key = (taints, tuple([get(k) for k in keys]), i if by_name else -1)
            groups.setdefault(group_key, []).append(i)
        return groups

    groups = cast(dict[object, list[int]], _remembered(cluster, ("groups", keys, by_name), group))
    nodes = list(cluster.nodes.values())
    named = positions(cluster).get(pod.spec.nodeName) if pod.spec.nodeName else None
    for members in groups.values():
        if named is not None and named in members:  # spec.nodeName tells this one from the others
            yield nodes[named], [named]
            members = [i for i in members if i != named]
        if members:
            yield nodes[members[0]], members


def _taint_classes(cluster: Cluster) -> list[int]:
    """For each node a number that is equal where taints and cordon are equal."""

    def classes() -> list[int]:
        known: dict[object, int] = {}
        return [
            known.setdefault(
                (
                    info.unschedulable,
                    tuple((t.key, t.value, t.effect) for t in info.taints) if info.taints else (),
                ),
                len(known),
            )
            for info in cluster.nodes.values()
        ]

    return cast(list[int], _remembered(cluster, "taints", classes))


def emptied(cluster: Cluster) -> dict[str, NodeInfo]:
    """Every node as if no pod ran on it. One object per node for as long as Nodes do not change."""
    return cast(
        dict[str, NodeInfo],
        _remembered(
            cluster, "emptied", lambda: {n: NodeInfo(i.node) for n, i in cluster.nodes.items()}
        ),
    )


def _remembered(cluster: Cluster, key: object, make: Callable[[], object]) -> Any:
    memo = cluster.static_memo
    found = memo.get(key)
    if found is None:
        found = memo[key] = make()
    return found
