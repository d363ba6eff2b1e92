"""Kubernetes' own workload kinds: Pod, apps/v1, batch/v1 and ReplicationController.

Sources: k8s.io/api v0.37.2 apps/v1, batch/v1; kubernetes v1.37.2
pkg/apis/{apps,batch}/v1/defaults.go and the controllers under pkg/controller (names, labels and
tolerations that they add).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.workloads.model import DRAWN
from kubectl_gpuadmit.kube.workloads.reading import Reading

REASONS: dict[str, str] = {
    "spec/removed-api": (
        "The API version was removed from Kubernetes, so the API server refuses the object; use "
        "the "
        "version that the detail names"
    ),
    "spec/overlapping-runs": (
        "The CronJob allows a run to start while the one before still runs, so more pods may run "
        "than "
        "one run has; set concurrencyPolicy to Forbid or Replace where one run must be the most"
    ),
}

_REMOVED: dict[tuple[str, str], tuple[str, str]] = {
    ("extensions/v1beta1", "Deployment"): ("apps/v1", "1.16"),
    ("extensions/v1beta1", "DaemonSet"): ("apps/v1", "1.16"),
    ("extensions/v1beta1", "ReplicaSet"): ("apps/v1", "1.16"),
    ("apps/v1beta1", "Deployment"): ("apps/v1", "1.16"),
    ("apps/v1beta1", "StatefulSet"): ("apps/v1", "1.16"),
    ("apps/v1beta2", "Deployment"): ("apps/v1", "1.16"),
    ("apps/v1beta2", "StatefulSet"): ("apps/v1", "1.16"),
    ("apps/v1beta2", "DaemonSet"): ("apps/v1", "1.16"),
    ("apps/v1beta2", "ReplicaSet"): ("apps/v1", "1.16"),
    ("batch/v1beta1", "CronJob"): ("batch/v1", "1.25"),
    ("batch/v2alpha1", "CronJob"): ("batch/v1", "1.21"),
}


def check_version(reading: Reading, api_version: str, kind: str) -> None:
    """A finding where this version of a built-in kind is no longer served."""
    instead = _REMOVED.get((api_version, kind))
    if instead:
        reading.note(
            "spec/removed-api",
            f"{api_version} {kind} was removed in Kubernetes {instead[1]}; use {instead[0]}",
            "/apiVersion",
            level="deny",
        )


def pod(reading: Reading) -> None:
    if not isinstance(reading.at("/spec"), dict):
        reading.fail("/spec", "a Pod needs a spec", ref="missing-field")
    reading.group("", 1, "", name=reading.name)


def deployment(reading: Reading) -> None:
    reading.charge("replicasets.apps")
    replicas = reading.count("/spec/replicas", 1)
    reading.group("", replicas, "/spec/template")


def replica_set(reading: Reading) -> None:
    reading.group("", reading.count("/spec/replicas", 1), "/spec/template")


def stateful_set(reading: Reading) -> None:
    """Pods are named by ordinal; each claim template gives every pod a claim of its own."""
    reading.charge("controllerrevisions.apps")
    replicas = reading.count("/spec/replicas", 1)
    claims = []
    for index, _ in enumerate(reading.sequence("/spec/volumeClaimTemplates")):
        at = f"/spec/volumeClaimTemplates/{index}"
        # The claims differ from pod to pod by name only; as a generic ephemeral volume one template
        # says the same of all: a claim of this shape is made for each pod.
        claims.append(
            {
                "name": reading.text(f"{at}/metadata/name"),
                "ephemeral": {"volumeClaimTemplate": {"spec": reading.mapping(f"{at}/spec")}},
            }
        )
    reading.group(
        "",
        replicas,
        "/spec/template",
        names=f"{reading.base}-{{index}}",
        first=reading.count("/spec/ordinals/start", 0),
        volumes=claims,
    )


def daemon_set(reading: Reading) -> None:
    """One pod a node: the tolerations are those of daemon/util/daemonset_util.go."""
    reading.charge("controllerrevisions.apps")
    spec = reading.mapping("/spec/template/spec")
    keys = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    if spec.get("hostNetwork") is True:
        keys.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    reading.group(
        "",
        1,
        "/spec/template",
        tolerations=[{"key": k, "operator": "Exists", "effect": e} for k, e in keys],
        daemonset=True,
    )


def job(reading: Reading) -> None:
    reading.suspended("/spec/suspend")
    job_pods(reading, "", "/spec", name=reading.base)


def cron_job(reading: Reading) -> None:
    """The pods of one run. Runs may overlap unless concurrencyPolicy says otherwise."""
    reading.charge("jobs.batch")
    reading.suspended("/spec/suspend")
    pods = job_pods(reading, "", "/spec/jobTemplate/spec", name=f"{reading.base}-{DRAWN}")
    if reading.text("/spec/concurrencyPolicy") in ("", "Allow"):
        reading.note(
            "spec/overlapping-runs",
            f"runs may overlap (concurrencyPolicy Allow): judged for one run of {pods} "
            f"pod{'' if pods == 1 else 's'}",
            "/spec/concurrencyPolicy",
            level="audit",
        )


def job_pods(
    reading: Reading,
    role: str,
    at: str,
    *,
    name: str,
    copies: int = 1,
    labels: dict[str, str] | None = None,
    completion_mode: str = "NonIndexed",
    defaults: dict[str, Any] | None = None,
    parallelism: int | None = None,
    template: dict[str, Any] | None = None,
) -> int:
    """The pods that ``copies`` Jobs with the spec at ``at`` run at a time; returns their number.

    A Job runs min(parallelism, completions) pods; both default to 1, and completions alone unset
    means a work queue of parallelism pods (batch/v1 defaults.go).
    """
    completions = reading.at(f"{at}/completions")
    if parallelism is None:
        parallelism = reading.count(f"{at}/parallelism", 1)
        if completions is not None:
            parallelism = min(parallelism, reading.count(f"{at}/completions", 1))
    if isinstance(reading.at(f"{at}/scheduling/schedulingPolicy/gang"), dict):
        reading.gang = True  # KEP-5547, scheduling.k8s.io
    certain = DRAWN not in name and copies == 1
    known = {"batch.kubernetes.io/job-name": name, "job-name": name} if certain else {}
    indexed = (reading.text(f"{at}/completionMode") or completion_mode) == "Indexed"
    reading.group(
        role,
        parallelism * copies,
        "-" if template is not None else f"{at}/template",
        template=template,
        labels={**known, **(labels or {})},
        generate=f"{name}-0-" if indexed else f"{name}-",
        defaults=defaults,
    )
    return parallelism * copies
