"""The entries of a policy file: pools, classes, levels, static rules, exceptions, tenants.

Each answers for itself alone; what the whole policy answers is ``model``'s.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from kubectl_gpuadmit.kube.objects import LabelSelectorRequirement, Taint, Toleration
from kubectl_gpuadmit.policy.patterns import has_all, matches
from kubectl_gpuadmit.verdict import Level, Ref


class PoolKubelet(Struct, frozen=True):
    """What a pool's kubelets are told about alignment, in the names of KubeletConfiguration
    (kubelet.config.k8s.io/v1beta1). It counts where the nodes do not say themselves."""

    topologyManagerPolicy: str
    topologyManagerScope: str = "container"
    topologyManagerPolicyOptions: dict[str, str] = field(default_factory=dict)
    cpuManagerPolicy: str = "none"
    cpuManagerPolicyOptions: dict[str, str] = field(default_factory=dict)
    memoryManagerPolicy: str = "None"
    reservedSystemCPUs: str = ""
    featureGates: dict[str, bool] = field(default_factory=dict)


class Pool(Struct, frozen=True):
    """Nodes that carry all of ``nodeSelector``; ``tolerations`` are what a pod needs to enter."""

    name: str
    nodeSelector: dict[str, str]
    tolerations: tuple[Toleration, ...] = ()
    kubelet: PoolKubelet | None = None


class ClassMatch(Struct, frozen=True):
    """Signs of a class: each field that is set is one; all pairs of a map must hold together."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    priorityClasses: tuple[str, ...] = ()
    ownerKinds: tuple[str, ...] = ()


class WorkloadClass(Struct, frozen=True):
    """A kind of work: how it is recognised, where it may land, at which priority."""

    name: str
    match: ClassMatch
    pool: str = ""
    priorityClass: str = ""


class RuleConfig(Struct, frozen=True):
    """One rule's part of the policy. ``settings`` has the rule's own keyword names."""

    level: Level | None = None
    ifMissing: Level | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    namespaces: dict[str, Level] = field(default_factory=dict)
    pools: dict[str, Level] = field(default_factory=dict)


COMPARISON_PATTERN = r"^\s*(>=|<=|==|!=|>|<|=)?\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*$"


class Comparison(Struct, frozen=True):
    """``>40``: operator and number."""

    operator: str
    number: float

    def holds(self, amount: float) -> bool:
        match self.operator:
            case ">":
                return amount > self.number
            case ">=":
                return amount >= self.number
            case "<":
                return amount < self.number
            case "<=":
                return amount <= self.number
            case "!=":
                return amount != self.number
            case _:
                return amount == self.number

    def __str__(self) -> str:
        return f"{self.operator}{self.number:g}"


def parse_comparison(text: str | int | float) -> Comparison:
    """Reads ``>40``, ``>= 4``, ``8`` (equal). Raises ValueError."""
    match = re.fullmatch(COMPARISON_PATTERN[1:-1], str(text), re.ASCII)
    if not match:
        raise ValueError(f'{text!r} is not a comparison such as ">40" or ">=4"')
    return Comparison({"=": "==", None: "=="}.get(match[1], match[1]), float(match[2]))


class StaticMatch(Struct, frozen=True):
    """All fields that are set must hold; an empty one matches every pod."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    matchExpressions: tuple[LabelSelectorRequirement, ...] = ()
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    resources: dict[str, Comparison] = field(default_factory=dict)


class TemplateChange(Struct, frozen=True):
    """What a mutating rule writes into the pod template; values of the same key give way."""

    nodeSelector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    priorityClassName: str = ""
    schedulingGates: tuple[str, ...] = ()


class RequiredTaint(Struct, frozen=True):
    """A taint that the selected nodes must carry and the pod tolerate; no effect = any."""

    key: str
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def is_met_by(self, taint: Taint) -> bool:
        return (
            self.key == taint.key
            and (self.operator == "Exists" or self.value == (taint.value or ""))
            and self.effect in ("", taint.effect)
        )

    def __str__(self) -> str:
        value = f"={self.value}" if self.operator == "Equal" else ""
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")


class StaticRule(Struct, frozen=True):
    """One entry of ``static``: a match, and what follows from it."""

    name: str
    match: StaticMatch
    config: RuleConfig = field(default_factory=RuleConfig)
    mutate: TemplateChange | None = None
    deny: str | None = None
    requiredTaints: tuple[RequiredTaint, ...] = ()
    index: int = 0
    """Place in the list, counted from 0."""

    @property
    def rule(self) -> str:
        """The name that its findings and mutations bear."""
        return f"static/{self.name}"


class ExceptionMatch(Struct, frozen=True):
    """All fields that are set must hold; patterns, except for label keys."""

    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


class PolicyException(Struct, frozen=True):
    """Work that some rules (names, reason codes or patterns) leave alone until ``expires``."""

    rules: tuple[str, ...]
    match: ExceptionMatch
    owner: str
    reason: str
    expires: dt.datetime
    index: int = 0
    """Place in the list, counted from 0."""

    def covers(
        self, rule: str, reason: str, ref: Ref, labels: Mapping[str, str], now: dt.datetime
    ) -> bool:
        match = self.match
        return (
            now <= self.expires
            and any(matches(name, p) for name in (rule, reason) if name for p in self.rules)
            and (not match.namespaces or any(matches(ref.namespace, p) for p in match.namespaces))
            and (not match.kinds or any(matches(ref.kind, p) for p in match.kinds))
            and (not match.names or any(matches(ref.name, p) for p in match.names))
            and has_all(labels, match.labels)
        )


class Tenant(Struct, frozen=True):
    """What the claims of some namespaces may ask for; None where that is not restricted."""

    name: str
    namespaces: tuple[str, ...]
    """Patterns."""
    deviceClasses: tuple[str, ...] | None = None
    """Patterns."""
    selectors: tuple[str, ...] | None = None
    """CEL expressions of requests, as text; spaces do not count."""
    maxDevices: int | None = None
    """Devices of all claims of one pod together."""
    runtimeClasses: tuple[str, ...] | None = None
    """Patterns; a pod without one is always allowed."""
