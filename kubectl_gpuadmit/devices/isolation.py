"""A namespace's own devices: which objects give a tenant them, and what its pods then claim.

Composes plain objects and reads what they say again; writes nothing. The names are those of
KubePlus, so that either tool finds what the other made.

Rules of this module
1. Everything lives in the namespace or is owned by it. The one cluster-scoped object, a DeviceClass
   of the tenant's own, has the Namespace as its owner: the garbage collector takes it along. Where
   the Namespace's uid is not known it has none, and that is said.
2. ``exclusive`` and ``mig`` give each pod a claim of its own, from a template. ``time-slicing``,
   ``mps`` and ``hybrid`` let the pods of the namespace share one claim: NVIDIA's driver shares a
   device among the users of one claim, not between claims.
3. Quota counts claims and devices, for both can be had without the template: the tenant may write
   claims of its own. Other device classes and the device plugin's resources get 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.kube.objects import Namespace

Sharing = Literal["exclusive", "mig", "time-slicing", "mps", "hybrid"]
SHARINGS: tuple[Sharing, ...] = ("exclusive", "mig", "time-slicing", "mps", "hybrid")

ENABLED = "kubeplus.io/gpu-isolation-enabled"
"""Label of the namespace, ``"true"``: what a webhook's namespaceSelector matches."""
RESOLVED = "kubeplus.io/gpu-isolation-resolved"
"""Annotation of the namespace: ``{"claimTemplateName": …}``, or ``claimName`` for a shared one."""
WANTED = "kubeplus.io/gpu-isolation"
"""Annotation of an instance: ``{"sharing": "mig", "migProfile": "1g.10gb", "maxDevices": 1}``."""
STRENGTH = "gpu-admit.io/gpu-isolation-strength"
"""Annotation of the namespace: ``device``, ``hardware``, ``soft`` or ``none``."""
OF = "gpu-admit.io/isolation-of"
"""Label of each object that was composed for a namespace, with its name."""
CLAIM_REF = "kubeplus-gpu"
"""Name of the claim in a pod's ``spec.resourceClaims``."""
MANAGER = "kubectl-gpu-admit"
"""Field manager of server-side apply."""

DRIVER = "gpu.nvidia.com"
CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")
"""Classes that NVIDIA's driver brings."""
MIG_PROFILE = re.compile(r"([1-7]c\.)?[1-7]g\.[1-9][0-9]*gb([+-](me|gfx)(\.all)?)*")

_ISOLATION: dict[Sharing, tuple[str, str]] = {
    "exclusive": ("device", "a whole GPU for each pod"),
    "mig": ("hardware", "a MIG partition for each pod: memory and faults apart in hardware"),
    "time-slicing": ("none", "pods share one GPU's memory and faults, and take turns"),
    "mps": ("soft", "limits of memory only; a fault ends all who share"),
    "hybrid": ("hardware", "a MIG partition for the tenant, whose own pods take turns on it"),
}


class Wish(Struct, frozen=True, kw_only=True):
    """What a tenant is to have."""

    namespace: str
    sharing: Sharing
    mig_profile: str = ""
    max_devices: int = 1
    device_class: str = ""
    """An existing class to build on; '' to compose one of the tenant's own."""
    instance: str = ""
    """Name of the instance that it is for; '' for the namespace as a whole."""
    quota: str = ""
    """An existing ResourceQuota that gets the keys; '' to compose one."""
    forced: bool = False


class Plan(Struct, frozen=True):
    """The objects, and what a person should know of them."""

    namespace: str
    objects: tuple[dict[str, Any], ...]
    """In the order of applying; the Namespace last, for it turns the claims on."""
    strength: str
    meaning: str
    claim: str
    """Name of the template or claim that pods get."""
    notes: tuple[str, ...] = ()


def compose(wish: Wish, *, uid: str = "", classes: Iterable[str] = ()) -> Plan:
    """The objects that fulfil a wish. ``uid`` is the Namespace's, ``classes`` the cluster's.

    Raises BadInput where the wish contradicts itself, and where it would let tenants share without
    isolation and is not forced.
    """
    _check(wish)
    strength, meaning = _ISOLATION[wish.sharing]
    stem = f"{CLAIM_REF}-{wish.instance or wish.namespace}"
    shared = wish.sharing in ("time-slicing", "mps", "hybrid")
    class_name = wish.device_class or stem
    objects: list[dict[str, Any]] = []
    notes: list[str] = []
    if not wish.device_class:
        objects.append(_class(wish, class_name, uid))
        if not uid:
            notes.append(
                f"DeviceClass {class_name} has no owner yet, for the namespace's uid is not known:"
                " --apply sets it; without it, deleting the namespace leaves the class behind"
            )
    objects.append(_claim(wish, stem, class_name, shared=shared))
    quota = _quota(wish, stem, class_name, classes)
    objects.append(quota)
    objects.append(_namespace(wish, stem, strength, shared=shared))
    if wish.sharing == "hybrid":
        notes.append(
            "hybrid is experimental: nothing isolates the tenant's own pods from each other, and"
            " whether it is worth more than a larger partition is not known"
        )
    if not shared:
        notes.append(
            f"a pod beyond {wish.max_devices} is admitted and stays Pending: its claim is refused"
            " by the quota when the controller makes it"
        )
    return Plan(wish.namespace, tuple(objects), strength, meaning, stem, tuple(notes))


