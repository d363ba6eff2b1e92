"""Compiles a policy file to admission policies of Kubernetes itself, as far as CEL can say it.

Each rule becomes a ValidatingAdmissionPolicy with a binding for every level that it has somewhere:
audit → Audit, warn → Warn and Audit, deny → Deny. ``static`` entries that change pods become
MutatingAdmissionPolicies. What cannot be said is listed with the reason and left out whole: a rule
that refuses less, or more, than the file says would be worse than none.

Source: k8s.io/api v0.37.2 admissionregistration/v1; MutatingAdmissionPolicy is v1 since 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.policy import expressions as cel
from kubectl_gpuadmit.policy import vap_changes
from kubectl_gpuadmit.policy.entries import RuleConfig, StaticRule
from kubectl_gpuadmit.policy.expressions import NotCompiled, matches, text
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.patterns import matches as named_by
from kubectl_gpuadmit.policy.vap_rules import DRAFTS, PODS, Check, Draft
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Level

Json = dict[str, Any]

API = "admissionregistration.k8s.io/v1"
PREFIX = "gpu-admit"
ACTIONS: dict[str, list[str]] = {
    "audit": ["Audit"],
    "warn": ["Warn", "Audit"],
    "deny": ["Deny"],
}
NOT_IN_CEL: dict[str, str] = {
    "agreement": "the API server's own verdict cannot be asked from a policy",
    "capacity": "needs what nodes have and hold, which CEL cannot read",
    "dra": "needs objects besides the one that is created, which CEL cannot read",
    "ephemeral": "needs what runs already, which CEL cannot read",
    "labels": "needs the other labels and classes of the policy",
    "model": "needs the catalogue of models",
    "numa": "needs the topology of nodes, which CEL cannot read",
    "partition": "needs the pools of nodes, which CEL cannot read",
    "placement": "needs what nodes have and hold, which CEL cannot read",
    "quota": "needs other objects, which CEL cannot read",
    "running": "needs the catalogue of models and what nodes have",
    "spec": "needs the workload that makes the pod, or what nodes offer",
    "static": "needs Nodes, which CEL cannot read",
    "topology": "needs the topology of nodes, which CEL cannot read",
}
"""Family of a rule -> why it is not compiled, where nothing closer is known."""


class LeftOut(Struct, frozen=True):
    """A rule or entry that is not compiled."""

    rule: str
    reason: str


class Compiled(Struct, frozen=True):
    """The objects in the order in which they are applied, and what is not among them."""

    objects: tuple[Json, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[LeftOut, ...] = ()
    """Rules that are compiled, with what their compiled form does not see."""


def compile_policy(policy: Policy) -> Compiled:
    """Everything of the policy that can be said in CEL."""
    objects: list[Json] = []
    left: list[LeftOut] = []
    notes: list[LeftOut] = []
    done: set[str] = set()
    for rule, drafts in DRAFTS.items():
        if not _speaks(policy, rule):
            continue
        done.add(rule)
        try:
            for draft in drafts(policy):
                objects += _validating(draft, policy)
                if draft.note:
                    notes.append(LeftOut(rule, draft.note))
        except NotCompiled as problem:
            left.append(LeftOut(rule, str(problem)))
    set_by: dict[str, str] = {}
    for entry in policy.static:
        try:
            objects += _entry(entry, policy, set_by)
        except NotCompiled as problem:
            left.append(LeftOut(entry.rule, str(problem)))
    for name in sorted(REGISTRY):
        if name in done or not policy.names(name) or _off(policy.rules.get(name), policy):
            continue
        left.append(LeftOut(name, NOT_IN_CEL.get(name.split("/")[0], "cannot be said in CEL")))
    return Compiled(tuple(objects), tuple(left), tuple(dict.fromkeys(notes)))


def _speaks(policy: Policy, rule: str) -> bool:
    if rule == "dra/tenant-allow-list" and policy.tenants and not policy.names(rule):
        return True
    return policy.names(rule) and not _off(policy.rules.get(rule), policy)


def _off(config: RuleConfig | None, policy: Policy) -> bool:
    if config is None:
        return False
    levels = {config.level or policy.default_level or "deny", *config.namespaces.values()}
    return levels | set(config.pools.values()) == {"off"}


# -- static entries --------------------------------------------------------------------------------


def _entry(entry: StaticRule, policy: Policy, set_by: dict[str, str]) -> list[Json]:
    if _off(entry.config, policy):
        return []
    if entry.requiredTaints:
        raise NotCompiled("required taints are those of Nodes, which CEL cannot read")
    if policy.exceptions and any(
        any(named_by(entry.rule, one) for one in each.rules) for each in policy.exceptions
    ):
        raise NotCompiled(_EXCEPTIONS)
    classes = {cls.name: cls for cls in policy.classes}
    parts = cel.static_match(entry.match, classes)
    conditions = tuple(Check(part, f"match-{place}") for place, part in enumerate(parts))
    name = "static-" + _plain(entry.name)
    found: list[Json] = []
    if entry.deny is not None:
        check = Check("false", f"{entry.name}: {entry.deny.strip().rstrip('.')}")
        draft = Draft(entry.rule, name, PODS, conditions, (check,))
        found += _validating(draft, policy)
    if entry.mutate is not None:
        for key in vap_changes.keys(entry.mutate):
            if key in set_by:
                raise NotCompiled(
                    f"it sets {key} as {set_by[key]} does, and MutatingAdmissionPolicies have no"
                    " order"
                )
        levels = list(_levels(entry.rule, policy))
        if [level for level, _ in levels] != ["deny"]:
            raise NotCompiled(
                "a MutatingAdmissionPolicy changes or does not: it has no level audit or warn"
            )
        set_by.update(dict.fromkeys(vap_changes.keys(entry.mutate), entry.rule))
        conditions += tuple(Check(one, "level-deny") for _, one in levels if one)
        found += _mutating(name, conditions, vap_changes.mutations(entry.mutate))
    return found


def _mutating(name: str, conditions: tuple[Check, ...], mutations: list[Json]) -> list[Json]:
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints(PODS),
        "matchConditions": _conditions(conditions),
        "mutations": mutations,
    }
    if not conditions:
        del spec["matchConditions"]
    named = f"{PREFIX}-{name}"
    kind = "MutatingAdmissionPolicy"
    return [
        {"apiVersion": API, "kind": kind, "metadata": _metadata(named), "spec": spec},
        {
            "apiVersion": API,
            "kind": f"{kind}Binding",
            "metadata": _metadata(named),
            "spec": {"policyName": named},
        },
    ]


# -- levels and objects ----------------------------------------------------------------------------

_EXCEPTIONS = (
    "exceptions of the policy cover it until a date, and CEL in a policy knows no time: excepted"
    " work would be refused"
)


def _levels(rule: str, policy: Policy) -> Iterator[tuple[Level, str]]:
    """Each level that the rule has somewhere, and where: '' for everywhere. Raises NotCompiled."""
    config = policy.config(rule)
    namespaces = dict(config.namespaces) if config else {}
    if config and config.pools:
        raise NotCompiled("its level depends on the pool of nodes that a pod is bound to")
    base = policy.level(rule)
    if not namespaces:
        if base != "off":
            yield base, ""
        return
    chosen = text(base)
    ordered = sorted(namespaces, key=lambda one: (cel.is_pattern(one), -len(one), one))
    for name in reversed(ordered):
        here = matches("request.namespace", [name])
        chosen = f"({here} ? {text(namespaces[name])} : {chosen})"
    for level in ("audit", "warn", "deny"):
        if level in (base, *namespaces.values()):
            yield level, f"{chosen} == {text(level)}"


def _validating(draft: Draft, policy: Policy) -> list[Json]:
    if policy.exceptions and any(
        any(named_by(draft.rule, one) for one in each.rules) for each in policy.exceptions
    ):
        raise NotCompiled(_EXCEPTIONS)
    levels = list(_levels(draft.rule, policy))
    found: list[Json] = []
    for level, where in levels:
        name = f"{PREFIX}-{draft.name}" + (f"-{level}" if len(levels) > 1 else "")
        conditions = draft.conditions
        if where:
            conditions = (Check(where, f"level-{level}"), *conditions)
        spec: Json = {
            "failurePolicy": "Fail" if level == "deny" else "Ignore",
            "matchConstraints": _constraints(draft.resources),
            "validations": [
                {"expression": one.expression, "message": one.message} for one in draft.checks
            ],
        }
        if conditions:
            spec["matchConditions"] = _conditions(conditions)
        if draft.variables:
            spec["variables"] = [{"name": key, "expression": one} for key, one in draft.variables]
        kind = "ValidatingAdmissionPolicy"
        found += [
            {"apiVersion": API, "kind": kind, "metadata": _metadata(name), "spec": spec},
            {
                "apiVersion": API,
                "kind": f"{kind}Binding",
                "metadata": _metadata(name),
                "spec": {"policyName": name, "validationActions": ACTIONS[level]},
            },
        ]
    return found


def _metadata(name: str) -> Json:
    return {"name": name, "labels": {"app.kubernetes.io/managed-by": "kubectl-gpu-admit"}}


def _conditions(checks: Sequence[Check]) -> list[Json]:
    return [{"name": one.message, "expression": one.expression} for one in checks]


def _constraints(resources: Sequence[tuple[str, tuple[str, ...]]]) -> Json:
    return {
        "resourceRules": [
            {
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"] if group or names != ("pods",) else ["CREATE"],
                "resources": list(names),
            }
            for group, names in resources
        ]
    }


def _plain(name: str) -> str:
    kept = "".join(one if one.isalnum() or one == "-" else "-" for one in name.lower())
    return kept.strip("-") or "entry"
