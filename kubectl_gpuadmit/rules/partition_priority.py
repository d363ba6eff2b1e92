"""Rule partition/priority."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import PriorityClass
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import operations
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "partition/priority",
    reasons={
        "partition/class-priority": "A pod has another priority class than its workload class "
        "prescribes. Set the prescribed one.",
        "partition/pool-priority": "A pod bound to a pool has the priority class of work that "
        "belongs to another pool. Correct the pool or the priority class.",
    },
    reads={"PriorityClass"},
)
def partition_priority(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Pool, workload class and priority class must agree.

    Preemption between inference and training works by priority alone: a training pod that runs at
    the priority of inference cannot be preempted by it, and one without any gives way to everybody.
    """
    policy = ask.policy
    if not uses_gpus(ask.pod, policy.gpu_patterns):
        return
    actual = ask.pod.spec.priorityClassName or ""
    field = ask.field("/spec/priorityClassName") if actual else ask.field("/spec")
    name = policy.workload_class(ask.pod, ask.workload.ref.kind)
    cls = policy.named_class(name)
    wanted = cls.priorityClass if cls else ""
    if wanted and actual != wanted:
        change = TemplateChange(priorityClassName=wanted)
        ops = operations(change, ask.group.template, ask.pod)
        has = f"has {_value(cluster, actual)}" if actual else "has none"
        yield Finding(
            reason="partition/class-priority",
            detail=f"class {name} runs at priority class {_value(cluster, wanted)}, the pod {has}",
            evidence=(Evidence("pod", "priorityClassName", actual or None, wanted),),
            field=field,
            suggest=(Remedy(f"priority class {wanted}", patch=ask.manifest_patch(ops), cost=10),),
        )
        return
    pool = policy.pool_of_pod(ask.pod)
    if not pool or not actual:
        return
    users = [c for c in policy.classes if c.priorityClass == actual and c.pool]
    if users and all(c.pool != pool for c in users):
        proper = [c.priorityClass for c in policy.classes if c.pool == pool]
        yield Finding(
            reason="partition/pool-priority",
            detail=f"the pod is bound to pool {pool}, its priority class "
            f"{_value(cluster, actual)} belongs to pool {users[0].pool}",
            evidence=(
                Evidence("pod", "priorityClassName", actual, " or ".join(filter(None, proper))),
            ),
            field=field,
        )


def _value(cluster: Cluster, name: str) -> str:
    """``name (1000)`` where the object is known."""
    found = cluster.get("PriorityClass", "", name)
    return f"{name} ({found.value})" if isinstance(found, PriorityClass) else name
