"""One kubelet's gate: pods come one after another, each is let in and given its share, or refused.

Source: pkg/kubelet/cm/topologymanager/scope_*.go and pkg/kubelet/cm/admission/errors.go of
Kubernetes 1.37; the order of the managers (devices, CPUs, memory) is that of
pkg/kubelet/cm/container_manager_linux.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kubectl_gpuadmit.placement.kubelet import EMPTY_POOL, SMT, TOPOLOGY, UNEXPECTED
from kubectl_gpuadmit.placement.kubelet.asks import ContainerAsk, PodAsk
from kubectl_gpuadmit.placement.kubelet.cpus import EmptySharedPool, SmtAlignment, StaticCpus
from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed, Devices, Held
from kubectl_gpuadmit.placement.kubelet.hints import Affinity, Hints
from kubectl_gpuadmit.placement.kubelet.machine import Cpus, Machine
from kubectl_gpuadmit.placement.kubelet.memory import StaticMemory
from kubectl_gpuadmit.placement.kubelet.merge import merged
from kubectl_gpuadmit.placement.kubelet.settings import Settings

MESSAGE = "Resources cannot be allocated with Topology locality"
_POD_LEVEL = "Pod Scope pod with pod-level resources failed admission "


class Outcome(Struct, frozen=True):
    """What the kubelet says: ``reason`` and ``message`` as in the status of the failed pod."""

    admitted: bool
    reason: str = ""
    message: str = ""
    others: tuple[str, ...] = ()
    """Messages that chance may give instead."""
    container: str = ""
    """The container that the gate stopped at, '' for the pod as a whole."""
    start: str = ""
    """Why a container that was let in cannot be started, '' where it can."""
    devices: Held = {}
    cpus: Mapping[str, int] = {}
    """Container -> its exclusive CPUs, as a set."""
    memory: Mapping[str, Mapping[str, int]] = {}
    """Container -> resource -> the set of NUMA nodes where it is pinned."""


class Gate:
    """The managers of one kubelet. Raises Refused where no kubelet starts so.

    ``lowest`` says that device plugins prefer the lowest IDs; without it a choice that matters is
    told by ``unsure``. ``cpus`` are the machine's, where somebody has worked them out already.
    """

    def __init__(
        self,
        machine: Machine,
        settings: Settings,
        *,
        lowest: bool = False,
        cpus: Cpus | None = None,
    ) -> None:
        self.machine = machine
        self.settings = settings
        self._nodes = tuple(zone.id for zone in machine.zones)
        self._distances = {zone.id: zone.distances for zone in machine.zones}
        self.devices = Devices(machine.devices, self._nodes, lowest=lowest)
        self.cpus = StaticCpus(cpus or Cpus(machine), settings) if settings.static_cpus else None
        self.memory = StaticMemory(machine, settings) if settings.static_memory else None

    @property
    def unsure(self) -> bool:
        """Some device was given by a choice that nobody can foresee, and that matters."""
        return self.devices.unsure

    def remove(self, uid: str) -> None:
        """The pod has ended: what it held is free again."""
        self.devices.release(uid)
        if self.cpus is not None:
            self.cpus.release(uid)
        if self.memory is not None:
            self.memory.release(uid)

    def admit(self, pod: PodAsk) -> Outcome:
        """Lets the pod in and gives it its share, or says why not and takes back what it had."""
        outcome = self._admit(pod)
        if not outcome.admitted:
            self.remove(pod.uid)
            return outcome
        return Outcome(
            True,
            start=outcome.start,
            devices=self.devices.held(pod.uid),
            cpus=dict(self.cpus.held(pod.uid)) if self.cpus is not None else {},
            memory=self.memory.held(pod.uid) if self.memory is not None else {},
        )

    def _admit(self, pod: PodAsk) -> Outcome:
        settings = self.settings
        level = settings.pod_level and pod.pod_level is not None
        if settings.policy == "none":
            for container in pod.containers:
                refused = self._allocate(pod, container, (None, False))
                if refused:
                    return refused
            return Outcome(True)
        if settings.scope == "container":
            for container in pod.containers:
                affinity, fits = self.affinity(pod, container)
                if not fits:
                    message = f"{_POD_LEVEL}with a container-level topology manager"
                    text = message if level else MESSAGE
                    return Outcome(False, TOPOLOGY, text, container=container.name)
                refused = self._allocate(pod, container, affinity)
                if refused:
                    return refused
            return Outcome(True)
        affinity, fits = self.affinity(pod)
        if not fits:
            message = f"{_POD_LEVEL}under pod-scope topology manager"
            return Outcome(False, TOPOLOGY, message if level else MESSAGE)
        if level:
            return self._allocate_pod(pod, affinity)
        for container in pod.containers:
            refused = self._allocate(pod, container, affinity)
            if refused:
                return refused
        return Outcome(True)

    def affinity(self, pod: PodAsk, container: ContainerAsk | None = None) -> tuple[Affinity, bool]:
        """The best NUMA affinity of a container or of the pod, and whether the policy takes it."""
        return merged(self.settings, self._nodes, self.hints(pod, container), self._distances)

    def hints(self, pod: PodAsk, container: ContainerAsk | None = None) -> list[Hints]:
        """Every resource's hints, one None for each manager that has no preference at all."""
        provided: list[Hints] = []
        for manager in (self.devices, self.cpus, self.memory):
            own: list[Hints] = []
            if manager is not None:
                own = (
                    manager.pod_hints(pod)
                    if container is None
                    else manager.container_hints(pod, container)
                )
            provided += own or [None]
        return provided

    def _allocate(self, pod: PodAsk, container: ContainerAsk, affinity: Affinity) -> Outcome | None:
        try:
            self.devices.allocate(pod, container, affinity[0])
            if self.cpus is not None:
                self.cpus.allocate(pod, container, affinity[0])
            if self.memory is not None:
                self.memory.allocate(pod, container, affinity)
        except AllocationFailed as failed:
            return _failed(failed, container.name)
        return None

    def _allocate_pod(self, pod: PodAsk, affinity: Affinity) -> Outcome:
        """CPUs and memory as one set; devices only when containers are started, one by one."""
        try:
            if self.cpus is not None:
                self.cpus.allocate_pod(pod, affinity[0])
            if self.memory is not None:
                self.memory.allocate_pod(pod, affinity)
        except AllocationFailed as failed:
            return _failed(failed, "")
        for container in pod.containers:
            if not any(n and name in self.machine.devices for name, n in container.limits.items()):
                continue
            try:
                self.devices.allocate(pod, container, affinity[0])
            except AllocationFailed as failed:
                # which of its other devices the container keeps is chance
                self.devices.unsure = self.devices.unsure or len(container.limits) > 1
                return Outcome(True, start=str(failed))
        return Outcome(True)


def _failed(failed: AllocationFailed, container: str) -> Outcome:
    match failed:
        case SmtAlignment():
            return Outcome(False, SMT, str(failed), container=container)
        case EmptySharedPool():
            return Outcome(False, EMPTY_POOL, str(failed), container=container)
    first, *others = (
        f"Allocate failed due to {text}, which is unexpected"
        for text in (str(failed), *failed.others)
    )
    return Outcome(False, UNEXPECTED, first, tuple(others), container)
