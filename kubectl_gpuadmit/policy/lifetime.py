"""When a workload says that it ends, and since when it exists; judges neither."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.policy.model import Policy

JOB_KINDS = (
    "Pod",
    "Job",
    "CronJob",
    "JobSet",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "TrainJob",
    "RayJob",
    "Workflow",
)
"""Kinds of work that ends by itself, and bare pods, which people forget."""


class Ttl(NamedTuple):
    key: str
    text: str
    field: str
    """RFC 6901 pointer into the manifest, '' where the annotation is not in it."""


def ttl(workload: Workload, pod: Pod, policy: Policy) -> Ttl | None:
    """The first of the policy's annotations on the workload itself, else on its pods."""
    own = _annotations(workload.manifest)
    for key in policy.ttl_annotations:
        if isinstance(own.get(key), str):
            return Ttl(key, own[key].strip(), f"/metadata/annotations/{token(key)}")
    for key in policy.ttl_annotations:
        if key in pod.annotations:
            return Ttl(key, pod.annotations[key].strip(), "")
    return None


def created(workload: Workload, cluster: Cluster) -> dt.datetime | None:
    """The object's creation, from its manifest or from the object of its name in the cluster."""
    ref = workload.ref
    stamp = (workload.manifest.get("metadata") or {}).get("creationTimestamp")
    live = cluster.get(ref.kind, ref.namespace, ref.name)
    for text in (live.metadata.creationTimestamp if live else None, stamp):
        if text:
            try:
                return times.parse_instant(str(text))
            except times.TimeError:
                continue
    return None


def _annotations(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    listed = metadata.get("annotations") if isinstance(metadata, dict) else None
    return listed if isinstance(listed, dict) else {}
