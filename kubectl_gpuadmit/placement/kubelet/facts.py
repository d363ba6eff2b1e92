"""One node's machine, settings and holdings for its gate, from what the cluster's objects tell.

Two sources know NUMA nodes: a map of the node (GPUs by device, holders by pod), and its
NodeResourceTopology object (counts only). Pods that neither has seen yet are let through the gate
again in the order in which they started. What had to be inferred so is ``modelled``; what the
verdict would need and nobody tells is ``Missing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.gpus import DEFAULT, is_gpu
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement.kubelet import asks, settings
from kubectl_gpuadmit.placement.kubelet.asks import PodAsk
from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed
from kubectl_gpuadmit.placement.kubelet.gate import Gate
from kubectl_gpuadmit.placement.kubelet.machine import (
    Core,
    Cpus,
    Device,
    Machine,
    Zone,
    ids,
    members,
    parsed,
)
from kubectl_gpuadmit.placement.kubelet.settings import Refused, Settings
from kubectl_gpuadmit.topology.kubelets import ALPHA_OPTIONS, POD_LEVEL, Told
from kubectl_gpuadmit.topology.model import Kubelet, NodeMap
from kubectl_gpuadmit.topology.resource_topology import NodeZones

STRICT = ("restricted", "single-numa-node")
"""Policies that refuse. Under the others a gate refuses nothing that the scheduler lets through."""

CPUS, MEMORY = "CPUs by NUMA node", "memory by NUMA node"
"""What may be missing of a node."""

_CORES_MATTER = frozenset({settings.FULL_CORES, settings.BY_SOCKET, settings.BY_CACHE})


class Missing(Struct, frozen=True):
    """Why a node's gate cannot be asked."""

    what: str
    hint: str = ""


class Build(Struct, frozen=True):
    """What does not depend on the node's pods."""

    machine: Machine
    settings: Settings
    key: str
    """Equal for machines that are built and set alike."""
    unjudged: tuple[str, ...] = ()
    """``CPUS`` and ``MEMORY``: what takes part in alignment and of which too little is known."""
    guessed: bool = False
    """Something that may matter was assumed."""
    memo: list[Cpus] = []

    @property
    def cpus(self) -> Cpus:
        """The machine's CPUs, worked out when first asked for."""
        if not self.memo:
            self.memo.append(Cpus(self.machine))
        return self.memo[0]


class Facts(Struct, frozen=True):
    """All that a gate is made of."""

    build: Build
    held: tuple[tuple[str, str, str, tuple[str, ...]], ...] = ()
    """(pod, container, resource, devices) of pods that run."""
    cpus: tuple[tuple[str, str, int], ...] = ()
    """(pod, container, set of CPUs)."""
    memory: tuple[tuple[str, str, int, tuple[tuple[str, int], ...]], ...] = ()
    """(pod, container, set of NUMA nodes, amounts)."""
    replayed: tuple[PodAsk, ...] = ()
    """Pods whose share nobody tells, in the order of their start."""
    modelled: bool = False

    @property
    def key(self) -> str:
        """Equal for nodes that are built, set and held alike, whoever holds them."""
        cpus = 0
        for _, _, given in self.cpus:
            cpus |= given
        return repr(
            (
                self.build.key,
                sorted((resource, own) for _, _, resource, own in self.held),
                cpus,
                sorted((nodes, amounts) for _, _, nodes, amounts in self.memory),
                [(ask.containers, ask.guaranteed, ask.pod_level) for ask in self.replayed],
            )
        )

    def gate(self, without: Iterable[str] = ()) -> Gate:
        """The gate as it stands, ``without`` some pods. Raises Refused."""
        gone = frozenset(without)
        gate = self.empty()
        for pod, container, resource, devices in self.held:
            if pod not in gone:
                gate.devices.hold(pod, container, resource, devices)
        for pod, container, given in self.cpus:
            if pod not in gone and gate.cpus is not None:
                gate.cpus.hold(pod, container, given)
        for pod, container, nodes, amounts in self.memory:
            if pod not in gone and gate.memory is not None:
                gate.memory.hold(pod, container, nodes, dict(amounts))
        for ask in self.replayed:
            if ask.uid not in gone:
                _replay(gate, ask)
        return gate

    def empty(self) -> Gate:
        """The gate of the same node with nothing on it. Raises Refused."""
        return Gate(self.build.machine, self.build.settings, cpus=self.build.cpus)


