"""The object of a workload (Deployment, Job …) as the API server shows it to a policy.

Built-in kinds are brought into the form of their types with the defaults filled in. Of any other
kind only what is written is known: its definition may fill in more.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go, conversion.go,
pkg/apis/batch/v1/defaults.go, pkg/registry/{apps,batch}/*/strategy.go (what is stored).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kubectl_gpuadmit.admission.native import pod_defaults
from kubectl_gpuadmit.admission.native.request import Partial, Request
from kubectl_gpuadmit.admission.native.typed import typed, unreadable
from kubectl_gpuadmit.cel.values import Unknown
from kubectl_gpuadmit.kube.workloads import Workload

Json = dict[str, Any]

_DRAWN = (
    *("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("selfLink", "resourceVersion", "generation", "managedFields"),
)
"""Fields of metadata that the API server sets, whatever the user wrote."""

_GENERATION = "deprecated.daemonset.template.generation"
"""A DaemonSet's generation of old, which apps/v1 shows as an annotation."""


# -- defaults --------------------------------------------------------------------------------------


def _set(holder: Json, **values: Any) -> None:
    for key, value in values.items():
        if holder.get(key) in (None, ""):
            holder[key] = value


def _rolling(holder: Json, **values: Any) -> None:
    """A strategy that rolls unless it says otherwise."""
    _set(holder, type="RollingUpdate")
    if holder["type"] == "RollingUpdate":
        _set(holder, rollingUpdate={})
        _set(holder["rollingUpdate"], **values)


