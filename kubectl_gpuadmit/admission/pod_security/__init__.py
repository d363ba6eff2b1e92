"""Pod Security: whether a pod may be created in a namespace of level baseline or restricted.

The API server refuses pods only. A Deployment or Job that makes such pods is accepted (with a
warning, if the namespace warns) and then never gets them.

Whom the API server's own configuration exempts (users, runtime classes, namespaces) and which
levels it sets for namespaces without labels cannot be read from objects.

Source: k8s.io/pod-security-admission v0.37.2 admission/admission.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.defaults import version
from kubectl_gpuadmit.admission.pod_security import levels, mend
from kubectl_gpuadmit.admission.pod_security.check import Violation
from kubectl_gpuadmit.admission.pod_security.levels import Asked
from kubectl_gpuadmit.admission.pod_security.registry import violations
from kubectl_gpuadmit.admission.refusal import forbidden, refusal, said, stored_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Unknown

__all__ = ["REASONS", "check", "levels", "text"]

REASONS = {
    "pod-security/violates": "The pod breaks the Pod Security level that its namespace enforces, so"
    " the API server refuses it; its Deployment or Job is accepted and never gets pods. Set the"
    " fields that the text names, or use a namespace of a lower level. Device plugins, drivers and"
    " DRA plugins need host paths and privileges: their namespace has to enforce privileged.",
    "pod-security/would-warn": "The pod breaks the Pod Security level of which its namespace only"
    " warns. It is created; set the fields that the text names before the level is enforced.",
    "pod-security/would-audit": "The pod breaks the Pod Security level that its namespace only"
    " records in the audit log. It is created.",
    "pod-security/bad-label": "A Pod Security label of the namespace holds a value that the API"
    " server does not know: it then enforces restricted, at the latest version, and warns and"
    " audits nothing. Correct the label.",
}

TEMPLATE_KINDS = frozenset(
    (
        *("ReplicationController", "PodTemplate", "ReplicaSet", "Deployment", "StatefulSet"),
        *("DaemonSet", "Job", "CronJob"),
    )
)
"""Kinds whose pod template the API server warns about when they are applied."""

Found = tuple[tuple[Finding, ...], tuple[Unknown, ...]]


def text(found: tuple[Violation, ...]) -> str:
    """``hostPort (container "c" uses hostPort 80), privileged (…)``."""
    return ", ".join(violation.text for violation in found)


def check(
    pod: Pod, namespace: str, cluster: Cluster, *, owner: str = "Pod", kubernetes: str = "1.37"
) -> Found:
    """What the namespace's labels make of the pod as it would be stored.

    ``owner`` is the kind of the workload that makes the pod. One finding per mode, with every
    field that is wrong as evidence; modes that ask the same speak once, the strongest.
    """
    home = cluster.namespace(namespace)
    asked = levels.read(home.labels) if home is not None else levels.Labelled()
    if all(one.level == "privileged" for one in (asked.enforce, asked.audit, asked.warn)):
        return (), ()
    if not isinstance(pod, NewPod):
        return (), (_unread(namespace, asked.enforce),)
    newest = version(kubernetes)[1]
    findings = [_bad_label(namespace, *error) for error in asked.errors]
    unknowns: list[Unknown] = []
    told: set[Asked] = set()
    broken = violations(pod, asked.enforce, newest=newest)
    if broken:
        told.add(asked.enforce)
        findings.append(_violates(pod, namespace, asked.enforce, broken, owner))
        unknowns.append(_exemptions(namespace))
    modes: tuple[tuple[Asked, str, Level], ...] = (
        (asked.warn, "pod-security/would-warn", "warn"),
        (asked.audit, "pod-security/would-audit", "audit"),
    )
    for wanted, reason, level in modes:
        silent = level == "warn" and owner == "Pod" and asked.enforce in told
        broken = () if silent or wanted in told else violations(pod, wanted, newest=newest)
        if broken:
            told.add(wanted)
            findings.append(_would(namespace, wanted, broken, owner, reason, level))
    return tuple(findings), tuple(unknowns)


def _evidence(
    namespace: str, mode: str, asked: Asked, broken: tuple[Violation, ...]
) -> tuple[Evidence, ...]:
    label = Evidence(
        f"Namespace {namespace}",
        f"label {levels.PREFIX}{mode}",
        str(asked),
        None,
        "metadata.labels",
    )
    places = (place for violation in broken for place in violation.places)
    return (
        label,
        *(Evidence(p.subject, p.what, p.observed, p.wanted, p.pointer) for p in places),
    )


def _violates(
    pod: NewPod, namespace: str, asked: Asked, broken: tuple[Violation, ...], owner: str
) -> Finding:
    message = f'violates PodSecurity "{asked}": {text(broken)}'
    detail = message if owner == "Pod" else f"{message}; the {owner} is accepted, its pods are not"
    return refusal(
        "pod-security/violates",
        detail,
        forbidden(stored_name(pod), message),
        evidence=_evidence(namespace, "enforce", asked, broken),
        field=broken[0].places[0].pointer,
        suggest=mend.remedies(pod, broken),
    )


def _would(
    namespace: str,
    asked: Asked,
    broken: tuple[Violation, ...],
    owner: str,
    reason: str,
    level: Level,
) -> Finding:
    message = f'would violate PodSecurity "{asked}": {text(broken)}'
    mode = "warn" if level == "warn" else "audit"
    detail = message
    if mode == "warn" and owner != "Pod" and owner not in TEMPLATE_KINDS:
        detail += f"; only the controller of the {owner} sees the warning"
    return Finding(
        reason=reason,
        detail=detail,
        evidence=(*_evidence(namespace, mode, asked, broken), said(message)),
        field=broken[0].places[0].pointer,
        level=level,
    )


def _bad_label(namespace: str, label: str, value: str, complaint: str) -> Finding:
    return Finding(
        reason="pod-security/bad-label",
        detail=f"namespace {namespace} has {label}={value}, which {complaint}",
        evidence=(Evidence(f"Namespace {namespace}", f"label {label}", value, None, complaint),),
        level="warn",
    )


def _exemptions(namespace: str) -> Unknown:
    return Unknown(
        rule="admission/pod-security",
        missing="whether the API server's own configuration exempts the user, the RuntimeClass or"
        f" namespace {namespace} from Pod Security",
        level="audit",
        hint="kubectl apply --dry-run=server -f …",
    )


def _unread(namespace: str, asked: Asked) -> Unknown:
    return Unknown(
        rule="admission/pod-security",
        missing=f"the pod's security settings, which namespace {namespace} ({asked}) asks for",
        hint="kubectl apply --dry-run=server -f …",
    )
