"""The object of a workload (Deployment, Job …) as the API server shows it to a policy.

Built-in kinds are brought into the form of their types with the defaults filled in. Of any other
kind only what is written is known: its definition may fill in more.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

import copy
from typing import Any

from kubectl_gpuadmit.admission.native import pod_defaults
from kubectl_gpuadmit.admission.native.request import Partial, Request
from kubectl_gpuadmit.admission.native.typed import table, typed
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.kube.workloads import Workload

Json = dict[str, Any]

_ROLLING = {"type": "RollingUpdate"}
_DEFAULTS: dict[str, Json] = {
    "apps.Deployment": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {**_ROLLING, "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    },
    "apps.ReplicaSet": {"replicas": 1},
    "apps.StatefulSet": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {**_ROLLING, "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "apps.DaemonSet": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {**_ROLLING, "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    },
    "batch.Job": {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "manualSelector": False,
    },
    "batch.CronJob": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
}


def request(workload: Workload) -> Request:
    """The creation of the workload's own object."""
    ref = workload.ref
    group, _, version = ref.apiVersion.rpartition("/")
    made = dict(workload.creates[:1])
    qualified = next(iter(made), "")
    resource = qualified.partition(".")[0] or f"{ref.kind.lower()}s"
    metadata = workload.manifest.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return Request(
        group=group,
        version=version,
        resource=resource,
        kind=ref.kind,
        namespace=ref.namespace or "default",
        name=ref.name,
        labels=dict(labels) if isinstance(labels, dict) else {},
        object=_object(workload, f"{group.partition('.')[0]}.{ref.kind}"),
    )


def _object(workload: Workload, name: str) -> Json:
    ref = workload.ref
    manifest = copy.deepcopy(workload.manifest)
    if name not in table().types or name not in _DEFAULTS:
        what = f"{ref.kind} {ref.name}"
        known = {key: value for key, value in manifest.items() if key != "status"}
        spec = known.get("spec")
        if isinstance(spec, dict):
            known["spec"] = Partial.of(f"{what} spec", spec)
        known["metadata"] = _metadata(known.get("metadata"), workload)
        return Partial.of(what, known)
    raw: Json = typed(manifest, name)
    raw["apiVersion"], raw["kind"] = ref.apiVersion, ref.kind
    raw["metadata"] = _metadata(raw.get("metadata"), workload)
    spec = raw["spec"]
    for key, value in _DEFAULTS[name].items():
        if spec.get(key) in (None, {}):
            spec[key] = copy.deepcopy(value)
    inner = spec["jobTemplate"]["spec"] if name == "batch.CronJob" else spec
    pod_defaults.fill_template(inner["template"])
    if name == "batch.Job" and not spec.get("selector"):
        spec["selector"] = Unknown("the selector that the API server draws for a Job")
    return raw


def _metadata(given: Any, workload: Workload) -> Json:
    head = dict(given) if isinstance(given, dict) else {}
    head["namespace"] = workload.ref.namespace or "default"
    for field in ("uid", "creationTimestamp", "managedFields"):
        head[field] = Unknown(f"metadata.{field}")
    head["generation"] = 1
    return head
