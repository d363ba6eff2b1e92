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

from kubectl_gpuadmit import claim_alone, remedies, rules, templates
from kubectl_gpuadmit.admission import decoding, limit_range, native
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
    Outcome,
    Ref,
    Remedy,
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


NODE_ALLOCATABLE = "DRANodeAllocatableResources"


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
    state = _begun(cluster, policy, kubernetes)
    terms = _terms(policy, now, kubernetes, requester)
    brought: list[tuple[Document, KubeObject]] = []
    told: dict[Ref, _Said] = {}
    items, verdicts, skipped = _sort_out(documents, state, terms, namespace, brought, told)
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
        verdict = _naming_refused(verdict, refused)
        verdicts.append(_with_what_was_said(verdict, told, verdict.ref))
        state = after
    for one in lone:
        verdict = claim_alone.judged(one, state, terms)
        if with_remedies and remedies.wanted(verdict):
            unsearched += budget.left <= 0
            case = Case(one.document, one.workload, verdict, state, terms)
            verdict = structs.replace(verdict, remedies=remedies.search(case, namespace, budget))
        verdicts.append(_with_what_was_said(claim_alone.about(one, verdict), told, one.ref))
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
    state = _begun(cluster, policy, kubernetes)
    away = tuple(without)
    state.cluster.remove_pods(away)
    for pod in away:
        state.ledger.release(pod)
    return judge(workload, state, _terms(policy, now, kubernetes))[0]


def _begun(cluster: Cluster, policy: Policy, kubernetes: str) -> State:
    """The cluster before the first workload, with the feature gates that the policy says it has."""
    fork = cluster.fork()
    fork.gates = policy.feature_gates
    if fork.gates and fork.gates.get(NODE_ALLOCATABLE) is not False:
        from kubectl_gpuadmit.devices import allocator, node_allocatable

        if allocator.of(kubernetes, fork.gates).node_allocatable:
            node_allocatable.counted(fork)
    return State(fork, Ledger.of(cluster))


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
    told: dict[Ref, _Said],
) -> tuple[list[_Item], list[Verdict], list[Skipped]]:
    """Workloads in order, refusals of what the run brings along, and what became of all else.

    What is applied, is applied to ``state`` and added to ``brought``, and what policies said of it
    to ``told``.
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
            misread, said = _misread(document, obj.namespace, terms), _Said()
            if not misread:
                obj, said = _by_policies(document, obj, ref, namespace, state, terms)
            denied = tuple(one for one in said.findings if one.level == "deny")
            findings, unknowns = (*misread, *denied), said.unknowns
            if not findings:
                findings, unknowns = apply(obj, state, kubernetes=terms.kubernetes)
            if findings:
                refusal = _refusal(ref, document.location, findings, unknowns)
                if misread:
                    found = _corrected(document, state, terms, namespace)
                    refusal = structs.replace(refusal, remedies=found)
                refused.append(refusal)
            else:
                skipped.append(
                    Skipped(
                        ref=ref,
                        location=document.location,
                        treated="applied",
                        detail=said.changed,
                    )
                )
                brought.append((document, obj))
                if said.findings or said.unknowns:
                    told[ref] = said
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
            misread = _misread(document, namespace, terms)
            if misread:
                refused.append(_refusal(made.ref, document.location, misread, ()))
            else:
                skipped.append(made)
        else:
            items.append(_Item(document, made))
    return items, refused, skipped


class _Said(Struct, frozen=True):
    """What policies of the cluster said of an object that the run brings along."""

    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    changed: str = ""
    """Which policies changed it."""


def _by_policies(
    document: Document, obj: KubeObject, ref: Ref, namespace: str, state: State, terms: Terms
) -> tuple[KubeObject, _Said]:
    """The object as MutatingAdmissionPolicies leave it, and what policies say of it."""
    if not native.present(state.cluster):
        return obj, _Said()
    from kubectl_gpuadmit.admission.native import told
    from kubectl_gpuadmit.admission.native.who import Makers

    makers = Makers.of_object(terms.requester)
    said = told.brought_policies(
        document.data, ref, makers, state.cluster, kubernetes=terms.kubernetes
    )
    if not said.mutations:
        return obj, _Said(tuple(said.findings), tuple(said.unknowns))
    by = " and ".join(dict.fromkeys(one.summary for one in said.mutations))
    data = document.data
    for mutation in said.mutations:
        data = templates.changed(data, mutation.ops)
    try:
        after = _at_home(decode_object(structs.replace(document, data=data)), namespace)
    except BadManifest as problem:
        missing = f"what becomes of the {ref.kind} that {by} make: {problem.message}"
        unsure = Unknown("admission/policy", missing, "deny")
        return obj, _Said(tuple(said.findings), (*said.unknowns, unsure))
    return after, _Said(tuple(said.findings), tuple(said.unknowns), f"changed by {by}")


def _with_what_was_said(verdict: Verdict, told: dict[Ref, _Said], ref: Ref) -> Verdict:
    """A verdict with what policies warn or cannot be known to say of objects that the run brought
    along: of the object itself, of a workload those of its namespace."""
    mine = [told[ref]] if ref in told else []
    if not mine:
        mine = [said for one, said in told.items() if one.namespace == verdict.ref.namespace]
    findings = [one for said in mine for one in said.findings]
    unknowns = [one for said in mine for one in said.unknowns]
    if not findings and not unknowns:
        return verdict
    return structs.replace(
        verdict,
        findings=(*verdict.findings, *findings),
        unknowns=(*verdict.unknowns, *(one for one in unknowns if one not in verdict.unknowns)),
    )


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


def _misread(document: Document, namespace: str, terms: Terms) -> tuple[Finding, ...]:
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
    if _misread(changed, obj.namespace, terms):
        return ()
    if apply(obj, state.fork(), kubernetes=terms.kubernetes)[0]:
        return ()
    outcome = Outcome("admitted", "unknown")
    return (Remedy(summary, tuple(patch), "", cost, verified=True, result=outcome),)


def _invalid(obj: KubeObject, cluster: Cluster, kubernetes: str) -> tuple[Finding, ...]:
    if not obj.apiVersion.startswith(f"{DRA_GROUP}/"):
        return ()
    # CEL is not imported by runs that have no claims
    from kubectl_gpuadmit.admission import device_claims
    from kubectl_gpuadmit.devices import allocator, dropped

    before = cluster.get(obj.kind, obj.namespace, obj.name)
    kept, _ = dropped.created(obj, allocator.of(kubernetes, cluster.gates))
    return device_claims.findings(kept, stored=before, kubernetes=kubernetes, gates=cluster.gates)


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
