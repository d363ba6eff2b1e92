"""What the MutatingAdmissionPolicies of the cluster make of a new object.

All policies are asked in order. Where one had an effect, those with reinvocationPolicy IfNeeded are
asked once more.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/mutating/dispatcher.go,
reinvocationcontext.go; policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

import copy
from typing import Any, cast

from msgspec import Struct, structs

from kubectl_gpuadmit.admission.native import bound as bindings
from kubectl_gpuadmit.admission.native import json_patch, merge, parameters, pod_defaults, workloads
from kubectl_gpuadmit.admission.native.bound import Bound
from kubectl_gpuadmit.admission.native.expressions import (
    A_PATCH,
    AN_OBJECT,
    PER_POLICY,
    Budget,
    OutOfBudget,
    of_policy,
)
from kubectl_gpuadmit.admission.native.request import Partial, Request, namespace_variable
from kubectl_gpuadmit.admission.native.typed import table, typed, unreadable
from kubectl_gpuadmit.admission.native.validating import applies, variables
from kubectl_gpuadmit.admission.native.who import Makers, variable
from kubectl_gpuadmit.cel.values import Fail, Unsure
from kubectl_gpuadmit.cluster import Cluster

Json = dict[str, Any]

KIND = "MutatingAdmissionPolicy"


class Change(Struct, frozen=True):
    """One policy changed the object."""

    bound: Bound
    before: Json
    after: Json


class Trouble(Struct, frozen=True):
    """A policy failed, or what it would do cannot be told."""

    bound: Bound
    message: str
    unknown: bool
    bare: bool = False
    """An internal error: told as it is, and the end of the request whatever failurePolicy says."""

    @property
    def text(self) -> str:
        """The refusal as the API server words it: without the object in front."""
        if self.bare:
            return self.message
        one = self.bound
        named = f"policy '{one.policy}' with binding '{one.binding}'"
        if not one.binding:
            named = f'policy "{one.policy}"'
        return f"{named} denied request: {self.message}"


class Mutated(Struct):
    """The object after all policies."""

    object: Json
    changes: list[Change]
    troubles: list[Trouble]


class _Call(Struct):
    bound: Bound
    param: Any
    number: int
    """Of the parameter among those of its binding."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.bound.policy, self.bound.binding, self.number


def mutated(request: Request, cluster: Cluster, *, version: int) -> Mutated:
    """Asks all policies about the request; those that want it once more where one had an effect."""
    run = _Run(request, cluster, version)
    try:
        _invoked(run)
    except _Ended as problem:
        unknown = [one for one in run.result.troubles if one.unknown]
        run.result.troubles = [*unknown, problem.trouble]
    return run.result


