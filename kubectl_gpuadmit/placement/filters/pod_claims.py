"""The ResourceClaims behind a pod, as the scheduler finds them, and what keeps it from trying.

Three places name them: ``spec.resourceClaims``, ``status.resourceClaimStatuses`` (the names of
those that were made from templates) and, for extended resources, an annotated claim of which the
pod is owner. A pod that does not exist yet has no claims of templates: those are assumed that the
controller would make.

Sources: pkg/scheduler/framework/plugins/dynamicresources (PreEnqueue, PreFilter,
foreachPodResourceClaim), v1.37.2; k8s.io/dynamic-resource-allocation v0.37.2 resourceclaim.
"""

from __future__ import annotations

from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import allocator, dropped, normal
from kubectl_gpuadmit.devices.model import Claim, Class
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import ObjectMeta, OwnerReference, Pod, PodResourceClaim
from kubectl_gpuadmit.kube.quantity import QuantityError
from kubectl_gpuadmit.kube.versions import LATEST, version
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall, Unknown

FILTER = "DynamicResources"
REASONS = {
    "placement/claim-missing": (
        "The pod names a ResourceClaim that does not exist: it is not even queued for "
        "scheduling. Create the claim, or correct spec.resourceClaims."
    ),
    "placement/claim-not-created": (
        "The ResourceClaim that is to be made for the pod from a template does not exist yet, "
        "so the pod is not queued. The controller makes it; if it stays so, look at the pod's "
        "events for FailedResourceClaimCreation."
    ),
    "placement/template-missing": (
        "The pod names a ResourceClaimTemplate that does not exist: its claim is never made "
        "(FailedResourceClaimCreation), and the pod stays Pending. Create the template."
    ),
    "placement/claim-deleting": (
        "The pod's ResourceClaim is being deleted. Wait until it is gone and created anew."
    ),
    "placement/claim-owner": (
        "A ResourceClaim of the expected name was made for another pod. Delete it, so that the "
        "controller can make the right one."
    ),
    "placement/claim-full": (
        "The pod's ResourceClaim is used by 256 pods, as many as it may be. Give the next pods "
        "a claim of their own."
    ),
    "placement/claim-unreadable": (
        "The pod's ResourceClaim or template holds an amount that is no quantity, or is in a "
        "version that is not served any more. Correct it."
    ),
    "placement/class-missing": (
        "A request names a DeviceClass that does not exist. Correct the name, or install the "
        "driver that brings the class."
    ),
    "placement/claim-no-request": (
        "A request asks for nothing: it has neither exactly nor firstAvailable. State one of them."
    ),
    "placement/claim-alternatives-off": (
        "A request has alternatives (firstAvailable), and this Kubernetes has them off (gate "
        "DRAPrioritizedList). State one thing under exactly."
    ),
    "placement/claim-emptied": (
        "The claim of a template is refused when it is made, for a field that it needs is dropped: "
        "its feature gate is off (FailedResourceClaimCreation; the pod stays Pending). Switch the "
        "gate on, or write the template without that field."
    ),
    "placement/claim-no-source": (
        "An entry of spec.resourceClaims names neither a claim nor a template, so the pod is "
        "not queued. Name one."
    ),
}
CODES = frozenset(REASONS)


class PodClaims(Struct, frozen=True):
    """What was found. ``refused`` is what the scheduler has against the pod before any node."""

    claims: tuple[Claim, ...] = ()
    """The pod's own claims in the order of its spec, those made for it too."""
    created: tuple[dra.ResourceClaim, ...] = ()
    """Of these the ones that are assumed: the controller would make them."""
    refused: tuple[Shortfall, ...] = ()
    unknowns: tuple[Unknown, ...] = ()


_NONE = PodClaims()


