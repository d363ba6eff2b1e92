"""What the kubelets of a cluster would say to a pod that the scheduler sends them.

The scheduler does not know NUMA: it may choose a node whose kubelet then refuses the pod for good.
Only kubelets with a policy that refuses are asked, and only about pods that take part in alignment.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement.alignment import refusals
from kubectl_gpuadmit.placement.kubelet import asks, facts
from kubectl_gpuadmit.placement.kubelet.asks import PodAsk
from kubectl_gpuadmit.placement.kubelet.facts import CPUS, STRICT, Facts, Missing
from kubectl_gpuadmit.placement.kubelet.from_map import from_map
from kubectl_gpuadmit.placement.kubelet.from_zones import from_zones
from kubectl_gpuadmit.placement.kubelet.gate import Gate, Outcome
from kubectl_gpuadmit.placement.kubelet.hints import TooMany
from kubectl_gpuadmit.placement.kubelet.settings import Refused
from kubectl_gpuadmit.topology import kubelets, resource_topology
from kubectl_gpuadmit.topology.kubelets import Told
from kubectl_gpuadmit.topology.model import Kubelet, NodeMap
from kubectl_gpuadmit.topology.resource_topology import NodeZones

if TYPE_CHECKING:
    from kubectl_gpuadmit.policy import Policy, PoolKubelet

Says = Literal["passes", "refuses", "unsure", "silent"]


class Judged(Struct, frozen=True):
    """One kubelet's answer. ``silent``: nobody knows its policy."""

    says: Says
    source: str = ""
    policy: str = ""
    scope: str = ""
    outcome: Outcome | None = None
    """The refusal, where it refuses."""
    free: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    """Resource -> (NUMA node, how many are free there), of what the pod asks for."""
    wanted: tuple[tuple[str, int], ...] = ()
    """What would have to fit: resource -> amount, of the container or the pod that is refused."""
    modelled: bool = False
    never: bool = False
    """It would refuse the pod even with nothing else on the node."""
    missing: Missing | None = None


PASSES = Judged("passes")
SILENT = Judged("silent")


class Kubelets:
    """The kubelets of one state of the cluster, and what is known of each."""

    def __init__(self, cluster: Cluster, policy: Policy | None, now: dt.datetime) -> None:
        self._cluster = cluster
        self._pools = [p for p in (policy.pools if policy else ()) if p.kubelet is not None]
        self._policy = policy
        self._now = now

    def for_pod(self, pod: Pod) -> PodGates | None:
        """None for a pod that takes no part in alignment. Raises QuantityError."""
        ask = asks.of(pod)
        devices = any(amount and is_extended(name) for name, amount in ask.pod_devices().items())
        pinned = ask.guaranteed and any(c.whole_cpus for c in ask.containers)
        return PodGates(self, ask, several=_several(ask)) if devices or pinned else None

    def told(self, info: NodeInfo) -> tuple[Told | None, NodeMap | None]:
        """What speaks for the node's kubelet, and the node's map."""
        found = node_map(self._cluster, info.name, self._now)
        own = kubelets.told(self._cluster, info.name, found)
        if own is None and self._policy is not None and self._pools:
            name = self._policy.pool_of_node(info.labels)
            pool = next((p for p in self._pools if p.name == name), None)
            if pool is not None and pool.kubelet is not None:
                own = _declared(f"policy pool {name}", pool.kubelet)
        return own, found

    def suspected(self, info: NodeInfo) -> Judged:
        """Of a kubelet that nobody speaks for: whether it has refused pods for NUMA before."""
        count = refusals(self._cluster).get(info.name, 0)
        if not count:
            return SILENT
        by = "1 pod that it refused" if count == 1 else f"{count} pods that it refused"
        return Judged(
            "unsure",
            by,
            "some topology policy",
            missing=Missing("its policy and its NUMA nodes", _HINT),
        )

    def facts(self, info: NodeInfo) -> tuple[Told | None, Facts | Missing | None]:
        """Facts for the node's gate; None for a kubelet whose policy refuses nothing."""
        told, found = self.told(info)
        if told is None or told.kubelet.topology_policy not in STRICT:
            return told, None
        try:
            zones = resource_topology.of_node(self._cluster, info.name)
        except resource_topology.UnreadableZones:
            zones = None
        return told, self._observed(info, told, found, zones)

    def _observed(
        self, info: NodeInfo, told: Told, found: NodeMap | None, zones: NodeZones | None
    ) -> Facts | Missing:
        """From the node's map if it names the NUMA node of every GPU, else from its zones."""
        try:
            if found is not None and found.gpus and all(g.numa is not None for g in found.gpus):
                return from_map(self._cluster, info, told, found)
            if zones is not None and zones.zones:
                return from_zones(info, told, zones)
        except Refused as refused:
            return Missing(f"{told.source}: no kubelet starts so: {refused}")
        except ValueError as problem:
            return Missing(f"{told.source}: {problem}")
        which = "of some GPUs" if found is not None and found.gpus else "of its GPUs"
        hint = "run kubectl gpu-admit agent there, or NFD's topology updater"
        return Missing(f"the NUMA node {which}", hint)


