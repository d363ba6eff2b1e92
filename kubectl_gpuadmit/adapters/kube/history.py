"""Fetches what belongs to a workload: objects in between, pods, their events; reads none."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.adapters.kube import listing
from kubectl_gpuadmit.adapters.kube.connection import Connection
from kubectl_gpuadmit.adapters.kube.faults import HttpStatus
from kubectl_gpuadmit.adapters.kube.resources import BUILT_IN, Resource
from kubectl_gpuadmit.happened.history import History
from kubectl_gpuadmit.verdict import Unknown

_BETWEEN = {
    "Pod": (),
    "ReplicaSet": (),
    "ReplicationController": (),
    "StatefulSet": (),
    "DaemonSet": (),
    "Job": (),
    "Deployment": ("ReplicaSet",),
    "CronJob": ("Job",),
    "JobSet": ("Job",),
    "LeaderWorkerSet": ("StatefulSet",),
}
"""Kind -> kinds of the objects between it and its pods; of a kind that is not here, any of them."""

_ANY = ("Deployment", "ReplicaSet", "StatefulSet", "Job")

_NAMING_LABELS = {
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "PyTorchJob": "training.kubeflow.org/job-name",
    "RayCluster": "ray.io/cluster",
}
"""Labels that controllers put on all pods of an object, also those of a controller in between."""


def history_of(connection: Connection, obj: dict[str, Any]) -> History:
    """What belongs to a stored object. What is refused (403) becomes an unknown."""
    meta = obj["metadata"]
    kind, namespace, name = str(obj["kind"]), str(meta.get("namespace", "")), str(meta["name"])
    family = {str(meta.get("uid", ""))}
    unknowns: list[Unknown] = []

    def read(of: str, *, labels: str = "", fields: str = "", keep: Any) -> list[dict[str, Any]]:
        resource = BUILT_IN[of]
        try:
            return listing.plain(
                connection, resource, namespace=namespace, labels=labels, fields=fields, keep=keep
            )
        except HttpStatus as problem:
            if problem.status != 403:
                raise connection.fail(problem) from None
            unknowns.append(_unknown(resource, namespace, problem))
            return []

    children: list[dict[str, Any]] = []
    for of in _BETWEEN.get(kind, _ANY):
        above = frozenset(family)
        found = read(of, keep=lambda item, above=above: bool(_owners(item) & above))
        family |= {str(one["metadata"].get("uid", "")) for one in found}
        children += found

    label = _NAMING_LABELS.get(kind)
    if kind == "Pod":
        pods = [obj]
    else:
        pods = read(
            "Pod",
            labels=f"{label}={name}" if label else _selector(obj),
            keep=lambda item: label is not None or bool(_owners(item) & family),
        )
    family |= {str(one["metadata"].get("uid", "")) for one in pods}
    only = f"involvedObject.uid={next(iter(family))}" if len(family) == 1 else ""
    events = read(
        "Event",
        fields=only,
        keep=lambda item: (item.get("involvedObject") or {}).get("uid") in family,
    )
    return History(obj, tuple(children), tuple(pods), tuple(events), tuple(unknowns))


def _owners(item: dict[str, Any]) -> set[str]:
    return {str(one.get("uid")) for one in item["metadata"].get("ownerReferences") or ()}


def _selector(obj: dict[str, Any]) -> str:
    """The object's own pod selector, so that fewer pods are sent; '' where it has none."""
    spec = obj.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    if not isinstance(selector, dict):
        return ""
    labels = selector.get("matchLabels", selector if obj["kind"] == "ReplicationController" else {})
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def _unknown(resource: Resource, namespace: str, problem: HttpStatus) -> Unknown:
    who = f'user "{problem.user}"' if problem.user else "you"
    return Unknown(
        rule="live/forbidden",
        missing=f"what happened to it: {who} may not list {resource.plural} in {namespace}",
        level="audit",
        hint=f"a Role in {namespace} would need: {resource.rule('list')}",
    )
