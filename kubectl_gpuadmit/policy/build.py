"""Sound policy data -> ``Policy``: resolves names and values, reports what leads nowhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.objects import LabelSelectorRequirement, Toleration
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads.declared import DeclaredKind
from kubectl_gpuadmit.policy import dra
from kubectl_gpuadmit.policy.entries import (
    ClassMatch,
    ExceptionMatch,
    PolicyException,
    Pool,
    PoolKubelet,
    RequiredTaint,
    RuleConfig,
    StaticMatch,
    StaticRule,
    TemplateChange,
    WorkloadClass,
    parse_comparison,
)
from kubectl_gpuadmit.policy.model import GPU_PATTERNS, TTL_ANNOTATIONS, Policy
from kubectl_gpuadmit.policy.patterns import matches
from kubectl_gpuadmit.policy.schema import setting_key
from kubectl_gpuadmit.policy.shape import Report, did_you_mean, entries
from kubectl_gpuadmit.rule import Rule
from kubectl_gpuadmit.verdict import Level

if TYPE_CHECKING:
    from kubectl_gpuadmit.sizing.registry import Models

Data = dict[str, Any]
_MAX_NUMA = "max-allowable-numa-nodes"
_BY_SOCKET = "align-by-socket"

SECTIONS = {"ledger": "dra/immature-feature", "tenants": "dra/tenant-allow-list"}
"""Section of the policy -> the rule that holds workloads to it."""


class Builder:
    """Builds the parts of one policy. ``report`` takes a pointer and what is wrong there."""

    def __init__(
        self, report: Report, rules: Mapping[str, Rule], catalogue: Callable[[], Mapping[str, str]]
    ) -> None:
        self.report = report
        self.rules = rules
        self.catalogue = catalogue
        self.pools: dict[str, Pool] = {}
        self.classes: dict[str, WorkloadClass] = {}
        self.static_names: list[str] = []

    def policy(self, data: Data, source: str) -> Policy:
        """A whole ``AdmissionPolicy`` document."""
        self.pools = {
            name: Pool(
                name,
                pool["nodeSelector"],
                tolerations(pool.get("tolerations")),
                self.kubelet(pool.get("kubelet"), f"/pools/{token(name)}/kubelet"),
            )
            for name, pool in data.get("pools", {}).items()
        }
        self.classes = {
            name: self.workload_class(name, entry)
            for name, entry in data.get("classes", {}).items()
        }
        static = self.statics(data.get("static"), "/static")
        self.static_names = [entry.rule for entry in static]
        defaults = data.get("defaults", {})
        decided = dra.ledger(data.get("ledger"), self)
        return Policy(
            name=data.get("metadata", {}).get("name", "default"),
            source=source,
            pools=tuple(self.pools.values()),
            classes=tuple(self.classes.values()),
            default_level=level(defaults.get("level")),
            default_if_missing=level(defaults.get("ifMissing")) or "warn",
            rules={
                # A section that is written is in force, whether its rule is named or not.
                **{rule: RuleConfig() for section, rule in SECTIONS.items() if section in data},
                **{
                    name: self.config(entry, f"/rules/{token(name)}", self.rules.get(name))
                    for name, entry in data.get("rules", {}).items()
                },
            },
            static=static,
            exceptions=self.exceptions(data.get("exceptions")),
            declared_kinds=self.kinds(data.get("kinds")),
            feature_gates=dra.feature_gates(data.get("featureGates"), decided, self),
            ledger=decided,
            tenants=dra.tenants(data.get("tenants"), self),
            gpu_patterns=tuple(data.get("gpuResources", ())) or GPU_PATTERNS,
            ttl_annotations=tuple(data.get("ttlAnnotations", ())) or TTL_ANNOTATIONS,
            admission_plugins=frozenset(data.get("admissionPlugins", ())),
            models=self.models(data.get("models")),
        )

    def kubelet(self, entry: Data | None, pointer: str) -> PoolKubelet | None:
        if entry is None:
            return None
        texts: Data = {  # YAML takes the bare words for booleans, KubeletConfiguration has texts
            key: {name: str(value).lower() for name, value in entry[key].items()}
            for key in ("topologyManagerPolicyOptions", "cpuManagerPolicyOptions")
            if key in entry
        }
        entry = {**entry, **texts}
        most = int(entry.get("topologyManagerPolicyOptions", {}).get(_MAX_NUMA, 8))
        if most < 8:
            self.report(
                f"{pointer}/topologyManagerPolicyOptions/{_MAX_NUMA}",
                "policy-bad-value",
                f"{most} is below 8, and no kubelet starts so",
                "leave it out: 8 is the default",
            )
        by_socket = entry.get("cpuManagerPolicyOptions", {}).get(_BY_SOCKET) == "true"
        if by_socket and entry["topologyManagerPolicy"] == "single-numa-node":
            self.report(
                f"{pointer}/cpuManagerPolicyOptions/{_BY_SOCKET}",
                "policy-bad-value",
                f"no kubelet starts with {_BY_SOCKET} and single-numa-node together",
                "take one of them out",
            )
        return PoolKubelet(**entry)

    def models(self, data: Data | None) -> Models | None:
        """Where pods name their model, and what the organisation's own models need."""
        if not data:
            return None
        from kubectl_gpuadmit.policy import models

        return models.models(data, self.report)

    def unknown(self, pointer: str, what: str, name: str, known: Iterable[str]) -> None:
        hint = did_you_mean(name, known) or f"the policy declares no {what}"
        self.report(pointer, f"policy-unknown-{what}", f"unknown {what} {name}", hint)

    def workload_class(self, name: str, entry: Data) -> WorkloadClass:
        pool = entry.get("pool", "")
        if pool and pool not in self.pools:
            self.unknown(f"/classes/{token(name)}/pool", "pool", pool, self.pools)
        match = entry["match"]
        return WorkloadClass(
            name=name,
            match=ClassMatch(
                labels=match.get("labels", {}),
                annotations=match.get("annotations", {}),
                priorityClasses=tuple(match.get("priorityClasses", ())),
                ownerKinds=tuple(match.get("ownerKinds", ())),
            ),
            pool=pool,
            priorityClass=entry.get("priorityClass", ""),
        )

    def kinds(self, items: list[Any] | None) -> tuple[DeclaredKind, ...]:
        found = []
        for index, entry in entries(items):
            declared = DeclaredKind(**{**entry, "multiply": tuple(entry.get("multiply", ()))})
            if problem := declared.problem():
                self.report(f"/kinds/{index}", "policy-bad-value", problem)
            else:
                found.append(declared)
        return tuple(found)

    def config(self, entry: Any, pointer: str, rule: Rule | None) -> RuleConfig:
        """Level and settings of one rule; ``entry`` may be just a level."""
        if not isinstance(entry, dict):
            return RuleConfig(level=level(entry))
        for pool in entry.get("pools", {}):
            if pool not in self.pools:
                self.unknown(f"{pointer}/pools/{token(pool)}", "pool", pool, self.pools)
        given = entry.get("settings", {})
        settings = {
            keyword: self.setting(given[key], default, f"{pointer}/settings/{key}")
            for keyword, default in (rule.settings if rule else {}).items()
            if (key := setting_key(keyword)) in given
        }
        return RuleConfig(
            level=level(entry.get("level")),
            ifMissing=level(entry.get("ifMissing")),
            settings=settings,
            namespaces={k: as_level(v) for k, v in entry.get("namespaces", {}).items()},
            pools={k: as_level(v) for k, v in entry.get("pools", {}).items()},
        )

    def setting(self, value: Any, default: Any, pointer: str) -> Any:
        """The value in the type of its default; the schema has checked its form."""
        match default:
            case dt.timedelta():
                try:
                    return times.parse_duration(value)
                except times.TimeError as error:
                    self.report(pointer, "policy-bad-value", str(error))
                    return default
            case tuple():
                return tuple(value)
            case bool():
                return value
            case int():
                return int(value)
            case _:
                return value

    def statics(self, items: list[Any] | None, base: str) -> tuple[StaticRule, ...]:
        """The ``static`` list, or an older form's ``policies``."""
        found: dict[str, StaticRule] = {}
        for index, entry in entries(items):
            pointer = f"{base}/{index}"
            name, match = entry["name"], entry["match"]
            for cls in match.get("classes", ()):
                if cls not in self.classes:
                    self.unknown(f"{pointer}/match/classes", "class", cls, self.classes)
            rule = StaticRule(
                name=name,
                match=StaticMatch(
                    labels=match.get("labels", {}),
                    annotations=match.get("annotations", {}),
                    matchExpressions=expressions(match.get("matchExpressions")),
                    namespaces=tuple(match.get("namespaces", ())),
                    kinds=tuple(match.get("kinds", ())),
                    classes=tuple(match.get("classes", ())),
                    resources={
                        resource: parse_comparison(text)
                        for resource, text in match.get("resources", {}).items()
                    },
                ),
                config=self.config(entry, pointer, None),
                mutate=change(entry.get("mutate")),
                deny=entry["deny"]["message"] if "deny" in entry else None,
                requiredTaints=taints(entry.get("requiredTaints")),
                index=index,
            )
            if rule.rule in self.rules:
                self.report(
                    f"{pointer}/name", "policy-reserved-name", f"{name} is a rule's own name"
                )
            if name in found:
                self.report(f"{pointer}/name", "policy-duplicate-name", f"a second {name}")
            if not (rule.mutate or rule.deny or rule.requiredTaints):
                self.report(
                    pointer,
                    "policy-does-nothing",
                    f"{name} has no effect",
                    "give it mutate, deny or requiredTaints",
                )
            found[name] = rule
        return tuple(found.values())

    def favorites(self, items: list[Any]) -> tuple[StaticRule, ...]:
        """The older ``favorites`` list: each selects by expressions, routes and asks for taints."""
        return tuple(
            StaticRule(
                name=entry.get("name", f"favorite-{index + 1}"),
                match=StaticMatch(matchExpressions=expressions(entry.get("matchExpressions"))),
                mutate=change(
                    {k: entry[k] for k in ("nodeSelector", "tolerations") if k in entry} or None
                ),
                requiredTaints=taints(entry.get("requiredTaints")),
                index=index,
            )
            for index, entry in entries(items)
        )

    def exceptions(self, items: list[Any] | None) -> tuple[PolicyException, ...]:
        known = {*self.rules, *self.static_names}
        for rule in self.rules.values():
            known.update(rule.reasons)
        whole = False
        found = []
        for index, entry in entries(items):
            pointer = f"/exceptions/{index}"
            for number, name in enumerate(entry["rules"]):
                if not whole and not any(matches(code, name) for code in known):
                    known.update(self.catalogue())
                    whole = True
                if not any(matches(code, name) for code in known):
                    self.unknown(f"{pointer}/rules/{number}", "rule", name, known)
            try:
                expires = times.parse_instant(entry["expires"])
            except times.TimeError as error:
                self.report(f"{pointer}/expires", "policy-bad-value", str(error))
                continue
            match = entry["match"]
            found.append(
                PolicyException(
                    rules=tuple(entry["rules"]),
                    match=ExceptionMatch(
                        namespaces=tuple(match.get("namespaces", ())),
                        kinds=tuple(match.get("kinds", ())),
                        names=tuple(match.get("names", ())),
                        labels=match.get("labels", {}),
                    ),
                    owner=entry["owner"],
                    reason=entry["reason"],
                    expires=expires,
                    index=index,
                )
            )
        return tuple(found)