def _replay(gate: Gate, ask: PodAsk) -> None:
    """Gives a running pod what it must have: its devices where they are known, the rest anew."""
    held = gate.devices.held(ask.uid)
    if not held:
        gate.admit(ask)
        return
    if gate.cpus is None or gate.cpus.held(ask.uid):
        return
    numa = {d.id: d.numa for found in gate.machine.devices.values() for d in found}
    for container in ask.containers:
        own = [one for given in held.get(container.name, {}).values() for one in given]
        near = members({n for one in own for n in numa.get(one, ())}) or None
        try:
            gate.cpus.allocate(ask, container, near)
        except AllocationFailed:
            return


def uid_of(pod: Pod) -> str:
    """What a pod is called within a gate."""
    return pod.metadata.uid or f"{pod.namespace}/{pod.name}"


def of_node(
    cluster: Cluster, info: NodeInfo, told: Told, found: NodeMap | None, zones: NodeZones | None
) -> Facts | Missing:
    """Facts from the node's map if it names the NUMA node of every GPU, else from its zones."""
    try:
        if found is not None and found.gpus and all(gpu.numa is not None for gpu in found.gpus):
            return _from_map(cluster, info, told, found)
        if zones is not None and zones.zones:
            return _from_zones(info, told, zones)
    except Refused as refused:
        return Missing(f"{told.source}: no kubelet starts so: {refused}")
    except ValueError as problem:
        return Missing(f"{told.source}: {problem}")
    which = "of some GPUs" if found is not None and found.gpus else "of its GPUs"
    return Missing(
        f"the NUMA node {which}",
        "run kubectl gpu-admit agent there, or NFD's topology updater",
    )


# -- from a map ------------------------------------------------------------------------------------