def _deployment(raw: Json) -> None:
    spec = raw["spec"]
    _set(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    _rolling(spec["strategy"], maxUnavailable="25%", maxSurge="25%")


def _replica_set(raw: Json) -> None:
    _set(raw["spec"], replicas=1)


def _stateful_set(raw: Json) -> None:
    spec = raw["spec"]
    _set(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    update = spec["updateStrategy"]
    if not update.get("type"):
        update["type"] = "RollingUpdate"
        _set(update, rollingUpdate={})
    if update["type"] == "RollingUpdate" and update.get("rollingUpdate") is not None:
        _set(update["rollingUpdate"], partition=0)
    _set(spec, persistentVolumeClaimRetentionPolicy={})
    _set(spec["persistentVolumeClaimRetentionPolicy"], whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        _set(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        _set(claim.setdefault("status", {}), phase="Pending")
        _set(claim.setdefault("spec", {}), volumeMode="Filesystem")


def _daemon_set(raw: Json) -> None:
    spec = raw["spec"]
    _set(spec, revisionHistoryLimit=10)
    _rolling(spec["updateStrategy"], maxUnavailable=1, maxSurge=0)
    head = raw.setdefault("metadata", {})
    head["annotations"] = {_GENERATION: "0", **(head.get("annotations") or {})}


def _job(raw: Json) -> None:
    spec = raw["spec"]
    _job_spec(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    head = raw.setdefault("metadata", {})
    if labels and not head.get("labels"):
        head["labels"] = labels  # the very same map, as in Kubernetes: see _with_selector


def _job_spec(spec: Json) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    each = spec.get("backoffLimitPerIndex") is not None
    strict = spec.get("podFailurePolicy") is not None
    _set(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if each else 6,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="Failed" if strict else "TerminatingOrFailed",
        manualSelector=False,
    )
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            _set(pattern, status="True")


def _cron_job(raw: Json) -> None:
    spec = raw["spec"]
    _set(spec, concurrencyPolicy="Allow", suspend=False)
    _set(spec, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


_FILL: dict[str, Callable[[Json], None]] = {
    "apps.Deployment": _deployment,
    "apps.ReplicaSet": _replica_set,
    "apps.StatefulSet": _stateful_set,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _job,
    "batch.CronJob": _cron_job,
}


def fill(raw: Json, name: str, *, version: int) -> None:
    """Fills in the defaults of a typed object of a built-in kind, in place; of others nothing.

    ``version`` is the minor version of Kubernetes.
    """
    if name not in _FILL:
        return
    _FILL[name](raw)
    if name == "apps.StatefulSet" and version >= 37:  # MaxUnavailableStatefulSet
        update = raw["spec"]["updateStrategy"]
        if update["type"] == "RollingUpdate" and update.get("rollingUpdate") is not None:
            _set(update["rollingUpdate"], maxUnavailable=1)
    spec = raw["spec"]["jobTemplate"]["spec"] if name == "batch.CronJob" else raw["spec"]
    pod_defaults.fill_template(spec["template"])


# -- the request -----------------------------------------------------------------------------------


def request(workload: Workload, *, version: int) -> Request:
    """The creation of the workload's own object, as the mutating policies meet it."""
    ref = workload.ref
    group, _, served = ref.apiVersion.rpartition("/")
    made = dict(workload.creates[:1])
    qualified = next(iter(made), "")
    resource = qualified.partition(".")[0] or f"{ref.kind.lower()}s"
    raw = _object(workload, f"{group or 'v1'}.{ref.kind}", version)
    return Request(
        group=group,
        version=served,
        resource=resource,
        kind=ref.kind,
        namespace=ref.namespace or "default",
        name=str(raw["metadata"].get("name", "")),
        labels=labels(raw),
        object=raw,
    )


def labels(raw: Json) -> dict[str, str]:
    """The object's own."""
    found = (raw.get("metadata") or {}).get("labels")
    return dict(found) if isinstance(found, dict) else {}


def _object(workload: Workload, name: str, version: int) -> Json:
    ref = workload.ref
    manifest = copy.deepcopy(workload.manifest)
    own = name in _FILL and ref.apiVersion.rpartition("/")[2] == "v1"
    if not own or unreadable(manifest, name)[1]:
        what = f"{ref.kind} {ref.name}"
        known = {key: value for key, value in manifest.items() if key != "status"}
        spec = known.get("spec")
        if isinstance(spec, dict):
            known["spec"] = Partial.of(f"{what} spec", spec)
        known["metadata"] = _metadata(known.get("metadata"), workload)
        return Partial.of(what, known)
    manifest.pop("status", None)
    raw: Json = typed(manifest, name)
    raw["apiVersion"], raw["kind"] = ref.apiVersion, ref.kind
    raw["metadata"] = _metadata(raw.get("metadata"), workload)
    fill(raw, name, version=version)
    return raw


def _metadata(given: Any, workload: Workload) -> Json:
    head = dict(given) if isinstance(given, dict) else {}
    for field in _DRAWN:
        head.pop(field, None)
    head["namespace"] = workload.ref.namespace or "default"
    head["managedFields"] = Unknown("metadata.managedFields")
    return head


def stored(raw: Json, name: str) -> Json:
    """The same object prepared for storing: as validating plugins see it."""
    after = copy.copy(raw)
    head = dict(raw["metadata"])
    if not head.get("name") and head.get("generateName"):
        head["name"] = f"{head['generateName'][:58]}xxxxx"
    for field in ("uid", "creationTimestamp"):
        head[field] = Unknown(f"metadata.{field}")
    head["generation"] = 1
    after["metadata"] = head
    if isinstance(raw, Partial):
        return after
    if name == "apps.DaemonSet":
        kept = {**(head.get("annotations") or {})}
        head["annotations"] = {**kept, _GENERATION: "1"}
    if name == "batch.Job" and not raw["spec"]["manualSelector"]:
        after["spec"] = _with_selector(raw["spec"], str(head.get("name", "")))
        template = raw["spec"]["template"].get("metadata") or {}
        if head.get("labels") is not None and head["labels"] is template.get("labels"):
            head["labels"] = after["spec"]["template"]["metadata"]["labels"]
    return after


def _with_selector(spec: Json, name: str) -> Json:
    """A Job's spec with the selector and the labels by which it finds its pods.

    A Job that has its labels from its template shares the map with it, and gets these labels too,
    unless a mutating policy has written it anew meanwhile.
    """
    uid = Unknown("metadata.uid")
    template = dict(spec["template"])
    head = dict(template.get("metadata") or {})
    drawn: Json = {"job-name": name, "batch.kubernetes.io/job-name": name}
    drawn |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    head["labels"] = {**drawn, **(head.get("labels") or {})}
    template["metadata"] = head
    selector = dict(spec.get("selector") or {})
    chosen = {"batch.kubernetes.io/controller-uid": uid, **(selector.get("matchLabels") or {})}
    return {**spec, "template": template, "selector": {**selector, "matchLabels": chosen}}
