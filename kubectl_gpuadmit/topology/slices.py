"""ResourceSlices of NVIDIA's DRA driver as a NodeMap: identity, PCIe root, NUMA; no links.

The driver publishes no NVLink, clique or fabric attribute of a GPU
(kubernetes-sigs/dra-driver-nvidia-gpu, deviceinfo.go), so links stay unknown here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Generic, KubeObject
from kubectl_gpuadmit.topology.model import Gpu, Mig, NodeMap

DRIVER = "gpu.nvidia.com"
_STANDARD = "resource.kubernetes.io/"
_MINOR = re.compile(r"gpu-([0-9]+)(?:-mig-.*)?", re.ASCII)


def by_node(cluster: Cluster) -> Mapping[str, tuple[Generic, ...]]:
    """Node -> the slices of GPUs that its driver publishes, worked out once per set of slices."""
    stamp = cluster.stamp("ResourceSlice")
    known = cluster.static_memo.get("topology/slices")
    if known is None or known[0] is not stamp:
        found: dict[str, list[Generic]] = {}
        for obj in cluster.every("ResourceSlice"):
            if isinstance(obj, Generic) and _spec(obj).get("driver") == DRIVER:
                found.setdefault(str(_spec(obj).get("nodeName") or ""), []).append(obj)
        known = (stamp, {node: tuple(slices) for node, slices in found.items() if node})
        cluster.static_memo["topology/slices"] = known
    by_name: dict[str, tuple[Generic, ...]] = known[1]
    return by_name


def _spec(obj: Generic) -> dict[str, Any]:
    spec = obj.document.get("spec")
    return spec if isinstance(spec, dict) else {}


def from_slices(node: str, slices: Iterable[KubeObject]) -> NodeMap | None:
    """The GPUs of one node; None where its slices name none. Only the newest generation counts."""
    listed = [obj for obj in slices if isinstance(obj, Generic)]
    newest = max((_generation(obj) for obj in listed), default=0)
    current = [obj for obj in listed if _generation(obj) == newest]
    devices = [device for obj in current for device in _devices(obj)]
    whole = [one for one in devices if one[1].get("type") == "gpu"]
    if not whole:
        return None
    migs: dict[str, list[Mig]] = {}
    for name, attributes, memory in devices:
        if attributes.get("type") == "mig" and isinstance(attributes.get("uuid"), str):
            parent = str(attributes.get("parentUUID", ""))
            profile = str(attributes.get("profile", name))
            migs.setdefault(parent, []).append(Mig(attributes["uuid"], profile, memory_mib=memory))
    numbered = sorted(whole, key=lambda one: _order(one[0], one[1]))
    gpus = tuple(
        _gpu(index, attributes, memory, migs)
        for index, (_, attributes, memory) in enumerate(numbered)
    )
    products = {gpu.product for gpu in gpus}
    problems = []
    wanted = max((_pool(obj).get("resourceSliceCount", 0) for obj in current), default=0)
    if isinstance(wanted, int) and len(current) < wanted:
        problems.append(f"{len(current)} of {wanted} ResourceSlices of the node's pool are there")
    return NodeMap(
        node=node,
        source="slices",
        count=len(gpus),
        gpus=gpus,
        links=() if len(gpus) == 1 and not problems else None,
        product=products.pop() if len(products) == 1 else None,
        problems=tuple(problems),
    )


def _pool(obj: Generic) -> dict[str, Any]:
    pool = _spec(obj).get("pool")
    return pool if isinstance(pool, dict) else {}


def _generation(obj: Generic) -> int:
    generation = _pool(obj).get("generation")
    return generation if isinstance(generation, int) else 0


def _order(name: str, attributes: Mapping[str, Any]) -> tuple[str, int]:
    """nvidia-smi numbers by PCI address; without it the minor number in the name must do."""
    minor = _MINOR.fullmatch(name)
    return (
        str(attributes.get(_STANDARD + "pciBusID", "")).lower(),
        int(minor[1]) if minor else 0,
    )


def _devices(obj: Generic) -> Iterator[tuple[str, dict[str, Any], int | None]]:
    """(name, attribute -> its value, memory in MiB) of each device, v1 and v1beta1 alike."""
    listed = _spec(obj).get("devices")
    for device in listed if isinstance(listed, list) else ():
        if not isinstance(device, dict):
            continue
        content = device.get("basic", device)
        content = content if isinstance(content, dict) else {}
        attributes = content.get("attributes")
        values = {
            name.removeprefix(f"{DRIVER}/"): next(iter(value.values()))
            for name, value in (attributes if isinstance(attributes, dict) else {}).items()
            if isinstance(value, dict) and value
        }
        capacity = content.get("capacity")
        memory = capacity.get("memory") if isinstance(capacity, dict) else None
        yield str(device.get("name", "")), values, _mib(memory)


def _mib(memory: Any) -> int | None:
    text = memory.get("value") if isinstance(memory, dict) else memory
    try:
        return quantity.value(text) // 2**20 if isinstance(text, str | int) else None
    except quantity.QuantityError:
        return None


def _gpu(
    index: int, attributes: Mapping[str, Any], memory: int | None, migs: Mapping[str, list[Mig]]
) -> Gpu:
    uuid = _text(attributes.get("uuid"))
    numa = attributes.get(_STANDARD + "numaNode")
    return Gpu(
        index=index,
        uuid=uuid,
        pci_bus_id=_text(attributes.get(_STANDARD + "pciBusID")),
        product=_text(attributes.get("productName")),
        memory_mib=memory,
        numa=numa if isinstance(numa, int) and numa >= 0 else None,
        pcie_root=_text(attributes.get(_STANDARD + "pcieRoot")),
        mig=tuple(sorted(migs.get(uuid or "", ()), key=lambda mig: mig.uuid)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
