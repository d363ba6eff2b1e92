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
    pods = cluster.pods_in(ref.namespace)
    if ref.kind == "Pod":
        return tuple(pod for pod in pods if pod.name == ref.name and not is_terminal(pod))
    child = _THROUGH_CHILDREN.get(ref.kind)
    return tuple(
        pod
        for pod in pods
        for owner in pod.metadata.ownerReferences or ()
        if owner.controller
        and (
            (owner.kind == ref.kind and owner.name == ref.name)
            or (owner.kind == child and owner.name.rpartition("-")[0] == ref.name)
        )
        and not is_terminal(pod)
    )
