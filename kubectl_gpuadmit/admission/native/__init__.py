"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies, evaluated for an object to be created.

    request (what is created) → bound (which policies are asked) → validating | mutating (merge)

``typed`` and ``pod_defaults`` bring a pod into the form in which the API server shows it to a
policy: only fields that Kubernetes knows, empty ones left out, defaults filled in. What a policy
reads and nobody here can know (who asks, a parameter that is not in the snapshot, the authorizer)
makes its answer unknown, unless another part of the expression decides.
"""

from kubectl_gpuadmit.cluster import Cluster

KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


def present(cluster: Cluster) -> bool:
    """Whether the cluster has any policy: without one nothing of this package is needed."""
    return any(True for kind in KINDS for _ in cluster.every(kind))
