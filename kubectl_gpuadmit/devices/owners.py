"""GPUs that two parties hand out: device plugin and DRA, two drivers, or two holders of one device.

From objects alone a node in both modes is found: the kubelet advertises the device plugin's
resources in ``status.allocatable`` and a driver publishes devices of the same vendor for it. Which
GPU is which is told by UUID and PCI address, where a source knows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.dra import ResourceClaim, ResourceSlice
from kubectl_gpuadmit.kube.listed import template_of, texts

RESOURCES: Mapping[str, str] = {
    "gpu.nvidia.com": "nvidia.com/",
    "gpu.amd.com": "amd.com/gpu",
    "gpu.intel.com": "gpu.intel.com/",
}
"""DRA driver -> how the resources of the same vendor's device plugin begin."""

_NO_DEVICES = ("nvidia.com/gpumem", "nvidia.com/gpucores")
PCI = "resource.kubernetes.io/pciBusID"


class BothModes(Struct, frozen=True):
    """A node whose GPUs the device plugin and a DRA driver both hand out."""

    node: str
    resource: str
    advertised: int
    """By the device plugin, replicas included."""
    replicas: int
    """Time-sliced or MPS places of one GPU; 1 without sharing."""
    driver: str
    published: int
    """Physical GPUs in the driver's slices for the node."""
    physical: int | None
    """GPUs that the node has (GPU Feature Discovery); None where no label says."""


class Published(Struct, frozen=True):
    """One physical GPU in the slices of two drivers, or twice in one's."""

    key: str
    """``UUID GPU-…`` or ``PCI 0000:41:00.0 of node``."""
    devices: tuple[str, ...]
    """``driver/pool/device``, sorted."""


class Held(Struct, frozen=True):
    """One GPU that a pod has from the device plugin and a claim has from DRA."""

    node: str
    key: str
    pod: str
    """``namespace/name`` of the device plugin's."""
    claim: str
    """``namespace/name``."""


def in_both_modes(cluster: Cluster) -> tuple[BothModes, ...]:
    """Every such node, by name. A node whose plugin and driver can be about different GPUs (the two
    numbers together are no more than it has) is not among them."""
    found: Any = cluster.remembered(
        "nodes in both modes", ("Node", "ResourceSlice"), lambda: tuple(_in_both_modes(cluster))
    )
    return tuple(found)