def _check(wish: Wish) -> None:
    mig = wish.sharing in ("mig", "hybrid")
    if mig and not MIG_PROFILE.fullmatch(wish.mig_profile):
        given = f"{wish.mig_profile!r} is no MIG profile" if wish.mig_profile else "it needs one"
        raise BadInput(
            "usage",
            f"--sharing {wish.sharing} is for a MIG profile, and {given}",
            field="--mig-profile",
            hint="--mig-profile 1g.10gb; kubectl get resourceslices -o yaml shows what there is",
        )
    if wish.mig_profile and not mig:
        raise BadInput(
            "usage",
            f"--sharing {wish.sharing} has no use for a MIG profile",
            field="--mig-profile",
            hint="--sharing mig, or leave it out",
        )
    if wish.max_devices < 1:
        raise BadInput(
            "usage",
            "a tenant without a device needs no isolation",
            field="--max-devices",
            hint="give a number from 1",
        )
    if wish.sharing in ("time-slicing", "mps") and not wish.forced:
        meaning = _ISOLATION[wish.sharing][1]
        raise BadInput(
            "not-isolated",
            f"{wish.sharing} does not isolate: {meaning}",
            field="--sharing",
            hint="--sharing mig or exclusive; --force where those who share trust each other",
        )


def selector(wish: Wish) -> str:
    """The CEL expression that chooses the tenant's kind of device."""
    of = f"device.attributes['{DRIVER}']"
    if wish.sharing in ("mig", "hybrid"):
        return (
            f"device.driver == '{DRIVER}' && {of}.type == 'mig'"
            f" && {of}.profile == '{wish.mig_profile}'"
        )
    return f"device.driver == '{DRIVER}' && {of}.type == 'gpu'"


def _meta(name: str, wish: Wish, *, namespaced: bool = True) -> dict[str, Any]:
    inside = {"namespace": wish.namespace} if namespaced else {}
    return {"name": name, **inside, "labels": {OF: wish.namespace}}


def _class(wish: Wish, name: str, uid: str) -> dict[str, Any]:
    metadata = _meta(name, wish, namespaced=False)
    if uid:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Namespace", "name": wish.namespace, "uid": uid}
        ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata,
        "spec": {"selectors": [{"cel": {"expression": selector(wish)}}]},
    }


def _claim(wish: Wish, name: str, class_name: str, *, shared: bool) -> dict[str, Any]:
    exactly: dict[str, Any] = {
        "deviceClassName": class_name,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    if wish.device_class:
        exactly["selectors"] = [{"cel": {"expression": selector(wish)}}]
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if parameters := _parameters(wish):
        devices["config"] = [
            {"requests": ["gpu"], "opaque": {"driver": DRIVER, "parameters": parameters}}
        ]
    spec: dict[str, Any] = {"devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim" if shared else "ResourceClaimTemplate",
        "metadata": _meta(name, wish),
        "spec": spec if shared else {"spec": spec},
    }


def _parameters(wish: Wish) -> dict[str, Any] | None:
    """What NVIDIA's driver is told (resource.nvidia.com/v1beta1)."""
    strategy = {"time-slicing": "TimeSlicing", "hybrid": "TimeSlicing", "mps": "MPS"}
    if wish.sharing not in strategy:
        return None
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "MigDeviceConfig" if wish.sharing == "hybrid" else "GpuConfig",
        "sharing": {"strategy": strategy[wish.sharing]},
    }


def _quota(wish: Wish, name: str, class_name: str, classes: Iterable[str]) -> dict[str, Any]:
    most = str(wish.max_devices)
    hard = {
        "count/resourceclaims.resource.k8s.io": most,
        f"{class_name}.deviceclass.resource.k8s.io/devices": most,
    }
    for other in sorted({*CLASSES, *classes} - {class_name}):
        hard[f"{other}.deviceclass.resource.k8s.io/devices"] = "0"
    hard["requests.nvidia.com/gpu"] = "0"
    metadata = _meta(name, wish)
    if wish.quota:
        metadata = {"name": wish.quota, "namespace": wish.namespace}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": hard},
    }


def _namespace(wish: Wish, claim: str, strength: str, *, shared: bool) -> dict[str, Any]:
    key = "claimName" if shared else "claimTemplateName"
    resolved = msgspec.json.encode({key: claim}).decode()
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": wish.namespace,
            "labels": {ENABLED: "true"},
            "annotations": {RESOLVED: resolved, STRENGTH: strength},
        },
    }


