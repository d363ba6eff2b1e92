"""Fields of a ``GpuTopology`` object: what the node agent writes of its node; judges none of it.

``GpuTopology`` (``gpu-admit.io/v1alpha1``) lives in no namespace, is named after its node and owned
by it. ``spec.schema`` says how the rest is to be read:

- 1: ``matrix`` holds the text of ``nvidia-smi topo -m`` and ``asOf`` its time; nothing else counts.
  A shell script can write that much.
- 2: everything below. What the agent could not read is absent, and named in ``problems``.

A schema that only adds fields which a reader may overlook keeps its number. One that changes the
meaning of a field gets the next number, and readers older than it refuse it. Field names are JSON
names; times are RFC 3339; memory is MiB as NVML counts it; CPU sets are in the kernel's list form
(``0-31,64-95``).
"""

from __future__ import annotations

from msgspec import Struct

GROUP = "gpu-admit.io"
VERSION = "v1alpha1"
SCHEMA = 2
"""The schema that is written; it and the one before are read."""


class ReportedMig(Struct, frozen=True, gc=False):
    """A MIG instance: GPU instance and compute instance in one."""

    uuid: str = ""
    profile: str = ""
    """``1g.10gb``."""
    gpuInstance: int | None = None
    computeInstance: int | None = None
    start: int | None = None
    """First memory slice of its placement, and how many it spans."""
    slices: int | None = None
    memoryMiB: int | None = None
    usedMiB: int | None = None


class ReportedXid(Struct, frozen=True, gc=False):
    """The last error of one code (docs.nvidia.com/deploy/xid-errors)."""

    code: int
    at: str = ""
    count: int = 1


class ReportedNvlinks(Struct, frozen=True, gc=False):
    """One GPU's own links. ``total`` counts those that its module has, lit or not."""

    active: int
    total: int | None = None
    generation: int | None = None
    down: tuple[int, ...] = ()
    """Numbers of links that are down although the module has them."""
    downSince: str | None = None


class ReportedGpu(Struct, frozen=True, gc=False):
    index: int
    """NVML's index, that of ``nvidia-smi``."""
    uuid: str = ""
    pciBusID: str = ""
    """``0000:18:00.0``, as sysfs writes it."""
    product: str = ""
    """NVML's name: ``NVIDIA H100 80GB HBM3``."""
    memoryMiB: int | None = None
    usedMiB: int | None = None
    residueMiB: int | None = None
    """Memory in use that no process of a pod accounts for; 0 for none, absent if not known."""
    residueSince: str | None = None
    numaNode: int | None = None
    """Absent where the system has none or does not say (-1 in sysfs)."""
    cpus: str | None = None
    pcieRoot: str | None = None
    """``pci0000:15``, the attribute of ResourceSlices."""
    pcieSwitch: str | None = None
    """Bus address of the upstream port of the lowest PCIe switch above it: GPUs with the same share
    that switch. Empty for none, absent if not known."""
    nvlinks: ReportedNvlinks | None = None
    migEnabled: bool | None = None
    mig: tuple[ReportedMig, ...] = ()
    sharing: str | None = None
    """``time-slicing`` or ``mps``, empty for none, absent if not known."""
    replicas: int | None = None
    xids: tuple[ReportedXid, ...] = ()
    eccUncorrected: int | None = None
    """Volatile uncorrected errors, since the last reset."""
    retiredPages: int | None = None
    """Retired for double-bit errors, or rows remapped for uncorrectable ones."""
    retirementPending: bool | None = None
    """A page or row waits for the next reset; also where a remapping failed."""
    lost: bool = False
    """Seen before, not there any more: ``index`` and identity are the last ones known."""


class ReportedNic(Struct, frozen=True, gc=False):
    name: str
    """``mlx5_0``."""
    pciBusID: str = ""
    numaNode: int | None = None
    pcieSwitch: str | None = None
    linkLayer: str | None = None
    """``InfiniBand`` or ``Ethernet`` (RoCE)."""
    state: str | None = None
    """``Active``, ``Down``, ``Init`` …, of its best port."""
    rateGbps: int | None = None


class ReportedNuma(Struct, frozen=True, gc=False):
    id: int
    cpus: str | None = None
    memoryMiB: int | None = None
    distances: tuple[int, ...] = ()
    """To each NUMA node in the order of ``numa``."""


class ReportedHolder(Struct, frozen=True, gc=False):
    """Who has a device. One device may have several."""

    device: str
    """UUID of a GPU or of a MIG instance; its PCI address where there is no UUID."""
    namespace: str = ""
    pod: str = ""
    podUID: str | None = None
    container: str = ""
    via: str = ""
    """``device-plugin``, ``dra``, or ``process`` for memory in use past any allocation."""
    resource: str = ""
    """``nvidia.com/gpu``, or the claim as ``namespace/name``."""
    pid: int | None = None
    usedMiB: int | None = None


class ReportedMemoryBlock(Struct, frozen=True, gc=False):
    type: str
    """``memory``, ``hugepages-2Mi`` …"""
    bytes: int
    numa: tuple[int, ...] = ()


class ReportedAssignment(Struct, frozen=True, gc=False):
    """CPUs and memory that the kubelet has given to one container alone."""

    namespace: str
    pod: str
    container: str
    cpus: str = ""
    memory: tuple[ReportedMemoryBlock, ...] = ()


class ReportedKubelet(Struct, frozen=True, gc=False):
    """The kubelet's own configuration (``/configz``), as far as it was read."""

    topologyPolicy: str | None = None
    topologyScope: str | None = None
    topologyOptions: dict[str, str] | None = None
    cpuPolicy: str | None = None
    cpuOptions: dict[str, str] | None = None
    memoryPolicy: str | None = None
    reservedCpus: str | None = None
    """CPUs that containers never get alone."""
    reservedMemory: tuple[ReportedMemoryBlock, ...] = ()
    assignments: tuple[ReportedAssignment, ...] | None = None


class ReportedFabric(Struct, frozen=True, gc=False):
    """NVLink across nodes (nvmlDeviceGetGpuFabricInfoV)."""

    clusterUUID: str = ""
    cliqueID: int | None = None
    state: str = ""
    """``completed``, ``in-progress``, ``not-started`` or ``not-supported``."""
    healthy: bool | None = None


class GpuTopologySpec(Struct, frozen=True, gc=False):
    schema: int = 0
    """0, absent, is refused like one that is too new."""
    asOf: str = ""
    """Time of the pass that this reports; renewed by the heartbeat."""
    heartbeatSeconds: int | None = None
    """The longest time between two renewals that the agent keeps to."""
    source: str = ""
    """``nvml`` or ``nvidia-smi``."""
    agentVersion: str | None = None
    driverVersion: str | None = None
    gpus: tuple[ReportedGpu, ...] = ()
    nics: tuple[ReportedNic, ...] = ()
    links: tuple[str, ...] = ()
    """One row for each entry of ``gpus``, in its order: cells divided by a blank, first to each of
    ``gpus``, then to each of ``nics``: ``X NV18 NV18 … PIX NODE``; ``?`` where not known."""
    numa: tuple[ReportedNuma, ...] = ()
    holders: tuple[ReportedHolder, ...] | None = None
    """Absent where PodResources could not be read: then no device is known to be free."""
    fabric: ReportedFabric | None = None
    kubelet: ReportedKubelet | None = None
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""
    matrix: str | None = None
    """Schema 1 only."""
