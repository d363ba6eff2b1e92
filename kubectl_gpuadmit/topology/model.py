"""What is known of one node's GPUs and what joins them; where from is told, nothing is judged.

A fact that the source does not give is None, never a likely value. Memory is MiB as NVML counts it;
CPU sets are in the kernel's list form (``0-31,64-95``); GPUs and links go by NVML's index, that of
``nvidia-smi``.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

from msgspec import Struct

SourceKind = Literal["agent", "smi", "slices", "labels", "allocatable"]
"""Best first: the agent's GpuTopology object, a pasted ``nvidia-smi topo -m``, ResourceSlices,
labels of GPU Feature Discovery, a count of the node's allocatable resources."""

PCIE_LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Nearest first (nvidia-smi's legend): one bridge at most; several bridges; a host bridge; within a
NUMA node; across sockets. ``SOC`` of old drivers reads as SYS."""

NO_NVLINK = "PCIe"
"""A link without NVLink whose PCIe level is not known."""


class Mig(Struct, frozen=True, gc=False):
    """A MIG instance of a GPU."""

    uuid: str
    profile: str
    """``1g.10gb``."""
    start: int | None = None
    slices: int | None = None
    memory_mib: int | None = None
    used_mib: int | None = None


class Xid(Struct, frozen=True, gc=False):
    """An error that the driver reported; ``at`` is RFC 3339, '' if not known."""

    code: int
    at: str = ""
    count: int = 1


class Health(Struct, frozen=True, gc=False):
    """What speaks against a GPU. None: not looked at."""

    xids: tuple[Xid, ...] = ()
    ecc_uncorrected: int | None = None
    retired_pages: int | None = None
    retirement_pending: bool | None = None
    lost: bool = False


class Gpu(Struct, frozen=True, gc=False):
    index: int
    uuid: str | None = None
    pci_bus_id: str | None = None
    product: str | None = None
    memory_mib: int | None = None
    used_mib: int | None = None
    residue_mib: int | None = None
    """Memory in use that no process of a pod accounts for; None if nobody looked."""
    residue_since: str | None = None
    numa: int | None = None
    """The node of its CPUs: the lowest of ``numa_affinity`` where that names several."""
    numa_affinity: str | None = None
    """As nvidia-smi prints it; on Grace the nodes of GPU memory are among them."""
    memory_numa: int | None = None
    """The NUMA node that the GPU's own memory is (``GPU NUMA ID``); None for most."""
    cpus: str | None = None
    pcie_switch: str | None = None
    """Equal for GPUs below the same PCIe switch; '' for none, None if not known."""
    pcie_root: str | None = None
    nvlinks: int | None = None
    """Its own links that are up, those that the module has, and the numbers of those down."""
    nvlinks_total: int | None = None
    nvlinks_down: tuple[int, ...] = ()
    nvlinks_down_since: str | None = None
    mig_enabled: bool | None = None
    mig: tuple[Mig, ...] = ()
    sharing: str | None = None
    """``time-slicing`` or ``mps``, '' for none, None if not known."""
    replicas: int | None = None
    health: Health = Health()


class Link(Struct, frozen=True, gc=False):
    """What joins two GPUs of a node, ``a`` < ``b``.

    ``type`` is the cell of ``nvidia-smi topo -m``: ``NV18`` (active NVLinks), one of
    ``PCIE_LEVELS``, or ``C2C``; or ``NO_NVLINK``. ``lanes`` counts active NVLinks, 0 without;
    ``lanes_total`` those that would be there if none were down, None where that is not known.
    """

    a: int
    b: int
    type: str
    lanes: int = 0
    lanes_total: int | None = None

    @property
    def degraded(self) -> bool:
        return self.lanes_total is not None and self.lanes < self.lanes_total


class Nic(Struct, frozen=True, gc=False):
    name: str
    pci_bus_id: str | None = None
    numa: int | None = None
    pcie_switch: str | None = None
    link_layer: str | None = None
    """``InfiniBand`` or ``Ethernet`` (RoCE)."""
    state: str | None = None
    """``Active`` or what it is instead."""
    rate_gbps: int | None = None
    levels: dict[int, str] | None = None
    """GPU index -> level to it, as in ``PCIE_LEVELS``."""


class NumaNode(Struct, frozen=True, gc=False):
    id: int
    cpus: str | None = None
    memory_mib: int | None = None
    distances: tuple[int, ...] = ()
    """To each NUMA node in the order of ``NodeMap.numa``."""


class Holder(Struct, frozen=True, gc=False):
    """Who has a GPU or a MIG instance of it, as the kubelet or the driver says."""

    gpu: int
    namespace: str
    pod: str
    container: str = ""
    pod_uid: str | None = None
    via: Literal["device-plugin", "dra", "process"] = "device-plugin"
    resource: str = ""
    """``nvidia.com/gpu``, or the claim as ``namespace/name``."""
    mig: str | None = None
    """UUID of the MIG instance, None for the whole GPU or a replica of it."""
    pid: int | None = None
    used_mib: int | None = None


class MemoryBlock(Struct, frozen=True, gc=False):
    type: str
    bytes: int
    numa: tuple[int, ...] = ()


class Assignment(Struct, frozen=True, gc=False):
    """CPUs and memory that the kubelet has given to one container alone."""

    namespace: str
    pod: str
    container: str
    cpus: str = ""
    memory: tuple[MemoryBlock, ...] = ()


class Kubelet(Struct, frozen=True, gc=False):
    """The kubelet's configuration where the source tells it; None: not told."""

    topology_policy: str | None = None
    topology_scope: str | None = None
    topology_options: dict[str, str] | None = None
    cpu_policy: str | None = None
    cpu_options: dict[str, str] | None = None
    memory_policy: str | None = None
    reserved_cpus: str | None = None
    reserved_memory: tuple[MemoryBlock, ...] = ()
    assignments: tuple[Assignment, ...] | None = None


class Fabric(Struct, frozen=True, gc=False):
    """NVLink across nodes. ``clique`` is ``<cluster UUID>.<clique ID>``, the value of the label
    ``nvidia.com/gpu.clique``: equal on nodes of one NVLink domain."""

    clique: str
    state: str = "completed"
    healthy: bool | None = None

    @property
    def usable(self) -> bool:
        return self.state == "completed" and self.healthy is not False


class NodeMap(Struct, frozen=True, gc=False):
    """One node, from one source; ``assumed`` names what a lower source filled in by knowledge of
    the machine's product instead of a look at it."""

    node: str
    source: SourceKind
    as_of: dt.datetime | None = None
    """When the source looked; None for one that is as old as the snapshot itself."""
    count: int = 0
    """Number of GPUs, also where ``gpus`` cannot tell them apart."""
    gpus: tuple[Gpu, ...] = ()
    """By index. Empty where only ``count`` is known."""
    links: tuple[Link, ...] | None = None
    """All pairs whose cell is known, by (a, b); None where the source tells none."""
    nics: tuple[Nic, ...] | None = None
    numa: tuple[NumaNode, ...] | None = None
    holders: tuple[Holder, ...] | None = None
    """None where the source does not say who has which device."""
    fabric: Fabric | None = None
    """None: not told. A clique of '' says that the node is on no fabric."""
    kubelet: Kubelet | None = None
    product: str | None = None
    """Of all its GPUs, where they are alike."""
    assumed: str = ""
    """``HGX H100 8-GPU: NVLink and NUMA as NVIDIA builds it``; '' where nothing is assumed."""
    problems: tuple[str, ...] = ()
    """What the source says that it could not read, and what in it contradicts itself."""
    heartbeat_seconds: int | None = None
    stale: bool = False
    """The source looked too long ago: what wires there are still holds, the rest may not."""

    def gpu(self, index: int) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.index == index), None)
