"""Objects that controllers create between the workload and its pods: policies are asked about these
too. The ReplicaSet of a Deployment and the Job of a CronJob are made here as their controllers make
them; what others make is named, not made.

Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go (getNewReplicaSet),
util/deployment_util.go (annotations), pkg/controller/cronjob/utils.go (getJobFromTemplate2).
"""

from __future__ import annotations

import copy
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.admission.native.who import Makers
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.kube.workloads.model import DRAWN
from kubectl_gpuadmit.verdict import Ref

Json = dict[str, Any]

_CLAIMS = "resourceclaims.resource.k8s.io"
_HASH = "pod-template-hash"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
)


class Between(Struct, frozen=True):
    """One such object."""

    workload: Workload
    """The object as a workload of its own, without pods."""
    makers: Makers
    pointer: str
    """Where its spec's parent lies in the manifest of the workload; '' where a change of it does
    not become one of the workload."""


def made(workload: Workload) -> Between | None:
    """What stands between the workload and its pods, where it is known in every field."""
    ref, spec = workload.ref, workload.manifest.get("spec")
    if not isinstance(spec, dict):
        return None
    match ref.apiVersion, ref.kind:
        case "apps/v1", "Deployment":
            manifest = _replica_set(workload, copy.deepcopy(spec))
            makers = Makers.of_controller("deployment-controller", "ReplicaSet")
            return Between(_as_workload(manifest, workload, "replicasets.apps"), makers, "")
        case "batch/v1", "CronJob":
            manifest = _job(workload, copy.deepcopy(spec.get("jobTemplate") or {}))
            makers = Makers.of_controller("cronjob-controller", "Job")
            made = _as_workload(manifest, workload, "jobs.batch")
            return Between(made, makers, "/spec/jobTemplate")
    return None


def others(workload: Workload) -> tuple[str, ...]:
    """Resources (``statefulsets.apps``) of which the controllers make objects not known here."""
    known = made(workload)
    mine = {name for name, _ in known.workload.creates} if known else set()
    named = [name for name, _ in workload.creates[1:] if name not in mine]
    if any(
        entry.resourceClaimTemplateName
        for group in workload.groups
        for entry in group.pod.spec.resourceClaims or ()
    ):
        named.append(_CLAIMS)
    return tuple(dict.fromkeys(named))


def _as_workload(manifest: Json, of: Workload, resource: str) -> Workload:
    name = str(manifest["metadata"]["name"])
    ref = Ref(manifest["apiVersion"], manifest["kind"], of.ref.namespace, name)
    return Workload(ref, of.location, manifest, (), creates=((resource, 1),))


def _table(holder: Any, *path: str) -> Json:
    for key in path:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return dict(holder) if isinstance(holder, dict) else {}


def _owner(of: Workload) -> list[Json]:
    ref = of.ref
    return [
        {
            "apiVersion": ref.apiVersion,
            "kind": ref.kind,
            "name": ref.name,
            "uid": Unknown("the uid of the owner"),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def _replica_set(of: Workload, spec: Json) -> Json:
    drawn = Unknown("the hash of the pod template")
    template = _table(spec, "template")
    head = _table(template, "metadata")
    labels = {**_table(head, "labels"), _HASH: drawn}
    selector = _table(spec, "selector")
    selector["matchLabels"] = {**_table(selector, "matchLabels"), _HASH: drawn}
    replicas = spec.get("replicas")
    replicas = 1 if replicas is None else replicas
    own = _table(of.manifest, "metadata", "annotations")
    annotations = {key: one for key, one in own.items() if key not in _NOT_COPIED}
    annotations["deployment.kubernetes.io/revision"] = Unknown("the revision of the Deployment")
    annotations["deployment.kubernetes.io/desired-replicas"] = str(replicas)
    annotations["deployment.kubernetes.io/max-replicas"] = Unknown("the most replicas of a rollout")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{of.ref.name}-{DRAWN}",
            "namespace": of.ref.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": _owner(of),
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector,
            "template": {**template, "metadata": {**head, "labels": dict(labels)}},
        },
    }


def _job(of: Workload, template: Json) -> Json:
    head = _table(template, "metadata")
    annotations = _table(head, "annotations")
    moment = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    annotations[moment] = Unknown("the time of the run")
    made: Json = {
        "name": f"{of.ref.name}-{DRAWN}",
        "namespace": of.ref.namespace,
        "annotations": annotations,
        "ownerReferences": _owner(of),
    }
    if labels := _table(head, "labels"):
        made["labels"] = labels
    spec = _table(template, "spec")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": made, "spec": spec}
