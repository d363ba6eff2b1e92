"""Which policies of the cluster are asked about a request, by which binding, with which parameters.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/matching/matching.go,
policy/generic/policy_dispatcher.go (CollectParams); k8s.io/api v0.37.2 admissionregistration/v1
(defaults: failurePolicy Fail, matchPolicy Equivalent).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.admission.native.request import NAME_LABEL, Partial, Request
from kubectl_gpuadmit.cel.values import Fail, Unknown, Unsure
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import ConfigMap, Generic, KubeObject, LabelSelector
from kubectl_gpuadmit.kube.selectors import label_selector

Json = dict[str, Any]


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
        if not matches:
            continue
        for name, rules in bindings:
            if rules.get("policyName") != policy.name:
                continue
            selected, certain = matched(rules.get("matchResources"), request, cluster)
            if selected:
                yield Bound(policy.name, name, spec, rules, sure and certain)


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


# -- parameters ------------------------------------------------------------------------------------


def params(one: Bound, request: Request, cluster: Cluster) -> list[Any]:
    """The values of ``params`` with which the policy is evaluated; [None] where it takes none.

    Raises Fail with the configuration error, Unsure where the parameters are not known.
    """
    kind, ref = one.spec.get("paramKind"), one.rules.get("paramRef")
    if not isinstance(kind, dict) or not isinstance(ref, dict):
        return [None]
    name = str(kind.get("kind", ""))
    if not cluster.knows(name):
        raise Unsure(f"{name} objects, the parameters of the policy: not in the snapshot")
    found = _chosen(name, ref, request, cluster)
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise Fail("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


def _chosen(kind: str, ref: Json, request: Request, cluster: Cluster) -> list[Any]:
    everyone = list(cluster.every(kind))
    scoped = any(one.namespace for one in everyone) or kind == "ConfigMap"
    home = str(ref.get("namespace") or request.namespace) if scoped else ""
    if not scoped and ref.get("namespace") and everyone:
        raise Fail("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if ref.get("name"):
        named = cluster.get(kind, home, str(ref["name"]))
        return [_param(named)] if named is not None else []
    selector = msgspec.convert(ref.get("selector") or {}, LabelSelector)
    chosen = label_selector(selector)
    return [
        _param(one)
        for one in sorted(everyone, key=lambda o: o.name)
        if one.namespace == home and chosen.matches(one.labels)
    ]


def _param(obj: KubeObject) -> Any:
    head: Json = {"name": obj.name}
    if obj.namespace:
        head["namespace"] = obj.namespace
    if obj.labels:
        head["labels"] = dict(obj.labels)
    what = f"{obj.kind} {obj.name}"
    metadata = Partial.of(f"{what} metadata", head)
    if isinstance(obj, ConfigMap):
        data: Any = Unknown(f"the data of {what}: not kept in a snapshot")
        if obj.data is not None:
            data = dict(obj.data)
        known = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        return Partial.of(what, known)
    document = obj.document if isinstance(obj, Generic) else {}
    return Partial.of(what, {**document, "metadata": metadata})
