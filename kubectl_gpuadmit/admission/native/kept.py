"""Which objects policies take parameters from, and which parts of them their expressions read.

A snapshot keeps no more: of a ConfigMap with twenty keys of which a policy reads two, these two.
Secrets are never among them.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from kubectl_gpuadmit.cel import parser
from kubectl_gpuadmit.cel.lexer import SyntaxFault
from kubectl_gpuadmit.cel.syntax import Call, Const, Ident, Node, Select, children
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import kind_name
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, LabelSelector
from kubectl_gpuadmit.kube.selectors import label_selector

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind as the cluster indexes it, namespace, name."""

_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_EXPRESSIONS = frozenset({"expression", "messageExpression", "valueExpression"})
_ALL = frozenset({""})
"""The object as a whole."""


def parameters(cluster: Cluster) -> dict[Key, frozenset[str]]:
    """Every object that a binding may refer to -> the paths in it that its policies read:
    ``data/limit``, ``spec``; ``data/`` whether there is any, '' all of the object."""
    found: dict[Key, frozenset[str]] = {}
    for policies in _POLICIES:
        bindings = [_spec(one) for one in cluster.every(f"{policies}Binding")]
        for policy in cluster.every(policies):
            spec = _spec(policy)
            kind = spec.get("paramKind")
            if not isinstance(kind, dict) or kind.get("kind") == "Secret":
                continue
            named = kind_name(str(kind.get("apiVersion", "")), str(kind.get("kind", "")))
            paths = frozenset(read_by(spec))
            refs = [b.get("paramRef") for b in bindings if b.get("policyName") == policy.name]
            for one in cluster.every(named):
                if any(isinstance(ref, dict) and _refers(ref, one) for ref in refs):
                    key = (named, one.namespace, one.name)
                    found[key] = found.get(key, frozenset()) | paths
    return found


def _spec(obj: KubeObject) -> Json:
    spec = obj.document.get("spec") if isinstance(obj, Generic) else None
    return spec if isinstance(spec, dict) else {}


def _refers(ref: Json, obj: KubeObject) -> bool:
    if ref.get("namespace") and ref["namespace"] != obj.namespace:
        return False
    if ref.get("name"):
        return bool(ref["name"] == obj.name)
    try:
        selector = msgspec.convert(ref.get("selector"), LabelSelector | None)
    except msgspec.ValidationError:
        return False
    return selector is not None and label_selector(selector).matches(obj.labels)


def read_by(spec: Json) -> Iterator[str]:
    """The paths that a policy's expressions read of ``params``; '' for all of it."""
    for text in _expressions(spec):
        try:
            yield from _paths(parser.parse(text))
        except SyntaxFault:
            yield ""


def _expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            if key in _EXPRESSIONS and isinstance(one, str):
                yield one
            else:
                yield from _expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from _expressions(one)


def _paths(node: Node) -> Iterable[str]:
    """A use of ``params`` counts as far as plain names lead from it, two steps at most;
    metadata, kind and apiVersion are kept anyway."""
    steps = _steps(node)
    if steps is not None:
        if not steps:
            return _ALL
        if steps[0] in ("metadata", "kind", "apiVersion"):
            return ()
        if isinstance(node, Select) and node.test and len(steps) == 1:
            return (f"{steps[0]}/",)
        return ("/".join(steps[:2]),)
    if isinstance(node, Call):
        if node.function == "@in" and len(node.args) == 2:
            key, holder = node.args
            inside = _steps(holder)
            if inside and isinstance(key, Const) and isinstance(key.value, str):
                return _paths_of([*inside, key.value])
        if node.function in ("_==_", "_!=_") and any(
            isinstance(one, Const) and one.value is None for one in node.args
        ):
            rest = [one for one in node.args if _steps(one) != []]
            return [path for one in rest for path in _paths(one)]
    return [path for child in children(node) for path in _paths(child)]


def _paths_of(steps: list[str]) -> Iterable[str]:
    return () if steps[0] == "metadata" else ("/".join(steps[:2]),)


def _steps(node: Node | None) -> list[str] | None:
    """``params.data.x``, ``params.data['x']``, ``params.?data[?'x']`` -> [data, x]; [] for
    ``params`` itself, None for what does not begin with it."""
    if isinstance(node, Ident):
        return [] if node.name == "params" else None
    if isinstance(node, Select):
        before = _steps(node.operand)
        return None if before is None else [*before, node.field]
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]") and len(node.args) == 2:
        before, key = _steps(node.args[0]), node.args[1]
        if before and isinstance(key, Const) and isinstance(key.value, str):
            return [*before, key.value]
    return None
