"""Rule partition/confine."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.selectors import binds
from kubectl_gpuadmit.policy import Pool, TemplateChange
from kubectl_gpuadmit.policy.edits import operations
from kubectl_gpuadmit.policy.usage import admitted_nodes, uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown


@rule(
    "partition/confine",
    reasons={
        "partition/wrong-pool": "A pod is bound to a pool that is not its class's. "
        "Select the class's own pool, or give the pod the class that it really is of.",
        "partition/escapes": "A pod of a class could land outside the class's pool. Bind it by "
        "node selector, or in every one of its alternative affinity terms.",
        "partition/past-the-scheduler": "A pod names a node outside its class's pool; nodeName is "
        "obeyed by the kubelet without any scheduler. Use the pool's node selector instead.",
    },
    reads={"Node"},
)
def partition_confine(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """A pod of a class that has a pool may land on that pool only.

    The pod must be bound, not merely lucky today: its node selector, or every alternative of its
    required affinity, has to ask for all labels of the pool, whatever nodes exist now. A preference
    binds nothing. A pod of no class is the business of ``labels/class``.
    """
    policy = ask.policy
    name = policy.workload_class(ask.pod, ask.workload.ref.kind)
    if not name or not uses_gpus(ask.pod, policy.gpu_patterns):
        return
    pool = policy.pool(policy.class_pool(name))
    if pool is None:
        return
    if node := ask.pod.spec.nodeName:
        yield from _named_node(ask, cluster, pool, name, node)
        return
    if binds(ask.pod, pool.nodeSelector):
        return
    chosen = ask.pod.spec.nodeSelector or {}
    conflicts = {k: chosen[k] for k, v in pool.nodeSelector.items() if chosen.get(k, v) != v}
    other = policy.pool_of_pod(ask.pod)
    has_selector = bool(chosen)
    change = TemplateChange(nodeSelector=pool.nodeSelector, tolerations=pool.tolerations)
    ops = operations(change, ask.group.template, ask.pod)
    remedy = Remedy(f"bind it to pool {pool.name}", patch=ask.manifest_patch(ops), cost=10)
    field = ask.field("/spec/nodeSelector" if has_selector else "/spec")
    if conflicts or other:
        found = f"pool {other}" if other else _pairs(conflicts)
        yield Finding(
            reason="partition/wrong-pool",
            detail=f"class {name} belongs to pool {pool.name}, the pod is bound to {found}",
            evidence=tuple(
                Evidence("pod", f"node selector {key}", chosen.get(key), value)
                for key, value in pool.nodeSelector.items()
            ),
            field=field,
            suggest=(remedy,),
        )
        return
    outside = [
        node.name
        for node in admitted_nodes(cluster, ask.pod)
        if policy.pool_of_node(node.labels) != pool.name
    ]
    where = f", for example on {outside[0]}" if outside else ""
    affinity = ask.pod.spec.affinity and ask.pod.spec.affinity.nodeAffinity
    if affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution:
        how = "an alternative of its node affinity does not ask for"
        field = ask.field("/spec/affinity/nodeAffinity")
    else:
        how = (
            "its node selector does not ask for" if has_selector else "it has no node selector for"
        )
    yield Finding(
        reason="partition/escapes",
        detail=f"class {name} belongs to pool {pool.name}, but the pod could land elsewhere"
        f"{where}: {how} {_pairs(pool.nodeSelector)}",
        evidence=tuple(
            Evidence("pod", f"node selector {key}", chosen.get(key), value)
            for key, value in pool.nodeSelector.items()
        ),
        field=field,
        suggest=(remedy,),
    )


def _named_node(
    ask: Ask, cluster: Cluster, pool: Pool, name: str, node_name: str
) -> Iterator[Found]:
    if not cluster.knows("Node"):
        yield Unknown(
            rule="partition/confine", missing=f"pool of node {node_name}: no Node objects given"
        )
        return
    node = cluster.nodes.get(node_name)
    actual = ask.policy.pool_of_node(node.labels) if node else ""
    if actual != pool.name:
        found = f"in pool {actual}" if actual else "in no pool" if node else "not there"
        yield Finding(
            reason="partition/past-the-scheduler",
            detail=f"class {name} belongs to pool {pool.name}, nodeName {node_name} is {found}",
            evidence=(Evidence(f"Node {node_name}", "pool", actual or None, pool.name),),
            field=ask.field("/spec/nodeName"),
        )


def _pairs(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
