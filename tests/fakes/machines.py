"""Machines as their hardware would describe them: GPUs, links, PCI tree, NICs, NUMA nodes.

Written by hand from public descriptions of the boards, small enough to reason about. ``nvml`` and
``sysfs`` beside this module turn one into what the driver and the kernel would say; a test breaks a
machine with the functions at the end.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

MIB = 1 << 20
GPU_REMOTE, SWITCH_REMOTE = 0, 2
"""nvmlIntNvLinkDeviceType_t."""


@dataclass(frozen=True)
class Link:
    """One NVLink port of a GPU."""

    up: bool = True
    version: int = 4
    remote: str = ""
    """PCI address of what it leads to; '' where the driver does not tell."""
    kind: int = SWITCH_REMOTE


@dataclass(frozen=True)
class MigSlice:
    """A MIG device: profile ``1g.5gb``, memory in MiB, GPU instance, place in memory slices."""

    uuid: str
    profile: str
    memory_mib: int
    gi: int
    start: int
    size: int
    used_mib: int = 0


@dataclass(frozen=True)
class Gpu:
    uuid: str
    name: str
    pci: str
    memory_mib: int
    numa: int | None = 0
    path: tuple[str, ...] = ()
    """PCI addresses from below the host bridge down to the one above the GPU."""
    root: str = "pci0000:00"
    links: tuple[Link, ...] = ()
    used_mib: int = 0
    reserved_mib: int = 500
    processes: tuple[tuple[int, int], ...] = ()
    """(pid, MiB) of compute processes."""
    mig: bool | None = False
    slices: tuple[MigSlice, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    """More keys of the table below this GPU, such as ``ecc/volatile/uncorrected``."""


@dataclass(frozen=True)
class Nic:
    """A network card; ``ib`` names its RDMA device and link layer where it has one."""

    name: str
    pci: str
    numa: int | None = 0
    path: tuple[str, ...] = ()
    root: str = "pci0000:00"
    up: bool = True
    rate_gbps: int = 400
    layer: str = "InfiniBand"


@dataclass(frozen=True)
class Numa:
    id: int
    cpus: str
    memory_mib: int
    distances: tuple[int, ...] = ()


@dataclass(frozen=True)
class Machine:
    name: str
    driver: str
    cuda: int
    gpus: tuple[Gpu, ...]
    numa: tuple[Numa, ...]
    nics: tuple[Nic, ...] = ()
    values: dict[str, str] = field(default_factory=dict)

    def with_gpu(self, index: int, **changes: Any) -> Machine:
        """The machine with one GPU changed."""
        gpus = list(self.gpus)
        gpus[index] = replace(gpus[index], **changes)
        return replace(self, gpus=tuple(gpus))


def uuid(kind: str, number: int) -> str:
    return f"{kind}-{number:08x}-5a5a-4b4b-8c8c-00000000{number:04x}"


def _below(switch: str, slot: int) -> tuple[str, ...]:
    """Root port, upstream and one downstream port of a PCIe switch on bus ``switch``."""
    bus = int(switch, 16)
    return (f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0", f"0000:{bus + 2:02x}:{slot:02x}.0")


def hgx_h100() -> Machine:
    """8 × H100 SXM: 18 NVLinks each to four NVSwitches, four GPUs a socket, each with a NIC of its
    own below one PCIe switch (DGX H100 user guide, figure of the system topology)."""
    buses = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
    switches = ("15", "3d", "4c", "5b", "97", "bd", "cb", "d9")
    nvswitches = ("07", "08", "09", "0a")
    per_switch = (4, 5, 5, 4)
    remotes = [
        f"0000:{bus}:00.0"
        for bus, count in zip(nvswitches, per_switch, strict=True)
        for _ in range(count)
    ]
    gpus, nics = [], []
    for index, (bus, switch) in enumerate(zip(buses, switches, strict=True)):
        root = f"pci0000:{switch}"
        gpus.append(
            Gpu(
                uuid=uuid("GPU", 0x1000 + index),
                name="NVIDIA H100 80GB HBM3",
                pci=f"0000:{bus}:00.0",
                memory_mib=81559,
                numa=index // 4,
                path=_below(switch, 0),
                root=root,
                links=tuple(Link(remote=remote) for remote in remotes),
                values={
                    "compute/major": "9",
                    "compute/minor": "0",
                    "fabric/state": "3",
                    "fabric/cluster": "0" * 32,
                    "fabric/clique": "0",
                },
            )
        )
        nics.append(
            Nic(
                name=f"mlx5_{index}",
                pci=f"0000:{int(bus, 16) + 1:02x}:00.0",
                numa=index // 4,
                path=_below(switch, 1),
                root=root,
            )
        )
    nics.append(
        Nic("eth0", "0000:29:00.0", 0, ("0000:28:01.0",), "pci0000:28", rate_gbps=100, layer="")
    )
    numa = (
        Numa(0, "0-55,112-167", 1_031_000, (10, 21)),
        Numa(1, "56-111,168-223", 1_032_000, (21, 10)),
    )
    return Machine("hgx-h100", "550.163.01", 12040, tuple(gpus), numa, tuple(nics))


def dgx_a100_mig() -> Machine:
    """8 × A100 40 GB, 12 NVLinks to six NVSwitches, two GPUs below each PCIe switch, four NUMA
    nodes with GPUs of eight; GPU 0 cut into seven 1g.5gb, GPU 1 into 3g.20gb + 4g.20gb."""
    buses = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
    numa_of = (3, 3, 1, 1, 7, 7, 5, 5)
    switch_of = ("01", "01", "41", "41", "81", "81", "b1", "b1")
    remotes = [f"0000:{bus}:00.0" for bus in ("c4", "c5", "c6", "c7", "c8", "c9") for _ in "ab"]
    gpus = tuple(
        Gpu(
            uuid=uuid("GPU", 0x2000 + index),
            name="NVIDIA A100-SXM4-40GB",
            pci=f"0000:{bus}:00.0",
            memory_mib=40960,
            numa=numa_of[index],
            path=_below(switch_of[index], index % 2),
            root=f"pci0000:{switch_of[index]}",
            links=tuple(Link(remote=remote, version=3) for remote in remotes),
            reserved_mib=571,
            values={"compute/major": "8", "compute/minor": "0", "retired/single": "0"}
            | {"retired/double": "0", "retired/pending": "0"},
        )
        for index, bus in enumerate(buses)
    )
    made = Machine(
        "dgx-a100",
        "535.183.01",
        12020,
        gpus,
        tuple(
            Numa(
                n,
                f"{16 * n}-{16 * n + 15},{128 + 16 * n}-{143 + 16 * n}",
                128_000,
                tuple(10 if m == n else 12 if m // 4 == n // 4 else 32 for m in range(8)),
            )
            for n in range(8)
        ),
    )
    small = tuple(MigSlice(uuid("MIG", 0x2100 + i), "1g.5gb", 4864, 7 + i, i, 1) for i in range(7))
    large = (
        MigSlice(uuid("MIG", 0x2200), "3g.20gb", 19968, 2, 4, 4),
        MigSlice(uuid("MIG", 0x2201), "4g.20gb", 19968, 1, 0, 4),
    )
    return made.with_gpu(0, mig=True, slices=small).with_gpu(1, mig=True, slices=large)


def pcie_l40s() -> Machine:
    """4 × L40S without NVLink: two below one PCIe switch on socket 0, two on root ports of
    socket 1; a RoCE card beside each pair."""
    places = (
        ("16", ("0000:14:01.0", "0000:15:00.0", "0000:15:10.0"), "pci0000:14", 0),
        ("17", ("0000:14:01.0", "0000:15:00.0", "0000:15:14.0"), "pci0000:14", 0),
        ("98", ("0000:97:01.0",), "pci0000:97", 1),
        ("b9", ("0000:b8:01.0",), "pci0000:b8", 1),
    )
    gpus = tuple(
        Gpu(
            uuid=uuid("GPU", 0x3000 + index),
            name="NVIDIA L40S",
            pci=f"0000:{bus}:00.0",
            memory_mib=46068,
            numa=numa,
            path=path,
            root=root,
            mig=None,
            values={"compute/major": "8", "compute/minor": "9"},
        )
        for index, (bus, path, root, numa) in enumerate(places)
    )
    upper = ("0000:14:01.0", "0000:15:00.0", "0000:15:18.0")
    nics = (
        Nic("mlx5_0", "0000:18:00.0", 0, upper, "pci0000:14", rate_gbps=100, layer="Ethernet"),
        Nic(
            "mlx5_1", "0000:99:00.0", 1, ("0000:97:05.0",), "pci0000:97", rate_gbps=100,
            layer="Ethernet",
        ),
    )  # fmt: skip
    numa = (Numa(0, "0-31", 257_000, (10, 21)), Numa(1, "32-63", 258_000, (21, 10)))
    return Machine("pcie-l40s", "570.86.15", 12080, gpus, numa, nics)


def gb200_tray() -> Machine:
    """A compute tray of a GB200 NVL72: 4 × GB200, two a Grace CPU joined by C2C; 18 NVLinks each to
    switches in other trays, whose PCI address the driver does not know."""
    places = (("0008:01", 0), ("0009:01", 0), ("0018:01", 1), ("0019:01", 1))
    gpus = tuple(
        Gpu(
            uuid=uuid("GPU", 0x4000 + index),
            name="NVIDIA GB200",
            pci=f"{place}:00.0",
            memory_mib=189471,
            numa=numa,
            path=(f"{place[:4]}:00:00.0",),
            root=f"pci{place[:4]}:00",
            links=tuple(Link(remote="", version=5) for _ in range(18)),
            values={
                "compute/major": "10",
                "compute/minor": "0",
                "fabric/state": "3",
                "fabric/cluster": "c1d5a2b6e07f4f0f9a3d5b1e22334455",
                "fabric/clique": "32766",
            },
        )
        for index, (place, numa) in enumerate(places)
    )
    numa = (Numa(0, "0-71", 490_000, (10, 40)), Numa(1, "72-143", 489_000, (40, 10)))
    return Machine("gb200-tray", "580.65.06", 13000, gpus, numa)


MACHINES = {
    "hgx-h100": hgx_h100,
    "dgx-a100-mig": dgx_a100_mig,
    "pcie-l40s": pcie_l40s,
    "gb200-tray": gb200_tray,
}


# -- what goes wrong -------------------------------------------------------------------------------


def lost(machine: Machine, index: int) -> Machine:
    """The GPU has fallen off the bus: every call on it says so."""
    gpu = machine.gpus[index]
    return machine.with_gpu(index, values={**gpu.values, "lost": "1"})


def links_down(machine: Machine, index: int, *numbers: int) -> Machine:
    """These NVLinks of the GPU are down."""
    links = [
        dataclasses.replace(link, up=False) if number in numbers else link
        for number, link in enumerate(machine.gpus[index].links)
    ]
    return machine.with_gpu(index, links=tuple(links))


def residue(machine: Machine, index: int, mib: int) -> Machine:
    """Memory that no process of the driver's list accounts for."""
    return machine.with_gpu(index, used_mib=mib)


def counters(machine: Machine, index: int, **values: int) -> Machine:
    """More of the GPU's table: ``ecc__volatile__uncorrected=2`` and so on."""
    gpu = machine.gpus[index]
    more = {name.replace("__", "/"): str(value) for name, value in values.items()}
    return machine.with_gpu(index, values={**gpu.values, **more})


def xids(machine: Machine, *events: tuple[int, int]) -> Machine:
    """The driver reports these (GPU index, code), in this order."""
    listed = ",".join(f"{gpu}:{code}" for gpu, code in events)
    return replace(machine, values={**machine.values, "xids": listed})
