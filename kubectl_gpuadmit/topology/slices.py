"""The GPUs of a node as its DRA driver publishes them: UUID, PCI, NUMA node, MIG; no links.

Source: dra-driver-nvidia-gpu v0.5 (attributes of ``gpu.nvidia.com``); standard attributes
``resource.kubernetes.io/{pciBusID,pcieRoot,numaNode}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Device, Pool
from kubectl_gpuadmit.kube.quantity import QuantityError
from kubectl_gpuadmit.topology.model import Gpu, Mig, NodeMap

DRIVER = "gpu.nvidia.com"
_STANDARD = "resource.kubernetes.io/"
_MINOR = re.compile(r"gpu-([0-9]+)(?:-mig-.*)?", re.ASCII)


def by_node(cluster: Cluster) -> Mapping[str, tuple[Pool, ...]]:
    """Node -> the pools of GPUs that its driver publishes, worked out once per set of slices."""

    def sorted_out() -> Mapping[str, tuple[Pool, ...]]:
        found: dict[str, list[Pool]] = {}
        for pool in Inventory.of(cluster).pools.values():
            names = {one.node_name for one in pool.slices} - {""}
            if pool.id.driver == DRIVER and len(names) == 1:
                found.setdefault(names.pop(), []).append(pool)
        return {node: tuple(pools) for node, pools in found.items()}

    known: Mapping[str, tuple[Pool, ...]] = cluster.remembered(  # type: ignore[assignment]
        "topology/slices", ("ResourceSlice", "DeviceTaintRule"), sorted_out
    )
    return known


def from_slices(node: str, pools: Sequence[Pool]) -> NodeMap | None:
    """The GPUs of one node; None where its slices name none. Only the newest generation counts."""
    devices = [device for pool in pools for device in pool.devices]
    whole = [one for one in devices if _text(one, "type") == "gpu"]
    if not whole:
        return None
    migs: dict[str, list[Mig]] = {}
    for device in devices:
        uuid = _text(device, "uuid")
        if _text(device, "type") == "mig" and uuid:
            profile = _text(device, "profile") or device.name
            found = Mig(uuid, profile, memory_mib=_memory(device))
            migs.setdefault(_text(device, "parentUUID") or "", []).append(found)
    numbered = sorted(whole, key=_order)
    gpus = tuple(_gpu(index, device, migs) for index, device in enumerate(numbered))
    products = {gpu.product for gpu in gpus}
    problems = [
        f"{len(pool.slices)} of {pool.expected} ResourceSlices of the node's pool are there"
        for pool in pools
        if not pool.complete
    ]
    problems += [f"the node's pool is invalid: {pool.invalid}" for pool in pools if pool.invalid]
    return NodeMap(
        node=node,
        source="slices",
        count=len(gpus),
        gpus=gpus,
        links=() if len(gpus) == 1 and not problems else None,
        product=products.pop() if len(products) == 1 else None,
        problems=tuple(problems),
    )


def _order(device: Device) -> tuple[str, int]:
    """nvidia-smi numbers by PCI address; without it the minor number in the name must do."""
    minor = _MINOR.fullmatch(device.name)
    return (_text(device, _STANDARD + "pciBusID") or "").lower(), int(minor[1]) if minor else 0


def _memory(device: Device) -> int | None:
    try:
        capacity = device.capacity.get(f"{DRIVER}/memory")
    except QuantityError:
        return None
    return capacity.value.value() // 2**20 if capacity is not None else None


def _gpu(index: int, device: Device, migs: Mapping[str, Sequence[Mig]]) -> Gpu:
    uuid = _text(device, "uuid")
    numa = device.attributes.get(_STANDARD + "numaNode")
    known = isinstance(numa, int) and not isinstance(numa, bool) and numa >= 0
    return Gpu(
        index=index,
        uuid=uuid,
        pci_bus_id=_text(device, _STANDARD + "pciBusID"),
        product=_text(device, "productName"),
        memory_mib=_memory(device),
        numa=int(numa) if known and isinstance(numa, int) else None,
        pcie_root=_text(device, _STANDARD + "pcieRoot"),
        mig=tuple(sorted(migs.get(uuid or "", ()), key=lambda mig: mig.uuid)),
    )


def _text(device: Device, name: str) -> str | None:
    """A string attribute of the driver's own domain unless the name has one."""
    value = device.attributes.get(name if "/" in name else f"{DRIVER}/{name}")
    return value if isinstance(value, str) and value else None
