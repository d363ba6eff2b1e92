"""Rule dra/field-dropped."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import dropped, maturity, pod_claims
from kubectl_gpuadmit.devices.allocator import of as features_of
from kubectl_gpuadmit.devices.gates import KUBERNETES
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "dra/field-dropped",
    reasons={
        "dra/field-dropped": "A field of a claim is left out without a word when the claim is"
        " created, because its feature gate is off: what it asks for is not asked. Leave the field"
        " out, or switch the gate on; what a cluster has switched is said under featureGates of the"
        " policy.",
    },
    reads={"ResourceClaim", "ResourceClaimTemplate"},
    level="warn",
)
def dra_field_dropped(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Fields of claims that the API server drops, for their feature gate is off.

    Looked at are claims that are still to be created: those of templates, and those of the input.
    Which gates are on follows from `--kubernetes-version` and `featureGates` of the policy.
    """
    features = features_of(ask.kubernetes, ask.policy.feature_gates)
    release = version(ask.kubernetes)
    title = f"Kubernetes {maturity.spell(release)}"
    for claim in pod_claims.of_pod(ask.pod, ask.namespace, cluster):
        raw = claim.claim.raw if claim.claim is not None else None
        if raw is None or (claim.kind == "ResourceClaim" and raw.metadata.uid):
            continue
        for one in dropped.of_claim(raw.spec.devices, features)[1]:
            gate = maturity.BY_NAME[(KUBERNETES, one.gate)]
            there = maturity.step(gate, release)
            by_hand = there is not None and there.on
            where = "in this cluster" if by_hand else f"by default in {title}"
            yield Finding(
                reason="dra/field-dropped",
                detail=f"{claim}, {one.field} is dropped when the claim is created: {one.gate} is"
                f" off {where}",
                evidence=(Evidence(title, one.gate, "off", "on", gate.source),),
                field=ask.field(f"/spec/resourceClaims/{claim.index}"),
            )
