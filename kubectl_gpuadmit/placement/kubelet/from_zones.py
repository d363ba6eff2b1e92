"""Facts for a node's gate from its NodeResourceTopology object, which counts and does not name."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement.kubelet.facts import (
    Facts,
    Missing,
    build,
    in_order_of_start,
    takes_part,
)
from kubectl_gpuadmit.placement.kubelet.machine import Core, Device, Machine, Zone, members
from kubectl_gpuadmit.topology.kubelets import Told
from kubectl_gpuadmit.topology.resource_topology import NodeZones


def from_zones(info: NodeInfo, told: Told, found: NodeZones) -> Facts | Missing:
    """Counts only: devices and CPUs are made up, as many as there are, those taken held by nobody
    who could leave. Pods that have not started are not among the counts yet.

    Raises Refused.
    """
    names = sorted({name for zone in found.zones for name in zone.amounts if is_extended(name)})
    if not any(info.allocatable.get(name) for name in names):
        return Missing("the NUMA node of its GPUs", "run kubectl gpu-admit agent there")
    devices: dict[str, list[Device]] = {name: [] for name in names}
    held: list[tuple[str, str, str, tuple[str, ...]]] = []
    zones: list[Zone] = []
    taken_cpus = reserved = begin = 0
    for zone in found.zones:
        for name in names:
            amount = zone.amounts.get(name)
            if amount is None:
                continue
            own = [f"{name}/{zone.id}/{n:03}" for n in range(amount.allocatable)]
            devices[name] += [Device(one, (zone.id,)) for one in own]
            busy = own[: max(amount.allocatable - amount.available, 0)]
            if busy:
                held.append(("?", f"{zone.id}", name, tuple(busy)))
        cpu = zone.amounts.get("cpu")
        count = cpu.capacity // 1000 if cpu else 0
        cores = tuple(Core((begin + n,), zone.id) for n in range(count))
        if cpu:
            kept = count - cpu.allocatable // 1000
            busy_cpus = max((cpu.allocatable - cpu.available) // 1000, 0)
            reserved |= members(range(begin, begin + kept))
            taken_cpus |= members(range(begin + kept, begin + kept + busy_cpus))
        begin += count
        zones.append(Zone(zone.id, cores, {}, _by_id(found, zone.distances)))
    machine = Machine(
        tuple(zones), max(len(zones), 1), {name: tuple(own) for name, own in devices.items()}
    )
    made = build(info, told, machine, cpus=begin > 0, memory=False, reserved=reserved)
    return Facts(
        build=made,
        held=tuple(held),
        cpus=(("?", "cpu", taken_cpus),) if taken_cpus and made.settings.static_cpus else (),
        replayed=tuple(
            ask
            for ask in in_order_of_start(p for p in info.pods if not _started(p))
            if takes_part(ask, devices, made.settings)
        ),
        modelled=True,
    )


def _started(pod: Pod) -> bool:
    return pod.status.phase == "Running" or bool(pod.status.startTime)


def _by_id(found: NodeZones, distances: Sequence[int]) -> tuple[int, ...]:
    if not distances:
        return ()
    table = dict(zip((zone.id for zone in found.zones), distances, strict=True))
    return tuple(table.get(one, 0) for one in range(max(table) + 1))
