"""Whether the API server's own answer to a dry run and ours agree; asks neither of them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.happened import by_whom, refused_by_kubernetes
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Unknown, Verdict

REASONS: dict[str, str] = {
    "live/server-agrees": (
        "The API server, asked by a dry run of the pod, answers as the verdict does"
    ),
    "live/server-refuses": (
        "A webhook or an admission policy refuses the pod, as a dry run shows; what it would "
        "say cannot be told from the objects alone; do as its message says, or ask who runs it"
    ),
    "live/server-disagrees": (
        "The API server answers a dry run of the pod otherwise than we do; believe it, and "
        "report a check of its own that we misread"
    ),
}

_CHILD = {
    "Deployment": ("apps/v1", "ReplicaSet"),
    "CronJob": ("batch/v1", "Job"),
    "JobSet": ("batch/v1", "Job"),
    "LeaderWorkerSet": ("apps/v1", "StatefulSet"),
}
_ANSWERED = ("admission/webhook", "admission/policy", "admission/pod-security")
"""Unknowns of admission that the API server's answer settles."""

_NO_UID = "00000000-0000-0000-0000-000000000000"


class ServerAnswer(Struct, frozen=True):
    """What the API server said to one pod."""

    role: str
    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    not_asked: str = ""
    """The right that is missing to ask at all."""


def expanded_pod(workload: Workload, group: PodGroup, *, uid: str = "") -> dict[str, Any]:
    """The pod of a group as its controller would send it: names, labels and owner are the
    controller's. ``uid`` is the workload's own, a made-up one where it is not stored."""
    metadata = {
        key: value
        for key, value in (group.template.get("metadata") or {}).items()
        if key in ("labels", "annotations", "finalizers")
    }
    metadata["namespace"] = workload.ref.namespace
    own = group.pod.metadata
    if workload.ref.kind == "Pod" and own.name:
        # The pod's own name may be taken by the pod itself, which a dry run would stumble over.
        metadata["generateName"] = f"{own.name}-"[:58]
    else:
        metadata["generateName"] = own.generateName or f"{own.name or workload.ref.name}-"
    if workload.ref.kind != "Pod":
        child = _CHILD.get(workload.ref.kind)
        api_version, kind = child or (workload.ref.apiVersion, workload.ref.kind)
        name = workload.ref.name + ("-xxxxx" if child else "")
        metadata["ownerReferences"] = [
            {
                "apiVersion": api_version,
                "kind": kind,
                "name": name,
                "uid": uid if uid and not child else _NO_UID,
                "controller": True,
            }
        ]
    spec = dict(group.template.get("spec") or {})
    spec.pop("nodeName", None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def compared(verdict: Verdict, ours: Verdict, answer: ServerAnswer) -> Verdict:
    """``verdict`` with the server's answer beside it. ``ours`` is our verdict on that one pod.

    Where the server refuses what we would admit, its word counts: the verdict becomes denied.
    """
    if answer.not_asked:
        unknown = Unknown(
            rule="live/server",
            missing=f"what the API server would say to a pod: {answer.message}",
            hint=answer.not_asked,
        )
        return structs.replace(verdict, unknowns=(*verdict.unknowns, unknown))
    we_refuse = refused_by_kubernetes(ours)
    agrees = we_refuse != answer.allowed
    by = "" if answer.allowed else by_whom(answer.message)
    pod = f"one more {answer.role} pod" if answer.role else "one more pod"
    we = "refused: " + ", ".join(ours.blockers) if we_refuse else "allowed"
    theirs = "allowed" if answer.allowed else "refused" if agrees else answer.message
    level: Level
    if agrees:
        reason, level = "live/server-agrees", "audit"
        both = f"refuse {pod}: {answer.message}" if we_refuse else f"admit {pod}"
        detail = f"the API server and we both {both}"
    elif answer.allowed:
        reason, level = "live/server-disagrees", "warn"
        detail = f"the API server admits {pod}, which we refuse by {', '.join(ours.blockers)}"
    else:
        reason, level = "live/server-refuses" if by else "live/server-disagrees", "deny"
        detail = f"the API server refuses {pod}: {answer.message}"
    finding = Finding(
        reason=reason,
        detail=detail,
        evidence=(
            *([Evidence(by, "refused by", by, None, "the API server's message")] if by else []),
            Evidence("the API server", "the API server says", theirs, None, "dryRun=All"),
            Evidence("this verdict", "we say", we, None, "kubectl gpu-admit"),
            *(
                Evidence("the API server", "it warns", text, None, "dryRun=All")
                for text in answer.warnings
            ),
        ),
        rule="live",
        level=level,
    )
    blockers = (reason, *verdict.blockers) if level == "deny" else verdict.blockers
    return structs.replace(
        verdict,
        findings=(*verdict.findings, finding),
        unknowns=tuple(u for u in verdict.unknowns if u.rule not in _ANSWERED),
        admission="denied" if level == "deny" else verdict.admission,
        blockers=tuple(dict.fromkeys(blockers)),
    )
