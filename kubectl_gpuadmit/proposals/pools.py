"""Proposes another pool of the policy: its node selector, tolerations for what its nodes carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Taint
from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.kube.selectors import tolerated
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.proposals import Case, Proposal


def other_pool(case: Case) -> Iterator[Proposal]:
    """For each pool that the workload does not name already, one proposal for all its groups."""
    policy = case.terms.policy
    keys = {key for pool in policy.pools for key in pool.nodeSelector}
    for pool in policy.pools:
        nodes = _nodes(case.before.cluster, pool.nodeSelector)
        ops: list[dict[str, Any]] = []
        for group in case.workload.groups:
            selector = group.pod.spec.nodeSelector or {}
            wanted = {k: v for k, v in selector.items() if k not in keys} | pool.nodeSelector
            at = group.in_manifest("/spec/nodeSelector")
            if at is None:
                ops = []
                break
            if wanted == selector:
                continue
            ops.append({"op": "add", "path": at, "value": wanted})
            ops += missing_tolerations(group, nodes, case.document.data)
        ops = list({op["path"]: op for op in ops}.values())  # roles may share a template
        if nodes and ops:
            yield Proposal(
                summary=f"pool {pool.name} instead ({len(nodes)} nodes)",
                topic="pool",
                cost=20,
                patch=tuple(ops),
            )


def _nodes(cluster: Cluster, selector: dict[str, str]) -> list[NodeInfo]:
    return [
        info
        for info in cluster.nodes.values()
        if all(info.labels.get(key) == value for key, value in selector.items())
    ]


def missing_tolerations(
    group: PodGroup, nodes: list[NodeInfo], manifest: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """What every node of the pool carries and the pod does not tolerate yet."""
    if not nodes:
        return
    common = [
        taint
        for taint in nodes[0].taints
        if taint.effect in ("NoSchedule", "NoExecute")
        and all(taint in info.taints for info in nodes)
    ]
    added = [_toleration(t) for t in common if not tolerated(group.pod.spec.tolerations, t)]
    at = group.in_manifest("/spec/tolerations")
    if added and at is not None:
        # those in the manifest: the template has also what the controller adds
        yield {"op": "add", "path": at, "value": [*(resolve(manifest, at) or ()), *added]}


def _toleration(taint: Taint) -> dict[str, str]:
    if taint.value:
        return {
            "key": taint.key,
            "operator": "Equal",
            "value": taint.value,
            "effect": taint.effect,
        }
    return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
