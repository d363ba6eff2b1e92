"""What a rule is: a pure generator with a name, documentation, settings and catalogued reasons.

A rule yields what it found (``Finding``), what it would change (``Mutation``) or what it could not
know (``Unknown``), never how severe that is. Settings are keyword-only arguments with defaults; the
docstring is the documentation page; the function's ``reasons`` are its part of the catalogue.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.verdict import Fidelity, Finding, Level, Mutation, Unknown

if TYPE_CHECKING:
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
    from kubectl_gpuadmit.policy import Policy

Found = Finding | Mutation | Unknown


class Ask(Struct, frozen=True):
    """One pod group of one workload, as a rule sees it.

    ``pod`` is the pod as it would reach the rule: defaulted, and changed by the mutations before
    it. Rules are asked once per group: its ``group.count`` pods differ by name only. Pointers of
    what a rule finds lead into the user's manifest (``field``, ``manifest_patch``), paths of a
    mutation into the template. A rule that speaks for entries of the policy (``static/NAME``) puts
    that name on what it finds: it is levelled by it.
    """

    workload: Workload
    group: PodGroup
    pod: Pod
    namespace: str
    now: dt.datetime
    policy: Policy
    pool: str = ""
    """Name of the policy's pool that the pod is bound to, '' if none or several."""

    kubernetes: str = LATEST
    """Version of the API server that the pod is sent to."""

    running: tuple[Pod, ...] = ()
    """Pods of this very workload that run now. They are not in the cluster that the rule is given:
    applying a manifest replaces them."""

    @property
    def first_group(self) -> bool:
        """True for one of the workload's groups: what concerns the whole workload is said once."""
        asked = (group.role for group in self.workload.groups if group.count)
        return self.group.role == next(asked, self.group.role)

    def field(self, path: str) -> str:
        """Pointer into the user's manifest for a path in the template, '' if it has none."""
        return self.group.in_manifest(path) or ""

    def manifest_patch(self, ops: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
        """The same operations against the manifest; empty where one of them has no place there."""
        moved = tuple({**op, "path": self.field(op["path"])} for op in ops)
        return moved if all(op["path"] for op in moved) else ()


RuleFunction = Callable[..., Iterator[Found]]


class Rule(Struct, frozen=True):
    """A rule as registered. ``name`` is ``family/what``."""

    name: str
    family: str
    function: RuleFunction
    reasons: Mapping[str, str]
    """Reason code -> its meaning in one sentence. Each code starts with the family."""
    needs: frozenset[str]
    """Kinds whose absence from the source makes the answer unknown (``Cluster.knows``), always."""
    stage: Literal["mutate", "validate"]
    fidelity: Fidelity
    default_level: Level
    documentation: str
    settings: Mapping[str, Any]
    """Setting -> default."""
    reads: frozenset[str] = frozenset()
    """Kinds that it asks for only where the workload concerns it; it says what it misses."""

    def ask(self, ask: Ask, cluster: Cluster, settings: Mapping[str, Any]) -> Iterator[Found]:
        return self.function(ask, cluster, **settings)


REGISTRY: dict[str, Rule] = {}
"""Filled by importing ``kubectl_gpuadmit.rules``, which lists every rule module by name."""


def rule(
    name: str,
    *,
    reasons: Mapping[str, str],
    needs: frozenset[str] | set[str] = frozenset(),
    reads: frozenset[str] | set[str] = frozenset(),
    stage: Literal["mutate", "validate"] = "validate",
    fidelity: Fidelity = "modelled",
    level: Level = "off",
) -> Callable[[RuleFunction], RuleFunction]:
    """Registers the function below as rule ``name``; ``level`` holds where the policy is silent."""
    family = name.split("/", 1)[0]

    def register(function: RuleFunction) -> RuleFunction:
        documentation = inspect.getdoc(function) or ""
        if not documentation or name in REGISTRY:
            raise TypeError(f"rule {name} has no docstring or is registered twice")
        settings = {
            p.name: p.default
            for p in inspect.signature(function).parameters.values()
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        REGISTRY[name] = Rule(
            name=name,
            family=family,
            function=function,
            reasons=dict(reasons),
            needs=frozenset(needs),
            stage=stage,
            fidelity=fidelity,
            default_level=level,
            documentation=documentation,
            settings=settings,
            reads=frozenset(reads),
        )
        return function

    return register
