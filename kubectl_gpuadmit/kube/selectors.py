"""Label selectors, node selector terms and tolerations, matched exactly as Kubernetes matches them.

Sources: apimachinery v0.37.2 pkg/labels/selector.go and pkg/apis/meta/v1/helpers.go;
component-helpers v0.37.2 scheduling/corev1/nodeaffinity; api v0.37.2 core/v1/toleration.go. A
requirement that does not parse there (unknown operator, wrong number of values, malformed label)
matches nothing here either; ``Selector.error`` says why. What the caller makes of a broken selector
is the caller's rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kubectl_gpuadmit.kube import names
from kubectl_gpuadmit.kube.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Taint,
    Toleration,
)

Labels = Mapping[str, str]

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, "Gt", "Lt")


def parse_int64(text: str) -> int | None:
    """strconv.ParseInt(text, 10, 64); None where it fails."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_Expression = tuple[str, str, tuple[str, ...]]
"""(key, operator, values): a requirement that parsed."""


class Selector:
    """A compiled label selector. Compare by identity: equal ones compile to the same object."""

    __slots__ = ("error", "expressions", "nothing")

    def __init__(
        self, expressions: tuple[_Expression, ...] = (), *, nothing: bool = False, error: str = ""
    ) -> None:
        self.expressions = expressions
        self.nothing = nothing or bool(error)
        """Matches no labels at all (absent or broken selector)."""
        self.error = error

    @property
    def everything(self) -> bool:
        """No requirement: matches all labels. Kubernetes calls this selector empty."""
        return not self.expressions and not self.nothing

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        for key, operator, values in self.expressions:
            if not _satisfied(labels.get(key), operator, values):
                return False
        return True

    def __repr__(self) -> str:
        return f"Selector({self})"

    def __str__(self) -> str:
        if self.nothing:
            return "nothing"
        return ", ".join(describe(*e) for e in self.expressions) or "everything"


def describe(key: str, operator: str, values: Sequence[str]) -> str:
    """A requirement as kubectl writes it: ``a=b``, ``a in (b, c)``, ``!a``, ``a>3``."""
    match operator:
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "In":
            return f"{key} in ({', '.join(values)})"
        case "NotIn" if len(values) == 1:
            return f"{key}!={values[0]}"
        case "NotIn":
            return f"{key} notin ({', '.join(values)})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "Gt" | "Lt":
            return f"{key}{'>' if operator == 'Gt' else '<'}{', '.join(values)}"
    return f"{key} {operator} ({', '.join(values)})"


def label_selector(selector: LabelSelector | None) -> Selector:
    """metav1.LabelSelectorAsSelector: absent matches nothing, empty matches everything."""
    if selector is None:
        return NOTHING
    labels = tuple(sorted((selector.matchLabels or {}).items()))
    return _label_selector(labels, selector.matchExpressions or ())


NOTHING: Final = Selector(nothing=True)


@lru_cache(maxsize=1 << 13)
def _label_selector(
    labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]
) -> Selector:
    wanted: list[_Expression] = [(key, "In", (value,)) for key, value in labels]
    wanted += [(e.key, e.operator, e.values or ()) for e in expressions]
    for expression in wanted:
        if error := _problem(*expression, operators=_LABEL_OPERATORS):
            return Selector(error=error)
    return Selector(tuple(wanted))


def with_labels(selector: Selector, labels: Labels) -> Selector:
    """The selector, and these labels with their values besides (matchLabelKeys)."""
    if not labels or selector.nothing:
        return selector
    return _with(selector, tuple(sorted(labels.items())))


@lru_cache(maxsize=1 << 12)
def _with(selector: Selector, labels: tuple[tuple[str, str], ...]) -> Selector:
    return Selector((*((k, "In", (v,)) for k, v in labels), *selector.expressions))


def _satisfied(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            have = parse_int64(value) if value is not None else None
            bound = parse_int64(values[0])
            if have is None or bound is None:
                return False
            return have > bound if operator == "Gt" else have < bound
    return False


def _problem(key: str, operator: str, values: tuple[str, ...], *, operators: Iterable[str]) -> str:
    """Why labels.NewRequirement would refuse this, '' if it would not."""
    if operator not in operators:
        return f"{operator!r} is not a valid operator"
    if names.label_key(key):
        return f"{key!r} is not a label key"
    if operator in ("In", "NotIn") and not values:
        return f"{key}: {operator} needs at least one value"
    if operator in ("Exists", "DoesNotExist") and values:
        return f"{key}: {operator} takes no values"
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int64(values[0]) is None):
        return f"{key}: {operator} needs exactly one integer"
    for value in values:
        if names.label_value(value):
            return f"{key}: {value!r} is not a label value"
    return ""


