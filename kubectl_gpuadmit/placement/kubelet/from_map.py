"""Facts for a node's gate from its map: devices by name, and which pod holds which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.gpus import DEFAULT, is_gpu
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.kubelet.asks import PodAsk
from kubectl_gpuadmit.placement.kubelet.facts import (
    Build,
    Facts,
    Missing,
    build,
    in_order_of_start,
    pinned,
    takes_part,
    uid_of,
)
from kubectl_gpuadmit.placement.kubelet.machine import (
    Core,
    Device,
    Machine,
    Zone,
    ids,
    members,
    parsed,
)
from kubectl_gpuadmit.topology.kubelets import Told
from kubectl_gpuadmit.topology.model import Kubelet, NodeMap


def from_map(cluster: Cluster, info: NodeInfo, told: Told, found: NodeMap) -> Facts | Missing:
    """Raises Refused, and ValueError for CPU lists that are none."""
    key = ("kubelet gate", info.name)
    kept = cluster.static_memo.get(key)
    if kept is None or kept[0] is not info.node or kept[1] is not found or kept[2] != told:
        built = _build_from_map(info, told, found)
        if isinstance(built, Build):  # the nodes of a pool share one
            built = cluster.static_memo.setdefault(("kubelet build", built.key), built)
        kept = (info.node, found, told, built)
        cluster.static_memo[key] = kept
    own: Build | Missing = kept[3]
    if isinstance(own, Missing):
        return own
    made, devices = own.settings, own.machine.devices
    holdings = _Holdings(info, found, devices)
    pods = {(p.namespace, p.name): p for p in info.pods}
    reported = told.kubelet if told.kubelet.assignments is not None else found.kubelet
    cpus = tuple(_assigned_cpus(reported, pods)) if made.static_cpus else ()
    memory = tuple(_assigned_memory(reported, pods)) if made.static_memory else ()
    named = {pod for pod, _, _ in cpus}
    replayed = tuple(
        ask
        for ask in in_order_of_start(info.pods)
        if takes_part(ask, devices, made)
        and (holdings.lacks(ask) or (made.static_cpus and ask.uid not in named and pinned(ask)))
    )
    return Facts(
        build=own,
        held=holdings.held,
        cpus=cpus,
        memory=memory,
        replayed=replayed,
        modelled=bool(replayed) or own.guessed or bool(found.assumed) or found.stale,
    )


def _build_from_map(info: NodeInfo, told: Told, found: NodeMap) -> Build | Missing:
    """Raises Refused or ValueError."""
    devices, problem = _devices(info, found)
    if problem:
        return Missing(problem, "look at the node's device plugin and at its map")
    told_cpus = all(zone.cpus is not None for zone in found.numa or ())
    known = {zone.id: zone for zone in found.numa or ()} if told_cpus else {}
    numbers = sorted({*known, *(n for own in devices.values() for d in own for n in d.numa)})
    zones = []
    for number in numbers:
        zone = known.get(number)
        cpus = ids(parsed(zone.cpus or "")) if zone else ()
        memory = {"memory": (zone.memory_mib or 0) << 20} if zone else {}
        cores = tuple(Core((cpu,), number) for cpu in cpus)
        zones.append(Zone(number, cores, memory, _distances(found, number, numbers)))
    told_memory = bool(known) and all(zone.memory_mib for zone in known.values())
    memory_known = told_memory and bool(told.kubelet.reserved_memory)
    machine = Machine(tuple(zones), max(len(zones), 1), devices)
    return build(info, told, machine, cpus=bool(known), memory=memory_known)


def _distances(found: NodeMap, number: int, numbers: Sequence[int]) -> tuple[int, ...]:
    """By NUMA node ID; () where the map does not tell all."""
    order = [zone.id for zone in found.numa or ()]
    own = next((zone.distances for zone in found.numa or () if zone.id == number), ())
    if len(own) != len(order) or not set(numbers) <= set(order):
        return ()
    table = dict(zip(order, own, strict=True))
    return tuple(table.get(one, 0) for one in range(max(numbers) + 1))


def _devices(info: NodeInfo, found: NodeMap) -> tuple[dict[str, tuple[Device, ...]], str]:
    """Devices of each GPU resource that the node lists, and what contradicts the list."""
    made: dict[str, tuple[Device, ...]] = {}
    for resource, listed in info.allocatable.items():
        if not listed or not is_gpu(resource, DEFAULT):
            continue
        own = tuple(_of_resource(resource, found, listed))
        healthy = sum(1 for one in own if one.healthy)
        if healthy != listed:
            return (
                {},
                f"which GPUs {resource} means: the map has {healthy}, the node lists {listed}",
            )
        made[resource] = own
    return made, ""


def _of_resource(resource: str, found: NodeMap, listed: int) -> Iterator[Device]:
    suffix = resource.partition("/")[2]
    instances = [(gpu, one) for gpu in found.gpus for one in gpu.mig]
    whole = [
        Device(str(gpu.index) if copies == 1 else f"{gpu.index}::{n}", (gpu.numa or 0,), healthy=ok)
        for gpu, copies, ok in ((g, g.replicas or 1, not g.health.lost) for g in found.gpus)
        if not gpu.mig
        for n in range(copies)
    ]
    if suffix.startswith("mig-"):
        profile = suffix.removeprefix("mig-")
        instances = [(gpu, one) for gpu, one in instances if _label(one.profile) == profile]
    elif len(instances) != listed or len(whole) == listed:
        yield from whole
        return
    for gpu, one in instances:  # also where all are alike and count as whole GPUs
        yield Device(one.uuid, (gpu.numa or 0,), healthy=not gpu.health.lost)


def _label(profile: str) -> str:
    """A profile as resource names spell it: ``1g.10gb+me`` -> ``1g.10gb.me``."""
    return profile.replace("+", ".")


class _Holdings:
    """Who holds which device, as the map says of pods that are still on the node."""

    def __init__(
        self, info: NodeInfo, found: NodeMap, devices: Mapping[str, Sequence[Device]]
    ) -> None:
        pods = {(p.namespace, p.name): p for p in info.pods}
        free = {name: {d.id for d in own} for name, own in devices.items()}
        given: dict[tuple[str, str, str], list[str]] = {}
        for holder in found.holders or ():
            pod = pods.get((holder.namespace, holder.pod))
            if pod is None or holder.via != "device-plugin" or holder.resource not in free:
                continue
            wanted = holder.mig or str(holder.gpu)
            left = free[holder.resource]
            one = (
                wanted
                if wanted in left
                else next((d for d in sorted(left) if d.startswith(f"{wanted}::")), None)
            )
            if one is None:
                continue
            left.discard(one)
            given.setdefault((uid_of(pod), holder.container, holder.resource), []).append(one)
        self.held = tuple((*key, tuple(sorted(own))) for key, own in sorted(given.items()))
        self._of_pods: dict[str, dict[str, int]] = {}
        for uid, _, resource, own in self.held:
            counts = self._of_pods.setdefault(uid, {})
            counts[resource] = counts.get(resource, 0) + len(own)
        self._resources = frozenset(devices)

    def lacks(self, ask: PodAsk) -> bool:
        """Whether the pod asks for devices of which the map does not say that it has them."""
        known = self._of_pods.get(ask.uid, {})
        return not known and any(
            amount for name, amount in ask.pod_devices().items() if name in self._resources
        )


def _assigned_cpus(
    reported: Kubelet | None, pods: Mapping[tuple[str, str], Pod]
) -> Iterator[tuple[str, str, int]]:
    for one in (reported and reported.assignments) or ():
        pod = pods.get((one.namespace, one.pod))
        if pod is not None and one.cpus:
            yield uid_of(pod), one.container, parsed(one.cpus)


def _assigned_memory(
    reported: Kubelet | None, pods: Mapping[tuple[str, str], Pod]
) -> Iterator[tuple[str, str, int, tuple[tuple[str, int], ...]]]:
    for one in (reported and reported.assignments) or ():
        pod = pods.get((one.namespace, one.pod))
        if pod is not None and one.memory:
            nodes = members({n for block in one.memory for n in block.numa})
            amounts = tuple(sorted((block.type, block.bytes) for block in one.memory))
            yield uid_of(pod), one.container, nodes, amounts