def of(cluster: Cluster, pod: Pod, *, kubernetes: str = LATEST) -> PodClaims:
    """Stops at the first claim that is not there, as the scheduler does."""
    entries = pod.spec.resourceClaims
    if not entries:
        return _NONE
    found: list[Claim] = []
    created: list[dra.ResourceClaim] = []
    for entry in entries:
        raw = _existing(cluster, pod, entry, kubernetes)
        if raw is None and entry.resourceClaimTemplateName and not _named_in_status(pod, entry):
            raw = _made(cluster, pod, entry, kubernetes)
            if isinstance(raw, dra.ResourceClaim):
                created.append(raw)
        if raw is None:
            continue
        if isinstance(raw, Unknown):
            return PodClaims(tuple(found), tuple(created), unknowns=(raw,))
        if isinstance(raw, Shortfall):
            return PodClaims(tuple(found), tuple(created), (raw,))
        try:
            found.append(normal.of_claim(raw))
        except QuantityError as problem:
            refusal = _refusal(
                "placement/claim-unreadable", f"claim {raw.name}: {problem}", raw.name
            )
            return PodClaims(tuple(found), tuple(created), (refusal,))
    return PodClaims(tuple(found), tuple(created))


def _named_in_status(pod: Pod, entry: PodResourceClaim) -> bool:
    return any(one.get("name") == entry.name for one in pod.status.resourceClaimStatuses or ())


def _existing(
    cluster: Cluster, pod: Pod, entry: PodResourceClaim, kubernetes: str
) -> dra.ResourceClaim | Shortfall | Unknown | None:
    """None: no claim is needed, or it is still to be made."""
    name, owned = entry.resourceClaimName, False
    if name is None:
        if entry.resourceClaimTemplateName is None:
            text = (
                f'pod "{pod.namespace}/{pod.name}", spec.resourceClaim "{entry.name}": none of the'
                " supported fields are set"
            )
            return _refusal("placement/claim-no-source", text, entry.name)
        statuses = pod.status.resourceClaimStatuses or ()
        status = next((one for one in statuses if one.get("name") == entry.name), None)
        if status is None:
            if not pod.metadata.uid:
                return None
            text = f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet'
            return _refusal(
                "placement/claim-not-created", text, entry.name, until="the claim has been created"
            )
        written = status.get("resourceClaimName")
        if not isinstance(written, str):
            return None
        name, owned = written, True
    raw = cluster.get("ResourceClaim", pod.namespace, name)
    if isinstance(raw, dra.ResourceClaim) and not raw.metadata.uid:
        stored, _ = dropped.created(raw, allocator.of(kubernetes, cluster.gates))
        assert isinstance(stored, dra.ResourceClaim)
        raw = stored  # of the input: it is yet to be created
    if not isinstance(raw, dra.ResourceClaim):
        if not cluster.knows("ResourceClaim"):
            return _unknown(f"ResourceClaim {pod.namespace}/{name}", "resourceclaims")
        text = f'could not find ResourceClaim "{pod.namespace}/{name}"'
        return _refusal("placement/claim-missing", text, name)
    if not normal.readable(raw):
        return _refusal("placement/claim-unreadable", f"claim {name} is in {raw.apiVersion}", name)
    if raw.metadata.deletionTimestamp:
        return _refusal(
            "placement/claim-deleting",
            f'resourceclaim "{name}" is being deleted',
            name,
            until="the claim is gone and made anew",
        )
    if owned and not _is_controlled_by(raw, pod):
        word = "Pod" if version(kubernetes) >= (1, 36) else "pod"
        text = (
            f"ResourceClaim {raw.namespace}/{name} was not created for {word}"
            f" {pod.namespace}/{pod.name} ({word} is not owner)"
        )
        return _refusal("placement/claim-owner", text, name)
    return raw


def _is_controlled_by(claim: dra.ResourceClaim, pod: Pod) -> bool:
    return any(
        owner.controller and owner.uid == (pod.metadata.uid or "")
        for owner in claim.metadata.ownerReferences or ()
    )


