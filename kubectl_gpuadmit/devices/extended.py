"""Extended resources that a DeviceClass backs: which class, and the claim that a pod gets for them.

Sources: k8s.io/dynamic-resource-allocation v0.37.2 deviceclass/extendedresourcecache;
pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_gpuadmit.devices.model import Class, Request, Want
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.objects import Container, Pod
from kubectl_gpuadmit.kube.quantity import NANO, QuantityError, parse
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, is_extended

KINDS = (
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
)
"""Kinds that decide what DRA gives a pod."""
CLAIM_NAME = "<extended-resources>"
"""The scheduler's name for the claim before it exists: then ``<pod>-extended-resources-…``."""


def backed(classes: Iterable[Class]) -> dict[str, Class]:
    """Resource -> the class that backs it: its explicit name, and the implicit one of each class.

    Of several classes with one name the newest counts, of equally old ones the first by name.
    """
    listed = sorted(classes, key=lambda one: one.name)
    found = {DEVICE_CLASS + one.name: one for one in listed}
    for one in listed:
        name = one.extended_resource
        if name and (name not in found or one.created > found[name].created):
            found[name] = one
    return found


def may_be_backed(resource: str) -> bool:
    """IsDRAExtendedResourceName."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS)


def asked(pod: Pod) -> list[str]:
    """Resources that the pod asks for and a class may back, by name. Raises QuantityError."""
    return sorted(
        name for name, amount in pods.requests(pod).items() if amount > 0 and may_be_backed(name)
    )


def from_devices(
    names: Iterable[str], backed: Mapping[str, Class], advertised: Mapping[str, int]
) -> dict[str, Class] | str:
    """Resource -> the class whose devices a node has to give for it, because its kubelet advertises
    none of the resource; or the name of one that nothing serves there."""
    found: dict[str, Class] = {}
    for name in names:
        there = advertised.get(name)
        if name in backed and not there:
            found[name] = backed[name]
        elif there is None:
            return name
    return found


def requests(pod: Pod, resources: Mapping[str, Class]) -> tuple[Request, ...]:
    """The requests of the claim: one per container and resource, by their names.

    Init containers that end before others start share the others' devices and, beyond these, one
    request among themselves.
    """
    inits = pod.spec.initContainers or ()
    containers = (*inits, *(pod.spec.containers or ()))
    brief = [i for i in range(len(inits)) if containers[i].restartPolicy != "Always"]
    found: list[Request] = []
    for resource in sorted(resources):
        class_ = resources[resource].name
        lasting: list[Request | None] = [None] * len(containers)
        for i, container in enumerate(containers):
            if i not in brief:
                lasting[i] = _request(i, container, resource, class_, ())
        most: Request | None = None
        for i in brief:
            own = _request(i, containers[i], resource, class_, lasting[i:])
            if own is not None and (most is None or _count(most) < _count(own)):
                most = own
        found += [one for one in (most, *lasting) if one is not None]
    return tuple(sorted(found, key=lambda one: one.name))


def _request(
    index: int,
    container: Container,
    resource: str,
    class_: str,
    reusable: Iterable[Request | None],
) -> Request | None:
    wanted = (container.resources.requests or {}) if container.resources is not None else {}
    if resource not in wanted:
        return None
    try:
        amount = parse(wanted[resource])
    except QuantityError:
        return None
    if amount.nano % NANO or not amount.nano:
        return None
    needed = amount.nano // NANO
    for other in reusable:
        if other is not None:
            needed -= _count(other)
            if needed <= 0:
                return None
    name = f"container-{index}-request-{sorted(wanted).index(resource)}"
    return Request(name, Want(name, class_, count=needed))


def _count(request: Request) -> int:
    return request.exactly.count if request.exactly is not None else 0
