"""A whole policy, and the questions asked of it; reads no files and judges no pod.

Rules of this module
1. The first answer that is more specific wins: a namespace's level beats a pool's, a pool's beats
   the rule's, the rule's beats ``defaults``; an exact namespace beats a pattern, a longer pattern a
   shorter one.
2. A rule that the policy does not name keeps the level it was registered with.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from kubectl_gpuadmit.devices.maturity import Ledger
from kubectl_gpuadmit.kube import gates, gpus
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.selectors import binds
from kubectl_gpuadmit.policy.entries import (
    ClassMatch,
    PolicyException,
    Pool,
    RuleConfig,
    StaticRule,
    Tenant,
    WorkloadClass,
)
from kubectl_gpuadmit.policy.patterns import has_all, matches, most_specific, pairs
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Level, Ref

if TYPE_CHECKING:
    from kubectl_gpuadmit.kube.workloads.declared import DeclaredKind
    from kubectl_gpuadmit.sizing.registry import Models

GPU_PATTERNS = gpus.DEFAULT
"""Resources that count as GPUs where the policy names none."""

NO_LABELS: Mapping[str, str] = {}

TTL_ANNOTATIONS = ("gpu-admit.io/ttl",)


class Sign(Struct, frozen=True):
    """Why a pod counts as a class: ``label workload-type=batch``."""

    workload_class: str
    text: str


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
    feature_gates: gates.Gates = gates.DEFAULT
    """Gates of Kubernetes that this cluster has switched away from their defaults."""
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
            most_specific(config.namespaces, namespace)
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
