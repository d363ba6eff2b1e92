"""Rule dra/tenant-allow-list."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import pod_claims
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.devices.pod_claims import PodClaim
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.dra import MAX_RESULTS, DeviceClass
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.policy import Tenant
from kubectl_gpuadmit.policy.patterns import matches
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "dra/tenant-allow-list",
    reasons={
        "dra/class-not-allowed": "A claim names a DeviceClass that the policy does not allow its"
        " tenant. Use one that is allowed, or have it added to the tenant.",
        "dra/selector-not-allowed": "A claim selects devices by an expression that the policy does"
        " not allow its tenant. Leave it to the DeviceClass, or have it added to the tenant.",
        "dra/too-many-devices": "A pod's claims ask for more devices than the policy allows its"
        " tenant a pod. Ask for fewer, or have the number raised.",
        "dra/runtime-class-not-allowed": "A pod that claims devices names a RuntimeClass that the"
        " policy does not allow its tenant. Use one that is allowed, or have it added.",
        "dra/no-tenant": "A pod claims devices in a namespace of no tenant. Add the namespace to a"
        " tenant of the policy.",
    },
    reads={"DeviceClass", "ResourceClaim", "ResourceClaimTemplate"},
)
def dra_tenant_allow_list(
    ask: Ask, cluster: Cluster, *, require_tenant: bool = False
) -> Iterator[Found]:
    """What the policy's ``tenants`` allow: device classes, selectors, numbers, runtime classes.

    The tenant is the first whose ``namespaces`` hold the pod's. A list that a tenant does not have
    restricts nothing; an empty one allows nothing. Of ``firstAvailable`` every alternative must be
    allowed and the largest counts; ``allocationMode: All`` counts as 32, the most a claim can
    have. Extended resources that a DeviceClass supplies count as that class. ``requireTenant``
    refuses claims in namespaces of no tenant. A policy with ``tenants`` denies at its default level
    even where it does not name this rule.
    """
    claims = pod_claims.of_pod(ask.pod, ask.namespace, cluster)
    supplied = _supplied(ask, cluster)
    if not claims and not supplied:
        return
    tenant = ask.policy.tenant(ask.namespace)
    if tenant is None:
        if require_tenant:
            yield Finding(
                reason="dra/no-tenant",
                detail=f"namespace {ask.namespace} belongs to no tenant of the policy",
                evidence=(Evidence("policy", "tenants", None, ask.namespace),),
                field=ask.field("/spec/resourceClaims"),
            )
        return
    for resource, (class_name, _) in supplied.items():
        if not _allowed(class_name, tenant.deviceClasses):
            yield _class_finding(ask, tenant, class_name, resource, "/spec/containers")
    for claim in claims:
        if claim.claim is not None:
            yield from _of_claim(ask, tenant, claim, claim.claim)
        elif not claim.known and claim.kind:
            yield Unknown(
                rule="dra/tenant-allow-list",
                missing=f"{claim}: {claim.kind} objects are not in the source",
                hint=f"kubectl get {claim.kind.lower()}s -A -o json",
            )
    yield from _of_pod(ask, tenant, claims, sum(number for _, number in supplied.values()))


def _of_claim(ask: Ask, tenant: Tenant, entry: PodClaim, claim: Claim) -> Iterator[Finding]:
    at = f"/spec/resourceClaims/{entry.index}"
    for request in claim.requests:
        for want in request.wants:
            where = f"{entry}, request {request.full_name(want)}"
            if not _allowed(want.device_class, tenant.deviceClasses):
                yield _class_finding(ask, tenant, want.device_class, where, at)
            for expression in want.selectors:
                text = " ".join((expression or "").split())
                if tenant.selectors is None or text in map(_folded, tenant.selectors):
                    continue
                yield Finding(
                    reason="dra/selector-not-allowed",
                    detail=f"{where}: the selector {text or 'of an unknown kind'} is not among"
                    f" those that tenant {tenant.name} may use",
                    evidence=(
                        Evidence(where, "selector", text, " | ".join(tenant.selectors) or "none"),
                    ),
                    field=ask.field(at),
                )


def _of_pod(
    ask: Ask, tenant: Tenant, claims: tuple[PodClaim, ...], supplied: int
) -> Iterator[Finding]:
    asked = supplied + sum(devices(entry.claim) for entry in claims if entry.claim)
    if tenant.maxDevices is not None and asked > tenant.maxDevices:
        yield Finding(
            reason="dra/too-many-devices",
            detail=f"the pod's claims ask for {asked} devices; tenant {tenant.name} may have"
            f" {tenant.maxDevices} a pod",
            evidence=(Evidence("pod", "devices", asked, tenant.maxDevices, "manifest", "most"),),
            field=ask.field("/spec/resourceClaims"),
        )
    runtime = ask.pod.spec.runtimeClassName or ""
    if runtime and not _allowed(runtime, tenant.runtimeClasses):
        allowed = ", ".join(tenant.runtimeClasses or ()) or "none"
        yield Finding(
            reason="dra/runtime-class-not-allowed",
            detail=f"RuntimeClass {runtime} is not allowed for tenant {tenant.name}; allowed:"
            f" {allowed}",
            evidence=(Evidence("pod", "runtimeClassName", runtime, allowed, "manifest"),),
            field=ask.field("/spec/runtimeClassName"),
        )


def devices(claim: Claim) -> int:
    """How many devices a claim may come to hold."""
    return sum(
        max((MAX_RESULTS if want.mode == "All" else want.count for want in r.wants), default=0)
        for r in claim.requests
    )


def _class_finding(ask: Ask, tenant: Tenant, name: str, where: str, at: str) -> Finding:
    allowed = ", ".join(tenant.deviceClasses or ()) or "none"
    return Finding(
        reason="dra/class-not-allowed",
        detail=f"{where}: DeviceClass {name} is not allowed for tenant {tenant.name}; allowed:"
        f" {allowed}",
        evidence=(Evidence(where, "deviceClassName", name, allowed, "manifest"),),
        field=ask.field(at),
    )


def _allowed(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(matches(name, pattern) for pattern in patterns)


def _folded(text: str) -> str:
    return " ".join(text.split())


def _supplied(ask: Ask, cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Extended resources of the pod that a DeviceClass supplies: (class, number).

    Those of the form deviceclass.resource.kubernetes.io/CLASS always are; others only where the
    nodes do not advertise them, and then no list of classes is needed to say so.
    """
    if version(ask.kubernetes) < (1, 36):
        return {}
    wanted = {name: n for name, n in podlib.requests(ask.pod).items() if n and "/" in name}
    found = {
        name: (name.removeprefix(DEVICE_CLASS), number)
        for name, number in wanted.items()
        if name.startswith(DEVICE_CLASS)
    }
    for obj in cluster.every("DeviceClass"):
        mapped = obj.spec.extendedResourceName if isinstance(obj, DeviceClass) else None
        if mapped in wanted and not any(
            info.allocatable.get(mapped) for info in cluster.nodes.values()
        ):
            found[mapped] = (obj.name, wanted[mapped])
    return found
