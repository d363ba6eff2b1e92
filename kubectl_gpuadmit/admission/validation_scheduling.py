"""Object validation of what steers scheduling: selectors, affinity, tolerations, spread, gates.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go (validateAffinity,
ValidateTolerations, validateTopologySpreadConstraints …), k8s.io/apimachinery v0.37.2
pkg/apis/meta/v1/validation/validation.go (ValidateLabels, ValidateLabelSelector).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Where,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubectl_gpuadmit.kube import names
from kubectl_gpuadmit.kube.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    Toleration,
    TopologySpreadConstraint,
)

_LABEL = "invalid/labels"
_AFFINITY = "invalid/affinity"
_TOLERATION = "invalid/toleration"
_SPREAD = "invalid/topology-spread"
_GATE = "invalid/scheduling-gate"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_IN = ("In", "NotIn")
_EXISTS = ("Exists", "DoesNotExist")
_NEED_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"
_MAX_INT32 = 2**31 - 1


def _key(reason: str, key: str, where: Where) -> Iterator[FieldError]:
    return (invalid(reason, where, key, text) for text in names.label_key(key))


def labels(own: Mapping[str, str] | None, where: Where) -> Iterator[FieldError]:
    """metadata.labels, spec.nodeSelector, matchLabels: complaints stand at the map, not the key."""
    for key, value in sorted((own or {}).items()):
        yield from _key(_LABEL, key, where)
        for text in names.label_value(value):
            yield invalid(_LABEL, where, value, text)


def label_selector(own: LabelSelector | None, where: Where) -> Iterator[FieldError]:
    if own is None:
        return
    yield from labels(own.matchLabels, (*where, "matchLabels"))
    for i, term in enumerate(own.matchExpressions or ()):
        at = (*where, "matchExpressions", i)
        yield from _requirement(term, at, ordered=False)
        yield from _key(_LABEL, term.key, (*at, "key"))
        yield from _values(term, at)


def _values(term: LabelSelectorRequirement, at: Where) -> Iterator[FieldError]:
    for i, value in enumerate(term.values or ()):
        for text in names.label_value(value):
            yield invalid(_LABEL, (*at, "values", i), value, text)


def _requirement(
    term: LabelSelectorRequirement, at: Where, *, ordered: bool
) -> Iterator[FieldError]:
    if term.operator in _IN:
        if not term.values:
            yield required(_AFFINITY, (*at, "values"), _NEED_VALUES)
    elif term.operator in _EXISTS:
        if term.values:
            yield forbidden(_AFFINITY, (*at, "values"), _NO_VALUES)
    elif ordered and term.operator in ("Gt", "Lt"):
        if len(term.values or ()) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(_AFFINITY, (*at, "values"), text)
    else:
        yield invalid(_AFFINITY, (*at, "operator"), term.operator, _BAD_OPERATOR)


def _node_term(term: NodeSelectorTerm, where: Where, *, check_values: bool) -> Iterator[FieldError]:
    for i, one in enumerate(term.matchExpressions or ()):
        at = (*where, "matchExpressions", i)
        yield from _requirement(one, at, ordered=True)
        yield from _key(_AFFINITY, one.key, (*at, "key"))
        if check_values:
            yield from _values(one, at)
    for i, one in enumerate(term.matchFields or ()):
        at = (*where, "matchFields", i)
        if one.operator not in _IN:
            yield invalid(_AFFINITY, (*at, "operator"), one.operator, _BAD_OPERATOR)
        elif len(one.values or ()) != 1:
            text = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            yield required(_AFFINITY, (*at, "values"), text)
        if one.key != "metadata.name":
            yield invalid(_AFFINITY, (*at, "key"), one.key, "not a valid field selector key")
            continue
        for j, value in enumerate(one.values or ()):
            for text in names.dns_subdomain(value):
                yield invalid(_AFFINITY, (*at, "values", j), value, text)


def _node_affinity(own: NodeAffinity, where: Where) -> Iterator[FieldError]:
    must = own.requiredDuringSchedulingIgnoredDuringExecution
    if must is not None:
        at = (*where, _REQUIRED, "nodeSelectorTerms")
        if not must.nodeSelectorTerms:
            yield required(_AFFINITY, at, "must have at least one node selector term")
        for i, term in enumerate(must.nodeSelectorTerms or ()):
            yield from _node_term(term, (*at, i), check_values=True)
    for i, choice in enumerate(own.preferredDuringSchedulingIgnoredDuringExecution or ()):
        at = (*where, _PREFERRED, i)
        yield from _weight(choice.weight, at)
        yield from _node_term(choice.preference, (*at, "preference"), check_values=False)


def _weight(weight: int, at: Where) -> Iterator[FieldError]:
    if not 0 < weight <= 100:
        yield invalid(_AFFINITY, (*at, "weight"), weight, "must be in the range 1-100")


def _pod_term(term: PodAffinityTerm, where: Where) -> Iterator[FieldError]:
    yield from label_selector(term.labelSelector, (*where, "labelSelector"))
    yield from label_selector(term.namespaceSelector, (*where, "namespaceSelector"))
    for name in term.namespaces or ():
        for text in names.dns_label(name):
            yield invalid(_AFFINITY, (*where, "namespace"), name, text)
    yield from match_label_keys(
        _AFFINITY, where, term.matchLabelKeys, term.mismatchLabelKeys, term.labelSelector
    )
    if not term.topologyKey:
        yield required(_AFFINITY, (*where, "topologyKey"), "can not be empty")
    yield from _key(_AFFINITY, term.topologyKey, (*where, "topologyKey"))


def _pod_affinity(own: PodAffinity, where: Where) -> Iterator[FieldError]:
    for i, term in enumerate(own.requiredDuringSchedulingIgnoredDuringExecution or ()):
        yield from _pod_term(term, (*where, _REQUIRED, i))
    for i, choice in enumerate(own.preferredDuringSchedulingIgnoredDuringExecution or ()):
        at = (*where, _PREFERRED, i)
        yield from _weight(choice.weight, at)
        yield from _pod_term(choice.podAffinityTerm, (*at, "podAffinityTerm"))


def affinity(own: Affinity | None, where: Where) -> Iterator[FieldError]:
    if own is None:
        return
    if own.nodeAffinity is not None:
        yield from _node_affinity(own.nodeAffinity, (*where, "nodeAffinity"))
    if own.podAffinity is not None:
        yield from _pod_affinity(own.podAffinity, (*where, "podAffinity"))
    if own.podAntiAffinity is not None:
        yield from _pod_affinity(own.podAntiAffinity, (*where, "podAntiAffinity"))


def match_label_keys(
    reason: str,
    where: Where,
    match: tuple[str, ...] | None,
    mismatch: tuple[str, ...] | None,
    selector: LabelSelector | None,
) -> Iterator[FieldError]:
    """matchLabelKeys and mismatchLabelKeys, after the keys have been merged into the selector."""
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        at = (*where, field)
        if keys and selector is None:
            yield forbidden(reason, at, "must not be specified when labelSelector is not set")
        elif keys:
            for i, key in enumerate(keys):
                yield from _key(reason, key, (*at, i))
    if selector is not None:
        index = {key: i for i, key in enumerate(match or ())}
        seen = set(selector.matchLabels or {})
        for term in selector.matchExpressions or ():
            if term.key in index and term.key in seen:
                text = "exists in both matchLabelKeys and labelSelector"
                yield invalid(reason, (*where, index[term.key]), term.key, text)
            seen.add(term.key)
    for i, key in enumerate(match or ()):
        if key in (mismatch or ()):
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(reason, (*where, "matchLabelKeys", i), key, text)


def tolerations(own: tuple[Toleration, ...], where: Where) -> Iterator[FieldError]:
    """Operators Gt and Lt are refused: their gate (TaintTolerationComparisonOperators) is off."""
    for i, one in enumerate(own):
        at = (*where, i)
        key, operator, value = one.key or "", one.operator or "", one.value or ""
        effect = one.effect or ""
        if key:
            yield from _key(_TOLERATION, key, (*at, "key"))
        elif operator != "Exists":
            text = (
                "operator must be Exists when `key` is empty, which means"
                ' "match all values and all keys"'
            )
            yield invalid(_TOLERATION, (*at, "operator"), operator, text)
        if one.tolerationSeconds is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(_TOLERATION, (*at, "effect"), effect, text)
        if operator in ("", "Equal"):
            complaints = names.label_value(value)
            if complaints:
                yield invalid(_TOLERATION, (*at, "operator"), value, ";".join(complaints))
        elif operator == "Exists":
            if value:
                text = "value must be empty when `operator` is 'Exists'"
                yield invalid(_TOLERATION, (*at, "operator"), value, text)
        elif operator in ("Lt", "Gt"):
            operators = ("Equal", "Exists", "Lt", "Gt")
            yield unsupported(_TOLERATION, (*at, "operator"), operator, operators)
        else:
            yield unsupported(_TOLERATION, (*at, "operator"), operator, ("Equal", "Exists"))
        if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
            every = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            yield unsupported(_TOLERATION, (*at, "effect"), effect, every)


def topology_spread(
    own: tuple[TopologySpreadConstraint, ...], where: Where
) -> Iterator[FieldError]:
    actions = ("DoNotSchedule", "ScheduleAnyway")
    for i, one in enumerate(own):
        at = (*where, i)
        if one.maxSkew <= 0:
            yield invalid(_SPREAD, (*at, "maxSkew"), one.maxSkew, "must be greater than zero")
        if not one.topologyKey:
            yield required(_SPREAD, (*at, "topologyKey"), "can not be empty")
        if one.whenUnsatisfiable not in actions:
            yield unsupported(_SPREAD, (*at, "whenUnsatisfiable"), one.whenUnsatisfiable, actions)
        pair = (one.topologyKey, one.whenUnsatisfiable)
        if any((o.topologyKey, o.whenUnsatisfiable) == pair for o in own[i + 1 :]):
            shown = f"{{{pair[0]}, {pair[1]}}}"
            yield duplicate(_SPREAD, (*at, "{topologyKey, whenUnsatisfiable}"), shown)
        if one.minDomains is not None:
            if one.minDomains <= 0:
                text = "must be greater than zero"
                yield invalid(_SPREAD, (*at, "minDomains"), one.minDomains, text)
            if one.whenUnsatisfiable != "DoNotSchedule":
                text = (
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule,"
                    f" not {one.whenUnsatisfiable}"
                )
                yield invalid(_SPREAD, (*at, "minDomains"), one.minDomains, text)
        for field, policy in (
            ("nodeAffinityPolicy", one.nodeAffinityPolicy),
            ("nodeTaintsPolicy", one.nodeTaintsPolicy),
        ):
            if policy is not None and policy not in ("Honor", "Ignore"):
                yield unsupported(_SPREAD, (*at, field), policy, ("Honor", "Ignore"))
        yield from match_label_keys(_SPREAD, at, one.matchLabelKeys, None, one.labelSelector)
        yield from label_selector(one.labelSelector, (*at, "labelSelector"))


def scheduling_gates(own: tuple[PodSchedulingGate, ...], where: Where) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, gate in enumerate(own):
        yield from _key(_GATE, gate.name, (*where, i))
        if gate.name in seen:
            yield duplicate(_GATE, (*where, i), gate.name)
        seen.add(gate.name)


def deadline(seconds: int | None, where: Where) -> Iterator[FieldError]:
    if seconds is not None and not 1 <= seconds <= _MAX_INT32:
        text = f"must be between 1 and {_MAX_INT32}, inclusive"
        yield invalid("invalid/value", where, seconds, text)
