"""Objects that a run brings along (a Namespace, a ResourceQuota, a claim …): whether the API server
takes them, and what the cluster is with them.

Judges no workload. The order is the API server's: reading, policies of the cluster, validation,
LimitRange, quota.
"""

from __future__ import annotations

from msgspec import Struct, structs

from kubectl_gpuadmit import templates
from kubectl_gpuadmit.admission import decoding, limit_range, native
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.judge import State, Terms
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.dra import DRA_GROUP
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject, PersistentVolumeClaim
from kubectl_gpuadmit.verdict import Finding, Outcome, Ref, Remedy, Unknown, Verdict

CLUSTER_SCOPED = frozenset(
    {
        "ClusterTrainingRuntime",
        "DeviceClass",
        "DeviceTaintRule",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourcePoolStatusRequest",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)
"""Applied kinds that live in no namespace."""

APPLIED = CLUSTER_SCOPED | {
    "ConfigMap",
    "LimitRange",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
    "TrainingRuntime",
}
"""Kinds that a run may bring along and that then count as part of the cluster."""

CORE = frozenset({"ConfigMap", "LimitRange", "Namespace", "Node", "PersistentVolume"}) | {
    "PersistentVolumeClaim",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
}
"""Of these the ones of group ''; others use the same kinds for other things (Knative's Service)."""


class Said(Struct, frozen=True):
    """What policies of the cluster said of an object that the run brings along."""

    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    changed: str = ""
    """Which policies changed it."""


class Applied(Struct, frozen=True):
    """One object that counts as part of the cluster from now on."""

    document: Document
    obj: KubeObject
    said: Said

    @property
    def ref(self) -> Ref:
        return _ref(self.obj)


def is_one(document: Document) -> bool:
    """Whether it counts as part of the cluster instead of being judged as a workload."""
    kind = str(document.data.get("kind", ""))
    return kind in APPLIED and (kind not in CORE or document.data.get("apiVersion") == "v1")


def bring(document: Document, state: State, terms: Terms, namespace: str) -> Applied | Verdict:
    """Applies the object to ``state``; the verdict on it where it is refused.

    Raises BadManifest.
    """
    obj = _at_home(decode_object(document), namespace)
    ref = _ref(obj)
    misread, said = misread_of(document, obj.namespace, terms), Said()
    if not misread:
        obj, said = _by_policies(document, obj, ref, namespace, state, terms)
    denied = tuple(one for one in said.findings if one.level == "deny")
    findings, unknowns = (*misread, *denied), said.unknowns
    if not findings:
        findings, unknowns = _apply(obj, state, kubernetes=terms.kubernetes)
    if not findings:
        return Applied(document, obj, said)
    verdict = refusal(ref, document.location, findings, unknowns)
    if misread:
        found = _corrected(document, state, terms, namespace)
        verdict = structs.replace(verdict, remedies=found)
    return verdict


def _ref(obj: KubeObject) -> Ref:
    return Ref(obj.apiVersion, obj.kind, obj.namespace, obj.name)


def refusal(
    ref: Ref, location: str, findings: tuple[Finding, ...], unknowns: tuple[Unknown, ...] = ()
) -> Verdict:
    """The verdict on an object that makes no pods and is refused all the same."""
    return Verdict(
        ref=ref,
        location=location,
        pods=0,
        gpus={},
        admission="denied",
        placement="unknown",
        running="not-a-model",
        blockers=tuple(dict.fromkeys(f.reason for f in findings)),
        findings=findings,
        unknowns=unknowns,
    )


def misread_of(document: Document, namespace: str, terms: Terms) -> tuple[Finding, ...]:
    """Why the API server does not even read an object: fields that it does not know, wrong types.

    Of a lower level than ``deny`` nothing is told: the object then counts as it is read.
    """
    if not document.line:
        return ()
    found = decoding.of_object(document.data, kubernetes=terms.kubernetes)
    return tuple(
        one
        for one in found
        if terms.policy.level(one.rule, namespace=namespace, default=one.level) == "deny"
    )


def _by_policies(
    document: Document, obj: KubeObject, ref: Ref, namespace: str, state: State, terms: Terms
) -> tuple[KubeObject, Said]:
    """The object as MutatingAdmissionPolicies leave it, and what policies say of it."""
    if not native.present(state.cluster):
        return obj, Said()
    from kubectl_gpuadmit.admission.native import told
    from kubectl_gpuadmit.admission.native.who import Makers

    makers = Makers.of_object(terms.requester)
    said = told.brought_policies(
        document.data, ref, makers, state.cluster, kubernetes=terms.kubernetes
    )
    if not said.mutations:
        return obj, Said(tuple(said.findings), tuple(said.unknowns))
    by = " and ".join(dict.fromkeys(one.summary for one in said.mutations))
    data = document.data
    for mutation in said.mutations:
        data = templates.changed(data, mutation.ops)
    try:
        after = _at_home(decode_object(structs.replace(document, data=data)), namespace)
    except BadManifest as problem:
        missing = f"what becomes of the {ref.kind} that {by} make: {problem.message}"
        unsure = Unknown("admission/policy", missing, "deny")
        return obj, Said(tuple(said.findings), (*said.unknowns, unsure))
    return after, Said(tuple(said.findings), tuple(said.unknowns), f"changed by {by}")


def _apply(
    obj: KubeObject, state: State, *, kubernetes: str = "1.37"
) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    """Adds an object that the run brings along, unless the API server refuses it.

    By its own validation (claims, templates and device classes), a LimitRange or a quota.
    """
    findings = _invalid(obj, state.cluster, kubernetes)
    if isinstance(obj, PersistentVolumeClaim):
        findings = limit_range.findings(obj, state.cluster.limit_ranges(obj.namespace))
    charged, unknowns = ((), ()) if findings else state.ledger.apply(obj)
    if not findings and not charged:
        # who else holds devices is not known from the claims that the run brings along
        state.cluster.apply(obj, makes_known=obj.kind != "ResourceClaim")
    return (*findings, *charged), unknowns


def _invalid(obj: KubeObject, cluster: Cluster, kubernetes: str) -> tuple[Finding, ...]:
    if not obj.apiVersion.startswith(f"{DRA_GROUP}/"):
        return ()
    # CEL is not imported by runs that have no claims
    from kubectl_gpuadmit.admission import device_claims
    from kubectl_gpuadmit.devices import allocator, dropped

    before = cluster.get(obj.kind, obj.namespace, obj.name)
    kept, _ = dropped.created(obj, allocator.of(kubernetes, cluster.gates))
    return device_claims.findings(kept, stored=before, kubernetes=kubernetes, gates=cluster.gates)


def _corrected(
    document: Document, state: State, terms: Terms, namespace: str
) -> tuple[Remedy, ...]:
    """Changes after which the object is read and let in."""
    import jsonpatch

    made = decoding.corrected(document.data, kubernetes=terms.kubernetes)
    if made is None:
        return ()
    summary, cost, patch = made
    data = jsonpatch.apply_patch(document.data, patch)
    changed = structs.replace(document, data=data)
    try:
        obj = _at_home(decode_object(changed), namespace)
    except BadManifest:
        return ()
    if misread_of(changed, obj.namespace, terms):
        return ()
    if _apply(obj, state.fork(), kubernetes=terms.kubernetes)[0]:
        return ()
    outcome = Outcome("admitted", "unknown")
    return (Remedy(summary, tuple(patch), "", cost, verified=True, result=outcome),)


def _at_home(obj: KubeObject, namespace: str) -> KubeObject:
    """The object in ``namespace`` if it needs one and names none, in none if it has no need.

    As the API server does (EnsureObjectNamespaceMatchesRequestNamespace).
    """
    if obj.kind in CLUSTER_SCOPED:
        namespace = ""
    elif obj.namespace:
        return obj
    return structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=namespace))
