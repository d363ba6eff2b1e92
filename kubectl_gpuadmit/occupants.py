"""Which running pods a workload of the run would replace: those of the object of the same name.

Applying a manifest over a running workload does not add to it. What a rollout needs on top, its
surge, is a finding of its own. Decides nothing.
"""

from __future__ import annotations

import re

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import OwnerReference, Pod
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.verdict import Ref

_CHILD_NAMES: dict[tuple[str, str], str] = {
    ("Deployment", "ReplicaSet"): r"-[^-]+",
    ("CronJob", "Job"): r"-[^-]+",
    ("MPIJob", "Job"): r"-launcher",
    ("LeaderWorkerSet", "StatefulSet"): r"(-\d+)?",
    ("RayService", "RayCluster"): r"(-raycluster)?-[^-]+",
    ("RayJob", "RayCluster"): r"(-raycluster)?-[^-]+",
    ("RayJob", "Job"): r"",
}
"""(kind, kind of the objects in between) -> what follows the owner's name in theirs."""

_LABELS = {
    "InferenceService": "serving.kserve.io/inferenceservice",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "TrainJob": "jobset.sigs.k8s.io/jobset-name",
}
"""Kind -> label by which its controller names it on every pod, however many owners are between."""


def replaced_by(workload: Workload, cluster: Cluster) -> tuple[Pod, ...]:
    """Pods of the cluster that belong to an object with this workload's kind, namespace and name.

    Told by the pod's own owner references and labels: the direct owner, a child kind whose name is
    made of the workload's, or the label that the controller puts on all its pods.
    """
    ref = workload.ref
    if ref.kind == "Pod":
        found = {pod.name: pod for pod in cluster.pods_in(ref.namespace) if pod.name == ref.name}
    else:
        kinds = (ref.kind, *(child for kind, child in _CHILD_NAMES if kind == ref.kind))
        marks = [*kinds, *filter(None, (_LABELS.get(ref.kind),))]
        index = _by_mark(cluster, ref.namespace)
        candidates = (pod for mark in marks for pod in index.get((mark, ref.name), ()))
        found = {pod.name: pod for pod in candidates if _belongs(pod, ref)}
    return tuple(pod for pod in found.values() if not is_terminal(pod))


Index = dict[tuple[str, str], list[Pod]]


def _by_mark(cluster: Cluster, namespace: str) -> Index:
    """Pods by (kind of the controlling owner, its name without the last none, one or two parts) and
    by (label, value). Pods that have come since the last question are added: a run asks for each
    workload."""
    pods = cluster.pods_in(namespace)
    key = ("by mark", namespace)
    seen: tuple[Pod, ...]
    index: Index
    seen, index = cluster.pod_memo.get(key, ((), {}))
    if pods[: len(seen)] != seen:
        seen, index = (), {}
    for pod in pods[len(seen) :]:
        owner = _controller(pod)
        if owner is None:
            continue
        stem = owner.name.rpartition("-")[0]
        marks = {(owner.kind, name) for name in (owner.name, stem, stem.rpartition("-")[0])}
        labels = pod.labels
        marks |= {(label, labels[label]) for label in _LABELS.values() if label in labels}
        for mark in marks:
            index.setdefault(mark, []).append(pod)
    cluster.pod_memo[key] = (pods, index)
    return index


def _controller(pod: Pod) -> OwnerReference | None:
    return next((o for o in pod.metadata.ownerReferences or () if o.controller), None)


def _belongs(pod: Pod, ref: Ref) -> bool:
    owner = _controller(pod)
    if owner is None:
        return False
    label = _LABELS.get(ref.kind)
    return _owns(owner, ref) or (label is not None and pod.labels.get(label) == ref.name)


def _owns(owner: OwnerReference, ref: Ref) -> bool:
    if owner.kind == ref.kind and owner.name == ref.name:
        return _group(owner.apiVersion) == _group(ref.apiVersion)
    ending = _CHILD_NAMES.get((ref.kind, owner.kind))
    if ending is None or not owner.name.startswith(ref.name):
        return False
    return re.fullmatch(ending, owner.name[len(ref.name) :]) is not None


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
