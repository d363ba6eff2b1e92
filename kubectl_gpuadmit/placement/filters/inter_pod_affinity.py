"""InterPodAffinity: required pod affinity and anti-affinity, the pod's own and that of others.

Sources: pkg/scheduler/framework/plugins/interpodaffinity (filtering.go, plugin.go) and
kube-scheduler v0.37.2 framework/types.go (AffinityTerm). Preferred terms never refuse a node and
are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from operator import is_not

import msgspec

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import (
    LabelSelectorRequirement,
    Namespace,
    Pod,
    PodAffinity,
    PodAffinityTerm,
)
from kubectl_gpuadmit.kube.selectors import NOTHING, Selector, label_selector
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall, Unknown

FILTER = "InterPodAffinity"
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
REASONS = {
    "placement/pod-affinity": "No pod that the required podAffinity asks for runs in the node's "
    "topology domain. Start that pod first, or correct the selector or topologyKey.",
    "placement/pod-affinity-label": "The node lacks the topologyKey label of a required "
    "podAffinity term. Use a label that these nodes carry.",
    "placement/pod-anti-affinity": "A pod that the required podAntiAffinity avoids runs in the "
    "node's topology domain. Use more nodes, fewer replicas, or a preferred term.",
    "placement/existing-anti-affinity": "A pod that runs in the node's topology domain refuses "
    "this one by its own required podAntiAffinity. Use another domain or change the labels.",
    "placement/pod-affinity-unreadable": "A required pod affinity term has a selector that cannot "
    "be parsed. Correct the selector.",
}
_UNTIL = "a pod that its affinity asks for runs there"

Pair = tuple[str, str]
"""(topology key, value)."""


class Term(msgspec.Struct, frozen=True):
    """One required term, compiled for the pod that carries it."""

    key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(self, pod: Pod, namespace_labels: dict[str, str]) -> bool:
        """AffinityTerm.Matches: ``namespace_labels`` are those of the pod's namespace."""
        return (
            (pod.metadata.namespace or "") in self.namespaces
            or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(pod.metadata.labels or {})


_compiled: dict[tuple[int, str], tuple[PodAffinityTerm, Term]] = {}
"""Compiled terms by identity and namespace; the term is kept so that its id stays its own."""


def _compile(term: PodAffinityTerm, namespace: str) -> Term:
    key = (id(term), namespace)
    found = _compiled.get(key)
    if found is None:
        if len(_compiled) > 1 << 16:
            _compiled.clear()
        own = not term.namespaces and term.namespaceSelector is None
        found = _compiled[key] = (
            term,
            Term(
                term.topologyKey,
                label_selector(term.labelSelector),
                frozenset((namespace,) if own else term.namespaces or ()),
                label_selector(term.namespaceSelector),
            ),
        )
    return found[1]


def _required(affinity: PodAffinity | None, namespace: str) -> tuple[Term, ...]:
    if affinity is None:
        return ()
    terms = affinity.requiredDuringSchedulingIgnoredDuringExecution or ()
    return tuple(_compile(term, namespace) for term in terms)


def _terms(pod: Pod) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """(affinity, anti-affinity), both required."""
    affinity = pod.spec.affinity
    if affinity is None:
        return (), ()
    namespace = pod.namespace
    return (
        _required(affinity.podAffinity, namespace),
        _required(affinity.podAntiAffinity, namespace),
    )


def reject(pod: Pod) -> tuple[Shortfall, ...]:
    """PreFilter: a term that cannot be parsed refuses everywhere."""
    errors = [
        selector.error
        for terms in _terms(pod)
        for term in terms
        for selector in (term.selector, term.namespace_selector)
        if selector.error
    ]
    return tuple(
        shortfall(
            FILTER,
            f"parsing pod: {error}",
            "placement/pod-affinity-unreadable",
            permanent=True,
            subject=error,
        )
        for error in errors[:1]
    )


def unknowns(cluster: Cluster, pod: Pod) -> tuple[Unknown, ...]:
    """namespaceSelector needs the labels of Namespace objects."""
    if cluster.knows("Namespace"):
        return ()
    carriers = (pod, *(p for info in avoiders(cluster) for p in info.avoiding))
    if not any(
        term.namespace_selector.expressions
        for carrier in carriers
        for terms in _terms(carrier)
        for term in terms
    ):
        return ()
    return (
        Unknown(
            rule="placement",
            missing="Namespace objects: not in the source, a namespaceSelector needs their labels",
            hint="kubectl get namespaces -o yaml",
            stage="placement",
        ),
    )


class _Avoiders:
    """Which nodes run pods with required anti-affinity, brought up to date node by node."""

    def __init__(self) -> None:
        self._seen: list[NodeInfo] = []
        self._found: dict[int, NodeInfo] = {}

    def of(self, cluster: Cluster) -> list[NodeInfo]:
        infos = list(cluster.nodes.values())
        if len(infos) != len(self._seen):
            changed = list(range(len(infos)))
        else:
            changed = list(compress(range(len(infos)), map(is_not, infos, self._seen)))
        for i in changed:
            if infos[i].avoiding:
                self._found[i] = infos[i]
            else:
                self._found.pop(i, None)
        self._seen = infos
        return [self._found[i] for i in sorted(self._found)]


def avoiders(cluster: Cluster) -> list[NodeInfo]:
    """Nodes that run pods with required anti-affinity, by name."""
    tracker: _Avoiders = cluster.static_memo.setdefault("avoiders", _Avoiders())
    return tracker.of(cluster)


class InterPod:
    """Counts of matching pods by topology pair, for one incoming pod."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self.pod = pod
        affinity, anti = _terms(pod)
        self._affinity = tuple(_unrolled(t, cluster) for t in affinity)
        self._anti = tuple(_unrolled(t, cluster) for t in anti)
        own = cluster.namespace(pod.namespace)
        self._namespace_labels = own.labels if own is not None else {}
        self._self_match = _all_match(self._affinity, pod)
        self._near: dict[Pair, int] = {}
        self._avoided: dict[Pair, int] = {}
        self._avoiding: dict[Pair, int] = {}
        for info in avoiders(cluster):
            self._count_avoiding(info.avoiding, info, 1)
        if self._affinity or self._anti:
            for info in cluster.nodes.values():
                for other in info.pods:
                    self._count_own(other, info, 1)

    @classmethod
    def of(cls, cluster: Cluster, pod: Pod) -> InterPod | None:
        """None where neither the pod nor any running pod has a required term."""
        affinity = pod.spec.affinity
        if (
            affinity is None or (affinity.podAffinity is None and affinity.podAntiAffinity is None)
        ) and not avoiders(cluster):
            return None
        state = cls(cluster, pod)
        if not (state._affinity or state._anti or state._avoiding):
            return None  # nobody who runs minds this pod, nor will its own replicas
        return state

    def _count_avoiding(self, pods: Iterable[Pod], info: NodeInfo, by: int) -> None:
        for other in pods:
            for term in _terms(other)[1]:
                value = info.labels.get(term.key)
                if value is not None and term.matches(self.pod, self._namespace_labels):
                    _bump(self._avoiding, (term.key, value), by)

    def _count_own(self, other: Pod, info: NodeInfo, by: int) -> None:
        if self._affinity and _all_match(self._affinity, other):
            for term in self._affinity:
                if term.key in info.labels:
                    _bump(self._near, (term.key, info.labels[term.key]), by)
        for term in self._anti:
            if term.key in info.labels and term.matches(other, {}):
                _bump(self._avoided, (term.key, info.labels[term.key]), by)

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """Affinity, own anti-affinity, others' anti-affinity, in the scheduler's order."""
        found = self._judge_affinity(info)
        labels = info.labels
        if self._avoided:
            for term in self._anti:
                pair = (term.key, labels.get(term.key, ""))
                if term.key in labels and self._avoided.get(pair, 0) > 0:
                    found.append(
                        shortfall(
                            FILTER,
                            REASON_ANTI,
                            "placement/pod-anti-affinity",
                            used=self._avoided[pair],
                            subject=f"{term.selector} in {pair[0]}={pair[1]}",
                        )
                    )
        if self._avoiding:
            there = sorted(pair for pair in labels.items() if self._avoiding.get(pair, 0) > 0)
            found += (
                shortfall(
                    FILTER,
                    REASON_EXISTING,
                    "placement/existing-anti-affinity",
                    used=self._avoiding[pair],
                    subject=f"{pair[0]}={pair[1]}",
                )
                for pair in there
            )
        return tuple(found)

    def _judge_affinity(self, info: NodeInfo) -> list[Shortfall]:
        missing = [t.key for t in self._affinity if t.key not in info.labels]
        if missing:
            return [
                shortfall(
                    FILTER,
                    REASON_AFFINITY,
                    "placement/pod-affinity-label",
                    permanent=True,
                    subject=key,
                )
                for key in missing
            ]
        absent = [t for t in self._affinity if self._near.get((t.key, info.labels[t.key]), 0) <= 0]
        if not absent or (not self._near and self._self_match):
            return []
        return [
            shortfall(
                FILTER,
                REASON_AFFINITY,
                "placement/pod-affinity",
                permanent=True,
                until="" if self._self_match else _UNTIL,  # a group need not wait for others
                subject=f"{term.selector} in {term.key}={info.labels[term.key]}",
            )
            for term in absent
        ]

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        self._count_avoiding((pod,), info, by)
        if self._affinity or self._anti:
            self._count_own(pod, info, by)

    def fork(self) -> InterPod:
        twin = object.__new__(InterPod)
        twin.__dict__.update(self.__dict__)
        twin._near = dict(self._near)
        twin._avoided = dict(self._avoided)
        twin._avoiding = dict(self._avoiding)
        return twin


def _unrolled(term: Term, cluster: Cluster) -> Term:
    """The incoming pod's namespaceSelector, resolved to names (mergeAffinityTermNamespaces…)."""
    if term.namespace_selector.everything:
        return term
    named = (
        ns.name
        for ns in cluster.every("Namespace")
        if isinstance(ns, Namespace) and term.namespace_selector.matches(ns.labels)
    )
    return msgspec.structs.replace(
        term, namespaces=term.namespaces | frozenset(named), namespace_selector=NOTHING
    )


def _all_match(terms: tuple[Term, ...], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


def _bump(counts: dict[Pair, int], pair: Pair, by: int) -> None:
    count = counts.get(pair, 0) + by
    if count:
        counts[pair] = count
    else:
        counts.pop(pair, None)


def merged_label_keys(pod: Pod) -> Pod:
    """The pod with matchLabelKeys and mismatchLabelKeys merged into its terms' selectors.

    The API server does so when it creates a pod (pkg/registry/core/pod/strategy.go); the scheduler
    never reads these fields. Running pods have it behind them.
    """
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    near = _merged(affinity.podAffinity, pod.labels)
    apart = _merged(affinity.podAntiAffinity, pod.labels)
    if near is affinity.podAffinity and apart is affinity.podAntiAffinity:
        return pod
    replace = msgspec.structs.replace
    changed = replace(affinity, podAffinity=near, podAntiAffinity=apart)
    return replace(pod, spec=replace(pod.spec, affinity=changed))


def _merged(affinity: PodAffinity | None, labels: dict[str, str]) -> PodAffinity | None:
    if affinity is None:
        return None
    terms = affinity.requiredDuringSchedulingIgnoredDuringExecution or ()
    if not any(t.matchLabelKeys or t.mismatchLabelKeys for t in terms):
        return affinity
    return msgspec.structs.replace(
        affinity,
        requiredDuringSchedulingIgnoredDuringExecution=tuple(_keyed(t, labels) for t in terms),
    )


def _keyed(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    if term.labelSelector is None:
        return term
    more = [
        LabelSelectorRequirement(key, operator, (labels[key],))
        for keys, operator in ((term.matchLabelKeys, "In"), (term.mismatchLabelKeys, "NotIn"))
        for key in keys or ()
        if key in labels
    ]
    return msgspec.structs.replace(
        term,
        labelSelector=msgspec.structs.replace(
            term.labelSelector,
            matchExpressions=(*(term.labelSelector.matchExpressions or ()), *more),
        ),
    )
