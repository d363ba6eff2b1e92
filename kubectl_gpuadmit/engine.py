"""``evaluate``: the one function that answers: documents, a cluster, a policy and a time in, a
report out, and nothing else touched.

Objects that the run brings along (a Namespace, a ResourceQuota …) count as applied before the
first workload is judged, whatever their place in the input: controllers create pods after
``kubectl apply`` has gone through all of it. Workloads are judged in input order, each on what the
ones before it left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from kubectl_gpuadmit import claim_alone, remedies, rules
from kubectl_gpuadmit.admission import limit_range
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.dra import DRA_GROUP
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject, PersistentVolumeClaim, Pod
from kubectl_gpuadmit.kube.requester import Requester
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.proposals import Case
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import (
    Finding,
    Ref,
    Report,
    Skipped,
    Source,
    Unknown,
    Verdict,
    unreadable,
)

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


class _Item(Struct):
    """One workload of the run with the document that it came from."""

    document: Document
    workload: Workload


def evaluate(
    documents: Iterable[Document | BadManifest],
    cluster: Cluster,
    policy: Policy,
    *,
    now: dt.datetime,
    source: Source,
    namespace: str = "default",
    with_remedies: bool = True,
    kubernetes: str = "1.37",
    requester: Requester | None = None,
) -> Report:
    """Judges every workload among ``documents``.

    ``namespace`` is where objects go that name none, ``kubernetes`` the API server's version,
    ``requester`` who applies them where that is known.
    A document that cannot be read is reported as ``Skipped(treated="unreadable")`` and stops nobody
    else.
    """
    state = State(cluster.fork(), Ledger.of(cluster))
    terms = _terms(policy, now, kubernetes, requester)
    brought: list[tuple[Document, KubeObject]] = []
    items, verdicts, skipped = _sort_out(documents, state, terms, namespace, brought)
    refused = {(v.ref.kind, v.ref.namespace, v.ref.name): v.location for v in verdicts}
    lone = claim_alone.of_run(brought, (item.workload for item in items), state)
    budget = remedies.Budget.for_cluster(cluster)
    unsearched = 0
    for item in items:
        verdict, after = judge(item.workload, state, terms)
        if with_remedies and remedies.wanted(verdict):
            unsearched += budget.left <= 0
            case = Case(item.document, item.workload, verdict, state, terms)
            found = remedies.search(case, namespace, budget)
            verdict = structs.replace(verdict, remedies=found)
        verdicts.append(_naming_refused(verdict, refused))
        state = after
    for one in lone:
        verdict = claim_alone.judged(one, state, terms)
        if with_remedies and remedies.wanted(verdict):
            unsearched += budget.left <= 0
            case = Case(one.document, one.workload, verdict, state, terms)
            verdict = structs.replace(verdict, remedies=remedies.search(case, namespace, budget))
        verdicts.append(claim_alone.about(one, verdict))
    asked = _asked(items, policy)
    return Report(
        as_of=now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        source=source,
        workloads=tuple(verdicts),
        skipped=tuple(skipped),
        policy=policy.name,
        unsearched=unsearched,
        topology=_topology(asked, state.cluster, now),
        asked=asked,
    )


def _topology(asked: Iterable[str], cluster: Cluster, now: dt.datetime) -> str:
    """The maps that rules looked at; nothing of topology is imported where none did."""
    if not any(name.startswith("topology/") for name in asked):
        return ""
    from kubectl_gpuadmit.topology import maps

    return maps.rests_on(cluster, now)


def judged_alone(
    workload: Workload,
    cluster: Cluster,
    policy: Policy,
    *,
    now: dt.datetime,
    without: Iterable[Pod] = (),
    kubernetes: str = "1.37",
) -> Verdict:
    """One workload that is already understood, on the cluster ``without`` some of its pods."""
    state = State(cluster.fork(), Ledger.of(cluster))
    away = tuple(without)
    state.cluster.remove_pods(away)
    for pod in away:
        state.ledger.release(pod)
    return judge(workload, state, _terms(policy, now, kubernetes))[0]


def _terms(
    policy: Policy, now: dt.datetime, kubernetes: str, requester: Requester | None = None
) -> Terms:
    assert rules.__all__, "importing the package registers every rule"
    every = tuple(REGISTRY[name] for name in sorted(REGISTRY))
    return Terms(policy=policy, now=now, rules=every, kubernetes=kubernetes, requester=requester)


def _asked(items: list[_Item], policy: Policy) -> tuple[str, ...]:
    """Rules and static entries that the policy itself names and does not switch off everywhere."""
    named = [name for name in (*REGISTRY, *(e.rule for e in policy.static)) if policy.names(name)]
    places = {
        (item.workload.ref.namespace, policy.pool_of_pod(group.pod))
        for item in items
        for group in item.workload.groups
    }
    return tuple(
        sorted(
            name
            for name in named
            if any(policy.level(name, namespace=ns, pool=pool) != "off" for ns, pool in places)
        )
    )


def _sort_out(
    documents: Iterable[Document | BadManifest],
    state: State,
    terms: Terms,
    namespace: str,
    brought: list[tuple[Document, KubeObject]],
) -> tuple[list[_Item], list[Verdict], list[Skipped]]:
    """Workloads in order, refusals of what the run brings along, and what became of all else.

    What is applied, is applied to ``state`` and added to ``brought``.
    """
    items: list[_Item] = []
    refused: list[Verdict] = []
    skipped: list[Skipped] = []
    pending: list[Document] = []
    for document in documents:
        if isinstance(document, BadManifest):
            skipped.append(unreadable(document))
        elif is_brought_along(document):
            try:
                obj = _at_home(decode_object(document), namespace)
            except BadManifest as problem:
                skipped.append(unreadable(problem))
                continue
            ref = Ref(obj.apiVersion, obj.kind, obj.namespace, obj.name)
            findings, unknowns = apply(obj, state, kubernetes=terms.kubernetes)
            if findings:
                refused.append(_refusal(ref, document.location, findings, unknowns))
            else:
                skipped.append(Skipped(ref=ref, location=document.location, treated="applied"))
                brought.append((document, obj))
        else:
            pending.append(document)
    for document in pending:
        try:
            made = expand(
                document,
                declared=terms.policy.declared_kinds,
                namespace=namespace,
                cluster=state.cluster,
            )
        except BadManifest as problem:
            skipped.append(unreadable(problem))
            continue
        if isinstance(made, Skipped):
            skipped.append(made)
        else:
            items.append(_Item(document, made))
    return items, refused, skipped


def _at_home(obj: KubeObject, namespace: str) -> KubeObject:
    """The object in ``namespace`` if it needs one and names none, in none if it has no need.

    As the API server does (EnsureObjectNamespaceMatchesRequestNamespace).
    """
    if obj.kind in CLUSTER_SCOPED:
        namespace = ""
    elif obj.namespace:
        return obj
    return structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=namespace))


def apply(
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

    stored = cluster.get(obj.kind, obj.namespace, obj.name)
    return device_claims.findings(obj, stored=stored, kubernetes=kubernetes)


def _refusal(
    ref: Ref, location: str, findings: tuple[Finding, ...], unknowns: tuple[Unknown, ...]
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


_MISSING = {
    "placement/claim-missing": "ResourceClaim",
    "placement/template-missing": "ResourceClaimTemplate",
}


def _naming_refused(verdict: Verdict, refused: Mapping[tuple[str, str, str], str]) -> Verdict:
    """Says of a claim or template that is missing where the input has it, if that is refused."""

    def told(found: Finding) -> Finding:
        kind = _MISSING.get(found.reason, "")
        what = found.evidence[0].what if found.evidence else ""
        where = refused.get((kind, verdict.ref.namespace, what))
        if where is None:
            return found
        return structs.replace(found, detail=f"{found.detail}: the one at {where} is refused")

    if not refused or not any(f.reason in _MISSING for f in verdict.findings):
        return verdict
    return structs.replace(verdict, findings=tuple(map(told, verdict.findings)))


def is_brought_along(document: Document) -> bool:
    """Whether it counts as part of the cluster instead of being judged as a workload."""
    kind = str(document.data.get("kind", ""))
    return kind in APPLIED and (kind not in CORE or document.data.get("apiVersion") == "v1")
