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

from msgspec import Struct, field, structs

from kubectl_gpuadmit import brought_along, claim_alone, remedies, rules
from kubectl_gpuadmit.admission import decoding
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.brought_along import Applied, Said
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import Pod
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
    Verdict,
    unreadable,
)

NODE_ALLOCATABLE = "DRANodeAllocatableResources"


class _Item(Struct):
    """One workload of the run with the document that it came from."""

    document: Document
    workload: Workload


class _Sorted(Struct):
    """What the documents of a run turned out to be."""

    items: list[_Item] = field(default_factory=list)
    brought: list[Applied] = field(default_factory=list)
    refused: list[Verdict] = field(default_factory=list)
    """Verdicts on what the run would have brought along."""
    skipped: list[Skipped] = field(default_factory=list)


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
    given = _sort_out(documents, state, terms, namespace)
    verdicts = list(given.refused)
    refused = {(v.ref.kind, v.ref.namespace, v.ref.name): v.location for v in verdicts}
    told = {b.ref: b.said for b in given.brought if b.said.findings or b.said.unknowns}
    lone = claim_alone.of_run(
        ((one.document, one.obj) for one in given.brought),
        (item.workload for item in given.items),
        state,
    )
    budget = remedies.Budget.for_cluster(cluster)
    unsearched = 0
    for item in given.items:
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
    asked = _asked(given.items, policy)
    return Report(
        as_of=now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        source=source,
        workloads=tuple(verdicts),
        skipped=tuple(given.skipped),
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
    known = (*REGISTRY, *decoding.REASONS, *(entry.rule for entry in policy.static))
    named = [name for name in known if policy.names(name)]
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
    documents: Iterable[Document | BadManifest], state: State, terms: Terms, namespace: str
) -> _Sorted:
    """Applies to ``state`` what the run brings along, whatever its place; the rest in order."""
    found = _Sorted()
    pending: list[Document] = []
    for document in documents:
        if isinstance(document, BadManifest):
            found.skipped.append(unreadable(document))
        elif brought_along.is_one(document):
            try:
                made = brought_along.bring(document, state, terms, namespace)
            except BadManifest as problem:
                found.skipped.append(unreadable(problem))
                continue
            if isinstance(made, Verdict):
                found.refused.append(made)
                continue
            found.brought.append(made)
            detail = made.said.changed
            found.skipped.append(Skipped(made.ref, document.location, "applied", detail))
        else:
            pending.append(document)
    for document in pending:
        try:
            expanded = expand(
                document,
                declared=terms.policy.declared_kinds,
                namespace=namespace,
                cluster=state.cluster,
            )
        except BadManifest as problem:
            found.skipped.append(unreadable(problem))
            continue
        if not isinstance(expanded, Skipped):
            found.items.append(_Item(document, expanded))
        elif misread := brought_along.misread_of(document, namespace, terms):
            found.refused.append(brought_along.refusal(expanded.ref, document.location, misread))
        else:
            found.skipped.append(expanded)
    return found


def _with_what_was_said(verdict: Verdict, told: Mapping[Ref, Said], ref: Ref) -> Verdict:
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
