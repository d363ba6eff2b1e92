"""What a node's labels and allocatable resources tell of its GPUs: product, number, memory, clique.

Labels are those of GPU Feature Discovery (NVIDIA/k8s-device-plugin docs/gpu-feature-discovery). The
device plugin's replicas of a shared GPU are no GPUs: with time-slicing or MPS the number comes from
``nvidia.com/gpu.count``, or from the advertised amount divided by the replicas.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube import gpus as resources
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.gpu_memory import memory_mib
from kubectl_gpuadmit.topology.model import Fabric, Gpu, NodeMap

PRODUCT = "nvidia.com/gpu.product"
COUNT = "nvidia.com/gpu.count"
MACHINE = "nvidia.com/gpu.machine"
CLIQUE = "nvidia.com/gpu.clique"
REPLICAS = "nvidia.com/gpu.replicas"
SHARING = "nvidia.com/gpu.sharing-strategy"


def clique(labels: Mapping[str, str]) -> Fabric | None:
    """The NVLink domain that GFD found the node in, None where it found or said none."""
    value = labels.get(CLIQUE, "")
    return Fabric(value) if value else None


def from_node(info: NodeInfo) -> NodeMap | None:
    """The GPUs that labels, or else the advertised resources, speak of; None for a node without."""
    labels = info.labels
    product = labels.get(PRODUCT) or None
    count, problems = _count(info, labels)
    if not count and not product:
        return None
    named = product is not None and count > 0 and "-MIG-" not in product
    memory = memory_mib(labels, "nvidia.com/gpu") if product else None
    replicas = _number(labels.get(REPLICAS, "")) or 1
    sharing = labels.get(SHARING)
    if sharing is None and replicas > 1:
        sharing = "time-slicing"
    gpus = tuple(
        Gpu(
            index=index,
            product=product,
            memory_mib=memory,
            sharing="" if sharing == "none" else sharing,
            replicas=replicas if replicas > 1 else None,
        )
        for index in range(count if named else 0)
    )
    return NodeMap(
        node=info.name,
        source="labels" if product else "allocatable",
        count=count,
        gpus=gpus,
        links=() if named and count == 1 else None,
        fabric=clique(labels),
        product=product,
        problems=tuple(problems),
    )


def _count(info: NodeInfo, labels: Mapping[str, str]) -> tuple[int, list[str]]:
    """How many physical GPUs, 0 where that cannot be told, with the reason why not."""
    capacity = podlib.amounts(info.node.status.capacity or info.node.status.allocatable)
    whole = sum(
        amount
        for name, amount in capacity.items()
        if (meaning := resources.means(name)) and meaning.kind == "whole"
    )
    other = any(
        amount and (meaning := resources.means(name)) and meaning.kind in ("shared", "mig")
        for name, amount in capacity.items()
    )
    mig_single = "-MIG-" in labels.get(PRODUCT, "")
    told = _number(labels.get(COUNT, ""))
    if mig_single:
        return 0, ["MIG strategy single: labels and resources count slices, not GPUs"]
    if told:
        return told, []
    replicas = _number(labels.get(REPLICAS, "")) or 1
    if whole and whole % replicas == 0:
        return whole // replicas, []
    if other:
        return 0, ["only slices or shares are advertised: how many GPUs they are on is not told"]
    return 0, []


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None