class _Ended(Exception):
    """The API server gives up on the request: what others said is not heard."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def _invoked(run: _Run) -> None:
    invoked = {call.key for call in run.calls() if run.invoke(call)}
    refused = any(not one.unknown for one in run.result.troubles)
    if run.patched and not refused:
        for call in run.calls():
            again = call.bound.spec.get("reinvocationPolicy") == "IfNeeded"
            run.invoke(call, conditions_only=not (again and call.key in invoked))


def mutated_by(request: Request, makers: Makers, cluster: Cluster, *, version: int) -> Mutated:
    """The same for an object that one of ``makers`` creates: where not all of them would have the
    same made of it, what depends on that is unknown."""
    blind = mutated(structs.replace(request, user=makers.otherwise), cluster, version=version)
    if not makers.candidates or not any(one.unknown for one in blind.troubles):
        return blind
    each = [
        mutated(structs.replace(request, user=variable(one)), cluster, version=version)
        for one in makers.candidates
    ]
    return each[0] if all(one == each[0] for one in each[1:]) else blind


class _Run:
    def __init__(self, request: Request, cluster: Cluster, version: int) -> None:
        self._request, self._cluster, self._version = request, cluster, version
        self.result = Mutated(request.object, [], [])
        self.patched = False

    def calls(self) -> list[_Call]:
        """Policy × binding × parameter, as far as they match and the parameters are known."""
        found: list[_Call] = []
        now = structs.replace(self._request, labels=self._labels())
        for one in bindings.bound(KIND, now, self._cluster):
            if not one.sure:
                self._trouble(one, f"the labels of namespace {self._request.namespace}", True)
                continue
            if one.empty:
                self._trouble(one, bindings.LEFT_OUT, True)
                continue
            if one.broken:
                if one.fails:
                    self._trouble(one, one.broken, False)
                continue
            try:
                ref = one.rules.get("paramRef")
                chosen = parameters.params(one.spec, ref, self._request, self._cluster, bare=True)
            except Unsure as problem:
                self._trouble(one, str(problem), True)
                continue
            except Fail as problem:
                if one.fails:
                    self._trouble(one, f"failed to configure binding: {problem}", False)
                continue
            found += [_Call(one, param, number) for number, param in enumerate(chosen)]
        return found

    def _trouble(self, one: Bound, message: str, unknown: bool) -> None:
        self.result.troubles.append(Trouble(one, message, unknown))

    def invoke(self, call: _Call, *, conditions_only: bool = False) -> bool:
        """Whether the match conditions hold, so that the mutations were tried.

        In the second round the conditions of all policies are evaluated, whoever is called again.
        """
        one = call.bound
        now = structs.replace(self._request, object=self.result.object)
        known = of_policy(one.spec, self._version)
        try:
            if not applies(one, call.param, now, known):
                return False
        except Unsure as problem:
            self._trouble(one, f"whether its match conditions hold: {problem}", True)
            return False
        except Fail as problem:
            self._trouble(one, str(problem), False)
            return False
        if conditions_only:
            return False
        before = self.result.object
        for mutation in one.spec.get("mutations") or ():
            if not isinstance(mutation, dict):
                continue
            try:
                self.result.object = self._applied(mutation, call)
                self.patched = True
            except Unsure as problem:
                self._trouble(one, str(problem), True)
            except (Fail, OutOfBudget) as problem:
                if one.fails:
                    self._trouble(one, str(problem), False)
        if self.result.object != before:
            self.result.changes.append(Change(one, before, self.result.object))
        return True

    def _labels(self) -> dict[str, str]:
        return workloads.labels(self.result.object)

    def _applied(self, mutation: Json, call: _Call) -> Json:
        one, document = call.bound, self.result.object
        namespace = (
            namespace_variable(self._request.namespace, self._cluster)
            if self._request.namespace
            else None
        )
        now = structs.replace(self._request, object=document)
        known = of_policy(one.spec, self._version)
        activation = known.activation(variables(one, call.param, now, namespace))
        budget = Budget(PER_POLICY)
        name = type_name(self._request)
        if mutation.get("patchType") == "JSONPatch":
            text = str((mutation.get("jsonPatch") or {}).get("expression", ""))
            value = known.evaluate(text, A_PATCH, activation, budget, patches=True)
            try:
                after = json_patch.patched(document, merge.operations(value))
            except json_patch.TestFailed:
                return cast(Json, json_patch.apart(document))
            if name in table().types:
                self._check(after, name, one)
                after = typed(after, name) | {
                    key: document[key] for key in ("apiVersion", "kind") if key in document
                }
        else:
            text = str((mutation.get("applyConfiguration") or {}).get("expression", ""))
            value = known.evaluate(text, AN_OBJECT, activation, budget, patches=True)
            merge.check_names(value)
            if isinstance(document, Partial):
                raise Unsure(f"how an apply configuration is merged into a {name}")
            after = merge.applied(document, merge.plain(value), name)
        after = copy.deepcopy(after)
        if name == "v1.Pod":
            pod_defaults.fill(after)
        else:
            workloads.fill(after, name, version=self._version)
        return after

    def _check(self, after: Json, name: str, one: Bound) -> None:
        """What a patch made is decoded strictly. Raises _Ended, Unsure."""
        unknown, wrong = unreadable(after, name)
        if wrong:
            raise Unsure(f"how the API server reads {wrong[0]} after the patch")
        if unknown:
            fields = ", ".join(f'unknown field "{path}"' for path in unknown)
            message = f"Internal error occurred: strict decoding error: {fields}"
            raise _Ended(Trouble(one, message, unknown=False, bare=True))


def type_name(request: Request) -> str:
    """The Go type of the object: ``v1.Pod``, ``apps.Deployment``."""
    return f"{request.group or 'v1'}.{request.kind}"
