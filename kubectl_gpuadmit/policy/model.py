"""The policy as values, and the questions asked of it; reads no files and judges no pod.

Rules of this module
1. The first answer that is more specific wins: a namespace's level beats a pool's, a pool's beats
   the rule's, the rule's beats ``defaults``; an exact namespace beats a pattern, a longer pattern a
   shorter one.
2. Patterns are shell patterns (``research-*``), case-sensitive. Label and namespace names cannot
   hold ``*``, so a plain name is never taken for a pattern.
3. A rule that the policy does not name keeps the level it was registered with.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from kubectl_gpuadmit.devices.maturity import Ledger
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.objects import LabelSelectorRequirement, Pod, Taint, Toleration
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Level, Ref

if TYPE_CHECKING:
    from kubectl_gpuadmit.kube.workloads.declared import DeclaredKind
    from kubectl_gpuadmit.sizing.registry import Models

GPU_PATTERNS = gpus.DEFAULT
"""Resources that count as GPUs where the policy names none."""

NO_LABELS: Mapping[str, str] = {}

TTL_ANNOTATIONS = ("gpu-admit.io/ttl",)


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


class Sign(Struct, frozen=True):
    """Why a pod counts as a class: ``label workload-type=batch``."""

    workload_class: str
    text: str


class RuleConfig(Struct, frozen=True):
    """One rule's part of the policy. ``settings`` has the rule's own keyword names."""

    level: Level | None = None
    ifMissing: Level | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    namespaces: dict[str, Level] = field(default_factory=dict)
    pools: dict[str, Level] = field(default_factory=dict)


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


class Policy(Struct, frozen=True, kw_only=True):
    """A whole policy file. ``Policy.default()`` is the policy of a run without one."""

    name: str = "default"
    source: str = ""
    """File that it came from, '' for the built-in one."""
    pools: tuple[Pool, ...] = ()
    classes: tuple[WorkloadClass, ...] = ()
    default_level: Level | None = None
    default_if_missing: Level = "warn"
    rules: dict[str, RuleConfig] = field(default_factory=dict)
    static: tuple[StaticRule, ...] = ()
    exceptions: tuple[PolicyException, ...] = ()
    declared_kinds: tuple[DeclaredKind, ...] = ()
    ledger: Ledger = Ledger()
    tenants: tuple[Tenant, ...] = ()
    gpu_patterns: tuple[str, ...] = GPU_PATTERNS
    ttl_annotations: tuple[str, ...] = TTL_ANNOTATIONS
    admission_plugins: frozenset[str] = frozenset()
    """Plugins of the API server that are on here though they are off by default."""
    models: Models | None = None
    """Models that the organisation has written down; None: the shipped catalogue alone."""

    @classmethod
    def default(cls) -> Policy:
        """No pools, no classes: only rules whose own level is not ``off`` speak."""
        return cls()

    # -- levels ------------------------------------------------------------------------------------

    def level(
        self, rule: str, *, namespace: str = "", pool: str = "", default: Level | None = None
    ) -> Level:
        """The level of a rule, ``static/NAME`` entry or reason code for this namespace and pool.

        ``default`` answers for what the policy does not mention; without it a registered rule
        answers with its own default level and anything else with ``deny``.
        """
        config = self.config(rule)
        if config is None:
            registered = REGISTRY.get(rule)
            return default or (registered.default_level if registered else "deny")
        return (
            _most_specific(config.namespaces, namespace)
            or config.pools.get(pool)
            or config.level
            or self.default_level
            or "deny"
        )

    def names(self, rule: str) -> bool:
        """True where the policy itself says something about this rule or reason code."""
        return self.config(rule) is not None

    def if_missing(self, rule: str) -> Level:
        """What to make of a fact that the rule needed and nobody gave."""
        config = self.config(rule)
        return (config and config.ifMissing) or self.default_if_missing

    def settings(self, rule: str) -> dict[str, Any]:
        """The settings given for a rule, as keyword arguments; absent ones keep their default."""
        config = self.config(rule)
        return dict(config.settings) if config else {}

    def with_settings(self, rule: str, settings: Mapping[str, Any]) -> Policy:
        """The same policy with some settings of one rule replaced; its level stays what it is."""
        if not settings:
            return self
        config = self.config(rule) or RuleConfig(level=self.level(rule))
        changed = msgspec.structs.replace(config, settings={**config.settings, **settings})
        return msgspec.structs.replace(self, rules={**self.rules, rule: changed})

    def config(self, rule: str) -> RuleConfig | None:
        """What the policy itself says of a rule or ``static/NAME`` entry; None for nothing."""
        if rule in self.rules:
            return self.rules[rule]
        for entry in self.static:
            if entry.rule == rule:
                return entry.config
        return None

    def exception_for(
        self,
        rule: str,
        reason: str,
        ref: Ref,
        now: dt.datetime,
        *,
        labels: Mapping[str, str] = NO_LABELS,
    ) -> PolicyException | None:
        """The first exception that is in force and covers this finding; expired ones never do.

        ``labels`` are the workload's own and its pod template's.
        """
        for exception in self.exceptions:
            if exception.covers(rule, reason, ref, labels, now):
                return exception
        return None

    def tenant(self, namespace: str) -> Tenant | None:
        """The first tenant whose namespaces hold this one."""
        return next(
            (t for t in self.tenants if any(matches(namespace, p) for p in t.namespaces)), None
        )

    # -- pools and classes -------------------------------------------------------------------------

    def pool(self, name: str) -> Pool | None:
        """The pool of this name; None for '' and for a name that is not declared."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def named_class(self, name: str) -> WorkloadClass | None:
        """The workload class of this name; None for '' and for a name that is not declared."""
        return next((cls for cls in self.classes if cls.name == name), None)

    def class_pool(self, name: str) -> str:
        """The pool of a workload class, '' if it has none."""
        cls = self.named_class(name)
        return cls.pool if cls else ""

    def pool_of_node(self, labels: Mapping[str, str]) -> str:
        """The pool whose selector the node carries; of several the one that asks for most labels,
        then the first in the file; '' if none."""
        best: Pool | None = None
        for pool in self.pools:
            if pool.nodeSelector.items() <= labels.items() and (
                best is None or len(pool.nodeSelector) > len(best.nodeSelector)
            ):
                best = pool
        return best.name if best else ""

    def pool_of_pod(self, pod: Pod) -> str:
        """The pool to which selector and required affinity bind the pod; '' if none or several.

        Bound means that no node outside could be chosen, whatever nodes exist. Of pools that
        contain each other the narrower one counts.
        """
        bound = [pool for pool in self.pools if binds(pod, pool.nodeSelector)]
        if len(bound) > 1:
            widest = max(len(pool.nodeSelector) for pool in bound)
            bound = [pool for pool in bound if len(pool.nodeSelector) == widest]
        return bound[0].name if len(bound) == 1 else ""

    def signs(self, pod: Pod, owner_kind: str = "") -> tuple[Sign, ...]:
        """Everything that says which class the pod is of, strongest first: label, annotation,
        priority class, kind of the workload."""

        def text(rank: int, match: ClassMatch) -> str:
            match rank:
                case 0:
                    return "label " + pairs(match.labels, pod.labels)
                case 1:
                    return "annotation " + pairs(match.annotations, pod.annotations)
                case 2:
                    return f"priority class {pod.spec.priorityClassName}"
                case _:
                    return f"kind {owner_kind}"

        found = sorted(self._matching(pod, owner_kind), key=lambda pair: pair[0])
        return tuple(Sign(cls.name, text(rank, cls.match)) for rank, cls in found)

    def workload_class(self, pod: Pod, owner_kind: str = "") -> str:
        """The class that the strongest sign names; '' if there is no sign."""
        strongest = min(self._matching(pod, owner_kind), key=lambda pair: pair[0], default=None)
        return strongest[1].name if strongest else ""

    def _matching(self, pod: Pod, owner_kind: str) -> Iterator[tuple[int, WorkloadClass]]:
        """(rank of the sign, the class), in the order of the classes."""
        labels, annotations = pod.labels, pod.annotations
        priority = pod.spec.priorityClassName or ""
        for cls in self.classes:
            match = cls.match
            if match.labels and has_all(labels, match.labels):
                yield 0, cls
            if match.annotations and has_all(annotations, match.annotations):
                yield 1, cls
            if priority and any(matches(priority, p) for p in match.priorityClasses):
                yield 2, cls
            if owner_kind and any(matches(owner_kind, p) for p in match.ownerKinds):
                yield 3, cls


