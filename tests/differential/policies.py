"""Our answer to a case of the family ``policies``, and how it differs from the API server's."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from kubectl_gpuadmit.admission.native import mutating, request, validating
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import KubeObject
from tests.differential.ours import decode as decoded
from tests.differential.vocabulary import Json

MINOR = 37


def cluster_of(case: Json) -> Cluster:
    asked = case["pod"]
    lists = ("policies", "bindings", "mutatingPolicies", "mutatingBindings")
    documents = [
        {"apiVersion": "admissionregistration.k8s.io/v1", **one}
        for name in lists
        for one in asked.get(name) or ()
    ]
    objects: list[KubeObject] = [
        decode(one) for one in (*case["objects"], *documents, *(asked.get("params") or ()))
    ]
    return Cluster.of(objects, known=("ConfigMap", "Namespace", "ServiceAccount"))


def decode(document: Json) -> KubeObject:
    return decoded(document)


def ours(case: Json) -> Json:
    """In the shape of the referee's answer; ``unknown`` where we cannot tell."""
    cluster = cluster_of(case)
    template = case["pod"]["pod"]
    pod = msgspec.convert({**template, "apiVersion": "v1", "kind": "Pod"}, NewPod)
    raw = request.new_pod(template, pod, pod, cluster, token=False)
    asked = request.of_pod(raw, pod)
    after = mutating.mutated(asked, cluster, version=MINOR)
    unknown = any(one.unknown for one in after.troubles)
    refused = [one for one in after.troubles if not one.unknown]
    if unknown:
        return {"unknown": True}
    if refused:
        return {"allowed": False, "stage": "Mutating", "message": refused[0].text}
    stored = request.stored(after.object)
    said = list(validating.asked(request.of_pod(stored, pod), cluster, version=MINOR))
    if any(one.outcome == "unknown" for one in said):
        return {"unknown": True}
    warnings = [
        f"Validation failed for ValidatingAdmissionPolicy '{one.bound.policy}' with binding"
        f" '{one.bound.binding}': {one.message}"
        for one in said
        for action in one.actions
        if action == "Warn"
    ]
    audit = [
        {
            "message": one.message,
            "policy": one.bound.policy,
            "binding": one.bound.binding,
        }
        for one in said
        for action in one.actions
        if action == "Audit"
    ]
    denied = [one for one in said if "Deny" in one.actions]
    answer: Json = {
        "allowed": not denied,
        "warnings": warnings,
        "audit": audit,
        "pod": comparable(stored),
    }
    if denied:
        answer |= {
            "stage": "Validating",
            "message": denied[0].text,
            "reason": denied[0].reason or "Invalid",
        }
    return answer


def comparable(pod: Json) -> Any:
    """Without what is generated."""
    found = json.loads(json.dumps(pod, default=lambda _: "?"))
    metadata = found.get("metadata", {})
    for field in ("uid", "creationTimestamp", "managedFields"):
        metadata.pop(field, None)
    found.pop("status", None)
    return found


def theirs(answer: Json) -> Json:
    found: Json = {"allowed": answer["allowed"]}
    for field in ("stage", "message"):
        if answer.get(field):
            found[field] = answer[field]
    if answer.get("stage") == "Mutating":
        return found
    if not answer["allowed"]:
        found["reason"] = answer["reason"]
    found["warnings"] = answer.get("warnings") or []
    text = (answer.get("audit") or {}).get("validation.policy.admission.k8s.io/validation_failure")
    found["audit"] = [
        {key: one[key] for key in ("message", "policy", "binding")}
        for one in (json.loads(text) if text else [])
    ]
    found["pod"] = comparable(answer["pod"])
    return found


def differences(case: Json, referee: Json) -> list[str]:
    own, expected = ours(case), theirs(referee["policies"])
    if own.get("unknown"):
        return ["unknown"]
    return [
        f"{key}: kubernetes {expected.get(key)!r}, ours {own.get(key)!r}"
        for key in sorted(expected.keys() | own.keys())
        if expected.get(key) != own.get(key)
    ]
