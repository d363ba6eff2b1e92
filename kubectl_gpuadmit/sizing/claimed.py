"""What the devices have that a container's DRA claims could be given: memory as slices state it.

It reads what a claim asks for and which published devices match; which of them are free and which
one the scheduler takes is the allocator's. Source of the capacity's name: the driver's own
``memory`` (kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.allocator.outcome import Unsure
from kubectl_gpuadmit.devices.gpus import is_gpu
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Device, Request, Want
from kubectl_gpuadmit.devices.pod_claims import PodClaim, of_pod
from kubectl_gpuadmit.devices.selection import CelError, Selectors
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.sizing.devices import Devices, open_nodes

MIB = 1 << 20


def candidates(
    cluster: Cluster, pod: Pod, namespace: str, container: Mapping[str, Any]
) -> tuple[Devices, ...] | str:
    """Every kind of devices that the container's claims could be given, most nodes first; or what
    is missing to know them."""
    wants: list[Want] = []
    for claim, request in _requests(cluster, pod, namespace, container):
        if isinstance(request, str):
            return request
        if len(request.wants) != 1:
            return f"{claim}: which of its alternatives is taken decides about the memory"
        wants.append(request.wants[0])
    if not cluster.knows("ResourceSlice"):
        return "memory of claimed devices: ResourceSlice objects are not in the source"
    inventory, selectors = Inventory.of(cluster), Selectors()
    found: list[tuple[Want, list[Device]]] = []
    for want in wants:
        known = inventory.classes.get(want.device_class)
        if known is None:
            return f"DeviceClass {want.device_class}: not in the source"
        texts = (*known.selectors, *want.selectors)
        if None in texts:
            return f"DeviceClass {want.device_class}: a selector that is no CEL expression"
        try:
            fitting = [
                device
                for device in inventory.devices.values()
                if all(selectors.matches(text, device) for text in texts if text)
            ]
        except (CelError, Unsure) as problem:
            return f"memory of claimed devices: {problem}"
        if any(map(is_gpu, fitting)):
            found.append((want, [device for device in fitting if is_gpu(device)]))
        elif not fitting:
            return f"memory of claimed devices: no device matches DeviceClass {want.device_class}"
    return _kinds(cluster, pod, found)


def _requests(
    cluster: Cluster, pod: Pod, namespace: str, container: Mapping[str, Any]
) -> Iterable[tuple[PodClaim, Request | str]]:
    """The requests that the container names: all of a claim where it names none of them."""
    resources = container.get("resources")
    named = resources.get("claims") if isinstance(resources, dict) else None
    claims = {claim.name: claim for claim in of_pod(pod, namespace, cluster)}
    for entry in named if isinstance(named, list) else ():
        claim = claims.get(str(entry.get("name"))) if isinstance(entry, dict) else None
        if claim is None:
            continue  # the API server refuses it
        if claim.claim is None:
            yield claim, f"{claim}: not in the source"
            continue
        for request in claim.claim.requests:
            if entry.get("request") in (None, "", request.name):
                yield claim, request


def _kinds(
    cluster: Cluster, pod: Pod, found: list[tuple[Want, list[Device]]]
) -> tuple[Devices, ...] | str:
    """By product and memory of the smallest device that a node could give."""
    per_node: list[tuple[Want, dict[str, list[Device]]]] = []
    for want, devices in found:
        at: dict[str, list[Device]] = {}
        for device in devices:
            at.setdefault(device.slice.node_name or "", []).append(device)
        per_node.append((want, at))
    alike: dict[tuple[str, int | None, int], list[str]] = {}
    for node in open_nodes(cluster, pod):
        there = [(want, at.get(node.name, [])) for want, at in per_node]
        counts = [want.count if want.mode == "ExactCount" else len(some) for want, some in there]
        if not there or any(
            len(some) < max(c, 1) for (_, some), c in zip(there, counts, strict=True)
        ):
            continue
        devices = [device for _, some in there for device in some]
        smallest = min(devices, key=lambda d: memory_mib(d) or 0)
        key = (product(smallest), memory_mib(smallest), sum(counts))
        alike.setdefault(key, []).append(node.name)
    if not alike:
        return "memory of claimed devices: no node that the pod may use has enough that match"
    return tuple(
        Devices(
            resource="claim",
            product=name,
            mib=mib,
            count=count,
            nodes=tuple(nodes),
            source="capacity memory of the ResourceSlice" if mib is not None else "",
        )
        for (name, mib, count), nodes in sorted(alike.items(), key=lambda i: (-len(i[1]), i[1][0]))
    )


def memory_mib(device: Device) -> int | None:
    """MiB of its capacity ``memory``, None where the driver states none."""
    for name, held in device.capacity.items():
        if name.rpartition("/")[2] == "memory":
            return int(held.value.value()) // MIB
    return None


def product(device: Device) -> str:
    """``NVIDIA H100 80GB HBM3`` spelt as GFD spells it; '' where the driver does not say."""
    for name, value in device.attributes.items():
        if name.rpartition("/")[2] == "productName" and isinstance(value, str):
            return value.replace(" ", "-")
    return ""