def bare_namespace(namespace: str) -> dict[str, Any]:
    """Applied by the same manager, it gives up every field that this module set there."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}


def in_version(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    """A DRA object of v1 as an older served version writes it: v1beta1 has no ``exactly``."""
    result: dict[str, Any] = {**document, "apiVersion": f"resource.k8s.io/{version}"}
    if version != "v1beta1" or "ResourceClaim" not in str(document["kind"]):
        return result
    template = document["kind"] == "ResourceClaimTemplate"
    spec = document["spec"]["spec"] if template else document["spec"]
    requests = [
        {"name": one["name"], **one["exactly"]} if "exactly" in one else one
        for one in spec["devices"]["requests"]
    ]
    spec = {**spec, "devices": {**spec["devices"], "requests": requests}}
    result["spec"] = {**document["spec"], "spec": spec} if template else spec
    return result


# -- what pods get ---------------------------------------------------------------------------------


class Resolved(Struct, frozen=True):
    """What the pods of a namespace are to claim: one of the two names is set."""

    claimTemplateName: str = ""
    claimName: str = ""


def enabled(namespace: Namespace | None) -> bool:
    return namespace is not None and namespace.labels.get(ENABLED) == "true"


def resolved(namespace: Namespace) -> Resolved | None:
    """What the annotation says; None where it is missing or cannot be read."""
    try:
        found = msgspec.json.decode(namespace.annotations.get(RESOLVED, ""), type=Resolved)
    except msgspec.MsgspecError:
        return None
    return found if bool(found.claimTemplateName) != bool(found.claimName) else None


def operations(template: Mapping[str, Any], wanted: Resolved) -> tuple[dict[str, Any], ...]:
    """RFC 6902 operations that give a pod template the claim, and every container of it.

    What is declared stays. Nothing where all is there already; a claim of another name that means
    the same is used, and a name that is taken is not taken over. Lists are written whole: applying
    the operations again changes nothing.
    """
    spec = template.get("spec") or {}
    entry = (
        {"resourceClaimTemplateName": wanted.claimTemplateName}
        if wanted.claimTemplateName
        else {"resourceClaimName": wanted.claimName}
    )
    there = [one for one in spec.get("resourceClaims") or () if isinstance(one, dict)]
    name = next((str(one.get("name")) for one in there if _same(one, entry)), "")
    ops: list[dict[str, Any]] = []
    if not name:
        name = _free({str(one.get("name")) for one in there})
        listed = [*(spec.get("resourceClaims") or ()), {"name": name, **entry}]
        ops.append({"op": "add", "path": "/spec/resourceClaims", "value": listed})
    for index, container in enumerate(spec.get("containers") or ()):
        ops += _for_container(container or {}, f"/spec/containers/{index}/resources", name)
    return tuple(ops)


def _for_container(container: Mapping[str, Any], at: str, name: str) -> list[dict[str, Any]]:
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return [{"op": "add", "path": at, "value": {"claims": [{"name": name}]}}]
    claims = resources.get("claims")
    if not isinstance(claims, list):
        return [{"op": "add", "path": f"{at}/claims", "value": [{"name": name}]}]
    if any(isinstance(one, dict) and one.get("name") == name for one in claims):
        return []
    return [{"op": "add", "path": f"{at}/claims", "value": [*claims, {"name": name}]}]


def _same(one: Mapping[str, Any], entry: Mapping[str, str]) -> bool:
    return all(one.get(key) == value for key, value in entry.items())


def _free(taken: set[str]) -> str:
    """``kubeplus-gpu``, or with a number where the chart has a claim of that name."""
    if CLAIM_REF not in taken:
        return CLAIM_REF
    return next(
        name
        for number in range(2, len(taken) + 3)
        if (name := f"{CLAIM_REF}-{number}") not in taken
    )


# -- what an instance asks for ---------------------------------------------------------------------


class _Annotation(Struct, forbid_unknown_fields=True):
    sharing: Sharing
    migProfile: str = ""
    maxDevices: int = 1
    deviceClass: str = ""


def asked_by(document: Mapping[str, Any], *, namespace: str, forced: bool) -> Wish | None:
    """What an instance's annotation asks for, None without one: then it gets no device.

    Raises BadInput where the annotation cannot be read.
    """
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    annotations = metadata.get("annotations")
    text = annotations.get(WANTED) if isinstance(annotations, dict) else None
    if text is None:
        return None
    try:
        wanted = msgspec.json.decode(str(text), type=_Annotation)
    except msgspec.MsgspecError as problem:
        raise BadInput(
            "bad-annotation",
            f"{WANTED} cannot be read: {problem}",
            field=f'metadata.annotations["{WANTED}"]',
            hint='write it as {"sharing": "mig", "migProfile": "1g.10gb", "maxDevices": 1}',
        ) from None
    return Wish(
        namespace=str(metadata.get("namespace") or namespace),
        sharing=wanted.sharing,
        mig_profile=wanted.migProfile,
        max_devices=wanted.maxDevices,
        device_class=wanted.deviceClass,
        instance=str(metadata.get("name") or ""),
        forced=forced,
    )
