"""Rule dra/admin-access."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import pod_claims
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.policy.patterns import matches
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Unknown

LABEL = "resource.kubernetes.io/admin-access"
LABEL_OF_1_33 = "resource.k8s.io/admin-access"


def label(kubernetes: str) -> str:
    """The label that a namespace needs for adminAccess; '' where none is asked for yet.

    Sources: pkg/registry/resource/utils.go and staging/src/k8s.io/api/resource of 1.33 and 1.34.
    """
    at = version(kubernetes)
    if at < (1, 33):
        return ""
    return LABEL_OF_1_33 if at == (1, 33) else LABEL


@rule(
    "dra/admin-access",
    reasons={
        "dra/admin-access-unlabelled": "A claim asks for adminAccess in a namespace without the"
        " label that allows it: the API server refuses the claim. Leave out adminAccess, or label"
        " the namespace if it is the platform's.",
        "dra/admin-access-not-platform": "A claim asks for adminAccess, which reaches devices that"
        " others use, in a namespace that the policy does not name as the platform's. Leave it out,"
        " or name the namespace in the rule's settings.",
    },
    reads={"Namespace", "ResourceClaim", "ResourceClaimTemplate"},
    fidelity="exact",
    level="deny",
)
def dra_admin_access(
    ask: Ask, cluster: Cluster, *, namespaces: tuple[str, ...] = ()
) -> Iterator[Found]:
    """``adminAccess`` in namespaces that are not the platform's.

    The API server creates such a claim only in a namespace with the label
    ``resource.kubernetes.io/admin-access: "true"`` (``resource.k8s.io/admin-access`` in 1.33).
    ``namespaces`` are patterns of platform namespaces; without them the label alone decides.
    """
    for claim in pod_claims.of_pod(ask.pod, ask.namespace, cluster):
        wanted = [
            request.full_name(want)
            for request in (claim.claim.requests if claim.claim else ())
            for want in request.wants
            if want.admin_access
        ]
        if not wanted:
            continue
        what = f"{claim} asks for adminAccess (request {', '.join(wanted)})"
        field = ask.field(f"/spec/resourceClaims/{claim.index}")
        if namespaces and not any(matches(ask.namespace, p) for p in namespaces):
            yield Finding(
                reason="dra/admin-access-not-platform",
                detail=f"{what}; namespace {ask.namespace} is none of the platform's",
                evidence=(Evidence("policy", "namespaces", ask.namespace, ", ".join(namespaces)),),
                field=field,
            )
        yield from _unlabelled(ask, cluster, what, field)


def _unlabelled(ask: Ask, cluster: Cluster, what: str, field: str) -> Iterator[Found]:
    key = label(ask.kubernetes)
    namespace = cluster.namespace(ask.namespace)
    if not key:
        return
    if namespace is None:
        if not cluster.knows("Namespace"):
            yield Unknown(
                rule="dra/admin-access",
                missing=f"labels of namespace {ask.namespace}: namespaces are not in the source",
                hint="kubectl get namespaces -o json",
            )
        return
    value = namespace.labels.get(key)
    if value == "true":
        return
    yield Finding(
        reason="dra/admin-access-unlabelled",
        detail=f'{what}; namespace {ask.namespace} lacks the label {key}: "true"',
        evidence=(
            Evidence(f"Namespace {ask.namespace}", key, value, "true", "metadata.labels"),
            Evidence(
                "kube-apiserver",
                "message",
                f"admin access to devices requires the `{key}: true` label on the containing"
                " namespace",
                None,
            ),
        ),
        field=field,
        suggest=(
            Remedy(
                summary=f"label namespace {ask.namespace}, if it is the platform's",
                command=f"kubectl label namespace {ask.namespace} {key}=true",
                cost=90,
            ),
        ),
    )
