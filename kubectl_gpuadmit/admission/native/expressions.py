"""The CEL environment of admission policies: variables, their types, composed variables.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/cel/compile.go, composition.go,
activation.go; pkg/apis/cel/config.go; pkg/cel/library/authz.go, jsonpatch.go; pkg/cel/mutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel.environment import MOST_VISITS, CompileError, Environment, Program
from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.steps import CANCELLED
from kubectl_gpuadmit.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)
from kubectl_gpuadmit.cel.values import Fail, Unsure

Json = dict[str, Any]

PER_CALL = 1_000_000
"""Cost units of one expression (pkg/apis/cel/config.go)."""
PER_POLICY = 10_000_000
"""Of all validations and messages of a policy for one binding and parameter; of all audit
annotations; of one mutation."""
PER_CONDITIONS = 2_500_000
"""Of all match conditions."""
OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudget(Exception):
    """The expressions before have used up what all of them together may cost."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Budget:
    """What several expressions may still cost."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, cost: int) -> None:
        """Raises OutOfBudget."""
        if cost > self.left:
            raise OutOfBudget
        self.left -= cost


_AUTHORIZER = "kubernetes.authorization.Authorizer"
_VARIABLES = "kubernetes.variables"
_KIND = struct("kubernetes.GroupVersionKind")
_RESOURCE = struct("kubernetes.GroupVersionResource")
_TEXTS = list_of(STRING)

_FIELDS: dict[str, dict[str, Type]] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    "kubernetes.UserInfo": {
        "username": STRING,
        "uid": STRING,
        "groups": _TEXTS,
        "extra": map_of(STRING, _TEXTS),
    },
    "kubernetes.AdmissionRequest": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
    "kubernetes.NamespaceMetadata": {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": _TEXTS,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceStatus": {
        "conditions": list_of(struct("kubernetes.NamespaceCondition")),
        "phase": STRING,
    },
    "kubernetes.NamespaceCondition": {
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": TIMESTAMP,
        "message": STRING,
        "reason": STRING,
    },
    _AUTHORIZER: {"requestResource": struct("kubernetes.authorization.ResourceCheck")},
}


class _Structs:
    """Struct types of admission, with the policy's own variables and the objects of mutations."""

    def __init__(self, variables: dict[str, Type], *, patches: bool) -> None:
        self._variables, self._patches = variables, patches

    def field(self, struct: str, name: str) -> Type | None:
        if struct == _VARIABLES:
            return self._variables.get(name)
        if struct == "JSONPatch" and self._patches:
            return {"op": STRING, "path": STRING, "from": STRING, "value": DYN}.get(name)
        if self._patches and (struct == "Object" or struct.startswith("Object.")):
            return DYN
        return _FIELDS.get(struct, {}).get(name)

    def message(self, name: str) -> Type | None:
        if self._patches and (name in ("Object", "JSONPatch") or name.startswith("Object.")):
            return struct(name)
        return None


def _never(*_: Any) -> Any:
    raise Unsure("what the authorizer would say")


def _authorizer() -> tuple[Overload, ...]:
    a = "kubernetes.authorization."
    lines = (
        f"{a}Authorizer::path(string): {a}PathCheck",
        f"{a}Authorizer::group(string): {a}GroupCheck",
        f"{a}Authorizer::serviceAccount(string,string): {a}Authorizer",
        f"{a}GroupCheck::resource(string): {a}ResourceCheck",
        f"{a}ResourceCheck::subresource(string): {a}ResourceCheck",
        f"{a}ResourceCheck::namespace(string): {a}ResourceCheck",
        f"{a}ResourceCheck::name(string): {a}ResourceCheck",
        f"{a}ResourceCheck::fieldSelector(string): {a}ResourceCheck",
        f"{a}ResourceCheck::labelSelector(string): {a}ResourceCheck",
        f"{a}PathCheck::check(string): {a}Decision",
        f"{a}ResourceCheck::check(string): {a}Decision",
        f"{a}Decision::errored(): bool",
        f"{a}Decision::error(): string",
        f"{a}Decision::allowed(): bool",
        f"{a}Decision::reason(): string",
    )
    return tuple(declare(line, _never) for line in lines)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


_MORE = (*_authorizer(), declare("jsonpatch.escapeKey(string): string", _escape))
_PLAIN_MORE = _authorizer()


class Wanted(Struct, frozen=True):
    """Which type an expression must have, and what is said where it has not."""

    types: tuple[Type, ...] = ()
    """Empty: any."""

    def refuses(self, found: Type) -> str:
        if not self.types or found in self.types:
            return ""
        if len(self.types) == 1:
            return f"must evaluate to {self.types[0]} but got {found}"
        shown = " ".join("null_type" if one == NULL else str(one) for one in self.types)
        return f"must evaluate to one of [{shown}] but got {found}"


A_BOOL, A_TEXT, ANYTHING = Wanted((BOOL,)), Wanted((STRING,)), Wanted()
AN_ANNOTATION = Wanted((STRING, NULL))
A_PATCH = Wanted((list_of(struct("JSONPatch")),))
AN_OBJECT = Wanted((struct("Object"),))


