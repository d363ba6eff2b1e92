"""A ResourceClaim or ResourceClaimTemplate by itself: which nodes could serve it, and which not.

Asked with a pod that wants nothing else and tolerates every taint, so that devices alone decide.
"""

from __future__ import annotations

from msgspec import structs

from kubectl_gpuadmit.asking import Terms
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import normal
from kubectl_gpuadmit.kube.dra import ResourceClaim, ResourceClaimTemplate
from kubectl_gpuadmit.kube.objects import (
    Container,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PodSpec,
    Toleration,
)
from kubectl_gpuadmit.placement.place import place
from kubectl_gpuadmit.verdict import Ref, Verdict


def judged(
    obj: ResourceClaim | ResourceClaimTemplate, location: str, cluster: Cluster, terms: Terms
) -> Verdict:
    """The verdict on one of them, which is in ``cluster`` already. It has no pods of its own."""
    ref = Ref(obj.apiVersion, obj.kind, obj.namespace, obj.name)
    outdated = normal.outdated(obj)
    if outdated is not None:
        return Verdict(
            ref,
            location,
            pods=0,
            gpus={},
            admission="denied",
            placement="unknown",
            running="not-a-model",
            blockers=(outdated.reason,),
            findings=(structs.replace(outdated, rule="admission/served"),),
        )
    placed = place(
        cluster,
        _asking(obj),
        1,
        now=terms.now,
        names=(obj.name,),
        kubernetes=terms.kubernetes,
    )
    findings = tuple(structs.replace(f, field="/spec/devices/requests") for f in placed.findings)
    return Verdict(
        ref,
        location,
        pods=0,
        gpus={},
        admission="admitted",
        placement=placed.placement,
        running="not-a-model",
        blockers=tuple(dict.fromkeys(f.reason for f in findings if f.level == "deny")),
        findings=findings,
        unknowns=placed.unknowns,
        nodes=placed.nodes,
        waits_for=placed.waits_for,
    )


def _asking(obj: ResourceClaim | ResourceClaimTemplate) -> Pod:
    is_claim = isinstance(obj, ResourceClaim)
    entry = PodResourceClaim(
        name=obj.name[:63],
        resourceClaimName=obj.name if is_claim else None,
        resourceClaimTemplateName=None if is_claim else obj.name,
    )
    return Pod(
        metadata=ObjectMeta(name=obj.name, namespace=obj.namespace),
        spec=PodSpec(
            containers=(Container(name="any"),),
            tolerations=(Toleration(operator="Exists"),),
            resourceClaims=(entry,),
        ),
    )
