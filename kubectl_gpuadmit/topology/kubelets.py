"""What a node's kubelet is told about alignment, from the best source that says so, always named.

Best first: a ``KubeletConfiguration`` object named after the node (what its ``/configz`` gave), the
agent's map, the node's NodeResourceTopology object. What a policy file declares for a pool comes
last and is not read here.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Generic, ObjectMeta, QuantityText
from kubectl_gpuadmit.topology import resource_topology
from kubectl_gpuadmit.topology.model import Kubelet, MemoryBlock, NodeMap

KIND = "KubeletConfiguration"
GROUP = "kubelet.config.k8s.io"
POD_LEVEL = "PodLevelResourceManagers"
ALPHA_OPTIONS = "CPUManagerPolicyAlphaOptions"


class Told(Struct, frozen=True):
    """A kubelet's settings and who says so. ``kubelet.topology_policy`` is never None."""

    source: str
    """``kubelet /configz``, ``agent map``, ``NodeResourceTopology``, ``policy pool train``."""
    kubelet: Kubelet
    feature_gates: dict[str, bool] = {}
    reserved_millis: int | None = None
    """CPU kept for the system where no CPUs are named, None where that is not told."""


class _Reserved(Struct, frozen=True):
    numaNode: int = 0
    limits: dict[str, QuantityText] = {}


class _Configuration(Struct, frozen=True):
    """Fields of KubeletConfiguration v1beta1 with the defaults that the kubelet gives them."""

    topologyManagerPolicy: str = "none"
    topologyManagerScope: str = "container"
    topologyManagerPolicyOptions: dict[str, str] | None = None
    cpuManagerPolicy: str = "none"
    cpuManagerPolicyOptions: dict[str, str] | None = None
    memoryManagerPolicy: str = "None"
    reservedSystemCPUs: str = ""
    reservedMemory: tuple[_Reserved, ...] | None = None
    systemReserved: dict[str, QuantityText] | None = None
    kubeReserved: dict[str, QuantityText] | None = None
    featureGates: dict[str, bool] | None = None


def told(cluster: Cluster, node: str, found: NodeMap | None) -> Told | None:
    """What speaks for the node's kubelet, None where nothing does. ``found`` is the node's map.

    A source that cannot be read says nothing.
    """
    own = _of_configuration(cluster, node)
    if own is not None:
        return own
    if found is not None and found.kubelet is not None and found.kubelet.topology_policy:
        return Told("agent map", found.kubelet)
    try:
        zones = resource_topology.of_node(cluster, node)
    except resource_topology.UnreadableZones:
        return None
    if zones is not None and zones.policy:
        named = Kubelet(topology_policy=zones.policy, topology_scope=zones.scope)
        return Told(resource_topology.KIND, named)
    return None


def _of_configuration(cluster: Cluster, node: str) -> Told | None:
    obj = cluster.get(KIND, "", node)
    if not isinstance(obj, Generic) or obj.apiVersion.partition("/")[0] not in ("", GROUP):
        return None
    key = ("topology/configz", node)
    held = cluster.static_memo.get(key)
    if held is None or held[0] is not obj:
        held = (obj, read_configuration(obj.document))
        cluster.static_memo[key] = held
    read: Told | None = held[1]
    return read


def read_configuration(document: dict[str, Any]) -> Told | None:
    """The settings of a KubeletConfiguration; None for one that cannot be read."""
    try:
        given = msgspec.convert(document, _Configuration)
        blocks = tuple(
            MemoryBlock(name, quantity.parse(text).nano // quantity.NANO, (one.numaNode,))
            for one in given.reservedMemory or ()
            for name, text in one.limits.items()
        )
        reserved = sum(
            quantity.parse(part["cpu"]).nano
            for part in (given.systemReserved or {}, given.kubeReserved or {})
            if "cpu" in part
        )
    except (msgspec.ValidationError, quantity.QuantityError):
        return None
    return Told(
        "kubelet /configz",
        Kubelet(
            topology_policy=given.topologyManagerPolicy,
            topology_scope=given.topologyManagerScope,
            topology_options=given.topologyManagerPolicyOptions or {},
            cpu_policy=given.cpuManagerPolicy,
            cpu_options=given.cpuManagerPolicyOptions or {},
            memory_policy=given.memoryManagerPolicy,
            reserved_cpus=given.reservedSystemCPUs or None,
            reserved_memory=blocks,
        ),
        given.featureGates or {},
        math.ceil(reserved / quantity.MILLI) if reserved else None,
    )


def as_object(given: Told, node: str, **changes: str) -> Generic:
    """The settings with ``changes`` as the object that counts most for the node: for what-ifs.

    Changes are in the names of KubeletConfiguration.
    """
    kubelet = given.kubelet
    reserved: dict[int, dict[str, QuantityText]] = {}
    for block in kubelet.reserved_memory:
        for number in block.numa[:1]:
            reserved.setdefault(number, {})[block.type] = str(block.bytes)
    document: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": KIND,
        "metadata": {"name": node},
        "topologyManagerPolicy": kubelet.topology_policy,
        "topologyManagerScope": kubelet.topology_scope or "container",
        "topologyManagerPolicyOptions": kubelet.topology_options or {},
        "cpuManagerPolicy": kubelet.cpu_policy or "none",
        "cpuManagerPolicyOptions": kubelet.cpu_options or {},
        "memoryManagerPolicy": kubelet.memory_policy or "None",
        "reservedSystemCPUs": kubelet.reserved_cpus or "",
        "reservedMemory": [{"numaNode": n, "limits": limits} for n, limits in reserved.items()],
        "featureGates": given.feature_gates,
        **changes,
    }
    if given.reserved_millis is not None:
        document["kubeReserved"] = {"cpu": f"{given.reserved_millis}m"}
    return Generic(
        apiVersion=f"{GROUP}/v1beta1",
        metadata=ObjectMeta(name=node),
        realKind=KIND,
        document=document,
    )
