"""What the ValidatingAdmissionPolicies of the cluster say to a request.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/validating/validator.go, dispatcher.go;
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.admission.native import bound as bindings
from kubectl_gpuadmit.admission.native import parameters
from kubectl_gpuadmit.admission.native.bound import Bound
from kubectl_gpuadmit.admission.native.expressions import (
    A_BOOL,
    A_TEXT,
    AN_ANNOTATION,
    Expressions,
    of_policy,
)
from kubectl_gpuadmit.admission.native.request import Request, namespace_variable
from kubectl_gpuadmit.admission.native.who import Makers, variable
from kubectl_gpuadmit.cel.values import Fail, Unknown, Unsure, type_name
from kubectl_gpuadmit.cluster import Cluster

Json = dict[str, Any]

KIND = "ValidatingAdmissionPolicy"
AUTHORIZER = Unknown("what the authorizer would say")
LONGEST_MESSAGE = 5 * 1024


class Said(Struct, frozen=True):
    """One thing that a policy says."""

    bound: Bound
    outcome: Literal["denied", "failed", "unknown"]
    """``failed``: an error that refuses because of failurePolicy Fail."""
    message: str
    actions: tuple[str, ...]
    index: int = -1
    """Of the validation in the policy; -1 where it is about the policy as a whole."""
    reason: str = "Invalid"

    @property
    def text(self) -> str:
        """The denial in the API server's words, without the object in front."""
        named = f"{KIND} '{self.bound.policy}'"
        if self.bound.binding:
            named += f" with binding '{self.bound.binding}'"
        return f"{named} denied request: {self.message}"


def asked(request: Request, cluster: Cluster, *, version: int) -> Iterator[Said]:
    """In the API server's order: by policy, binding, parameter, validation."""
    for one in bindings.bound(KIND, request, cluster):
        if not one.sure:
            yield _unknown(one, f"the labels of namespace {request.namespace}")
            continue
        if one.empty:
            yield _unknown(one, bindings.LEFT_OUT)
            continue
        if one.broken:
            if one.fails:
                yield Said(one, "failed", one.broken, ("Deny",))
            continue
        try:
            ref = one.rules.get("paramRef")
            chosen = parameters.params(one.spec, ref, request, cluster, bare=False)
        except Unsure as problem:
            yield _unknown(one, str(problem))
            continue
        except Fail as problem:
            if one.fails:
                message = f"failed to configure binding: {problem}"
                yield Said(one, "failed", message, ("Deny",))
            continue
        for param in chosen:
            yield from _evaluated(one, param, request, cluster, version)


def asked_by(request: Request, makers: Makers, cluster: Cluster, *, version: int) -> Iterator[Said]:
    """The same for an object that one of ``makers`` creates: what all of them are told is known."""
    blind = list(asked(structs.replace(request, user=makers.otherwise), cluster, version=version))
    if not makers.candidates or all(one.outcome != "unknown" for one in blind):
        yield from blind
        return
    each = [
        list(asked(structs.replace(request, user=variable(one)), cluster, version=version))
        for one in makers.candidates
    ]
    names = sorted({_of(one) for said in (blind, *each) for one in said})
    for name in names:
        answers = [[one for one in said if _of(one) == name] for said in each]
        if all(_gist(one) == _gist(answers[0]) for one in answers[1:]):
            yield from answers[0]
        else:
            yield from (one for one in blind if _of(one) == name)


def _gist(answer: list[Said]) -> list[Said]:
    """An answer without its words: a message may name who asks."""
    return [structs.replace(one, message="") for one in answer]


def _of(said: Said) -> tuple[str, str]:
    return said.bound.policy, said.bound.binding


def _unknown(one: Bound, what: str, index: int = -1) -> Said:
    return Said(one, "unknown", what, tuple(one.actions), index)


def variables(one: Bound, param: Any, request: Request, namespace: Any) -> Json:
    """What the expressions of a policy may read."""
    return {
        "object": request.object,
        "oldObject": None,
        "request": request.variable(),
        "namespaceObject": namespace,
        "params": param,
        "authorizer": AUTHORIZER,
    }


def applies(one: Bound, param: Any, request: Request, known: Expressions) -> bool:
    """Whether the match conditions hold. Raises Fail with their errors, Unsure."""
    given = variables(one, param, request, None)
    failed: list[str] = []
    unsure: Unsure | None = None
    activation = known.activation(given)
    for condition in one.spec.get("matchConditions") or ():
        try:
            if not known.evaluate(str(condition.get("expression", "")), A_BOOL, activation):
                return False
        except Fail as fault:
            failed.append(str(fault))
        except Unsure as fault:
            unsure = unsure or fault
    if unsure is not None:
        raise unsure
    if failed and one.fails:
        unique = list(dict.fromkeys(failed))
        raise Fail(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
    return not failed


def _evaluated(
    one: Bound, param: Any, request: Request, cluster: Cluster, version: int
) -> Iterator[Said]:
    known = of_policy(one.spec, version)
    actions = tuple(one.actions)
    try:
        if not applies(one, param, request, known):
            return
    except Unsure as problem:
        yield _unknown(one, f"whether its match conditions hold: {problem}")
        return
    except Fail as problem:
        yield Said(one, "failed", str(problem), actions)
        return
    namespace = namespace_variable(request.namespace, cluster) if request.namespace else None
    given = variables(one, param, request, namespace)
    activation, messages = known.activation(given), known.activation(given)
    for index, validation in enumerate(one.spec.get("validations") or ()):
        text = str(validation.get("expression", ""))
        try:
            if known.evaluate(text, A_BOOL, activation):
                continue
        except Fail as fault:
            if one.fails:
                yield Said(one, "failed", str(fault), actions, index, "")
            continue
        except Unsure as fault:
            yield _unknown(one, f"{fault}, which {' '.join(text.split())} reads", index)
            continue
        message = _message(validation, known, messages)
        reason = str(validation.get("reason") or "Invalid")
        yield Said(one, "denied", message, actions, index, reason)
    yield from _annotations(one, known, known.activation(given))


def _message(validation: Json, known: Expressions, activation: Json) -> str:
    """messageExpression, else message, else the expression itself."""
    found = ""
    text = validation.get("messageExpression")
    if text:
        try:
            value = known.evaluate(str(text), A_TEXT, activation, authorizer=False)
        except (Fail, Unsure):
            value = None
        if isinstance(value, str):
            found = value.strip()
            if len(found.encode()) > LONGEST_MESSAGE or "\n" in found:
                found = ""
    if not found:
        found = str(validation.get("message") or "").strip()
    return found or f"failed expression: {str(validation.get('expression', '')).strip()}"


def _annotations(one: Bound, known: Expressions, activation: Json) -> Iterator[Said]:
    """An audit annotation that cannot be computed refuses as well."""
    for annotation in one.spec.get("auditAnnotations") or ():
        text = str(annotation.get("valueExpression", ""))
        try:
            value = known.evaluate(text, AN_ANNOTATION, activation)
        except Fail as fault:
            if one.fails:
                yield Said(one, "failed", str(fault), ("Deny",), -1, "")
            continue
        except Unsure:
            continue  # only what it says is not known, and that decides nothing
        if value is not None and not isinstance(value, str):
            message = (
                f"valueExpression '{text}' resulted in unsupported return type:"
                f" {type_name(value)}. Return type must be either string or null."
            )
            yield Said(one, "failed", message, ("Deny",), -1, "")