def matches(text: str, pattern: str) -> bool:
    """Shell pattern, case-sensitive."""
    return text == pattern or (("*" in pattern or "?" in pattern) and fnmatchcase(text, pattern))


def has_all(given: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """True where every key of ``wanted`` is given with a value that matches its pattern."""
    return all(key in given and matches(given[key], value) for key, value in wanted.items())


def pairs(keys: Mapping[str, str], given: Mapping[str, str]) -> str:
    """``a=x, b=y`` of these keys as given."""
    return ", ".join(f"{key}={given.get(key, value)}" for key, value in keys.items())


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


def _most_specific(levels: Mapping[str, Level], namespace: str) -> Level | None:
    if not levels:
        return None
    if namespace in levels:
        return levels[namespace]
    for pattern in _by_length(tuple(levels)):
        if matches(namespace, pattern):
            return levels[pattern]
    return None


@lru_cache(maxsize=256)
def _by_length(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(patterns, key=lambda p: (-len(p), p)))


COMPARISON_PATTERN = r"^\s*(>=|<=|==|!=|>|<|=)?\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*$"


def parse_comparison(text: str | int | float) -> Comparison:
    """Reads ``>40``, ``>= 4``, ``8`` (equal). Raises ValueError."""
    match = re.fullmatch(COMPARISON_PATTERN[1:-1], str(text), re.ASCII)
    if not match:
        raise ValueError(f'{text!r} is not a comparison such as ">40" or ">=4"')
    return Comparison({"=": "==", None: "=="}.get(match[1], match[1]), float(match[2]))
