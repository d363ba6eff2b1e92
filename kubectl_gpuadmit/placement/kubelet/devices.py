"""The device manager: NUMA hints for plugin devices, and which devices a container gets.

Source: pkg/kubelet/cm/devicemanager/topology_hints.go and manager.go (devicesToAllocate,
filterByAffinity) of Kubernetes 1.37.

Which of several equally good devices the kubelet takes is the plugin's choice, or chance where the
plugin has none. ``lowest`` stands for a plugin that prefers the lowest IDs. Where a choice is open
and the devices differ in their NUMA nodes, ``unsure`` says so: what follows may come out otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_gpuadmit.placement.kubelet.asks import ContainerAsk, PodAsk
from kubectl_gpuadmit.placement.kubelet.hints import Hint, Hints, subsets
from kubectl_gpuadmit.placement.kubelet.machine import Device, members

Held = dict[str, dict[str, frozenset[str]]]
"""Container -> resource -> IDs."""


class AllocationFailed(Exception):
    """A manager cannot give what the gate let through. The text is the kubelet's own.

    ``others`` are texts that chance may give instead: the kubelet takes a container's resources in
    no order.
    """

    def __init__(self, message: str, others: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.others = others


class Devices:
    def __init__(
        self, devices: Mapping[str, Iterable[Device]], nodes: Iterable[int], *, lowest: bool
    ) -> None:
        self._all = {name: {d.id: d for d in found} for name, found in devices.items()}
        self._nodes = tuple(nodes)
        self._lowest = lowest
        self._held: dict[str, Held] = {}
        self._reusable: tuple[str, dict[str, frozenset[str]]] = ("", {})
        self.unsure = False
        """A choice among devices of different NUMA nodes was open."""

    # -- what is held --------------------------------------------------------------------------

    def hold(self, uid: str, container: str, resource: str, ids: Iterable[str]) -> None:
        """Notes devices that a running container has."""
        self._held.setdefault(uid, {}).setdefault(container, {})[resource] = frozenset(ids)

    def release(self, uid: str) -> None:
        self._held.pop(uid, None)

    def held(self, uid: str) -> Held:
        return self._held.get(uid, {})

    def free(self, resource: str) -> frozenset[str]:
        """IDs of healthy devices that no container has."""
        taken = {
            one
            for containers in self._held.values()
            for resources in containers.values()
            for one in resources.get(resource, ())
        }
        return frozenset(
            d.id for d in self._all.get(resource, {}).values() if d.healthy and d.id not in taken
        )

    # -- hints ---------------------------------------------------------------------------------

    def container_hints(self, pod: PodAsk, container: ContainerAsk) -> list[Hints]:
        return [
            self._hints(name, wanted, self._reuse(pod.uid).get(name, frozenset()))
            for name, wanted in sorted(container.limits.items())
            if name in self._all
        ]

    def pod_hints(self, pod: PodAsk) -> list[Hints]:
        return [
            self._hints(name, wanted, frozenset())
            for name, wanted in sorted(pod.pod_devices().items())
            if name in self._all
        ]

    def _hints(self, resource: str, wanted: int, reusable: frozenset[str]) -> Hints:
        devices = self._all[resource]
        if not any(d.numa for d in devices.values()):
            return None
        free = self.free(resource)
        if len(free | reusable) < wanted:
            return []
        known = set(self._nodes)
        bearing = sorted({n for d in devices.values() for n in d.numa if n in known})
        nodes = tuple(bearing or self._nodes)
        least = len(nodes)
        sets = {one: members(d.numa) for one, d in devices.items()}
        everywhere = [sets[one] for one in devices]
        kept = [sets[one] for one in reusable]
        # a reusable device without NUMA node neither counts nor excludes a set; one whose topology
        # is there but empty cannot be told apart here
        kept = [mask for mask in kept if mask]
        open_ = [sets[one] for one in free]
        found: list[int] = []
        for mask in subsets(nodes):
            size = mask.bit_count()
            if size < least and sum(1 for own in everywhere if own & mask) >= wanted:
                least = size
            if any(not own & mask for own in kept):
                continue
            if len(kept) + sum(1 for own in open_ if own & mask) >= wanted:
                found.append(mask)
        hints: list[Hint] = [(mask, mask.bit_count() == least) for mask in found]
        return hints

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self, pod: PodAsk, container: ContainerAsk, affinity: int | None) -> None:
        """Gives the container its devices. Raises AllocationFailed."""
        if self._reusable[0] != pod.uid:
            self._reusable = (pod.uid, {})
        reuse = self._reusable[1]
        failures: list[str] = []
        for resource, wanted in sorted(container.limits.items()):
            if resource not in self._all:
                continue
            try:
                given = self._choose(resource, wanted, reuse.get(resource, frozenset()), affinity)
            except AllocationFailed as failed:
                failures.append(str(failed))
                continue
            if given:
                self.hold(pod.uid, container.name, resource, given)
        if failures:
            raise AllocationFailed(failures[0], tuple(failures[1:]))
        for resource, given in self.held(pod.uid).get(container.name, {}).items():
            before = reuse.get(resource, frozenset())
            reuse[resource] = before | given if container.kind == "init" else before - given

    def _reuse(self, uid: str) -> dict[str, frozenset[str]]:
        return self._reusable[1] if self._reusable[0] == uid else {}

    def _choose(
        self, resource: str, wanted: int, reusable: frozenset[str], affinity: int | None
    ) -> frozenset[str]:
        devices = self._all[resource]
        if not any(d.healthy for d in devices.values()):
            raise AllocationFailed(
                f"no healthy devices present; cannot allocate unhealthy devices {resource}"
            )
        if wanted == 0:
            return frozenset()
        if len(reusable) >= wanted:
            return self._some(resource, reusable, wanted, preferred=False)
        given = reusable
        free = self.free(resource)
        needed = wanted - len(given)
        if len(free) < needed:
            raise AllocationFailed(
                f"requested number of devices unavailable for {resource}."
                f" Requested: {needed}, Available: {len(free)}"
            )
        aligned, unaligned, without = self._by_affinity(resource, free, affinity)
        if needed < len(aligned):
            return given | self._some(resource, aligned, needed, preferred=True)
        given |= aligned
        needed -= len(aligned)
        if needed and self._lowest:
            return given | self._some(resource, free - aligned, needed, preferred=True)
        for group in (unaligned, without):
            if needed:
                more = self._some(resource, group, min(needed, len(group)), preferred=False)
                given, needed = given | more, needed - len(more)
        return given

    def _some(
        self, resource: str, among: frozenset[str], count: int, *, preferred: bool
    ) -> frozenset[str]:
        """``count`` of the devices; notes where another choice would have had other NUMA nodes."""
        if count < len(among) and not (preferred and self._lowest):
            devices = self._all[resource]
            if len({tuple(sorted(devices[one].numa)) for one in among}) > 1:
                self.unsure = True
        return frozenset(sorted(among)[:count])

    def _by_affinity(
        self, resource: str, free: frozenset[str], affinity: int | None
    ) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """(on the NUMA nodes, on others, without any)."""
        devices = self._all[resource]
        if affinity is None or not any(d.numa for d in devices.values()):
            return frozenset(), frozenset(), free
        without = frozenset(one for one in free if not devices[one].numa)
        aligned = frozenset(one for one in free if members(devices[one].numa) & affinity)
        return aligned, free - aligned - without, without
