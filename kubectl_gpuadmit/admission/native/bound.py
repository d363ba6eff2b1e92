"""Which policies of the cluster are asked about a request, and by which binding.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/matching/matching.go,
policy/generic/policy_dispatcher.go, policy_source.go; k8s.io/api v0.37.2 admissionregistration/v1
(defaults: failurePolicy Fail, matchPolicy Equivalent).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.admission.native import parameters
from kubectl_gpuadmit.admission.native.request import NAME_LABEL, Request
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Generic, LabelSelector
from kubectl_gpuadmit.kube.selectors import label_selector

Json = dict[str, Any]

LEFT_OUT = "its expressions were left out when the snapshot was redacted"


class Bound(Struct, frozen=True):
    """One policy and one binding of it that both match the request."""

    policy: str
    binding: str
    spec: Json
    """The policy's own."""
    rules: Json
    """The binding's spec."""
    sure: bool
    """False where the namespace's labels are not known and a selector reads them."""
    broken: str = ""
    """Why the API server cannot use the policy at all; it is bound then, to whatever it may be."""

    @property
    def empty(self) -> bool:
        """Whether its expressions were left out: the API server takes no policy without any."""
        parts = ("validations", "auditAnnotations", "mutations")
        return not any(self.spec.get(part) for part in parts)

    @property
    def fails(self) -> bool:
        """Whether an error refuses (failurePolicy Fail)."""
        return bool(self.spec.get("failurePolicy") != "Ignore")

    @property
    def actions(self) -> list[str]:
        """What follows a failed validation; of a MutatingAdmissionPolicy nothing."""
        return [str(one) for one in self.rules.get("validationActions") or ()]


def bound(kind: str, request: Request, cluster: Cluster) -> Iterator[Bound]:
    """Policies by name, their bindings by name, as far as they match."""
    bindings = [
        (one.name, spec)
        for one in _sorted(cluster, f"{kind}Binding")
        if isinstance(spec := one.document.get("spec"), dict)
    ]
    for policy in _sorted(cluster, kind):
        spec = policy.document.get("spec")
        if not isinstance(spec, dict):
            continue
        matches, sure = matched(spec.get("matchConstraints"), request, cluster)
        mine = [(name, rules) for name, rules in bindings if rules.get("policyName") == policy.name]
        if not matches or not mine:
            continue
        broken = parameters.not_served(spec.get("paramKind"), cluster)
        if broken:
            yield Bound(policy.name, "", spec, {}, sure, f"failed to configure policy: {broken}")
            continue
        for name, rules in mine:
            selected, certain = matched(rules.get("matchResources"), request, cluster)
            if selected:
                yield Bound(policy.name, name, spec, rules, sure and certain)


def about(kind: str, resource: str, namespace: str, cluster: Cluster) -> Iterator[Bound]:
    """Policies that may be asked about objects of a resource (``jobs.batch``) of which no more is
    known: only their rules and namespaces count."""
    name, _, group = resource.partition(".")
    asked = Request(group, "*", name, "", namespace, "", {}, {})
    bindings = [
        (one.name, spec)
        for one in _sorted(cluster, f"{kind}Binding")
        if isinstance(spec := one.document.get("spec"), dict)
    ]
    for policy in _sorted(cluster, kind):
        spec = policy.document.get("spec")
        if isinstance(spec, dict) and _may(spec.get("matchConstraints"), asked, cluster):
            for called, rules in bindings:
                mine = rules.get("policyName") == policy.name
                if mine and _may(rules.get("matchResources"), asked, cluster):
                    yield Bound(policy.name, called, spec, rules, False)


def _may(constraints: Any, request: Request, cluster: Cluster) -> bool:
    spec = constraints if isinstance(constraints, dict) else {}
    rules = [
        {**rule, "apiVersions": ["*"], "resourceNames": None}
        for rule in spec.get("resourceRules") or ()
        if isinstance(rule, dict)
    ]
    known = {"namespaceSelector": spec.get("namespaceSelector"), "resourceRules": rules}
    return matched(known, request, cluster)[0]


def _sorted(cluster: Cluster, kind: str) -> list[Generic]:
    found = (obj for obj in cluster.every(kind) if isinstance(obj, Generic))
    return sorted(found, key=lambda obj: obj.name)


def matched(constraints: Any, request: Request, cluster: Cluster) -> tuple[bool, bool]:
    """Whether ``matchConstraints`` or ``matchResources`` cover the request, and if for sure."""
    spec = constraints if isinstance(constraints, dict) else {}
    selector, sure = spec.get("namespaceSelector"), True
    if selector:
        home = cluster.namespace(request.namespace)
        if home is not None:
            if not _selects(selector, {**home.labels, NAME_LABEL: request.namespace}):
                return False, True
        else:
            known, rest = _by_name(selector)
            if not _selects(known, {NAME_LABEL: request.namespace}):
                return False, True
            sure = not rest
    if not _selects(spec.get("objectSelector"), request.labels):
        return False, True
    if _covered(spec.get("excludeResourceRules"), request):
        return False, True
    rules = spec.get("resourceRules")
    return (not rules or _covered(rules, request)), sure


def _by_name(selector: Json) -> tuple[Json, bool]:
    """The part of a selector that asks for the namespace's name, and whether it asks for more."""
    labels = selector.get("matchLabels") or {}
    terms = [one for one in selector.get("matchExpressions") or () if isinstance(one, dict)]
    known = {
        "matchLabels": {key: one for key, one in labels.items() if key == NAME_LABEL},
        "matchExpressions": [one for one in terms if one.get("key") == NAME_LABEL],
    }
    more = len(known["matchLabels"]) + len(known["matchExpressions"]) < len(labels) + len(terms)
    return known, more


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    if not selector:
        return True
    try:
        return label_selector(msgspec.convert(selector, LabelSelector)).matches(labels)
    except msgspec.ValidationError:
        return True


def _covered(rules: Any, request: Request) -> bool:
    listed = [one for one in rules if isinstance(one, dict)] if isinstance(rules, list) else []
    scope = "Namespaced" if request.namespace else "Cluster"
    return any(
        rule.get("scope") in (None, "*", scope)
        and _lists(rule.get("operations"), "CREATE")
        and _lists(rule.get("apiGroups"), request.group)
        and _lists(rule.get("apiVersions"), request.version)
        and any(_is_resource(str(one), request.resource) for one in rule.get("resources") or ())
        and (not rule.get("resourceNames") or request.name in rule["resourceNames"])
        for rule in listed
    )


def _is_resource(written: str, resource: str) -> bool:
    name, _, sub = written.partition("/")
    return name in ("*", resource) and sub in ("", "*")


def _lists(values: Any, wanted: str) -> bool:
    return any(one in ("*", wanted) for one in values or ())
