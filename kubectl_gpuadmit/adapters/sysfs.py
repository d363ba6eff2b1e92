"""Reads from /sys where GPUs and network cards hang, and from /proc whose a process is.

It knows no driver: what it says holds also where NVML is missing. Files that are not there leave
a fact unknown.

Sources: Documentation/ABI/testing/sysfs-bus-pci, sysfs-devices-node, sysfs-class-infiniband;
cgroup names of pods: kubelet/cm (``kubepods`` slices, ``pod<UID>``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kubectl_gpuadmit.topology.readings import Card, Kernel, PciPlace, Socket

NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")
"""VGA and 3D controllers; NVSwitches are bridges (0x0680)."""
NETWORK = ("0x0200", "0x0207")
"""Ethernet and InfiniBand controllers."""
FIRST_PID_NAMESPACE = "pid:[4026531836]"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_POD = re.compile(
    r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})"
)


class Sysfs:
    """The kernel's view of this machine; ``root`` holds ``sys`` and ``proc``, / by default."""

    def __init__(self, root: str = "/") -> None:
        self._sys = Path(root) / "sys"
        self._proc = Path(root) / "proc"

    def read(self) -> Kernel:
        """One look. Never fails: what cannot be read is left out."""
        places = {place.name: place for place in _entries(self._sys / "bus/pci/devices")}
        gpus = [
            self._place(place)
            for place in places.values()
            if _text(place / "vendor") == NVIDIA and _text(place / "class")[:6] in GPU_CLASSES
        ]
        return Kernel(
            gpus=tuple(sorted(gpus, key=lambda one: one.address)),
            cards=tuple(self._cards()),
            sockets=tuple(self._sockets()),
        )

    def owner(self, pid: int) -> str | None:
        """UID of the pod that a process belongs to, '' for a process of no pod, None where the
        process cannot be seen (it has ended, or this is another PID namespace)."""
        try:
            groups = (self._proc / str(pid) / "cgroup").read_text("utf-8", "replace")
        except OSError:
            return None
        found = _POD.search(groups)
        if found is None:
            return ""
        return found[1].replace("_", "-")

    def sees_all_processes(self) -> bool:
        """Whether this process is in the node's own PID namespace (PROC_PID_INIT_INO, the number
        that proc_ns.h gives the first one): else ``owner`` would miss most processes."""
        try:
            return (self._proc / "self/ns/pid").readlink().name == FIRST_PID_NAMESPACE
        except OSError:
            return False

    # -- parts

    def _place(self, device: Path) -> PciPlace:
        parts = device.resolve().parts
        chain = [part for part in parts if _ADDRESS.fullmatch(part)]
        root = next((part for part in reversed(parts) if part.startswith("pci")), "")
        return PciPlace(
            address=chain[-1] if chain else device.name,
            root=root,
            bridges=tuple(chain[:-1]),
            numa=_numa(device),
        )

    def _cards(self) -> Iterable[Card]:
        """RDMA devices by their own names, and network interfaces of cards that have none."""
        seen: set[str] = set()
        for entry in _entries(self._sys / "class/infiniband"):
            place = self._place(entry / "device") if (entry / "device").exists() else None
            if place is not None:
                seen.add(place.address)
            ports = [_port(port) for port in _entries(entry / "ports")]
            state, layer, rate = min(ports, key=_worse, default=("", "", None))
            yield Card(entry.name, place, layer=layer, state=state, rate_gbps=rate)
        for entry in _entries(self._sys / "class/net"):
            device = entry / "device"
            if _text(device / "class")[:6] not in NETWORK:
                continue
            place = self._place(device)
            if place.address not in seen:
                speed = _number(_text(entry / "speed"))
                yield Card(
                    entry.name,
                    place,
                    state="Active" if _text(entry / "operstate") == "up" else "Down",
                    rate_gbps=speed // 1000 if speed and speed > 0 else None,
                )

    def _sockets(self) -> Iterable[Socket]:
        found = []
        for entry in _entries(self._sys / "devices/system/node"):
            number = _number(entry.name.removeprefix("node"))
            if not entry.name.startswith("node") or number is None:
                continue
            total = re.search(r"MemTotal:\s+(\d+) kB", _text(entry / "meminfo"))
            distances = _text(entry / "distance").split()
            found.append(
                Socket(
                    number,
                    cpus=_text(entry / "cpulist"),
                    memory_mib=int(total[1]) // 1024 if total else None,
                    distances=tuple(int(d) for d in distances if d.isdigit()),
                )
            )
        return sorted(found, key=lambda one: one.id)


def _port(port: Path) -> tuple[str, str, int | None]:
    """(state, link layer, rate) of an RDMA port; ``4: ACTIVE`` reads as ``Active``."""
    state = _text(port / "state").partition(":")[2].strip().capitalize()
    rate = re.match(r"(\d+)", _text(port / "rate"))
    return state, _text(port / "link_layer"), int(rate[1]) if rate else None


def _worse(port: tuple[str, str, int | None]) -> bool:
    return port[0] != "Active"


def _numa(device: Path) -> int | None:
    number = _number(_text(device / "numa_node"))
    return None if number is None or number < 0 else number


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