def _from_map(cluster: Cluster, info: NodeInfo, told: Told, found: NodeMap) -> Facts | Missing:
    key = ("kubelet gate", info.name)
    kept = cluster.static_memo.get(key)
    if kept is None or kept[0] is not info.node or kept[1] is not found or kept[2] != told:
        built = _build_from_map(info, told, found)
        if isinstance(built, Build):  # the nodes of a pool share one
            built = cluster.static_memo.setdefault(("kubelet build", built.key), built)
        kept = (info.node, found, told, built)
        cluster.static_memo[key] = kept
    build: Build | Missing = kept[3]
    if isinstance(build, Missing):
        return build
    made, devices = build.settings, build.machine.devices
    holdings = _Holdings(info, found, devices)
    pods = {(p.namespace, p.name): p for p in info.pods}
    reported = told.kubelet if told.kubelet.assignments is not None else found.kubelet
    cpus = tuple(_assigned_cpus(reported, pods)) if made.static_cpus else ()
    memory = tuple(_assigned_memory(reported, pods)) if made.static_memory else ()
    named = {pod for pod, _, _ in cpus}
    replayed = tuple(
        ask
        for ask in _in_order_of_start(info.pods)
        if _takes_part(ask, devices, made)
        and (holdings.lacks(ask) or (made.static_cpus and ask.uid not in named and _pinned(ask)))
    )
    return Facts(
        build=build,
        held=holdings.held,
        cpus=cpus,
        memory=memory,
        replayed=replayed,
        modelled=bool(replayed) or build.guessed or bool(found.assumed) or found.stale,
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
    return _build(info, told, machine, cpus=bool(known), memory=memory_known)


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


# -- from zones ------------------------------------------------------------------------------------


def _from_zones(info: NodeInfo, told: Told, found: NodeZones) -> Facts | Missing:
    """Counts only: devices and CPUs are made up, as many as there are, those taken held by nobody
    who could leave."""
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
    build = _build(info, told, machine, cpus=begin > 0, memory=False, reserved=reserved)
    return Facts(
        build=build,
        held=tuple(held),
        cpus=(("?", "cpu", taken_cpus),) if taken_cpus and build.settings.static_cpus else (),
        modelled=True,
    )


def _by_id(found: NodeZones, distances: Sequence[int]) -> tuple[int, ...]:
    if not distances:
        return ()
    table = dict(zip((zone.id for zone in found.zones), distances, strict=True))
    return tuple(table.get(one, 0) for one in range(max(table) + 1))


# -- settings --------------------------------------------------------------------------------------


def _build(
    info: NodeInfo, told: Told, machine: Machine, *, cpus: bool, memory: bool, reserved: int = 0
) -> Build:
    """The machine with its settings. Raises Refused or ValueError."""
    zones = machine.zones
    kubelet, gates = told.kubelet, told.feature_gates
    options = kubelet.topology_options or {}
    policy, scope, closest, most = settings.topology(
        kubelet.topology_policy or "none",
        kubelet.topology_scope or "container",
        options,
        numa_nodes=len(zones),
    )
    unjudged: list[str] = []
    static = kubelet.cpu_policy == "static"
    if kubelet.cpu_policy is None:
        unjudged.append(CPUS)
    elif static and not cpus:
        unjudged.append(CPUS)
        static = False
    chosen: frozenset[str] = frozenset()
    if static:
        chosen = settings.cpu_options(
            kubelet.cpu_options or {},
            policy=policy,
            sockets=len(zones),
            numa_nodes=len(zones),
            alpha=gates.get(ALPHA_OPTIONS, True),
        )
    static_memory = kubelet.memory_policy == "Static"
    if static_memory and not memory:
        unjudged.append(MEMORY)
    table: dict[int, dict[str, int]] = {}
    for block in kubelet.reserved_memory if static_memory and memory else ():
        for node in block.numa[:1]:
            own = table.setdefault(node, {})
            own[block.type] = own.get(block.type, 0) + block.bytes
    named = parsed(kubelet.reserved_cpus) if kubelet.reserved_cpus else reserved or None
    guessed = bool(chosen & _CORES_MATTER) or (static and named is None)
    distances = all(zone.distances for zone in zones)
    made = Settings(
        policy=policy,
        scope=scope,
        prefer_closest=closest and distances,
        max_numa_nodes=most,
        static_cpus=static,
        cpu_options=chosen - _CORES_MATTER,
        reserved_cpus=named,
        reserved_count=0 if named else _reserved_count(info, told),
        static_memory=static_memory and memory,
        reserved_memory=table,
        pod_level=gates.get(POD_LEVEL, False),
    )
    return Build(
        machine=machine,
        settings=made,
        key=repr((machine, made)),
        unjudged=tuple(unjudged),
        guessed=guessed or (closest and not distances),
    )


def _reserved_count(info: NodeInfo, told: Told) -> int:
    """CPUs kept for the system: as told, else what the node does not hand out."""
    if told.reserved_millis is not None:
        return -(-told.reserved_millis // 1000)
    capacity = podlib.amounts(info.node.status.capacity).get("cpu", 0)
    return -(-max(capacity - info.allocatable.get("cpu", 0), 0) // 1000) if capacity else 0


# -- pods ------------------------------------------------------------------------------------------


def _in_order_of_start(pods: Iterable[Pod]) -> Iterator[PodAsk]:
    def key(pod: Pod) -> tuple[str, str, str]:
        begun = pod.status.startTime or pod.metadata.creationTimestamp or "~"
        return begun, pod.namespace, pod.name

    for pod in sorted(pods, key=key):
        yield asks.of(pod)


def _pinned(ask: PodAsk) -> bool:
    return ask.guaranteed and any(container.whole_cpus for container in ask.containers)


def _takes_part(ask: PodAsk, devices: Mapping[str, object], made: Settings) -> bool:
    return (made.static_cpus and _pinned(ask)) or any(
        amount for name, amount in ask.pod_devices().items() if name in devices
    )