class Expressions:
    """The compiled expressions of one policy."""

    def __init__(self, variables: Sequence[tuple[str, str]], *, params: bool, version: int) -> None:
        self._types: dict[str, Type] = {}
        self._variables: dict[str, Program | str] = {}
        self._params, self._version = params, version
        self._known: dict[tuple[str, Wanted, bool, bool], Program | str] = {}
        for name, text in variables:
            made = self._compile(text, ANYTHING, authorizer=True, patches=False)
            self._types[name] = _declared(made.type) if isinstance(made, Program) else DYN
            self._variables[name] = made

    @property
    def composed(self) -> int:
        """How many variables the policy composes."""
        return len(self._variables)

    def _compile(
        self, text: str, wanted: Wanted, *, authorizer: bool, patches: bool
    ) -> Program | str:
        known = {
            "object": DYN,
            "oldObject": DYN,
            "request": struct("kubernetes.AdmissionRequest"),
            "namespaceObject": struct("kubernetes.Namespace"),
            "variables": struct(_VARIABLES),
        }
        if self._params:
            known["params"] = DYN
        if authorizer:
            known["authorizer"] = struct(_AUTHORIZER)
        environment = Environment(
            known,
            structs=_Structs(dict(self._types), patches=patches),
            version=self._version,
            functions=_MORE if patches else _PLAIN_MORE,
        )
        try:
            return environment.compile(text, wanted.refuses)
        except CompileError as fault:
            return str(fault)

    def evaluate(
        self,
        text: str,
        wanted: Wanted,
        activation: Json,
        budget: Budget,
        *,
        authorizer: bool = True,
        patches: bool = False,
    ) -> Any:
        """The value. Raises Fail with the API server's words, Unsure where it cannot be told,
        OutOfBudget."""
        key = (text, wanted, authorizer, patches)
        if key not in self._known:
            self._known[key] = self._compile(text, wanted, authorizer=authorizer, patches=patches)
        program = self._known[key]
        if isinstance(program, str):
            prefix = "" if patches else "compilation error: "
            raise Fail(prefix + program)
        try:
            cost: int | None = program.cost(activation, PER_CALL)
        except Unsure:
            cost = None  # what it would cost hangs on the same unknown
        budget.take(activation["variables"].spent())
        budget.take(cost or 0)
        try:
            return _value(program, activation, cost)
        except Fail as fault:
            raise Fail(f"expression '{text}' resulted in error: {fault}") from None

    def activation(self, given: Json) -> Json:
        """The variables of one evaluation: ``variables`` are computed when they are read."""
        found = dict(given)
        found["variables"] = _Lazy(self._variables, found)
        return found


def _value(program: Program, activation: Json, cost: int | None) -> Any:
    """Raises Fail, also where the cost is above the limit, or Unsure."""
    if cost is None:
        return program.evaluate(activation, visits=MOST_VISITS)
    if cost > PER_CALL:
        raise Fail(CANCELLED)
    return program.evaluate(activation)


class _Lazy(dict[str, Any]):
    """The composed variables: each is computed, and paid for, when it is first read."""

    def __init__(self, programs: dict[str, Program | str], activation: Json) -> None:
        super().__init__()
        self._programs, self._activation = programs, activation
        self._failed: dict[str, str] = {}
        self._spent = 0

    def spent(self) -> int:
        """What variables have cost since this was asked last."""
        spent, self._spent = self._spent, 0
        return spent

    def __missing__(self, name: str) -> Any:
        if name in self._failed:
            raise Fail(self._failed[name])
        program = self._programs.get(name)
        if program is None:
            raise Fail(f"no such key: {name}")
        if isinstance(program, str):
            raise Fail(f'composited variable "{name}" fails to compile: {program}')
        try:
            cost: int | None = program.cost(self._activation, PER_CALL)
        except Unsure:
            cost = None
        self._spent += cost or 0
        try:
            value = _value(program, self._activation, cost)
        except Fail as fault:
            self._failed[name] = f'composited variable "{name}" fails to evaluate: {fault}'
            raise Fail(self._failed[name]) from None
        self[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._programs


def _declared(found: Type) -> Type:
    """The type of a variable as the policies' environment knows it: structs are dynamic there."""
    if found.kind in ("list", "map"):
        return Type(found.kind, "", tuple(_declared(one) for one in found.params))
    if found.kind in ("struct", "opaque", "type", "param", "error"):
        return DYN
    return found


@lru_cache(maxsize=256)
def expressions(
    variables: tuple[tuple[str, str], ...], *, params: bool, version: int
) -> Expressions:
    """Compiled once for all pods that are asked about."""
    return Expressions(variables, params=params, version=version)


def of_policy(spec: Json, version: int) -> Expressions:
    variables = tuple(
        (str(one.get("name", "")), str(one.get("expression", "")))
        for one in spec.get("variables") or ()
        if isinstance(one, dict)
    )
    return expressions(variables, params=bool(spec.get("paramKind")), version=version)
