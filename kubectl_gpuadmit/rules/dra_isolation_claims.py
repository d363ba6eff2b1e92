"""Rule dra/isolation-claims."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import isolation
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation, Unknown


@rule(
    "dra/isolation-claims",
    reasons={},
    stage="mutate",
    reads={"Namespace"},
    level="deny",
)
def dra_isolation_claims(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Gives the pods of an isolated namespace their claim: ``isolate NAMESPACE`` turns it on.

    The namespace's label ``kubeplus.io/gpu-isolation-enabled`` says that it is isolated, its
    annotation ``kubeplus.io/gpu-isolation-resolved`` names the claim template (or the one claim
    that all share). The pod gets it in ``spec.resourceClaims`` and each container in
    ``resources.claims``, sidecars too; what is declared stays, and asking again changes nothing.
    Without the label, nothing is changed.
    """
    namespace = cluster.namespace(ask.namespace)
    if namespace is None or not isolation.enabled(namespace):
        return
    wanted = isolation.resolved(namespace)
    if wanted is None:
        yield Unknown(
            rule="dra/isolation-claims",
            missing=f"which claim pods of {ask.namespace} get: its annotation"
            f" {isolation.RESOLVED} is missing or cannot be read",
            hint=f"kubectl gpu-admit isolate {ask.namespace} --sharing … --apply",
        )
        return
    if ops := isolation.operations(ask.group.template, wanted):
        name = wanted.claimTemplateName or wanted.claimName
        yield Mutation(ops=ops, summary=f"adds claim {name} of the isolated namespace")
