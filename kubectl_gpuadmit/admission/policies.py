"""Admission configured inside the cluster and not evaluated here: said to be unknown, by name.

Pod Security levels, admission policies (CEL) and webhooks. A policy or webhook is named only where
its rules and selectors match the pod; its match conditions are not evaluated.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/predicates,
pkg/admission/plugin/policy/matching; k8s.io/pod-security-admission.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Generic, LabelSelector, Pod
from kubectl_gpuadmit.kube.selectors import label_selector
from kubectl_gpuadmit.verdict import Unknown

_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")


def configured(pod: Pod, namespace: str, cluster: Cluster) -> tuple[Unknown, ...]:
    """One Unknown for each webhook and policy that would be asked about this new pod."""
    return (*_webhooks(pod, namespace, cluster), *_admission_policies(pod, namespace, cluster))


def _webhooks(pod: Pod, namespace: str, cluster: Cluster) -> Iterator[Unknown]:
    for kind in _WEBHOOKS:
        for obj in _sorted(cluster, kind):
            for hook in obj.document.get("webhooks") or []:
                if _matches(hook, hook.get("rules") or [], pod, namespace, cluster):
                    fails = hook.get("failurePolicy") or "Fail"
                    verb = "change or refuse" if kind.startswith("Mutating") else "refuse"
                    yield Unknown(
                        rule="admission/webhook",
                        missing=f"what admission webhook {hook.get('name', '')} would say: {kind}"
                        f" {obj.name} may {verb} the pod (failurePolicy {fails})",
                        hint="kubectl apply --dry-run=server -f …",
                    )


def _admission_policies(pod: Pod, namespace: str, cluster: Cluster) -> Iterator[Unknown]:
    for kind in _POLICIES:
        bindings = list(_sorted(cluster, f"{kind}Binding"))
        for obj in _sorted(cluster, kind):
            spec = obj.document.get("spec") or {}
            constraints = spec.get("matchConstraints") or {}
            if not _matches(
                constraints, constraints.get("resourceRules") or [], pod, namespace, cluster
            ):
                continue
            if _matched_by(constraints.get("excludeResourceRules") or []):
                continue
            for binding in bindings:
                bound = binding.document.get("spec") or {}
                if bound.get("policyName") != obj.name:
                    continue
                narrowed = bound.get("matchResources") or {}
                rules = narrowed.get("resourceRules")
                if not _matches(narrowed, rules, pod, namespace, cluster):
                    continue
                actions = ", ".join(bound.get("validationActions") or []) or "Mutate"
                fails = spec.get("failurePolicy") or "Fail"
                yield Unknown(
                    rule="admission/policy",
                    missing=f"what {kind} {obj.name} would say: bound by {binding.name}"
                    f" ({actions}, failurePolicy {fails})",
                    level="warn" if "Deny" in actions or kind.startswith("Mut") else "audit",
                    hint="kubectl apply --dry-run=server -f …",
                )


def _sorted(cluster: Cluster, kind: str) -> list[Generic]:
    """By name: the order in which the API server calls them."""
    found = (obj for obj in cluster.every(kind) if isinstance(obj, Generic))
    return sorted(found, key=lambda obj: obj.name)


def _matches(
    spec: dict[str, Any],
    rules: list[dict[str, Any]] | None,
    pod: Pod,
    namespace: str,
    cluster: Cluster,
) -> bool:
    """``rules`` None: no restriction by resource."""
    if rules is not None and not _matched_by(rules):
        return False
    found = cluster.namespace(namespace)
    known = {"kubernetes.io/metadata.name": namespace, **(found.labels if found else {})}
    if found is None and _wants_other_labels(spec.get("namespaceSelector")):
        return True  # the labels are not known: it may match
    return _selected(spec.get("namespaceSelector"), known) and _selected(
        spec.get("objectSelector"), pod.labels
    )


def _matched_by(rules: list[dict[str, Any]]) -> bool:
    """Whether one of the rules covers CREATE of core/v1 pods."""
    return any(
        _any_of(rule.get("apiGroups"), "", "*")
        and _any_of(rule.get("apiVersions"), "v1", "*")
        and _any_of(rule.get("resources"), "pods", "*", "*/*")
        and _any_of(rule.get("operations"), "CREATE", "*")
        and rule.get("scope", "*") in ("*", "Namespaced")
        and not rule.get("resourceNames")
        for rule in rules
    )


def _any_of(listed: list[str] | None, *wanted: str) -> bool:
    return any(one in wanted for one in listed or ())


def _wants_other_labels(selector: dict[str, Any] | None) -> bool:
    if not selector:
        return False
    keys = {e.get("key") for e in selector.get("matchExpressions") or []}
    keys |= set(selector.get("matchLabels") or {})
    return bool(keys - {"kubernetes.io/metadata.name"})


def _selected(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """An absent selector selects everything here. One that cannot be read may match."""
    if not selector:
        return True
    try:
        return label_selector(msgspec.convert(selector, LabelSelector)).matches(labels)
    except msgspec.ValidationError:
        return True
