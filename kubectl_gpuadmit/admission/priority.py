"""PriorityClass: which priority and preemption policy a new pod gets.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/priority/admission.go.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_gpuadmit.admission.refusal import Admitted, forbidden, refusal, shown_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod, PriorityClass
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

REASONS = {
    "priority/no-class": "The pod names a PriorityClass that does not exist. Name one that does, or"
    " apply the class first.",
    "priority/mismatch": "The pod sets spec.priority to another number than its PriorityClass."
    " Leave spec.priority out.",
    "priority/preemption-policy": "The pod sets another preemptionPolicy than its PriorityClass."
    " Leave it out, or name another class.",
}

PREEMPTS = "PreemptLowerPriority"
"""What a PriorityClass says that says nothing (SetDefaults_PriorityClass)."""

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""Every cluster has these, also where a snapshot left them out."""


def global_default(cluster: Cluster) -> PriorityClass | None:
    """The class for pods that name none: of several, the one with the lowest value."""
    return min(
        (c for c in cluster.priority_classes() if c.globalDefault),
        key=lambda c: (c.value, c.name),
        default=None,
    )


def mutate(pod: Pod, cluster: Cluster) -> Admitted:
    """Resolves spec.priorityClassName into spec.priority and spec.preemptionPolicy."""
    spec = pod.spec
    name = spec.priorityClassName or ""
    chosen = cluster.get("PriorityClass", "", name) if name else global_default(cluster)
    if isinstance(chosen, PriorityClass):
        name, value = chosen.name, chosen.value
        policy = chosen.preemptionPolicy or PREEMPTS
    elif name in SYSTEM:
        value, policy = SYSTEM[name], PREEMPTS
    elif name:
        if not cluster.knows("PriorityClass"):
            missing = f"PriorityClass {name}: priority classes are not in the snapshot"
            return Admitted(pod, unknowns=(_unknown(missing, "warn"),))
        text = f"no PriorityClass with name {name} was found"
        names = ", ".join(sorted(c.name for c in cluster.priority_classes()))
        evidence = Evidence("PriorityClass", "name", name, names or None, "spec.priorityClassName")
        found = refusal(
            "priority/no-class",
            text,
            forbidden(shown_name(pod), text),
            evidence=(evidence,),
            field="/spec/priorityClassName",
        )
        return Admitted(pod, (found,))
    else:
        value, policy = 0, PREEMPTS
    unknowns: tuple[Unknown, ...] = ()
    if not name and not cluster.knows("PriorityClass"):
        missing = "the default PriorityClass: priority classes are not in the snapshot"
        unknowns = (_unknown(missing, "audit"),)
    findings = tuple(_conflicts(pod, name, value, policy))
    wanted = (name or None, value, policy)
    if wanted != (spec.priorityClassName, spec.priority, spec.preemptionPolicy):
        spec = replace(
            spec, priorityClassName=wanted[0], priority=wanted[1], preemptionPolicy=wanted[2]
        )
        pod = replace(pod, spec=spec)
    return Admitted(pod, findings, unknowns)


def _conflicts(pod: Pod, name: str, value: int, policy: str) -> list[Finding]:
    spec = pod.spec
    subject = f"PriorityClass {name}" if name else "no PriorityClass"
    found = []
    if spec.priority is not None and spec.priority != value:
        text = (
            f"the integer value of priority ({spec.priority}) must not be provided in pod spec;"
            f" priority admission controller computed {value} from the given PriorityClass name"
        )
        found.append(
            refusal(
                "priority/mismatch",
                text,
                forbidden(shown_name(pod), text),
                evidence=(Evidence(subject, "priority", spec.priority, value, "value"),),
                field="/spec/priority",
            )
        )
    if spec.preemptionPolicy and spec.preemptionPolicy != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec.preemptionPolicy}) must not be"
            f" provided in pod spec; priority admission controller computed {policy} from the"
            " given PriorityClass name"
        )
        evidence = Evidence(
            subject, "preemptionPolicy", spec.preemptionPolicy, policy, "preemptionPolicy"
        )
        found.append(
            refusal(
                "priority/preemption-policy",
                text,
                forbidden(shown_name(pod), text),
                evidence=(evidence,),
                field="/spec/preemptionPolicy",
            )
        )
    return found


def _unknown(missing: str, level: str) -> Unknown:
    return Unknown(
        rule="admission/priority",
        missing=missing,
        level="warn" if level == "warn" else "audit",
        hint="kubectl get priorityclasses -o yaml",
        stage="placement" if level == "audit" else "admission",
    )
