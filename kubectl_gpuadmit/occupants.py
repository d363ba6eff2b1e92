"""Which running pods a workload of the run would replace: those of the object of the same name.

Applying a manifest over a running workload does not add to it. What a rollout needs on top, its
surge, is a finding of its own. Decides nothing.
"""

from __future__ import annotations

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.kube.workloads import Workload

_THROUGH_CHILDREN = {
    "Deployment": "ReplicaSet",
    "CronJob": "Job",
    "JobSet": "Job",
    "LeaderWorkerSet": "StatefulSet",
    "RayService": "RayCluster",
    "RayJob": "RayCluster",
}
"""Kind -> kind of the objects in between, whose names are the owner's name, a dash and more."""


def replaced_by(workload: Workload, cluster: Cluster) -> tuple[Pod, ...]:
    """Pods of the cluster that belong to an object with this workload's kind, namespace and name.

    Read from owner references alone: the direct owner, or the child kind whose generated name
    starts with the workload's name and is followed by one more part.
    """
    ref = workload.ref
    if ref.kind == "Pod":
        found = [pod for pod in cluster.pods_in(ref.namespace) if pod.name == ref.name]
    else:
        owned = _by_owner(cluster, ref.namespace)
        child = _THROUGH_CHILDREN.get(ref.kind, "")
        found = [*owned.get((ref.kind, ref.name), ()), *owned.get((child, ref.name, "-"), ())]
    return tuple(pod for pod in found if not is_terminal(pod))


def _by_owner(cluster: Cluster, namespace: str) -> dict[tuple[str, ...], list[Pod]]:
    """(kind, name) of the controlling owner -> pods; (kind, name, "-") where a part follows the
    name. Pods that have come since the last question are added: a run asks for each workload."""
    pods = cluster.pods_in(namespace)
    key = ("by owner", namespace)
    seen: tuple[Pod, ...]
    index: dict[tuple[str, ...], list[Pod]]
    seen, index = cluster.pod_memo.get(key, ((), {}))
    if pods[: len(seen)] != seen:
        seen, index = (), {}
    for pod in pods[len(seen) :]:
        for owner in pod.metadata.ownerReferences or ():
            if owner.controller:
                index.setdefault((owner.kind, owner.name), []).append(pod)
                stem = owner.name.rpartition("-")[0]
                index.setdefault((owner.kind, stem, "-"), []).append(pod)
    cluster.pod_memo[key] = (pods, index)
    return index
