"""A machine as its kubelet sees it: NUMA nodes, CPUs, memory and plugin devices; decides nothing.

Sets of CPUs and of NUMA nodes are integers, one bit an ID. Source: cadvisor's machine model and
pkg/kubelet/cm/cpumanager/topology/topology.go (Discover).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct


class Core(Struct, frozen=True):
    """One physical core: its hardware threads (CPU IDs) and what it sits in."""

    threads: tuple[int, ...]
    socket: int
    uncore: int | None = None
    """ID of its last-level cache, None where the machine does not say."""


class Zone(Struct, frozen=True):
    """One NUMA node. Amounts of memory and huge pages in bytes, by resource name."""

    id: int
    cores: tuple[Core, ...] = ()
    memory: Mapping[str, int] = {}
    """``memory`` is all of it, huge pages included; ``hugepages-*`` are those set aside."""
    distances: tuple[int, ...] = ()
    """Distance to every NUMA node by position, () where unknown."""


class Device(Struct, frozen=True):
    """One device of a plugin. ``numa`` holds the NUMA nodes it names, empty for none."""

    id: str
    numa: tuple[int, ...] = ()
    healthy: bool = True


class Machine(Struct, frozen=True):
    zones: tuple[Zone, ...]
    sockets: int
    devices: Mapping[str, tuple[Device, ...]] = {}
    """Resource name -> its devices, of registered plugins only."""


class Cpus:
    """The CPUs of a machine by what they sit in, as sets. A core's ID is its lowest CPU."""

    def __init__(self, machine: Machine) -> None:
        self.numa: dict[int, int] = {}
        self.socket: dict[int, int] = {}
        self.core: dict[int, int] = {}
        self.uncore: dict[int, int] = {}
        for zone in machine.zones:
            for core in zone.cores:
                threads = members(core.threads)
                cache = core.socket if core.uncore is None else core.uncore
                for table, key in (
                    (self.numa, zone.id),
                    (self.socket, core.socket),
                    (self.core, min(core.threads)),
                    (self.uncore, cache),
                ):
                    table[key] = table.get(key, 0) | threads
        self.all = 0
        for threads in self.core.values():
            self.all |= threads
        self.sockets = machine.sockets
        self.per_core = self._each(len(self.core))
        self.per_socket = self._each(machine.sockets)
        self.per_uncore = self._each(len(self.uncore))

    def _each(self, parts: int) -> int:
        return self.all.bit_count() // parts if parts else 0

    def within(self, table: Mapping[int, int], ids: Iterable[int]) -> int:
        found = 0
        for one in ids:
            found |= table.get(one, 0)
        return found


def touching(table: Mapping[int, int], cpus: int) -> list[int]:
    """IDs of the parts (cores, sockets, NUMA nodes …) that hold one of the CPUs, ascending."""
    return sorted(key for key, held in table.items() if held & cpus)


def members(ids: Iterable[int]) -> int:
    """The set of these IDs. Raises ValueError for a negative one."""
    found = 0
    for one in ids:
        found |= 1 << one
    return found


def ids(found: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while found:
        low = found & -found
        yield low.bit_length() - 1
        found ^= low


def listed(found: int) -> str:
    """A set as the kernel and Kubernetes write it: ``0-3,8``."""
    parts: list[str] = []
    begin = last = -2
    for one in (*ids(found), -2):
        if one == last + 1:
            last = one
            continue
        if begin >= 0:
            parts.append(str(begin) if begin == last else f"{begin}-{last}")
        begin = last = one
    return ",".join(parts)


def parsed(text: str) -> int:
    """The set that ``0-3,8`` means. Raises ValueError for anything else."""
    found = 0
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not 0 <= first <= last < 1 << 16:
            raise ValueError(f"{part!r} is no range of CPU IDs")
        found |= (1 << last + 1) - (1 << first)
    return found