def _in_both_modes(cluster: Cluster) -> Iterator[BothModes]:
    plugged = {info.name: _plugged(info) for info in cluster.nodes.values()}
    gpus: dict[tuple[str, str], set[str]] = {}
    for one in slices(cluster):
        counts = plugged.get(one.spec.nodeName or "", {})
        if one.spec.driver in counts:
            key = (one.spec.nodeName or "", one.spec.driver)
            gpus.setdefault(key, set()).update(_physical(one))
    for (node, driver), keys in sorted(gpus.items()):
        if not keys:
            continue
        resource, advertised = plugged[node][driver]
        labels = cluster.nodes[node].labels
        replicas = _number(labels.get("nvidia.com/gpu.replicas")) or 1
        physical = _number(labels.get("nvidia.com/gpu.count"))
        whole = -(-advertised // replicas)
        if physical is not None and resource == "nvidia.com/gpu" and whole + len(keys) <= physical:
            continue
        yield BothModes(node, resource, advertised, replicas, driver, len(keys), physical)


def _plugged(info: NodeInfo) -> dict[str, tuple[str, int]]:
    """Driver -> the resource of the same vendor that most units are advertised of."""
    found: dict[str, tuple[str, int]] = {}
    for name, amount in info.allocatable.items():
        if amount <= 0 or name in _NO_DEVICES:
            continue
        for driver, start in RESOURCES.items():
            if name.startswith(start) and amount > found.get(driver, ("", 0))[1]:
                found[driver] = (name, amount)
    return found


def slices(cluster: Cluster) -> Iterator[ResourceSlice]:
    return (one for one in cluster.every("ResourceSlice") if isinstance(one, ResourceSlice))


def _gpus(one: ResourceSlice) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, type, UUID, parent's UUID and PCI address of each device; '' for what it has not."""
    devices = one.spec.devices or ()
    names = (listed.name for listed in template_of(devices).devices)
    columns = [texts(devices, name) for name in ("type", "uuid", "parentUUID", PCI)]
    return zip(names, *columns, strict=True)


def _physical(one: ResourceSlice) -> Iterator[str]:
    """A name for each physical GPU that a slice is about; a MIG device stands for its parent."""
    for name, kind, uuid, parent, pci in _gpus(one):
        if kind in ("", "gpu", "mig", "vfio"):
            yield pci.lower() or parent or uuid or name


def published_twice(cluster: Cluster) -> tuple[Published, ...]:
    """Whole GPUs that stand in more than one slice under different names, drivers or pools.

    A driver may publish one GPU as ``gpu`` and as ``vfio``: it hands out one of them at a time.
    """
    found: Any = cluster.remembered(
        "GPUs published twice", ("ResourceSlice",), lambda: tuple(_published_twice(cluster))
    )
    return tuple(found)


def _published_twice(cluster: Cluster) -> Iterator[Published]:
    if not _repeats(cluster):
        return
    first: dict[str | tuple[str, str], tuple[str, str, str]] = {}
    seen: dict[str, set[tuple[str, str, str]]] = {}
    for one in slices(cluster):
        spec = one.spec
        if spec.driver not in RESOURCES or not _has_whole(one):
            continue
        for name, kind, uuid, _, pci in _gpus(one):
            if kind not in ("", "gpu"):
                continue
            place = (spec.driver, spec.pool.name, name)
            if uuid and first.setdefault(uuid, place) != place:
                seen.setdefault(f"UUID {uuid}", {first[uuid]}).add(place)
            if pci and spec.nodeName:
                at = (spec.nodeName, pci.lower())
                if first.setdefault(at, place) != place:
                    key = f"PCI {pci.lower()} of {spec.nodeName}"
                    seen.setdefault(key, {first[at]}).add(place)
    told: set[tuple[tuple[str, str, str], ...]] = set()
    for key, places in sorted(seen.items(), reverse=True):  # UUID before PCI
        pair = tuple(sorted(places))
        if len(pair) > 1 and pair not in told:
            told.add(pair)
            yield Published(key, tuple("/".join(place) for place in pair))


def _repeats(cluster: Cluster) -> bool:
    """Whether a UUID or a node's PCI address is there twice: seldom, and soon told."""
    uuids: list[str] = []
    addresses: list[tuple[str, str]] = []
    for one in slices(cluster):
        if one.spec.driver not in RESOURCES or not _has_whole(one):
            continue
        for _, kind, uuid, _, pci in _gpus(one):
            if kind in ("", "gpu"):
                uuids.append(uuid)
                if pci and one.spec.nodeName:
                    addresses.append((one.spec.nodeName, pci.lower()))
    named = [uuid for uuid in uuids if uuid]
    return len(set(named)) < len(named) or len(set(addresses)) < len(addresses)


def _has_whole(one: ResourceSlice) -> bool:
    """Whether one of its devices may be a whole GPU: a look that slices with one template share."""
    template = template_of(one.spec.devices)
    return "type" in template.varying or any(kind in ("", "gpu") for kind in template.texts("type"))


def held_twice(
    cluster: Cluster, holders: Mapping[str, Iterable[tuple[str, str, str]]]
) -> tuple[Held, ...]:
    """GPUs that the kubelet has given to a pod through the device plugin and a claim has too.

    ``holders``: node -> (UUID, PCI address, ``namespace/pod``) of each whole GPU that a container
    has from the device plugin, as the node's agent reports; '' for what is not known.
    """
    claimed: dict[tuple[str, str], str] = {}
    by_device = _keys(cluster, frozenset(holders))
    for obj in cluster.every("ResourceClaim"):
        allocation = obj.status.allocation if isinstance(obj, ResourceClaim) else None
        for result in (allocation.devices.results or ()) if allocation else ():
            if result.adminAccess:
                continue
            for node, key in by_device.get((result.driver, result.pool, result.device), ()):
                claimed[(node, key)] = f"{obj.namespace}/{obj.name}"
    found = []
    for node, held in sorted(holders.items()):
        for uuid, pci, pod in held:
            for key in (uuid, short_address(pci)):
                if key and (node, key) in claimed:
                    found.append(Held(node, key, pod, claimed[(node, key)]))
                    break
    return tuple(found)


def _keys(
    cluster: Cluster, nodes: frozenset[str]
) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    """(driver, pool, device) -> (node, UUID or PCI address) of the physical GPU, on these nodes."""
    found: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for one in slices(cluster):
        node = one.spec.nodeName
        if not node or node not in nodes or one.spec.driver not in RESOURCES:
            continue
        for name, _, uuid, parent, pci in _gpus(one):
            keys = [(node, key) for key in (parent or uuid, short_address(pci)) if key]
            found[(one.spec.driver, one.spec.pool.name, name)] = keys
    return found


def short_address(pci: str) -> str:
    """``00000000:41:00.0`` of NVML and ``0000:41:00.0`` of the kernel are one address."""
    domain, _, rest = pci.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else ""


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 7 else None
