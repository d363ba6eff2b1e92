"""Who owns which devices through claims: who keeps each claim alive, and what is left behind.

A claim has its devices from its allocation until it is deallocated. It is kept by the pods that it
is reserved for; one made from a template also by its pod, its owner. States are read from objects
as they are: what a controller does about them in the next seconds is not guessed.

Sources: pkg/controller/resourceclaim/controller.go v1.37.2 (reservedFor is emptied when pods end, a
claim without users is deallocated, one of a template deleted with its pod, the finalizer taken off
when nothing is allocated); k8s.io/api v0.37.2 resource/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Claim, DeviceId
from kubectl_gpuadmit.kube.dra import (
    EXTENDED_CLAIM,
    FINALIZER,
    POD_CLAIM_NAME,
    ConsumerReference,
    ResourceClaim,
)
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import is_terminal

State = Literal["waiting", "in-use", "ending", "leaked", "deallocating", "deleting", "stuck"]
"""waiting: no devices yet. in-use: reserved for pods that run. ending: all pods that it is reserved
for have finished, its devices are about to be released. leaked: it has devices, and nobody whom it
is reserved for exists. deallocating: its release was asked for and waits for the driver. deleting:
it is being deleted and pods still use it. stuck: it is being deleted, nobody uses it, and a
finalizer keeps it."""

ALARMING: frozenset[State] = frozenset({"leaked", "stuck"})


class Held(Struct, frozen=True):
    """One device or share of it that a claim has."""

    device: str
    """``driver/pool/device``."""
    request: str
    uuid: str = ""
    """Of the GPU, or of the MIG device; '' where the slice does not say."""
    parent: str = ""
    """UUID of the GPU that a MIG device is part of."""
    share: str = ""
    admin_access: bool = False
    """It looks in on a device that may be others'."""
    published: bool = True
    """False where no slice lists the device any more: its driver or node has gone."""


class Ownership(Struct, frozen=True):
    """One claim."""

    claim: str
    """``namespace/name``."""
    made_for: str
    """Pod that it was made for from a template (or for extended resources), '' for a claim of its
    own."""
    state: State
    devices: tuple[Held, ...]
    users: tuple[str, ...]
    """Pods that it is reserved for and that are there, ``namespace/name``."""
    gone: tuple[str, ...]
    """Those that it is reserved for and that are not."""
    kept_by: str
    """Who keeps it alive, a sentence."""
    finalizers: tuple[str, ...] = ()
    since: str = ""
    """When deletion was asked for, else when it was created; RFC 3339."""

    @property
    def shared(self) -> bool:
        """Several pods hold its devices at once, or only a share of a device is its own."""
        return len(self.users) > 1 or any(held.share for held in self.devices)


def of_cluster(cluster: Cluster) -> tuple[Ownership, ...]:
    """Every claim, those that alarm first, then by name."""
    if next(cluster.every("ResourceClaim"), None) is None:
        return ()
    inventory = Inventory.of(cluster)
    pods = {pod.metadata.uid: pod for pod in cluster.pods() if pod.metadata.uid}
    found = [
        _ownership(claim, inventory, pods, cluster)
        for claim in inventory.claims.values()
        if claim.raw is not None
    ]
    return tuple(sorted(found, key=lambda one: (one.state not in ALARMING, one.claim)))


def alerts(owned: tuple[Ownership, ...]) -> Iterator[tuple[str, str]]:
    """(subject, sentence) of what somebody should look at."""
    for one in owned:
        if one.state in ALARMING:
            yield f"claim {one.claim}", f"{_devices(one)} {one.state}: {one.kept_by}"
        lost = [held.device for held in one.devices if not held.published]
        if lost:
            yield f"claim {one.claim}", f"has {', '.join(lost)}, which no slice lists any more"


def _devices(one: Ownership) -> str:
    number = len(one.devices)
    return "1 device" if number == 1 else f"{number} devices"


