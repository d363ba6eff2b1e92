"""The API server's own admission of one pod, in its order: changes, refusals, unknowns.

    mutate    defaults of reading → NamespaceLifecycle → LimitRanger → ServiceAccount → Priority →
              DefaultTolerationSeconds → (ExtendedResourceToleration) → RuntimeClass → defaults of
              storing
    validate  object validation → LimitRanger → PodSecurity → RuntimeClass → policies and webhooks

ResourceQuota comes last and is ``quota.Ledger``. Every reason is kept; the API server stops at the
first.

Source: k8s.io/kubernetes v1.37.2 pkg/kubeapiserver/options/plugins.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission import (
    defaults,
    limit_range,
    namespace,
    pod_security,
    priority,
    runtime_class,
    service_account,
    tolerations,
    validation,
    validation_resources,
    webhooks,
)
from kubectl_gpuadmit.admission.refusal import Admitted
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Finding, Unknown

__all__ = ["EXTENDED_RESOURCE_TOLERATION", "Admitted", "mutate", "validate"]

EXTENDED_RESOURCE_TOLERATION = "ExtendedResourceToleration"
"""Off in the API server unless switched on (``--enable-admission-plugins``)."""


def mutate(
    pod: Pod,
    cluster: Cluster,
    *,
    kubernetes: str = "1.37",
    plugins: frozenset[str] = frozenset(),
) -> Admitted:
    """The pod as it would be stored, what refuses it on the way, and what could not be told.

    ``plugins`` names admission plugins that are on besides the default ones. A pod with quantities
    that cannot be read comes back unchanged: ``validate`` says why. Always start from the
    pod as the controller would send it: label keys merged once would be merged again.
    """
    if validation_resources.unreadable(pod):
        return Admitted(pod)
    home = pod.namespace or "default"
    findings: list[Finding] = []
    unknowns: list[Unknown] = []

    def take(step: Admitted) -> Pod:
        findings.extend(step.findings)
        unknowns.extend(step.unknowns)
        return step.pod

    pod = defaults.decode(pod, kubernetes=kubernetes)
    take(Admitted(pod, *namespace.check(pod, home, cluster)))
    pod = limit_range.mutate(pod, cluster.limit_ranges(home))
    if not cluster.knows("LimitRange"):
        unknowns.append(
            Unknown(
                rule="admission/limit-range",
                missing=f"LimitRange objects of namespace {home}: not in the snapshot",
                level="audit",
                hint=f"kubectl -n {home} get limitranges -o yaml",
            )
        )
    pod = take(service_account.mutate(pod, home, cluster))
    pod = take(priority.mutate(pod, cluster))
    pod = tolerations.node_problems(pod)
    if EXTENDED_RESOURCE_TOLERATION in plugins:
        pod = tolerations.extended_resources(pod)
    pod = take(runtime_class.mutate(pod, cluster))
    pod = defaults.prepare(pod, kubernetes=kubernetes)
    return Admitted(pod, tuple(findings), tuple(unknowns))


def validate(
    pod: Pod, cluster: Cluster, *, owner: str = "Pod", kubernetes: str = "1.37"
) -> Admitted:
    """What the API server checks once nothing changes the pod any more. Returns the same pod.

    ``owner`` is the kind of the workload that makes the pod: some allow fewer restart policies.
    """
    home = pod.namespace or "default"
    found = validation.unreadable(pod)
    if found:
        return Admitted(pod, found)
    found = validation.findings(pod, owner=owner)
    found += limit_range.findings(pod, cluster.limit_ranges(home))
    secure, unsure = pod_security.check(pod, home, cluster, owner=owner, kubernetes=kubernetes)
    found += secure
    found += runtime_class.validate(pod, cluster)
    return Admitted(pod, found, unsure + webhooks.configured(pod, home, cluster))
