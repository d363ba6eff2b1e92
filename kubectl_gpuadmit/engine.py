"""``evaluate``: the one function that answers. Pure: documents, a cluster, a policy and a time in, a
report out.

Objects that the run brings along (a Namespace, a ResourceQuota …) count as applied before the first
workload is judged, whatever their place in the input: controllers create pods after ``kubectl apply``
has gone through all of it. Workloads are judged in input order, each on what the ones before left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from msgspec import Struct, structs

from kubectl_gpuadmit import remedies, rules
from kubectl_gpuadmit.admission.quota import Ledger
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.proposals import Case
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Ref, Report, Skipped, Source, Verdict, unreadable

APPLIED = frozenset(
    {
        "Namespace",
        "ResourceQuota",
        "LimitRange",
        "PriorityClass",
        "ServiceAccount",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "RuntimeClass",
        "PodDisruptionBudget",
        "Node",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "DeviceClass",
        "ResourceSlice",
        "ConfigMap",
        "ClusterTrainingRuntime",
        "TrainingRuntime",
    }
)
"""Kinds that a run may bring along and that then count as part of the cluster."""

CLUSTER_SCOPED = frozenset(
    {
        "Namespace",
        "PriorityClass",
        "PersistentVolume",
        "StorageClass",
        "RuntimeClass",
        "Node",
        "DeviceClass",
        "ResourceSlice",
        "ClusterTrainingRuntime",
    }
)


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
) -> Report:
    """Judges every workload among ``documents``.

    ``namespace`` is where objects go that name none, ``kubernetes`` the API server's version.
    A document that cannot be read is reported as ``Skipped(treated="unreadable")`` and stops nobody
    else.
    """
    assert rules.__all__, "importing the package registers every rule"
    state = State(cluster.fork(), Ledger.of(cluster))
    terms = Terms(
        policy=policy,
        now=now,
        rules=tuple(REGISTRY[name] for name in sorted(REGISTRY)),
        kubernetes=kubernetes,
    )
    items, skipped = _sort_out(documents, state, terms, namespace)
    verdicts: list[Verdict] = []
    budget = remedies.Budget.for_cluster(cluster)
    for item in items:
        verdict, after = judge(item.workload, state, terms)
        if with_remedies and remedies.wanted(verdict):
            case = Case(item.document, item.workload, verdict, state, terms)
            found = remedies.search(case, namespace, budget)
            verdict = structs.replace(verdict, remedies=found)
        verdicts.append(verdict)
        state = after
    return Report(
        as_of=now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        source=source,
        workloads=tuple(verdicts),
        skipped=tuple(skipped),
        policy=policy.name,
        asked=_asked(items, policy),
    )


def _asked(items: list[_Item], policy: Policy) -> tuple[str, ...]:
    """What the policy itself names, rules and static entries, and does not switch off everywhere."""
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
    documents: Iterable[Document | BadManifest], state: State, terms: Terms, namespace: str
) -> tuple[list[_Item], list[Skipped]]:
    """Workloads in order, all else with what became of it; what is applied, is applied to ``state``."""
    items: list[_Item] = []
    skipped: list[Skipped] = []
    pending: list[Document] = []
    for document in documents:
        if isinstance(document, BadManifest):
            skipped.append(unreadable(document))
        elif _kind(document) in APPLIED:
            try:
                obj = decode_object(document)
                apply(obj, state, namespace)
            except BadManifest as problem:
                skipped.append(unreadable(problem))
            else:
                skipped.append(
                    Skipped(
                        ref=Ref(obj.apiVersion, obj.kind, obj.namespace, obj.name),
                        location=document.location,
                        treated="applied",
                    )
                )
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
    return items, skipped


def apply(obj: KubeObject, state: State, namespace: str) -> None:
    """Adds an object that the run brings along, in ``namespace`` if it names none of its own."""
    if not obj.namespace and obj.kind not in CLUSTER_SCOPED:
        obj = structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=namespace))
    state.cluster.apply(obj)
    state.ledger.apply(obj)


def _kind(document: Document) -> str:
    return str(document.data.get("kind", ""))