# -- nodes --------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 12)
def _term_problem(
    expressions: tuple[LabelSelectorRequirement, ...], fields: tuple[LabelSelectorRequirement, ...]
) -> str:
    """Why such a term cannot be parsed, '' if it can. A term that cannot matches no node."""
    for e in expressions:
        if error := _problem(e.key, e.operator, e.values or (), operators=_NODE_OPERATORS):
            return error
    for e in fields:
        if e.operator not in ("In", "NotIn"):
            return f"{e.operator!r} is not a valid operator of matchFields"
        if len(e.values or ()) != 1:
            return f"{e.key}: matchFields needs exactly one value"
    return ""


def term_matches(term: NodeSelectorTerm, labels: Labels, name: str) -> bool:
    """One term: all its requirements hold. An empty term matches no node."""
    expressions, fields = term.matchExpressions or (), term.matchFields or ()
    if (not expressions and not fields) or _term_problem(expressions, fields):
        return False
    for e in expressions:
        if not _satisfied(labels.get(e.key), e.operator, e.values or ()):
            return False
    if name:
        for e in fields:
            have = name if e.key == "metadata.name" else ""
            if (have in (e.values or ())) != (e.operator == "In"):
                return False
    return True


def node_selector_matches(selector: NodeSelector, labels: Labels, name: str) -> bool:
    """Any of the terms; no term matches no node (LazyErrorNodeSelector.Match)."""
    return any(term_matches(t, labels, name) for t in selector.nodeSelectorTerms or ())


def required_terms(affinity: Affinity | None) -> NodeSelector | None:
    """spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."""
    if affinity is None or affinity.nodeAffinity is None:
        return None
    return affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution


# -- taints --------------------------------------------------------------------------------


def tolerates(toleration: Toleration, taint: Taint, *, comparison: bool = False) -> bool:
    """Toleration.ToleratesTaint. ``comparison`` is the gate TaintTolerationComparisonOperators:
    alpha and off in 1.37, so that Gt and Lt tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Equal":
            return (toleration.value or "") == (taint.value or "")
        case "Exists":
            return True
        case "Gt" | "Lt" if comparison:
            return _compares(toleration, taint)
    return False


def tolerated(
    tolerations: Iterable[Toleration] | None, taint: Taint, *, comparison: bool = False
) -> bool:
    """Whether any toleration tolerates the taint."""
    return any(tolerates(t, taint, comparison=comparison) for t in tolerations or ())


def taint_text(taint: Taint) -> str:
    """``key=value:effect``, as kubectl writes it."""
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else (f"{taint.key}:{taint.effect}")
    )


_DECIMAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    texts = (toleration.value or "", taint.value or "")
    if not all(_DECIMAL.fullmatch(t) for t in texts):
        return False
    bound, have = (parse_int64(t) for t in texts)
    if bound is None or have is None:
        return False
    return have < bound if toleration.operator == "Lt" else have > bound


def binds(pod: Pod, selector: Mapping[str, str]) -> bool:
    """True where node selector and required affinity admit only nodes with all these labels."""
    if not selector:
        return False
    spec = pod.spec
    chosen = spec.nodeSelector or {}
    rest = {key: value for key, value in selector.items() if chosen.get(key) != value}
    if not rest:
        return True
    affinity = spec.affinity and spec.affinity.nodeAffinity
    required = affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
    terms = (required and required.nodeSelectorTerms) or ()
    # Terms are alternatives: each must bind, or the pod escapes through the one that does not.
    # A term without any requirement matches no node (component-helpers nodeaffinity).
    live = [t for t in terms if t.matchExpressions or t.matchFields]
    return bool(live) and all(
        any(
            e.key == key and e.operator == "In" and tuple(e.values or ()) == (value,)
            for e in term.matchExpressions or ()
        )
        for term in live
        for key, value in rest.items()
    )


def leaves_open(pod: Pod, labels: Labels, name: str) -> bool:
    """True for a node that the pod's nodeName, node selector and required affinity admit."""
    spec = pod.spec
    if spec.nodeName and name != spec.nodeName:
        return False
    if not (spec.nodeSelector or {}).items() <= labels.items():
        return False
    required = required_terms(spec.affinity)
    return required is None or node_selector_matches(required, labels, name)
