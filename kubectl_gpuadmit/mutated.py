"""A pod group as mutating policies and rules leave it, and what these had to say.

After each change the API server's own mutators are asked again.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit import asking, templates
from kubectl_gpuadmit.admission import chain, native
from kubectl_gpuadmit.asking import Terms
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.verdict import Finding, Mutation, Unknown


class Changed(Struct):
    """A group after every mutating rule, and what those rules had to say.

    Of a workload that a rule has scaled to zero the group is as it would have been.
    """

    workload: Workload
    group: PodGroup
    stored: chain.Admitted
    findings: list[Finding]
    unknowns: list[Unknown]
    mutations: list[Mutation]
    ops: list[dict[str, Any]]
    scaled_to_zero: bool = False


def mutated(
    workload: Workload,
    group: PodGroup,
    cluster: Cluster,
    terms: Terms,
    running: tuple[Pod, ...],
) -> Changed:
    """Asks the mutating rules one after another: each sees what those before it made of the pod."""
    stored = _stored(group.pod, cluster, terms)
    now = Changed(workload, group, stored, [], [], [], [])
    _ask_native(now, cluster, terms)
    for rule in terms.of_stage("mutate"):
        ask = asking.about(workload, now.group, now.stored.pod, terms, running)
        for found in asking.asked(rule, ask, cluster, terms):
            match found:
                case Mutation():
                    _change(now, found, terms)
                case Finding():
                    now.findings.append(found)
                case Unknown():
                    now.unknowns.append(found)
        if now.group is not ask.group:
            now.stored = _stored(now.group.pod, cluster, terms)
    return now


def _ask_native(now: Changed, cluster: Cluster, terms: Terms) -> None:
    """MutatingAdmissionPolicies of the cluster: they come before every webhook."""
    if not native.present(cluster):
        return
    from kubectl_gpuadmit.admission.native.told import pod_mutations
    from kubectl_gpuadmit.admission.native.who import Makers

    makers = Makers.of_pods(now.workload, terms.requester)
    told = pod_mutations(now.group, now.stored.pod, makers, cluster, kubernetes=terms.kubernetes)
    now.findings += told.findings
    now.unknowns += told.unknowns
    for mutation in told.mutations:
        _change(now, mutation, terms)
    if told.mutations:
        now.stored = _stored(now.group.pod, cluster, terms)


def _stored(pod: Pod, cluster: Cluster, terms: Terms) -> chain.Admitted:
    return chain.mutate(pod, cluster, kubernetes=terms.kubernetes, plugins=terms.plugins)


def _change(now: Changed, found: Mutation, terms: Terms) -> None:
    """Applies one mutation, or only notes it where its level is lower than ``deny``."""
    group = now.group
    if found.of == "object":
        before = templates.present(now.workload.manifest, found.ops)
        now.mutations.append(structs.replace(found, at="", before=before))
        now.scaled_to_zero |= found.level == "deny"
        return
    at = "" if group.pointer == "-" else group.pointer
    try:
        after = templates.patched(group, found.ops)
    except templates.NotApplicable as problem:
        missing = f"its change does not apply to the pod template: {problem}"
        now.unknowns.append(asking.unsure(found.rule, missing, terms))
        return
    before = templates.present(group.template, found.ops)
    now.mutations.append(structs.replace(found, at=at, before=before))
    if found.level == "deny":
        now.group = after
        now.ops += found.ops