def level(value: Any) -> Level | None:
    """A level as the file gives it; YAML 1.1 reads the bare word ``off`` as false."""
    return None if value is None else as_level(value)


def as_level(value: Any) -> Level:
    return "off" if value is False else cast(Level, value)


def tolerations(items: list[Any] | None) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            key=entry.get("key"),
            operator=entry.get("operator"),
            value=entry.get("value"),
            effect=entry.get("effect"),
            tolerationSeconds=(
                int(entry["tolerationSeconds"]) if "tolerationSeconds" in entry else None
            ),
        )
        for _, entry in entries(items)
    )


def expressions(items: list[Any] | None) -> tuple[LabelSelectorRequirement, ...]:
    return tuple(
        LabelSelectorRequirement(
            entry["key"], entry["operator"], tuple(entry["values"]) if "values" in entry else None
        )
        for _, entry in entries(items)
    )


def taints(items: list[Any] | None) -> tuple[RequiredTaint, ...]:
    return tuple(RequiredTaint(**entry) for _, entry in entries(items))


def change(entry: Data | None) -> TemplateChange | None:
    if not entry:
        return None
    return TemplateChange(
        nodeSelector=entry.get("nodeSelector", {}),
        tolerations=tolerations(entry.get("tolerations")),
        labels=entry.get("labels", {}),
        annotations=entry.get("annotations", {}),
        priorityClassName=entry.get("priorityClassName", ""),
        schedulingGates=tuple(entry.get("schedulingGates", ())),
    )
