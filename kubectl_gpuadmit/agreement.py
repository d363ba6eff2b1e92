"""Whether the API server's own answer to a dry run and ours agree; asks neither of them."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.happened import refused_by_kubernetes
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown, Verdict

REASONS: dict[str, str] = {
    "live/server-agrees": (
        "The API server, asked by a dry run of the pod, answers as the verdict does"
    ),
    "live/server-disagrees": (
        "The API server answers a dry run of the pod otherwise than we do; believe it, and report a "
        "check of its own that we misread"
    ),
}

_CHILD = {
    "Deployment": ("apps/v1", "ReplicaSet"),
    "CronJob": ("batch/v1", "Job"),
    "JobSet": ("batch/v1", "Job"),
    "LeaderWorkerSet": ("apps/v1", "StatefulSet"),
}
_NO_UID = "00000000-0000-0000-0000-000000000000"
_WEBHOOK = re.compile(
    r'(?:admission webhook|calling webhook|webhook) "([^"]+)"|'
    r"(?:ValidatingAdmissionPolicy|policy) '([^']+)'"
)


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
    said = answer.message if not answer.allowed else "allowed"
    short = "refused" if agrees and we_refuse else said
    by = _by_whom(answer.message)
    role = f" {answer.role}" if answer.role else ""
    evidence = [
        Evidence("the API server", f"one more{role} pod", short, None, "dryRun=All"),
        Evidence(
            "this verdict",
            f"one more{role} pod",
            "refused: " + ", ".join(ours.blockers) if we_refuse else "allowed",
            None,
            "kubectl gpu-admit",
        ),
        *(Evidence("the API server", "warns", text, None, "dryRun=All") for text in answer.warnings),
    ]
    if by:
        evidence.append(Evidence(by, "decided", "refused", None, "the API server's message"))
    if agrees:
        both = "refuse" if we_refuse else "admit"
        detail = f"the API server and we both {both} one more{role} pod" + (
            f": {said}" if we_refuse else ""
        )
        reason, level = "live/server-agrees", "audit"
    else:
        whom = f" ({by})" if by else ""
        detail = (
            f"the API server admits one more{role} pod that we refuse by {', '.join(ours.blockers)}"
            if answer.allowed
            else f"the API server refuses one more{role} pod{whom}: {said}"
        )
        reason = "live/server-disagrees"
        level = "warn" if answer.allowed else "deny"
    finding = Finding(
        reason=reason,
        detail=detail,
        evidence=tuple(evidence),
        rule="live",
        level=level,  # type: ignore[arg-type]
    )
    denied = level == "deny"
    return structs.replace(
        verdict,
        findings=(*verdict.findings, finding),
        admission="denied" if denied else verdict.admission,
        blockers=tuple(dict.fromkeys((reason, *verdict.blockers))) if denied else verdict.blockers,
    )


def _by_whom(message: str) -> str:
    found = _WEBHOOK.search(message)
    if not found:
        return ""
    return f"webhook {found[1]}" if found[1] else f"policy {found[2]}"
