"""Rule capacity/free-floor."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy.usage import asked, asked_of, pool_name, pool_usage, target_pool
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "capacity/free-floor",
    reasons={
        "capacity/below-floor": "Letting a new workload in would leave a pool with fewer free GPUs "
        "than it keeps for what already runs there. Ask for less, or wait for work to end."
    },
    reads={"Node", "Pod"},
)
def capacity_free_floor(
    ask: Ask, cluster: Cluster, *, floor_percent: float = 20.0
) -> Iterator[Found]:
    """A new workload must leave this share of its pool's GPUs free.

    What is kept free is for the replicas of what runs there already: a workload that the cluster
    has by this name is no newcomer and may use it. Counted are allocatable GPUs less those that
    pods on nodes hold, less all that the workload asks of the pool; cordoned nodes offer nothing. A
    pod bound to no pool is measured against the whole cluster.
    """
    workload, policy = ask.workload, ask.policy
    kind = workload.ref.kind
    if not asked(ask.pod, policy.gpu_patterns):
        return
    if cluster.get(kind, workload.ref.namespace, workload.ref.name) is not None:
        return
    pool = target_pool(policy, ask.pod, kind)
    for group in workload.groups:
        if target_pool(policy, group.pod, kind) == pool and asked(group.pod, policy.gpu_patterns):
            if group.role != ask.group.role:
                return  # an earlier group has answered for the same pool
            break
    for needed in ("Node", "Pod"):
        if not cluster.knows(needed):
            missing = f"free GPUs of {pool_name(pool)}: no {needed} objects given"
            yield Unknown(rule="capacity/free-floor", missing=missing)
            return
    usage = pool_usage(cluster, policy, pool)
    if not usage.allocatable:
        return
    total = max(asked_of(workload, policy, pool), asked(ask.pod, policy.gpu_patterns))
    floor = -int(-usage.allocatable * floor_percent // 100)
    left = usage.free - total
    if left < floor:
        yield Finding(
            reason="capacity/below-floor",
            detail=f"{pool_name(pool)} keeps {floor} of {usage.allocatable} GPUs free, has "
            f"{usage.free} free, and the workload asks for {total}",
            evidence=(
                Evidence(
                    pool_name(pool), "GPUs left free", left, floor, "pods on nodes now", "least"
                ),
                Evidence(
                    str(workload.ref),
                    "GPUs of all pods",
                    total,
                    max(usage.free - floor, 0),
                    bound="most",
                ),
            ),
            permanent=False,
        )