def node_map(cluster: Cluster, node: str, now: dt.datetime) -> NodeMap | None:
    from kubectl_gpuadmit.topology import maps

    return maps.node_map(cluster, node, now)


def _declared(source: str, given: PoolKubelet) -> Told:
    return Told(
        source,
        Kubelet(
            topology_policy=given.topologyManagerPolicy,
            topology_scope=given.topologyManagerScope,
            topology_options=given.topologyManagerPolicyOptions,
            cpu_policy=given.cpuManagerPolicy,
            cpu_options=given.cpuManagerPolicyOptions,
            memory_policy=given.memoryManagerPolicy,
            reserved_cpus=given.reservedSystemCPUs or None,
        ),
        given.featureGates,
    )


def _several(ask: PodAsk) -> bool:
    """Whether it asks for so much that alignment is likely to matter: several devices together."""
    return sum(n for name, n in ask.pod_devices().items() if is_extended(name)) > 1


class PodGates:
    """The answers of all kubelets to pods of one kind."""

    def __init__(self, owner: Kubelets, ask: PodAsk, *, several: bool) -> None:
        self.ask = PodAsk("the pod", ask.containers, ask.guaranteed, ask.pod_level)
        self.several = several
        self._owner = owner
        self._answers: dict[tuple[str, str], Judged] = {}

    def judge(self, info: NodeInfo) -> Judged:
        """What the node's kubelet says with the pods that are on it now."""
        kept = info.memo.get("kubelet gate")
        if kept is not None and kept[0] is self:
            before: Judged = kept[1]
            return before
        told, found = self._owner.facts(info)
        if told is None:
            judged = self._owner.suspected(info)
        elif found is None:
            judged = PASSES
        elif isinstance(found, Missing):
            judged = _said(told, "unsure", missing=found)
        else:
            judged = self._answer(told, found)
        info.memo["kubelet gate"] = (self, judged)
        return judged

    def _answer(self, told: Told, found: Facts) -> Judged:
        key = (told.source, found.key)
        known = self._answers.get(key)
        if known is None:
            try:
                known = self._asked(told, found)
            except (Refused, TooMany) as problem:
                known = _said(told, "unsure", missing=Missing(f"{told.source}: {problem}"))
            self._answers[key] = known
        return known

    def _asked(self, told: Told, found: Facts) -> Judged:
        gate = found.gate()
        guessed = gate.unsure
        before = free(gate, self.ask)
        outcome = gate.admit(self.ask)
        never = not outcome.admitted and not found.empty().admit(self.ask).admitted
        if guessed and not never:
            return _said(told, "unsure", missing=Missing("which devices its pods have", _HINT))
        if outcome.admitted:
            open_ = [name for name in found.build.unjudged if self._concerns(name)]
            if gate.unsure and self._takes_turns():
                open_.append("which devices its first container gets")
            if open_:
                return _said(told, "unsure", missing=Missing(" and ".join(open_), _HINT))
            return _said(told, "passes", modelled=found.modelled)
        return Judged(
            "refuses",
            told.source,
            told.kubelet.topology_policy or "",
            told.kubelet.topology_scope or "container",
            outcome=outcome,
            free=before,
            wanted=wanted(gate, self.ask, outcome),
            modelled=found.modelled or gate.unsure,
            never=never,
        )

    def _takes_turns(self) -> bool:
        """Whether one container's share decides about another's."""
        return sum(1 for c in self.ask.containers if c.limits or c.whole_cpus) > 1

    def _concerns(self, missing: str) -> bool:
        ask = self.ask
        return ask.guaranteed and (missing != CPUS or any(c.whole_cpus for c in ask.containers))

    def opened_by(self, info: NodeInfo) -> Pod | None:
        """The pod on the node with the fewest devices whose end alone would let this one in."""
        _, found = self._owner.facts(info)
        if not isinstance(found, Facts):
            return None
        for pod in sorted(info.pods, key=lambda p: (_size(p), p.namespace, p.name)):
            if not _size(pod):
                continue
            gone = facts.uid_of(pod)
            if found.gate(without=(gone,)).admit(self.ask).admitted:
                return pod
        return None


