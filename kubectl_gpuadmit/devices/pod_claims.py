"""Which claims a pod has, and what each asks for: by name, by template, or not to be known."""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import normal
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube.dra import ResourceClaim, ResourceClaimTemplate
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.quantity import QuantityError


class PodClaim(Struct, frozen=True):
    """One entry of ``spec.resourceClaims``."""

    index: int
    name: str
    kind: str
    """``ResourceClaim`` or ``ResourceClaimTemplate``, '' where the entry names neither."""
    object: str
    """Name of that object."""
    claim: Claim | None
    """What it asks for; None where there is no such object, or it cannot be read."""
    known: bool
    """False where objects of this kind were not exported: it may exist all the same."""

    def __str__(self) -> str:
        return f"{self.kind} {self.object}"


def of_pod(pod: Pod, namespace: str, cluster: Cluster) -> tuple[PodClaim, ...]:
    """The pod's claims in the order of its spec. Two entries of one template are two claims."""
    found = []
    for index, entry in enumerate(pod.spec.resourceClaims or ()):
        kind, name = "", ""
        if entry.resourceClaimName:
            kind, name = "ResourceClaim", entry.resourceClaimName
        elif entry.resourceClaimTemplateName:
            kind, name = "ResourceClaimTemplate", entry.resourceClaimTemplateName
        claim = _claim(cluster, kind, namespace, name)
        known = claim is not None or (bool(kind) and cluster.knows(kind))
        found.append(PodClaim(index, entry.name, kind, name, claim, known))
    return tuple(found)


def _claim(cluster: Cluster, kind: str, namespace: str, name: str) -> Claim | None:
    obj = cluster.get(kind, namespace, name) if kind else None
    try:
        if isinstance(obj, ResourceClaim):
            return normal.of_claim(obj)
        if isinstance(obj, ResourceClaimTemplate):
            return normal.of_template(obj)
    except QuantityError:
        pass
    return None
