"""Devices of DRA among the GPUs of a node's map: which GPU a device is, and which ones claims hold.

A slice names a GPU by UUID and PCI address, and so does a map; a partition is in the GPU that it
names as its parent. NVLink stands in the map alone. It says who holds, and judges nothing.

Sources: dra-driver-nvidia-gpu v0.5 (cmd/gpu-kubelet-plugin/deviceinfo.go: ``uuid``,
``parentUUID``); standard attribute ``resource.kubernetes.io/pciBusID``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.gpus import is_gpu, is_whole
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Claim, Device
from kubectl_gpuadmit.devices.owners import short_address
from kubectl_gpuadmit.topology.model import NodeMap

KINDS = ("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceSlice")
_PCI = "resource.kubernetes.io/pciBusID"


class HeldDevice(Struct, frozen=True):
    """A GPU, or a part of one, that a claim has; admin access holds nothing."""

    device: Device
    claim: Claim
    pods: tuple[str, ...]
    """Names, in the claim's namespace; () for a claim that keeps its device without a pod."""
    share: bool = False
    """It has a part of the device's capacity, and others may have more of it."""

    @property
    def whole(self) -> bool:
        return not self.share and is_whole(self.device)


def held_on(cluster: Cluster) -> Mapping[str, tuple[HeldDevice, ...]]:
    """Node -> what claims hold there, by device, worked out once per set of claims and slices."""
    found: Any = cluster.remembered("topology/claimed", KINDS, lambda: _held_on(cluster))
    kept: Mapping[str, tuple[HeldDevice, ...]] = found
    return kept


def _held_on(cluster: Cluster) -> Mapping[str, tuple[HeldDevice, ...]]:
    inventory = Inventory.of(cluster)
    found: dict[str, list[HeldDevice]] = {}
    for id, holders in inventory.holders.items():
        device = inventory.devices.get(id)
        if device is None or not is_gpu(device) or not (node := node_of(device)):
            continue
        for claim, allotted in holders:
            if not allotted.admin_access:
                users = tuple(one.name for one in claim.reserved_for if one.resource == "pods")
                one = HeldDevice(device, claim, users, bool(allotted.share))
                found.setdefault(node, []).append(one)
    return {node: tuple(held) for node, held in found.items()}


def node_of(device: Device) -> str:
    """The one node whose device it is, '' for one that several can reach."""
    if device.slice.per_device:
        return device.raw.nodeName or ""
    return device.slice.node_name or ""


def gpu_index(found: NodeMap, device: Device) -> int | None:
    """Which GPU of the map the device is, or is a part of; None where nothing tells."""
    uuid = _text(device, "parentUUID") or _text(device, "uuid")
    for gpu in found.gpus:
        if uuid and (gpu.uuid == uuid or any(part.uuid == uuid for part in gpu.mig)):
            return gpu.index
    address = short_address(_text(device, "pciBusID", _PCI))
    there = [
        gpu.index
        for gpu in found.gpus
        if address
        and short_address(gpu.pci_bus_id or "") == address
        and not (uuid and gpu.uuid)  # then it is another one, put there since
    ]
    return there[0] if len(there) == 1 else None


def _text(device: Device, *names: str) -> str:
    """The first that is a text; a name without a domain is the driver's own."""
    for name in names:
        value = device.attributes.get(name if "/" in name else f"{device.driver}/{name}")
        if isinstance(value, str) and value:
            return value
    return ""