_HINT = "run kubectl gpu-admit agent there: it tells who holds what"


def _said(
    told: Told, says: Says, *, modelled: bool = False, missing: Missing | None = None
) -> Judged:
    kubelet = told.kubelet
    return Judged(
        says,
        told.source,
        kubelet.topology_policy or "",
        kubelet.topology_scope or "container",
        modelled=modelled,
        missing=missing,
    )


def _size(pod: Pod) -> int:
    return sum(n for name, n in asks.of(pod).pod_devices().items() if is_extended(name))


def free(gate: Gate, ask: PodAsk) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """How much of each resource that the pod asks for is free on each NUMA node."""
    zones = [zone.id for zone in gate.machine.zones]
    found: list[tuple[str, tuple[tuple[int, int], ...]]] = []
    for name, amount in sorted(ask.pod_devices().items()):
        if not amount or name not in gate.machine.devices:
            continue
        there = gate.devices.free(name)
        own = [d for d in gate.machine.devices[name] if d.id in there]
        bearing = {n for d in gate.machine.devices[name] for n in d.numa}
        counts = tuple((z, sum(1 for d in own if z in d.numa)) for z in zones if z in bearing)
        found.append((name, counts))
    if gate.cpus is not None and ask.pod_cpus(pod_level=gate.settings.pod_level):
        left = gate.cpus.free()
        counts = tuple(
            (z, (left & gate.cpus.cpus.numa[z]).bit_count()) for z in sorted(gate.cpus.cpus.numa)
        )
        found.append(("cpu", counts))
    return tuple(found)


def wanted(gate: Gate, ask: PodAsk, outcome: Outcome) -> tuple[tuple[str, int], ...]:
    """What the refused container asks for, or the pod where the gate looked at it as a whole."""
    level = gate.settings.pod_level
    by_container: Mapping[str, int] | None = None
    cpus = ask.pod_cpus(pod_level=level)
    for container in ask.containers:
        if container.name == outcome.container:
            by_container = container.limits
            cpus = ask.exclusive_cpus(container, pod_level=level)
    amounts = by_container if by_container is not None else ask.pod_devices()
    found = [(n, a) for n, a in sorted(amounts.items()) if a and n in gate.machine.devices]
    if gate.cpus is not None and cpus:
        found.append(("cpu", cpus))
    return tuple(found)
