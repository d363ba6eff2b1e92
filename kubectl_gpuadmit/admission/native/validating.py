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
    PER_CALL,
    PER_CONDITIONS,
    PER_POLICY,
    Budget,
    Expressions,
    OutOfBudget,
    of_policy,
)
from kubectl_gpuadmit.admission.native.request import Request, namespace_variable
from kubectl_gpuadmit.admission.native.who import Makers, variable
from kubectl_gpuadmit.cel.values import (
    Fail,
    Unknown,
    Unsure,
    type_name,
)
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
    activation, budget = known.activation(given), Budget(PER_CONDITIONS)
    conditions = [
        str(condition.get("expression", "")) for condition in one.spec.get("matchConditions") or ()
    ]
    holds = True
    for text in conditions:
        try:
            holds = bool(known.evaluate(text, A_BOOL, activation, budget)) and holds
        except OutOfBudget as problem:
            if one.fails:
                raise Fail(str(problem)) from None
            return False
        except Fail as fault:
            failed.append(str(fault))
        except Unsure as fault:
            unsure = unsure or fault
    if not holds:
        return False
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
    try:
        yield from [
            *_validated(one, known, given),
            *_annotations(one, known, known.activation(given), Budget(PER_POLICY)),
        ]
    except OutOfBudget as problem:
        # takes the place of all that was found
        if one.fails:
            yield Said(one, "failed", str(problem), actions, -1, "")


def _validated(one: Bound, known: Expressions, given: Json) -> Iterator[Said]:
    """Raises OutOfBudget where the validations cost too much together."""
    validations = list(one.spec.get("validations") or ())
    activation, budget = known.activation(given), Budget(PER_POLICY)
    answers: list[bool | Fail | Unsure] = []
    for validation in validations:
        text = str(validation.get("expression", ""))
        try:
            answers.append(bool(known.evaluate(text, A_BOOL, activation, budget)))
        except (Fail, Unsure) as fault:
            answers.append(fault)
    messages, overspent = _messages(validations, answers, known, known.activation(given), budget)
    actions = tuple(one.actions)
    for index, (validation, answer) in enumerate(zip(validations, answers, strict=True)):
        text = str(validation.get("expression", ""))
        if isinstance(answer, Fail):
            if one.fails:
                yield Said(one, "failed", str(answer), actions, index, "")
        elif isinstance(answer, Unsure):
            yield _unknown(one, f"{answer}, which {' '.join(text.split())} reads", index)
        elif overspent:
            if one.fails:
                yield Said(one, "failed", f"failed messageExpression: {overspent}", actions, index)
        elif not answer:
            reason = str(validation.get("reason") or "Invalid")
            message = _message(validation, messages.get(index))
            yield Said(one, "denied", message, actions, index, reason)


def _messages(
    validations: list[Json],
    answers: list[bool | Fail | Unsure],
    known: Expressions,
    activation: Json,
    budget: Budget,
) -> tuple[dict[int, Any], str]:
    """The values of the message expressions, and what is said where they cost too much.

    The API server computes all of them. Those of validations that hold matter only by what they
    cost: they are left out where all together cannot use up what is left.
    """
    texts = [str(one.get("messageExpression") or "") for one in validations]
    count = sum(1 for text in texts if text)
    every = budget.left < PER_CALL * (count + known.composed)
    found: dict[int, Any] = {}
    for index, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        if not text or (answer is True and not every):
            continue
        try:
            found[index] = known.evaluate(text, A_TEXT, activation, budget, authorizer=False)
        except OutOfBudget as problem:
            return found, str(problem)
        except (Fail, Unsure):
            continue
    return found, ""


def _message(validation: Json, value: Any) -> str:
    """What messageExpression gave, else message, else the expression itself."""
    found = ""
    if isinstance(value, str):
        found = value.strip()
        if len(found.encode()) > LONGEST_MESSAGE or "\n" in found:
            found = ""
    if not found:
        found = str(validation.get("message") or "").strip()
    return found or f"failed expression: {str(validation.get('expression', '')).strip()}"


def _annotations(
    one: Bound, known: Expressions, activation: Json, budget: Budget
) -> Iterator[Said]:
    """An audit annotation that cannot be computed refuses as well. Raises OutOfBudget."""
    for annotation in one.spec.get("auditAnnotations") or ():
        text = str(annotation.get("valueExpression", ""))
        try:
            value = known.evaluate(text, AN_ANNOTATION, activation, budget)
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
