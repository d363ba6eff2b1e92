"""Our answer to a case of the family ``policies``, and how it differs from the API server's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import structs

from kubectl_gpuadmit.admission.native import mutating, request, validating, workloads
from kubectl_gpuadmit.admission.native.request import Request
from kubectl_gpuadmit.admission.native.who import Makers
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.policy_parameters import record
from kubectl_gpuadmit.kube.requester import Requester
from kubectl_gpuadmit.kube.workloads import Workload, expand
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
    served = [("v1", "ConfigMap", True)]
    served += [(k["apiVersion"], k["kind"], k["namespaced"]) for k in asked.get("paramKinds") or ()]
    for one in (*asked.get("policies", ()), *asked.get("mutatingPolicies", ())):
        kind = one["spec"].get("paramKind")
        if kind and (kind["apiVersion"], kind["kind"]) not in [known[:2] for known in served]:
            absent = record(kind["apiVersion"], kind["kind"], served=False, namespaced=False)
            objects.append(absent)
    objects += [record(api, kind, served=True, namespaced=inside) for api, kind, inside in served]
    return Cluster.of(objects, known=("Namespace", "ServiceAccount"))


def decode(document: Json) -> KubeObject:
    return decoded(document)


def makers_of(case: Json) -> Makers:
    user = case["pod"].get("user")
    if user is None:
        return Makers.of_object(Requester("someone", ("system:authenticated",), "", {}))
    extra = {key: tuple(values) for key, values in user.get("extra", {}).items()}
    groups, uid = tuple(user.get("groups", ())), user.get("uid", "")
    return Makers.of_object(Requester(user["username"], groups, uid, extra))


def ours(case: Json) -> Json:
    """In the shape of the referee's answer; ``unknown`` where we cannot tell."""
    cluster = cluster_of(case)
    template = case["pod"]["pod"]
    asked, store = _request(template, cluster)
    makers = makers_of(case)
    after = mutating.mutated_by(asked, makers, cluster, version=MINOR)
    unknown = any(one.unknown for one in after.troubles)
    refused = [one for one in after.troubles if not one.unknown]
    if unknown:
        return {"unknown": True}
    if refused:
        return {"allowed": False, "stage": "Mutating", "message": refused[0].text}
    stored = store(after.object)
    now = structs.replace(
        asked,
        object=stored,
        labels=workloads.labels(stored),
        name=stored["metadata"].get("name", ""),
    )
    said = list(validating.asked_by(now, makers, cluster, version=MINOR))
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


def _request(document: Json, cluster: Cluster) -> tuple[Request, Callable[[Json], Json]]:
    """The creation, and what prepares its object for storing."""
    if document["kind"] == "Pod":
        pod = msgspec.convert({**document, "apiVersion": "v1", "kind": "Pod"}, NewPod)
        raw = request.new_pod(document, pod, pod, cluster, token=False)
        return request.of_pod(raw, pod), request.stored
    made = expand(Document("m.yaml", 0, 1, document))
    assert isinstance(made, Workload)
    asked = workloads.request(made, version=MINOR)
    name = mutating.type_name(asked)
    return asked, lambda raw: workloads.stored(raw, name)


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
