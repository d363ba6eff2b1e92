"""Admission webhooks of the cluster, which nobody can ask from here: said to be unknown, by name.

One is named only where its rules and selectors match the pod as the API server would match them;
match conditions are not evaluated. No namespace is left out by itself, kube-system neither: only
selectors do that. Admission policies (CEL) are evaluated by ``admission.native``.

``matchPolicy`` changes nothing for pods: they are served as core/v1 alone, so that there is no
equivalent version by which a rule could match.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/predicates, webhook/generic/webhook.go
(ShouldCallHook), policy/matching/matching.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kubectl_gpuadmit.admission.refusal import stored_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Generic, LabelSelector, Pod
from kubectl_gpuadmit.kube.selectors import label_selector
from kubectl_gpuadmit.verdict import Unknown

_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_NAME_LABEL = "kubernetes.io/metadata.name"
_HINT = "kubectl apply --dry-run=server -f …"


def configured(pod: Pod, namespace: str, cluster: Cluster) -> tuple[Unknown, ...]:
    """One Unknown for each webhook that would be asked about this new pod."""
    request = _Request(pod, namespace, cluster)
    return tuple(_webhooks(request, cluster))


def _webhooks(request: _Request, cluster: Cluster) -> Iterator[Unknown]:
    for kind in _WEBHOOKS:
        for obj in _sorted(cluster, kind):
            for hook in _dicts(obj.document.get("webhooks")):
                if request.selected_by(hook) and request.matches(hook.get("rules")):
                    fails = hook.get("failurePolicy") or "Fail"
                    verb = "change or refuse" if kind.startswith("Mutating") else "refuse"
                    yield Unknown(
                        rule="admission/webhook",
                        missing=f"what admission webhook {hook.get('name', '')} would say: {kind}"
                        f" {obj.name} may {verb} the pod"
                        f" (failurePolicy {fails}{_conditions(hook)})",
                        hint=_HINT,
                    )


def _conditions(spec: dict[str, Any]) -> str:
    """Match conditions may still leave the pod out."""
    names = [str(one.get("name", "")) for one in _dicts(spec.get("matchConditions"))]
    if not names:
        return ""
    return f", if match condition{'s' if len(names) > 1 else ''} {', '.join(names)} hold"


def _sorted(cluster: Cluster, kind: str) -> list[Generic]:
    """By name: the order in which the API server calls them."""
    found = (obj for obj in cluster.every(kind) if isinstance(obj, Generic))
    return sorted(found, key=lambda obj: obj.name)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class _Request:
    """The creation of one pod, as rules and selectors see it."""

    def __init__(self, pod: Pod, namespace: str, cluster: Cluster) -> None:
        found = cluster.namespace(namespace)
        self._labels = pod.labels
        self._name = stored_name(pod)
        self._namespace_labels = {**(found.labels if found else {}), _NAME_LABEL: namespace}
        self._namespace_known = found is not None

    def selected_by(self, spec: dict[str, Any]) -> bool:
        """By namespaceSelector and objectSelector. What cannot be known or read may match."""
        return self._home_in(spec.get("namespaceSelector")) and _selects(
            spec.get("objectSelector"), self._labels
        )

    def matches(self, rules: Any) -> bool:
        """Whether one of the rules covers CREATE of this core/v1 pod."""
        return any(
            rule.get("scope") in (None, "*", "Namespaced")
            and _lists(rule.get("operations"), "CREATE")
            and _lists(rule.get("apiGroups"), "")
            and _lists(rule.get("apiVersions"), "v1")
            and any(_is_pods(str(resource)) for resource in rule.get("resources") or ())
            and (not rule.get("resourceNames") or self._name in rule["resourceNames"])
            for rule in _dicts(rules)
        )

    def _home_in(self, selector: Any) -> bool:
        if self._namespace_known or not isinstance(selector, dict):
            return _selects(selector, self._namespace_labels)
        # Of a namespace that is not in the snapshot the name is known, and what it says decides.
        wanted = selector.get("matchLabels") or {}
        sure = {
            "matchLabels": {k: v for k, v in wanted.items() if k == _NAME_LABEL},
            "matchExpressions": [
                one
                for one in _dicts(selector.get("matchExpressions"))
                if one.get("key") == _NAME_LABEL
            ],
        }
        return _selects(sure, self._namespace_labels)


def _is_pods(resource: str) -> bool:
    """``pods/*`` and ``*/*`` too: the star stands for no subresource as well."""
    name, _, sub = resource.partition("/")
    return name in ("*", "pods") and sub in ("", "*")


def _lists(values: Iterable[Any] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    """An absent selector selects everything here. One that cannot be read may match."""
    if not selector:
        return True
    try:
        return label_selector(msgspec.convert(selector, LabelSelector)).matches(labels)
    except msgspec.ValidationError:
        return True