def _ownership(
    claim: Claim, inventory: Inventory, pods: Mapping[str, Pod], cluster: Cluster
) -> Ownership:
    raw = claim.raw
    assert raw is not None
    here, gone, over = [], [], []
    for user in claim.reserved_for:
        pod = pods.get(user.uid)
        if user.resource not in ("", "pods") or (pod is None and not cluster.knows("Pod")):
            here.append(_name(claim, user))
        elif pod is None:
            gone.append(_name(claim, user))
        elif is_terminal(pod):
            over.append(_name(claim, user))
        else:
            here.append(_name(claim, user))
    owner = _made_for(raw)
    state = _state(raw, claim, here, gone, over)
    return Ownership(
        claim=str(claim),
        made_for=owner,
        state=state,
        devices=_held(claim, inventory),
        users=tuple(here),
        gone=tuple(gone),
        kept_by=_kept_by(state, raw, here, gone, over, owner, pods),
        finalizers=tuple(raw.metadata.finalizers or ()),
        since=raw.metadata.deletionTimestamp or raw.metadata.creationTimestamp or "",
    )


def _name(claim: Claim, user: ConsumerReference) -> str:
    kind = "" if user.resource in ("", "pods") else f"{user.resource}/"
    return f"{claim.namespace}/{kind}{user.name}"


def _made_for(raw: ResourceClaim) -> str:
    """The pod that owns it as its controller."""
    made = POD_CLAIM_NAME in raw.annotations or raw.annotations.get(EXTENDED_CLAIM) == "true"
    for owner in raw.metadata.ownerReferences or ():
        if owner.kind == "Pod" and (made or owner.controller):
            return f"{raw.namespace}/{owner.name}"
    return ""


def _state(
    raw: ResourceClaim, claim: Claim, here: list[str], gone: list[str], over: list[str]
) -> State:
    if raw.metadata.deletionTimestamp:
        return "deleting" if here or over else "stuck"
    if claim.allocation is None:
        return "waiting"
    if here:
        return "in-use"
    if raw.status.deallocationRequested:
        return "deallocating"
    return "ending" if over and not gone else "leaked"


def _kept_by(
    state: State,
    raw: ResourceClaim,
    here: list[str],
    gone: list[str],
    over: list[str],
    owner: str,
    pods: Mapping[str, Pod],
) -> str:
    match state:
        case "waiting":
            return f"waits for pod {owner} to be scheduled" if owner else "no pod uses it yet"
        case "in-use":
            more = f"; {_listed(gone)} gone" if gone else ""
            return f"{_listed(here)}{more}"
        case "ending":
            return f"{_listed(over)} finished, about to be released"
        case "deallocating":
            return "its driver has not confirmed the release"
        case "deleting":
            return f"deletion waits for {_listed([*here, *over])}"
        case "stuck":
            others = [name for name in raw.metadata.finalizers or () if name != FINALIZER]
            if others:
                return f"nobody uses it; finalizer {', '.join(others)} keeps it"
            if raw.status.allocation is not None:
                return "nobody uses it; still allocated, so the API keeps it (delete-protection)"
            if raw.metadata.finalizers:
                return "nobody uses it; the resource claim controller has not let go of it"
            return "nobody uses it; it goes at once"
    if gone:
        return f"reserved for {_listed(gone)}, gone"
    uids = [o.uid for o in raw.metadata.ownerReferences or () if o.kind == "Pod"]
    if owner and not any(uid in pods for uid in uids):
        return f"made for pod {owner}, which is gone"
    return "reserved for nobody"


def _listed(names: list[str]) -> str:
    head = "pod " if len(names) == 1 else "pods "
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return head + ", ".join(names[:3]) + more


def _held(claim: Claim, inventory: Inventory) -> tuple[Held, ...]:
    found = []
    for result in claim.allocation.devices if claim.allocation is not None else ():
        device = inventory.devices.get(result.device)
        found.append(
            Held(
                device=str(result.device),
                request=result.request,
                uuid=_text(inventory, result.device, "uuid"),
                parent=_text(inventory, result.device, "parentUUID"),
                share=result.share,
                admin_access=result.admin_access,
                published=device is not None or not inventory.slices,
            )
        )
    return tuple(found)


def _text(inventory: Inventory, id: DeviceId, name: str) -> str:
    device = inventory.devices.get(id)
    value = device.attributes.get(f"{id.driver}/{name}") if device is not None else None
    return value if isinstance(value, str) else ""
