"""Builders of the objects that admission looks at, from the fewest words."""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.kinds import KNOWN_KINDS
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, ObjectMeta, Pod

EXPORTED = (
    "LimitRange",
    "Namespace",
    "Pod",
    "PriorityClass",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
)
"""What a complete snapshot knows, also where there is none of it."""


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """Keywords limits, requests and claims go under resources."""
    own = {key: fields.pop(key) for key in ("limits", "requests", "claims") if key in fields}
    return {"name": name, "image": "img", **({"resources": own} if own else {}), **fields}


def pod(*containers: dict[str, Any], name: str = "p", **spec: Any) -> Pod:
    """Keywords labels, generateName and status are not spec."""
    metadata: dict[str, Any] = {"namespace": "team-a"}
    if "generateName" in spec:
        metadata["generateName"] = spec.pop("generateName")
    else:
        metadata["name"] = name
    if "labels" in spec:
        metadata["labels"] = spec.pop("labels")
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "status": spec.pop("status", {}),
        "spec": {"containers": list(containers) or [container()], **spec},
    }
    return msgspec.convert(document, NewPod)


def gpus(number: int, **spec: Any) -> Pod:
    """As stored: requests and limits are the same."""
    amount = {"nvidia.com/gpu": str(number)}
    return pod(container(limits=amount, requests=amount), **spec)


def obj(kind: str, name: str, namespace: str = "", **fields: Any) -> KubeObject:
    metadata: dict[str, Any] = {"name": name, **fields.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    version = fields.pop("apiVersion", "v1")
    document = {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
    if kind in KNOWN_KINDS:
        return msgspec.convert(document, KNOWN_KINDS[kind])
    meta = msgspec.convert(metadata, ObjectMeta)
    return Generic(apiVersion=version, metadata=meta, realKind=kind, document=document)


def quota(name: str = "gpus", used: dict[str, str] | None = None, **hard: Any) -> KubeObject:
    """A quota of team-a with a status; ``spec_`` keywords (scopes, scopeSelector) go under spec."""
    spec = {key: hard.pop(key) for key in ("scopes", "scopeSelector") if key in hard}
    limits = hard.pop("hard")
    assert not hard
    status = {"hard": limits, "used": dict.fromkeys(limits, "0") | (used or {})}
    return obj("ResourceQuota", name, "team-a", spec={"hard": limits, **spec}, status=status)


def limit_range(*items: dict[str, Any], name: str = "limits") -> KubeObject:
    return obj("LimitRange", name, "team-a", spec={"limits": list(items)})


def cluster(*objects: KubeObject, known: tuple[str, ...] = EXPORTED) -> Cluster:
    home = obj("Namespace", "team-a", status={"phase": "Active"})
    return Cluster.of([home, *objects], known=known)
