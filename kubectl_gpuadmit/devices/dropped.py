"""Which fields the API server leaves out of a claim because their feature gate is off.

It says nothing about it: the object is stored without them. What is stored already keeps them, and
then the scheduler has its say. Sources: pkg/api/resourceclaimspec/util.go and
pkg/registry/resource/deviceclass/strategy.go, v1.37.2.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, structs

from kubectl_gpuadmit.devices.allocator.features import Features
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import KubeObject

One = TypeVar("One", bound=dra.ExactRequest)


class Dropped(Struct, frozen=True):
    """A field that was written and is not stored."""

    field: str
    """Below ``spec.devices``: ``requests[0].exactly.tolerations``."""
    gate: str


def created(obj: KubeObject, features: Features) -> tuple[KubeObject, tuple[Dropped, ...]]:
    """A claim, template or class as it is stored, and what it has lost; others as they are."""
    match obj:
        case dra.ResourceClaim():
            devices, gone = of_claim(obj.spec.devices, features)
            if gone:
                obj = structs.replace(obj, spec=structs.replace(obj.spec, devices=devices))
            return obj, gone
        case dra.ResourceClaimTemplate():
            inner = obj.spec.spec
            devices, gone = of_claim(inner.devices, features)
            if gone:
                inner = structs.replace(inner, devices=devices)
                obj = structs.replace(obj, spec=structs.replace(obj.spec, spec=inner))
            return obj, gone
        case dra.DeviceClass() if obj.spec.extendedResourceName and not features.extended_resources:
            spec = structs.replace(obj.spec, extendedResourceName=None)
            lost = Dropped("extendedResourceName", "DRAExtendedResource")
            return structs.replace(obj, spec=spec), (lost,)
    return obj, ()


def of_claim(
    devices: dra.DeviceClaim, features: Features
) -> tuple[dra.DeviceClaim, tuple[Dropped, ...]]:
    """``spec.devices`` without the fields of gates that are off, and which those were."""
    gone: list[Dropped] = []
    requests = []
    for number, request in enumerate(devices.requests or ()):
        at = f"requests[{number}]"
        if request.firstAvailable and not features.prioritized_list:
            gone.append(Dropped(f"{at}.firstAvailable", "DRAPrioritizedList"))
            request = structs.replace(request, firstAvailable=None)
        if request.firstAvailable:
            subs = tuple(
                _wanted(one, f"{at}.firstAvailable[{i}]", features, gone, admin=False)
                for i, one in enumerate(request.firstAvailable)
            )
            request = structs.replace(request, firstAvailable=subs)
        if request.exactly is not None:
            exactly = _wanted(request.exactly, f"{at}.exactly", features, gone)
            request = structs.replace(request, exactly=exactly)
        requests.append(_wanted(request, at, features, gone))
    constraints = []
    for number, constraint in enumerate(devices.constraints or ()):
        if constraint.distinctAttribute is not None and not features.consumable_capacity:
            at = f"constraints[{number}].distinctAttribute"
            gone.append(Dropped(at, "DRAConsumableCapacity"))
            constraint = structs.replace(constraint, distinctAttribute=None)
        constraints.append(constraint)
    if not gone:
        return devices, ()
    found = structs.replace(
        devices, requests=tuple(requests) or None, constraints=tuple(constraints) or None
    )
    return found, tuple(gone)


def _wanted(
    one: One, at: str, features: Features, gone: list[Dropped], *, admin: bool = True
) -> One:
    """In v1beta1 the request itself holds what v1 has under ``exactly``."""
    off = (
        ("tolerations", "DRADeviceTaints", not features.device_taints),
        ("adminAccess", "DRAAdminAccess", admin and not features.admin_access),
        ("capacity", "DRAConsumableCapacity", not features.consumable_capacity),
        ("derivedAttributes", "DRADerivedAttributes", not features.derived_attributes),
    )
    for field, gate, is_off in off:
        if is_off and getattr(one, field) is not None:
            gone.append(Dropped(f"{at}.{field}", gate))
            one = structs.replace(one, **{field: None})
    return one


def emptied(devices: dra.DeviceClaim) -> str:
    """The part that nothing is left of, so that the API server refuses the rest; '' for none."""
    for number, request in enumerate(devices.requests or ()):
        if not (request.firstAvailable or request.exactly or request.deviceClassName):
            return f"requests[{number}]"
    for number, constraint in enumerate(devices.constraints or ()):
        if constraint.matchAttribute is None and constraint.distinctAttribute is None:
            return f"constraints[{number}]"
    return ""
