"""NodeAffinity: nodeSelector and required node affinity must match the node's labels and name.

Sources: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and component-helpers
scheduling/corev1/nodeaffinity. Affinity that a scheduler profile adds (addedAffinity) is not known.
"""

from __future__ import annotations

from kubectl_gpuadmit.kube import selectors
from kubectl_gpuadmit.kube.objects import Node, NodeSelectorTerm, Pod
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_CONFLICT = "pod affinity terms conflict"
REASONS = {
    "placement/node-affinity": "The node's labels or name do not match the pod's nodeSelector or "
    "required node affinity. Correct the selector, or use nodes that carry the label.",
    "placement/node-affinity-conflict": "Every required node affinity term asks for two different "
    "node names at once, so that no node can match. Keep one name per term.",
}


def judge(pod: Pod, node: Node) -> tuple[Shortfall, ...]:
    """One shortfall for each nodeSelector label that differs, one for the affinity terms."""
    labels = node.labels
    found = [
        _mismatch(f"{key}={value}")
        for key, value in sorted((pod.spec.nodeSelector or {}).items())
        if labels.get(key) != value
    ]
    required = selectors.required_terms(pod.spec.affinity)
    if required is not None and not selectors.node_selector_matches(required, labels, node.name):
        terms = required.nodeSelectorTerms or ()
        found.append(_mismatch(" or ".join(term_text(t) for t in terms) or "no term"))
    return tuple(found)


def matches(pod: Pod, node: Node) -> bool:
    """Whether the pod's nodeSelector and required affinity match (RequiredNodeAffinity.Match)."""
    labels = node.labels
    for key, value in (pod.spec.nodeSelector or {}).items():
        if labels.get(key) != value:
            return False
    required = selectors.required_terms(pod.spec.affinity)
    return required is None or selectors.node_selector_matches(required, labels, node.name)


def _mismatch(subject: str) -> Shortfall:
    return shortfall(FILTER, REASON, "placement/node-affinity", permanent=True, subject=subject)


def term_text(term: NodeSelectorTerm) -> str:
    """``a=b, metadata.name=n``: what one term asks for."""
    parts = (*(term.matchExpressions or ()), *(term.matchFields or ()))
    return ", ".join(selectors.describe(p.key, p.operator, p.values or ()) for p in parts) or (
        "an empty term"
    )


def weight(pod: Pod, node: Node) -> int:
    """Sum of the weights of the preferred terms that match: more is better."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.nodeAffinity is None:
        return 0
    return sum(
        p.weight
        for p in affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution or ()
        if p.weight and selectors.term_matches(p.preference, node.labels, node.name)
    )


def label_keys(pod: Pod) -> tuple[tuple[str, ...], bool]:
    """The label keys that its node rules read, and whether they also read the node's name."""
    keys = set(pod.spec.nodeSelector or ())
    by_name = False
    affinity = pod.spec.affinity
    terms: list[NodeSelectorTerm] = []
    required = selectors.required_terms(affinity)
    if required is not None:
        terms += required.nodeSelectorTerms or ()
    if affinity is not None and affinity.nodeAffinity is not None:
        preferred = affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution or ()
        terms += (p.preference for p in preferred)
    for term in terms:
        keys.update(e.key for e in term.matchExpressions or ())
        by_name = by_name or bool(term.matchFields)
    return tuple(sorted(keys)), by_name


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """Node names to which matchFields restrict the pod (PreFilter); None where they do not.

    An empty set means that the terms contradict each other.
    """
    required = selectors.required_terms(pod.spec.affinity)
    if required is None or not required.nodeSelectorTerms:
        return None
    names: set[str] = set()
    for term in required.nodeSelectorTerms:
        of_term: set[str] | None = None
        for field in term.matchFields or ():
            if field.key == "metadata.name" and field.operator == "In":
                values = set(field.values or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names)


def reject(pod: Pod) -> tuple[Shortfall, ...]:
    """PreFilter: refuses everywhere where the terms name contradicting nodes."""
    if named_nodes(pod) == frozenset():
        return (
            shortfall(FILTER, REASON_CONFLICT, "placement/node-affinity-conflict", permanent=True),
        )
    return ()
