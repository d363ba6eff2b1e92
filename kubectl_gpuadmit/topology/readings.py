"""What the driver, the kernel and the kubelet said of one node, each in its own words; judges none.

Every reading is complete or says what is missing: None is "not told", never "none there". Memory is
MiB; PCI addresses are ``0000:1b:00.0`` in small letters, as the kernel writes them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# -- the driver, through NVML ----------------------------------------------------------------------


class Port(Struct, frozen=True, gc=False):
    """One NVLink port of a GPU. ``remote``: PCI address of what it leads to, '' if not told."""

    number: int
    up: bool
    version: int | None = None
    kind: Literal["gpu", "switch", "other", ""] = ""
    remote: str = ""


class Process(Struct, frozen=True, gc=False):
    """A process that holds memory of a GPU. ``mib`` None: not told."""

    pid: int
    mib: int | None
    kind: Literal["compute", "graphics", "mps"] = "compute"


class MigDevice(Struct, frozen=True, gc=False):
    uuid: str
    profile: str
    start: int | None = None
    slices: int | None = None
    memory_mib: int | None = None
    used_mib: int | None = None
    gpu_instance: int | None = None
    compute_instance: int | None = None


class FabricState(Struct, frozen=True, gc=False):
    """nvmlGpuFabricInfoV, ``state`` in NVML's word. ``cluster`` is '' until it is completed."""

    state: Literal["not-supported", "not-started", "in-progress", "completed"]
    cluster: str = ""
    clique: int | None = None
    healthy: bool | None = None


class Board(Struct, frozen=True, gc=False):
    """One GPU. ``lost``: the driver says that it has fallen off the bus; the rest is then empty."""

    index: int
    uuid: str = ""
    pci: str = ""
    name: str = ""
    minor: int | None = None
    memory_mib: int | None = None
    used_mib: int | None = None
    """Without what the driver keeps for itself."""
    numa: int | None = None
    mig_enabled: bool | None = None
    mig: tuple[MigDevice, ...] = ()
    ports: tuple[Port, ...] = ()
    fabric: FabricState | None = None
    processes: tuple[Process, ...] | None = None
    ecc_uncorrected: int | None = None
    """Since the driver was loaded; those before are in ``retired_pages``."""
    retired_pages: int | None = None
    """Pages retired, or rows remapped for uncorrected errors, by what the board has."""
    retirement_pending: bool | None = None
    remap_failed: bool | None = None
    lost: bool = False


class Driver(Struct, frozen=True, gc=False):
    """One look at all GPUs. ``levels`` is PIX, PXB, PHB, NODE or SYS by (a, b), a < b."""

    version: str
    boards: tuple[Board, ...]
    levels: tuple[tuple[int, int, str], ...] = ()
    xids: tuple[tuple[int, int], ...] = ()
    """(GPU index, code) reported since the look before, oldest first."""
    missing: tuple[str, ...] = ()
    """What could not be read, in a sentence each."""


# -- the kernel, through /sys and /proc ------------------------------------------------------------


class PciPlace(Struct, frozen=True, gc=False):
    """Where a PCI device hangs: its host bridge (``pci0000:15``) and the bridges down to it."""

    address: str
    root: str
    bridges: tuple[str, ...] = ()
    numa: int | None = None


class Card(Struct, frozen=True, gc=False):
    """A network card; ``layer`` '' for one without RDMA."""

    name: str
    place: PciPlace | None
    layer: str = ""
    state: str = ""
    rate_gbps: int | None = None


class Socket(Struct, frozen=True, gc=False):
    """A NUMA node as the kernel counts it."""

    id: int
    cpus: str
    memory_mib: int | None = None
    distances: tuple[int, ...] = ()


class Kernel(Struct, frozen=True, gc=False):
    """``gpus`` are NVIDIA's display and 3D controllers on the PCI bus, by address."""

    gpus: tuple[PciPlace, ...] = ()
    cards: tuple[Card, ...] = ()
    sockets: tuple[Socket, ...] = ()


# -- the kubelet, through PodResources v1 ----------------------------------------------------------


class DeviceGrant(Struct, frozen=True, gc=False):
    """Devices of a device plugin that a container has."""

    resource: str
    ids: tuple[str, ...]
    numa: tuple[int, ...] = ()


class ClaimGrant(Struct, frozen=True, gc=False):
    """A device of a claim (DRA) that a container has."""

    namespace: str
    claim: str
    driver: str
    pool: str
    device: str
    cdi: tuple[str, ...] = ()


class MemoryGrant(Struct, frozen=True, gc=False):
    """Memory or huge pages that the Memory Manager pinned."""

    kind: str
    size: int
    numa: tuple[int, ...] = ()


class ContainerGrant(Struct, frozen=True, gc=False):
    """What one container has for itself; ``cpus`` are exclusive ones."""

    namespace: str
    pod: str
    container: str
    devices: tuple[DeviceGrant, ...] = ()
    claims: tuple[ClaimGrant, ...] = ()
    cpus: tuple[int, ...] = ()
    memory: tuple[MemoryGrant, ...] = ()


class Grants(Struct, frozen=True, gc=False):
    """``allocatable`` is what the kubelet could give; None where it would not say."""

    containers: tuple[ContainerGrant, ...] = ()
    allocatable: tuple[DeviceGrant, ...] | None = None
    memory: tuple[MemoryGrant, ...] = ()


class KubeletConfig(Struct, frozen=True, gc=False):
    """The kubelet's settings that bear on NUMA; None: not told."""

    topology_policy: str | None = None
    topology_scope: str | None = None
    topology_options: dict[str, str] | None = None
    cpu_policy: str | None = None
    cpu_options: dict[str, str] | None = None
    memory_policy: str | None = None
    reserved_cpus: str | None = None
    reserved_memory: tuple[MemoryGrant, ...] = ()


class Silent(Struct, frozen=True, gc=False):
    """A source that gave nothing, and why, in one line; ``ref`` as in docs/errors.md."""

    why: str
    ref: str = ""
