"""Rule capacity/burst."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.policy.usage import GpuPods, asked_of, booking, gpu_pods_of, uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "capacity/burst",
    reasons={
        "capacity/too-many-pods": "One namespace or owner would have more GPU pods, running and "
        "waiting, than the policy lets one have. Ask for fewer replicas, or for an exception.",
        "capacity/too-many-gpus": "One namespace or owner would hold or wait for more GPUs than "
        "the policy lets one have. Ask for fewer, or for an exception.",
    },
    reads={"Pod"},
)
def capacity_burst(
    ask: Ask,
    cluster: Cluster,
    *,
    max_pods: int = 100,
    max_gpus: int = 0,
    owner_label: str = "",
) -> Iterator[Found]:
    """One namespace may not have more than so many GPU pods, or GPUs, at once.

    Pods that wait count like pods that run: four hundred pending pods make an autoscaler buy nodes
    for them. Pods that the workload replaces are not counted. ``ownerLabel`` (such as
    ``team``) counts by the value of that pod label over all namespaces instead. A limit of 0 is
    none.
    """
    policy = ask.policy
    patterns = policy.gpu_patterns
    if not ask.first_group:
        return
    pods = sum(g.count for g in ask.workload.groups if uses_gpus(g.pod, patterns))
    total = asked_of(ask.workload, policy, "")
    if not pods:
        return
    owner = ask.pod.labels.get(owner_label, "") if owner_label else ""
    whose = f"{owner_label} {owner}" if owner else f"namespace {ask.namespace}"

    there = (
        _of_owner(cluster, owner_label, owner, patterns)
        if owner
        else gpu_pods_of(cluster, ask.namespace, patterns)
    )
    clear = True
    for reason, what, new, old, limit in (
        ("capacity/too-many-pods", "GPU pods", pods, there.pods, max_pods),
        ("capacity/too-many-gpus", "GPUs", total, there.devices, max_gpus),
    ):
        if limit and old + new > limit:
            clear = False
            counts_pods = what == "GPU pods" and there.waiting
            pending = f", {there.waiting} of them waiting" if counts_pods else ""
            yield Finding(
                reason=reason,
                detail=f"{whose} would have {old + new} {what}, may have {limit}: "
                f"asked {new}, already there {old}{pending}",
                evidence=(
                    Evidence(whose, what, old + new, limit, f"{new} of this workload", "most"),
                ),
                permanent=new > limit,
            )
    if clear and not cluster.knows("Pod"):
        yield Unknown(rule="capacity/burst", missing=f"GPU pods of {whose}: no Pod objects given")


def _of_owner(cluster: Cluster, label: str, owner: str, patterns: tuple[str, ...]) -> GpuPods:
    taken = [
        (pod, booking(cluster, pod, patterns))
        for pod in cluster.pods()
        if pod.labels.get(label) == owner and not is_terminal(pod)
    ]
    using = [(pod, took) for pod, took in taken if took.uses]
    return GpuPods(
        len(using),
        sum(took.devices for _, took in using),
        sum(1 for pod, _ in using if not pod.spec.nodeName),
    )
