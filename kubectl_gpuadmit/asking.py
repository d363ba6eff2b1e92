"""Asks rules about one pod group and stamps what they find: name, level, exception, fidelity.

Decides nothing about the workload: ``judge`` does. A rule that raises is unknown, never an answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.requester import Requester
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import Ask, Found, Rule
from kubectl_gpuadmit.verdict import Finding, Mutation, Unknown


class Terms(Struct, frozen=True):
    """What does not change during a run."""

    policy: Policy
    now: dt.datetime
    rules: tuple[Rule, ...]
    """Every rule that is asked, in the order of asking."""
    kubernetes: str = "1.37"
    """Version of the API server whose defaults are applied."""
    requester: Requester | None = None
    """Who applies the workloads; None where nobody says."""

    @property
    def plugins(self) -> frozenset[str]:
        """Admission plugins that are on besides the default ones."""
        return self.policy.admission_plugins

    def of_stage(self, stage: str) -> Iterator[Rule]:
        return (rule for rule in self.rules if rule.stage == stage)


def about(
    workload: Workload, group: PodGroup, pod: Pod, terms: Terms, running: tuple[Pod, ...]
) -> Ask:
    """The question about ``pod``, which is the group's as it would be stored."""
    return Ask(
        workload=workload,
        group=group,
        pod=pod,
        namespace=workload.ref.namespace,
        now=terms.now,
        policy=terms.policy,
        pool=terms.policy.pool_of_pod(pod),
        kubernetes=terms.kubernetes,
        running=running,
    )


def asked(rule: Rule, ask: Ask, cluster: Cluster, terms: Terms) -> Iterator[Found]:
    """What one rule found, under the name and level that the policy gives it; nothing that is off.

    A rule whose facts are missing or that raises gives an Unknown and takes nobody with it.
    """
    if terms.policy.level(rule.name, namespace=ask.namespace, pool=ask.pool) == "off":
        return
    for found in _answers(rule, ask, cluster, terms):
        name = found.rule or rule.name
        level = terms.policy.level(name, namespace=ask.namespace, pool=ask.pool)
        if level == "off":
            continue  # an entry of its own level within a rule that is on
        match found:
            case Finding():
                stamped = structs.replace(found, rule=name, level=level, fidelity=rule.fidelity)
                yield _excepted(stamped, terms, ask.workload, ask.pod.labels)
            case Mutation():
                yield structs.replace(found, rule=name, level=level)
            case Unknown():
                yield unsure(name, found.missing, terms, hint=found.hint, stage=found.stage)


def unsure(
    rule: str,
    missing: str,
    terms: Terms,
    *,
    hint: str = "",
    stage: Literal["admission", "placement", "running"] = "admission",
) -> Unknown:
    """What a rule could not be told, at the level that the policy sets for not knowing."""
    level = terms.policy.if_missing(rule)
    return Unknown(rule=rule, missing=missing, level=level, hint=hint, stage=stage)


def levelled(found: Finding, terms: Terms, workload: Workload) -> Iterator[Finding]:
    """A finding of the expansion: it carries the name whose level it takes, if any."""
    if not found.rule:
        yield found
        return
    level = terms.policy.level(
        found.rule, namespace=workload.ref.namespace, pool="", default=found.level
    )
    if level != "off":
        yield _excepted(structs.replace(found, level=level), terms, workload, {})


def _answers(rule: Rule, ask: Ask, cluster: Cluster, terms: Terms) -> Iterator[Found]:
    missing = sorted(kind for kind in rule.needs if not cluster.knows(kind))
    if missing:
        kinds = ",".join(kind.lower() + "s" for kind in missing)
        yield Unknown(
            rule=rule.name,
            missing=f"{', '.join(missing)} objects: not in the source",
            hint=f"kubectl get {kinds} -A -o json",
        )
        return
    try:
        for found in rule.ask(ask, cluster, terms.policy.settings(rule.name)):
            if isinstance(found, Mutation) and rule.stage != "mutate":
                raise TypeError("it validates, yet wants to change the pod")
            yield found
    except Exception as problem:  # the one broad except: see architecture, "our program failed"
        yield Unknown(rule=rule.name, missing=f"the rule raised {problem!r}")


def _excepted(
    found: Finding, terms: Terms, workload: Workload, pod_labels: Mapping[str, str]
) -> Finding:
    """An exception in force turns a refusal into a record; it never hides it."""
    if found.level not in ("warn", "deny"):
        return found
    metadata = workload.manifest.get("metadata")
    own = metadata.get("labels") if isinstance(metadata, dict) else None
    granted = terms.policy.exception_for(
        found.rule, found.reason, workload.ref, terms.now, labels={**pod_labels, **(own or {})}
    )
    if granted is None:
        return found
    until = times.stamp(granted.expires)
    note = f"{found.detail} (excepted until {until} by {granted.owner}: {granted.reason})"
    return structs.replace(found, level="audit", detail=note)
