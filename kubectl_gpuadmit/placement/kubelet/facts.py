"""One node's machine, settings and holdings, and the gate that they make; reads no source.

Pods whose share no source tells are let through the gate again in the order in which they started.
What had to be inferred so is ``modelled``; what a verdict would need and nobody tells is
``Missing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.kubelet import asks, settings
from kubectl_gpuadmit.placement.kubelet.asks import PodAsk
from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed
from kubectl_gpuadmit.placement.kubelet.gate import Gate
from kubectl_gpuadmit.placement.kubelet.machine import (
    Cpus,
    Machine,
    members,
    parsed,
)
from kubectl_gpuadmit.placement.kubelet.settings import Settings
from kubectl_gpuadmit.topology.kubelets import ALPHA_OPTIONS, POD_LEVEL, Told
from kubectl_gpuadmit.topology.model import Kubelet

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


def build(
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
    static = kubelet.cpu_policy == "static" and cpus
    chosen: frozenset[str] = frozenset()
    if static:
        chosen = settings.cpu_options(
            kubelet.cpu_options or {},
            policy=policy,
            sockets=len(zones),
            numa_nodes=len(zones),
            alpha=gates.get(ALPHA_OPTIONS, True),
        )
    static_memory = kubelet.memory_policy == "Static" and memory
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
        static_memory=static_memory,
        reserved_memory=_reserved_memory(kubelet) if static_memory else {},
        pod_level=gates.get(POD_LEVEL, False),
    )
    return Build(
        machine=machine,
        settings=made,
        key=repr((machine, made)),
        unjudged=tuple(_unjudged(kubelet, cpus=cpus, memory=memory)),
        guessed=guessed or (closest and not distances),
    )


def _unjudged(kubelet: Kubelet, *, cpus: bool, memory: bool) -> Iterator[str]:
    """What takes part in alignment and is not known of this node."""
    if kubelet.cpu_policy is None or (kubelet.cpu_policy == "static" and not cpus):
        yield CPUS
    if kubelet.memory_policy == "Static" and not memory:
        yield MEMORY


def _reserved_memory(kubelet: Kubelet) -> dict[int, dict[str, int]]:
    """NUMA node -> kind of memory -> bytes kept for the system."""
    table: dict[int, dict[str, int]] = {}
    for block in kubelet.reserved_memory:
        for node in block.numa[:1]:
            own = table.setdefault(node, {})
            own[block.type] = own.get(block.type, 0) + block.bytes
    return table


def _reserved_count(info: NodeInfo, told: Told) -> int:
    """CPUs kept for the system: as told, else what the node does not hand out."""
    if told.reserved_millis is not None:
        return -(-told.reserved_millis // 1000)
    capacity = podlib.amounts(info.node.status.capacity).get("cpu", 0)
    return -(-max(capacity - info.allocatable.get("cpu", 0), 0) // 1000) if capacity else 0


def in_order_of_start(pods: Iterable[Pod]) -> Iterator[PodAsk]:
    def key(pod: Pod) -> tuple[str, str, str]:
        begun = pod.status.startTime or pod.metadata.creationTimestamp or "~"
        return begun, pod.namespace, pod.name

    for pod in sorted(pods, key=key):
        yield asks.of(pod)


def pinned(ask: PodAsk) -> bool:
    return ask.guaranteed and any(container.whole_cpus for container in ask.containers)


def takes_part(ask: PodAsk, devices: Mapping[str, object], made: Settings) -> bool:
    return (made.static_cpus and pinned(ask)) or any(
        amount for name, amount in ask.pod_devices().items() if name in devices
    )
