"""A /sys tree of a machine: NUMA nodes, PCI devices with their bridges, network and RDMA cards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tests.fakes.machines import Machine, Nic

GPU_CLASS, BRIDGE_CLASS, NET_CLASS = "0x030200", "0x060400", "0x020000"
IB_CLASS = "0x020700"
NVIDIA, MELLANOX = "0x10de", "0x15b3"


def write(machine: Machine, root: Path) -> Path:
    """Makes the tree at ``root`` (what ``/sys`` is); returns it."""
    for numa in machine.numa:
        place = root / "devices/system/node" / f"node{numa.id}"
        _put(place / "cpulist", numa.cpus)
        kib = numa.memory_mib * 1024
        _put(place / "meminfo", f"Node {numa.id} MemTotal:       {kib} kB\nNode 0 MemFree: 1 kB")
        _put(place / "distance", " ".join(map(str, numa.distances)))
    for gpu in machine.gpus:
        _device(root, gpu.root, gpu.path, gpu.pci, gpu.numa, (GPU_CLASS, NVIDIA))
    for nic in machine.nics:
        kind = IB_CLASS if nic.layer == "InfiniBand" else NET_CLASS
        _device(root, nic.root, nic.path, nic.pci, nic.numa, (kind, MELLANOX))
        _network(root, nic)
    return root


def _device(
    root: Path,
    domain: str,
    path: Iterable[str],
    address: str,
    numa: int | None,
    kind: tuple[str, str],
) -> None:
    place = root / "devices" / domain
    for bridge in path:
        place = place / bridge
        _pci(root, place, numa, (BRIDGE_CLASS, "0x1000"))
    _pci(root, place / address, numa, kind)


def _pci(root: Path, place: Path, numa: int | None, kind: tuple[str, str]) -> None:
    _put(place / "class", kind[0])
    _put(place / "vendor", kind[1])
    _put(place / "numa_node", str(-1 if numa is None else numa))
    link = root / "bus/pci/devices" / place.name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(os.path.relpath(place, link.parent))


def _network(root: Path, nic: Nic) -> None:
    device = next((root / "devices").rglob(nic.pci))
    if nic.layer:
        place = root / "class/infiniband" / nic.name
        _put(place / "ports/1/state", "4: ACTIVE" if nic.up else "1: DOWN")
        _put(place / "ports/1/phys_state", "5: LinkUp" if nic.up else "3: Disabled")
        _put(place / "ports/1/rate", f"{nic.rate_gbps} Gb/sec (4X NDR)")
        _put(place / "ports/1/link_layer", nic.layer)
    else:
        place = root / "class/net" / nic.name
        _put(place / "operstate", "up" if nic.up else "down")
        _put(place / "speed", str(nic.rate_gbps * 1000 if nic.up else -1))
    (place / "device").symlink_to(os.path.relpath(device, place))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