def _made(
    cluster: Cluster, pod: Pod, entry: PodResourceClaim, kubernetes: str
) -> dra.ResourceClaim | Shortfall | Unknown:
    """The claim that the controller would make from the template."""
    name = entry.resourceClaimTemplateName or ""
    template = cluster.get("ResourceClaimTemplate", pod.namespace, name)
    if not isinstance(template, dra.ResourceClaimTemplate):
        if not cluster.knows("ResourceClaimTemplate"):
            return _unknown(
                f"ResourceClaimTemplate {pod.namespace}/{name}", "resourceclaimtemplates"
            )
        text = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
        return _refusal("placement/template-missing", text, name)
    if not normal.readable(template):
        text = f"template {name} is in {template.apiVersion}"
        return _refusal("placement/claim-unreadable", text, name)
    spec = template.spec.spec
    devices, gone = dropped.of_claim(spec.devices, allocator.of(kubernetes, cluster.gates))
    if gone:
        spec = structs.replace(spec, devices=devices)
        if empty := dropped.emptied(devices):
            lost = next(one for one in gone if one.field.startswith(f"{empty}."))
            text = (
                f"no claim can be made from template {name}: {empty} is empty without"
                f" {lost.field.removeprefix(empty)[1:]}, which is dropped, for {lost.gate} is off"
            )
            return _refusal("placement/claim-emptied", text, name)
    base = f"{pod.name or (pod.metadata.generateName or 'pod').rstrip('-')}-{entry.name}"
    meta = template.spec.metadata
    owner = OwnerReference("v1", "Pod", pod.name, pod.metadata.uid or "", controller=True)
    return dra.ResourceClaim(
        apiVersion=template.apiVersion,
        metadata=ObjectMeta(
            name=f"{base[:57]}-xxxxx",
            namespace=pod.namespace,
            labels=meta.labels,
            annotations={**(meta.annotations or {}), dra.POD_CLAIM_NAME: entry.name},
            ownerReferences=(owner,),
        ),
        spec=spec,
    )


def extended_claim(cluster: Cluster, pod: Pod) -> dra.ResourceClaim | None:
    """The claim for extended resources that an earlier attempt has left, None for none."""
    if not pod.metadata.uid:
        return None
    for raw in cluster.every("ResourceClaim", pod.namespace):
        if isinstance(raw, dra.ResourceClaim) and raw.annotations.get(dra.EXTENDED_CLAIM) == "true":
            for owner in raw.metadata.ownerReferences or ():
                if owner.controller and (owner.name, owner.uid) == (pod.name, pod.metadata.uid):
                    return raw
    return None


def against(
    claim: Claim, pod: Pod, classes: dict[str, Class], *, alternatives: bool
) -> Shortfall | None:
    """What PreFilter has against one of the claims."""
    uid = pod.metadata.uid or ""
    users = claim.reserved_for
    if claim.allocation is not None:
        if len(users) >= dra.MAX_CONSUMERS and not any(uid and one.uid == uid for one in users):
            text = f"claim {claim} is reserved for {len(users)} pods, the most that it may be"
            return _refusal(
                "placement/claim-full", text, claim.name, until="another pod lets go of it"
            )
        return None
    for request in claim.requests:
        if not request.wants:
            text = f"resource claim {claim}, request {request.name}: unknown request type"
            return _refusal("placement/claim-no-request", text, claim.name)
        if request.first_available and not alternatives:
            text = (
                f"resource claim {claim}, request {request.name}: has subrequests, but the"
                " DRAPrioritizedList feature is disabled"
            )
            return _refusal("placement/claim-alternatives-off", text, claim.name)
        for want in request.wants:
            if want.device_class not in classes:
                text = (
                    f"request {request.full_name(want)}: device class {want.device_class} does not"
                    " exist"
                )
                return _refusal("placement/class-missing", text, want.device_class)
    return None


def _refusal(code: str, text: str, subject: str, *, until: str = "") -> Shortfall:
    return shortfall(FILTER, text, code, permanent=True, until=until, subject=subject)


def _unknown(what: str, plural: str) -> Unknown:
    return Unknown(
        rule="placement",
        missing=f"{what}: such objects are not in the source",
        hint=f"kubectl get {plural} -A -o yaml",
        stage="placement",
    )


def with_consumer(raw: dra.ResourceClaim, pod: Pod) -> dra.ResourceClaim:
    """The claim reserved for one more pod."""
    users = raw.status.reservedFor or ()
    uid = pod.metadata.uid or f"{pod.namespace}/{pod.name}"
    if any(one.uid == uid for one in users):
        return raw
    one = dra.ConsumerReference(resource="pods", name=pod.name, uid=uid)
    return structs.replace(raw, status=structs.replace(raw.status, reservedFor=(*users, one)))
