"""Whether the namespace takes new objects.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/namespace/lifecycle/admission.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.refusal import forbidden, refusal, shown_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject, Namespace, Pod
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown

REASONS = {
    "namespace/missing": "The namespace does not exist. Create it, or name another.",
    "namespace/terminating": "The namespace is being deleted and takes nothing new. Wait until"
    " it is gone and create it again, or name another.",
}

ALWAYS = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""The API server makes these itself."""


def check(
    obj: KubeObject, namespace: str, cluster: Cluster
) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    """Findings for an object that is to be created in ``namespace``."""
    found = cluster.get("Namespace", "", namespace)
    if isinstance(found, Namespace):
        if found.status.phase != "Terminating":
            return (), ()
        text = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        resource = "pods" if isinstance(obj, Pod) else f"{obj.kind.lower()}s"
        finding = refusal(
            "namespace/terminating",
            f"namespace {namespace} is being terminated",
            forbidden(shown_name(obj), text, resource),
            evidence=(
                Evidence(
                    f"Namespace {namespace}", "phase", "Terminating", "Active", "status.phase"
                ),
            ),
            field="/metadata/namespace",
        )
        return (finding,), ()
    if namespace in ALWAYS:
        return (), ()
    if not cluster.knows("Namespace"):
        unknown = Unknown(
            rule="admission/namespace",
            missing=f"Namespace {namespace}: namespaces are not in the snapshot",
            level="audit",
            hint="kubectl get namespaces -o yaml",
        )
        return (), (unknown,)
    finding = refusal(
        "namespace/missing",
        f"namespace {namespace} does not exist",
        f'namespaces "{namespace}" not found',
        evidence=(Evidence("Namespace", "name", namespace, None, "metadata.namespace"),),
        field="/metadata/namespace",
        suggest=(
            Remedy(
                summary=f"create namespace {namespace}",
                command=f"kubectl create namespace {namespace}",
                cost=60,
            ),
        ),
    )
    return (finding,), ()
