"""Small clusters in few words, for the placement tests."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.kinds import KNOWN_KINDS
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, ObjectMeta, Pod
from kubectl_gpuadmit.placement.message import first_refusal
from kubectl_gpuadmit.placement.place import node_verdicts
from kubectl_gpuadmit.verdict import NodeVerdict

NOW = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KNOWN = (*KNOWN_KINDS, "DeviceClass", "CSIDriver")

Json = dict[str, Any]


def decoded(document: Json) -> KubeObject:
    kind = KNOWN_KINDS.get(document["kind"])
    if kind is None:
        return Generic(
            metadata=msgspec.convert(document.get("metadata", {}), ObjectMeta),
            realKind=document["kind"],
            document=document,
        )
    return msgspec.convert(document, kind)


def node(
    name: str,
    gpus: int | None = 8,
    *,
    labels: dict[str, str] | None = None,
    taints: list[Json] | None = None,
    cordoned: bool = False,
    **allocatable: str,
) -> KubeObject:
    """A node with its hostname label, 64 cpu, 256 Gi and 110 pods unless said otherwise."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", **allocatable}
    if gpus is not None:
        amounts[GPU] = str(gpus)
    return decoded(
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
            "spec": {"taints": taints or [], "unschedulable": cordoned},
            "status": {"allocatable": amounts},
        }
    )


def pod(
    name: str = "asking",
    gpus: int = 0,
    *,
    on: str = "",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    meta: Json | None = None,
    status: Json | None = None,
    asks: dict[str, str] | None = None,
    ports: list[Json] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with one container; ``on`` is the node that it runs on."""
    requests = dict(asks or {})
    if gpus:
        requests[GPU] = str(gpus)
    made = decoded(
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {}}
            | (meta or {}),
            "spec": {
                "containers": [
                    {"name": "c", "resources": {"requests": requests}, "ports": ports or []}
                ],
                **({"nodeName": on} if on else {}),
                **spec,
            },
            "status": {"phase": "Running", **(status or {})} if on else (status or {}),
        }
    )
    assert isinstance(made, Pod)
    return made


def cluster(*objects: KubeObject, known: tuple[str, ...] = KNOWN) -> Cluster:
    return Cluster.of(objects, known)


Told = tuple[str, str, bool, str]
"""(filter, reason, permanent, subject)."""


def told(given: Cluster, asking: Pod) -> dict[str, list[Told]]:
    """Every node's shortfalls without their numbers; [] for a node that fits."""
    return {v.node: _told(v) for v in node_verdicts(given, asking)}


def _told(verdict: NodeVerdict) -> list[Told]:
    assert verdict.fits == (not verdict.shortfalls)
    return [(s.filter, s.reason, s.permanent, s.subject) for s in verdict.shortfalls]


def refused(given: Cluster, asking: Pod) -> dict[str, list[str]]:
    """The scheduler's reasons per node that refuses: those of the first filter."""
    return {
        v.node: list(first_refusal(v.shortfalls)[1])
        for v in node_verdicts(given, asking)
        if not v.fits
    }
