"""Pools as sums over their nodes, and what of the waiting demand could be placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.overview.model import SIZES, Demand, NodeView, PoolView
from kubectl_gpuadmit.policy import Policy


def pool_views(cluster: Cluster, nodes: Sequence[NodeView], policy: Policy) -> tuple[PoolView, ...]:
    """In the order of the policy's pools, nodes of no pool last; empty pools are left out."""
    by_pool: dict[str, list[NodeView]] = {}
    for node in nodes:
        by_pool.setdefault(node.pool, []).append(node)
    names = [pool.name for pool in policy.pools if pool.name in by_pool]
    names += sorted(by_pool.keys() - set(names), key=lambda name: (name == "", name))
    waiting = _waiting(cluster, policy, len(by_pool) == 1)
    return tuple(_pool(name, by_pool[name], waiting) for name in names)


def _pool(name: str, nodes: list[NodeView], waiting: dict[str, Counter[int]]) -> PoolView:
    usable = [node for node in nodes if not node.cordoned]
    clean = {
        size: sum(node.clean.get(size, 0) for node in usable if node.clean is not None)
        for size in SIZES
    }
    return PoolView(
        name=name,
        nodes=len(nodes),
        total=sum(node.total for node in nodes),
        held=sum(node.held or 0 for node in nodes),
        free=sum(node.free or 0 for node in nodes),
        unfree=sum(node.unfree for node in nodes),
        unhealthy=sum(node.unhealthy for node in nodes),
        clean=clean,
        unclear=sum(node.clean is None and node.free is not None for node in nodes),
        split=sum(_split_islands(node) for node in nodes),
        shared=sum(node.free is None for node in nodes),
        demand=tuple(_demand(waiting.get(name, Counter()), clean, usable)),
    )


def _split_islands(node: NodeView) -> int:
    if not node.split:
        return 0
    state = {view.index: view.state == "free" for view in node.gpus}
    return sum(len({state.get(i, False) for i in one}) == 2 for one in node.islands or ())


def _waiting(cluster: Cluster, policy: Policy, alone: bool) -> dict[str, Counter[int]]:
    """Pool -> GPUs of one pod -> pods that have no node yet. Pods bound to no pool count for the
    one pool there is, else for none: which pool they will take nobody knows."""
    found: dict[str, Counter[int]] = {}
    only = next(iter({policy.pool_of_node(i.labels) for i in cluster.nodes.values()} - {""}), "")
    for pod in cluster.pods():
        if pod.spec.nodeName or pod.status.phase not in (None, "", "Pending"):
            continue
        size = sum(pod_gpus(pod, policy.gpu_patterns).values())
        if not size:
            continue
        pool = policy.pool_of_pod(pod) or (only if alone else "")
        found.setdefault(pool, Counter())[size] += 1
    return found


def _demand(
    waiting: Counter[int], clean: dict[int, int], nodes: Iterable[NodeView]
) -> Iterable[Demand]:
    nodes = tuple(nodes)
    for size, pods in sorted(waiting.items()):
        place = next((s for s in SIZES if s >= size), None)
        left = clean.get(place, 0) if place is not None else 0
        count = sum((node.free or 0) // size for node in nodes)
        yield Demand(size, pods, min(pods, left), min(pods, count))
