"""Rule partition/route."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import operations, summary, without_conflicts
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation


@rule("partition/route", reasons={}, stage="mutate")
def partition_route(ask: Ask, cluster: Cluster, *, priority: bool = True) -> Iterator[Found]:
    """Sends a pod of a class to the class's pool: node selector, tolerations, priority class.

    Only what the pod leaves open is filled in; where it says something else it is left as it is,
    and ``partition/confine`` and ``partition/priority`` answer for it. ``priority: false`` leaves
    the priority class alone.
    """
    policy = ask.policy
    cls = policy.named_class(policy.workload_class(ask.pod, ask.workload.ref.kind))
    if cls is None or not uses_gpus(ask.pod, policy.gpu_patterns):
        return
    pool = policy.pool(cls.pool)
    change = TemplateChange(
        nodeSelector=pool.nodeSelector if pool else {},
        tolerations=pool.tolerations if pool else (),
        priorityClassName=cls.priorityClass if priority else "",
    )
    kept = without_conflicts(change, ask.pod)
    if kept.nodeSelector != change.nodeSelector:
        return  # bound for another pool: half a route would make it fit nowhere
    if ops := operations(kept, ask.group.template, ask.pod):
        where = f"class {cls.name} to pool {cls.pool}: " if cls.pool else f"class {cls.name}: "
        yield Mutation(ops=ops, summary=where + summary(ops))
