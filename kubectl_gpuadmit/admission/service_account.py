"""Whether the service account that a pod runs as exists.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/serviceaccount/admission.go. Mounted tokens,
pull secrets and mountable-secret lists are not looked at: they do not change where a pod can run.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_gpuadmit.admission.refusal import Admitted, forbidden, refusal, shown_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Evidence, Remedy, Unknown

REASONS = {
    "service-account/missing": "The pod's service account does not exist in its namespace."
    " Create it, or name another.",
}

DEFAULT = "default"


def mutate(pod: Pod, namespace: str, cluster: Cluster) -> Admitted:
    """Sets the ``default`` account where none is named, and looks the account up.

    The controller makes a ``default`` account in every namespace: it is taken to exist where the
    namespace has no account yet, or was never stored (the run brings it along).
    """
    name = pod.spec.serviceAccountName or DEFAULT
    if pod.spec.serviceAccountName != name:
        pod = replace(pod, spec=replace(pod.spec, serviceAccountName=name))
    if cluster.get("ServiceAccount", namespace, name) is not None:
        return Admitted(pod)
    if not cluster.knows("ServiceAccount"):
        if name == DEFAULT:
            return Admitted(pod)
        unknown = Unknown(
            rule="admission/service-account",
            missing=f"ServiceAccount {name} in {namespace}: accounts are not in the snapshot",
            hint=f"kubectl -n {namespace} get serviceaccounts -o yaml",
        )
        return Admitted(pod, unknowns=(unknown,))
    others = sorted(o.name for o in cluster.every("ServiceAccount", namespace))
    if name == DEFAULT and (not others or not _stored(namespace, cluster)):
        return Admitted(pod)
    text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
    finding = refusal(
        "service-account/missing",
        f"service account {name} does not exist in namespace {namespace}",
        forbidden(shown_name(pod), text),
        evidence=(
            Evidence(
                "ServiceAccount", "name", name, ", ".join(others) or None, "spec.serviceAccountName"
            ),
        ),
        field="/spec/serviceAccountName",
        suggest=(
            Remedy(
                summary=f"create service account {name}",
                command=f"kubectl -n {namespace} create serviceaccount {name}",
                cost=60,
            ),
        ),
    )
    return Admitted(pod, (finding,))


def _stored(namespace: str, cluster: Cluster) -> bool:
    """Whether the Namespace object comes from a cluster: it then bears a uid or version."""
    found = cluster.namespace(namespace)
    return found is not None and bool(found.metadata.uid or found.metadata.resourceVersion)
