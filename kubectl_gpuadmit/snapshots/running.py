"""The workloads that run in a cluster, put together from their pods; judges none of them.

Owners are followed through the objects of the source, and where it has none of them, from a
ReplicaSet to the Deployment whose name its own begins with. Pods of DaemonSets and static pods are
left out: they are not placed by anybody's wish.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Container, ObjectMeta, OwnerReference, Pod
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.snapshots.trim import trimmed
from kubectl_gpuadmit.verdict import Ref

_NOT_PLACED = ("DaemonSet", "Node")
_HASH = "pod-template-hash"
_DRAWN = "kube-api-access-"
"""What the names of volumes begin with that the API server adds, another for each pod."""
_FARTHEST = 8
"""Steps from a pod to its topmost owner: more is a circle."""


class Running(Struct, frozen=True):
    """One workload as its pods show it, and these pods."""

    workload: Workload
    pods: tuple[Pod, ...]


def running(cluster: Cluster, policy: Policy) -> dict[Ref, Running]:
    """Workloads of the cluster that use GPUs and have a pod that has not ended, by reference."""
    owned: dict[Ref, list[Pod]] = {}
    for pod in cluster.pods():
        if not is_terminal(pod) and not pod.metadata.deletionTimestamp:
            ref = _topmost(pod, cluster)
            if ref.kind not in _NOT_PLACED:
                owned.setdefault(ref, []).append(pod)
    return {
        ref: Running(_workload(ref, pods, cluster), tuple(pods))
        for ref, pods in sorted(owned.items())
        if any(uses_gpus(pod, policy.gpu_patterns) for pod in pods)
    }


def _topmost(pod: Pod, cluster: Cluster) -> Ref:
    ref = Ref(pod.apiVersion or "v1", "Pod", pod.namespace, pod.name)
    meta: ObjectMeta | None = pod.metadata
    for _ in range(_FARTHEST):
        owner = _controller(meta)
        if owner is None:
            break
        ref = Ref(owner.apiVersion, owner.kind, pod.namespace, owner.name)
        held = cluster.get(owner.kind, pod.namespace, owner.name)
        meta = held.metadata if held is not None else None
    digest = pod.labels.get(_HASH, "")
    if ref.kind == "ReplicaSet" and digest and ref.name.endswith(f"-{digest}"):
        return Ref(ref.apiVersion, "Deployment", ref.namespace, ref.name.removesuffix(f"-{digest}"))
    return ref


def _controller(meta: ObjectMeta | None) -> OwnerReference | None:
    owners = (meta.ownerReferences if meta else None) or ()
    return next((owner for owner in owners if owner.controller), None)


def _workload(ref: Ref, pods: list[Pod], cluster: Cluster) -> Workload:
    held = cluster.get(ref.kind, ref.namespace, ref.name)
    manifest = {
        "apiVersion": ref.apiVersion,
        "kind": ref.kind,
        "metadata": trimmed(held).get("metadata", {}) if held is not None else {"name": ref.name},
    }
    return Workload(
        ref=ref, location="running", manifest=manifest, groups=tuple(_groups(ref, pods))
    )


def _groups(ref: Ref, pods: list[Pod]) -> Iterator[PodGroup]:
    """Pods that differ by name alone are one group."""
    equal: dict[bytes, list[Pod]] = {}
    for pod in sorted(pods, key=lambda p: p.name):
        equal.setdefault(msgspec.json.encode(_asked(pod), order="sorted"), []).append(pod)
    for alike in equal.values():
        asked = _asked(alike[0])
        template = trimmed(asked)
        first = alike[0].name
        yield PodGroup(
            role="" if len(equal) == 1 else first,
            count=len(alike),
            template={"metadata": template.get("metadata", {}), "spec": template.get("spec", {})},
            pod=structs.replace(
                asked,
                metadata=structs.replace(
                    asked.metadata,
                    name=first if len(alike) == 1 else None,
                    generateName=f"{ref.name}-" if len(alike) > 1 else None,
                ),
            ),
            pointer="-",
        )


def _asked(pod: Pod) -> Pod:
    """The pod as its controller would create it again: without what the API server, the scheduler
    and the kubelet have added, without its name."""
    meta, spec = pod.metadata, pod.spec
    return Pod(
        apiVersion=pod.apiVersion or "v1",
        metadata=ObjectMeta(
            namespace=meta.namespace, labels=meta.labels, annotations=meta.annotations
        ),
        spec=structs.replace(
            spec,
            nodeName=None,
            priority=None,
            preemptionPolicy=None,
            overhead=None if spec.runtimeClassName else spec.overhead,
            schedulingGates=None,
            volumes=tuple(v for v in spec.volumes or () if not v.name.startswith(_DRAWN)) or None,
            containers=_bare(spec.containers),
            initContainers=_bare(spec.initContainers),
        ),
    )


def _bare(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        structs.replace(
            container,
            volumeMounts=tuple(
                m for m in container.volumeMounts or () if not m.name.startswith(_DRAWN)
            )
            or None,
        )
        for container in containers
    )
