"""The static CPU manager: NUMA hints for whole CPUs, and which CPUs a container gets for itself.

Source: pkg/kubelet/cm/cpumanager/policy_static.go of Kubernetes 1.37.
"""

from __future__ import annotations

from kubectl_gpuadmit.placement.kubelet import take
from kubectl_gpuadmit.placement.kubelet.asks import ContainerAsk, PodAsk
from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed
from kubectl_gpuadmit.placement.kubelet.hints import Hints, subsets
from kubectl_gpuadmit.placement.kubelet.machine import Cpus, ids, touching
from kubectl_gpuadmit.placement.kubelet.settings import (
    ACROSS_CORES,
    ACROSS_NUMA,
    BY_CACHE,
    BY_SOCKET,
    FULL_CORES,
    STRICT_RESERVATION,
    Refused,
    Settings,
)

_NO_POOL = "pod rejected, pod has shared init containers but no cpus available for them"


class SmtAlignment(AllocationFailed):
    """Whole cores are demanded and cannot be had. Its type is the reason of the failed pod."""


class EmptySharedPool(AllocationFailed):
    """The pod's exclusive containers leave nothing of the pod's own amount to the others."""


class StaticCpus:
    """The CPUs of one kubelet. Raises Refused where no kubelet starts so."""

    def __init__(self, cpus: Cpus, settings: Settings) -> None:
        self.cpus = cpus
        self._settings = settings
        self._options = settings.cpu_options
        reserved = settings.reserved_cpus
        if not reserved:
            try:
                reserved = self._take(cpus.all, settings.reserved_count)
            except AllocationFailed:
                reserved = 0
            if reserved.bit_count() != settings.reserved_count:
                raise Refused(
                    "[cpumanager] unable to reserve the required amount of CPUs"
                    f" (size of {len(list(ids(reserved)))} did not equal {settings.reserved_count})"
                )
        self.reserved = reserved
        self._reserved_cores = cpus.within(cpus.core, touching(cpus.core, reserved))
        self._default = cpus.all
        if STRICT_RESERVATION in self._options:
            self._default &= ~reserved
        self._held: dict[str, dict[str, int]] = {}
        self._of_pods: dict[str, int] = {}
        self._reusable: tuple[str, int] = ("", 0)

    # -- what is held --------------------------------------------------------------------------

    def hold(self, uid: str, container: str, cpus: int) -> None:
        """Notes CPUs that a running container has for itself."""
        self._held.setdefault(uid, {})[container] = cpus
        self._default &= ~cpus

    def release(self, uid: str) -> None:
        held = self._held.pop(uid, {})
        if not held:
            return
        if uid in self._of_pods:
            self._default |= self._of_pods.pop(uid)
            return
        for cpus in held.values():
            self._default |= cpus

    def held(self, uid: str) -> dict[str, int]:
        return self._held.get(uid, {})

    def free(self) -> int:
        """CPUs that nobody has for itself and that are not reserved."""
        return self._default & ~self.reserved

    # -- hints ---------------------------------------------------------------------------------

    def container_hints(self, pod: PodAsk, container: ContainerAsk) -> list[Hints]:
        wanted = pod.exclusive_cpus(container, pod_level=self._settings.pod_level)
        if wanted == 0 or self._unmanaged(pod):
            return []
        reusable = self._reusable[1] if self._reusable[0] == pod.uid else 0
        return [self._hints(wanted, reusable)]

    def pod_hints(self, pod: PodAsk) -> list[Hints]:
        wanted = pod.pod_cpus(pod_level=self._settings.pod_level)
        if wanted == 0 or self._unmanaged(pod):
            return []
        if pod.pod_level is not None and self._pool_problem(pod):
            return [[]]
        return [self._hints(wanted, 0)]

    def _unmanaged(self, pod: PodAsk) -> bool:
        """Pod-level resources without the feature gate: the manager keeps out."""
        return pod.pod_level is not None and not self._settings.pod_level

    def _hints(self, wanted: int, reusable: int) -> Hints:
        cpus = self.cpus
        nodes = tuple(sorted(cpus.numa))
        least = len(nodes)
        free = self.free()
        kept = sum(1 << numa for numa in touching(cpus.numa, reusable))
        found = []
        for mask in subsets(nodes):
            size = mask.bit_count()
            held = cpus.within(cpus.numa, ids(mask))
            if size < least and held.bit_count() >= wanted:
                least = size
            if kept & ~mask:
                continue
            if reusable.bit_count() + (free & held).bit_count() >= wanted:
                found.append(mask)
        return [(m, m.bit_count() == least or self._socket_aligned(m, least)) for m in found]

    def _socket_aligned(self, mask: int, least: int) -> bool:
        if BY_SOCKET not in self._options:
            return False
        cpus = self.cpus
        per_socket = len(cpus.numa) // cpus.sockets
        if per_socket == 0:
            return False
        spanned = touching(cpus.socket, cpus.within(cpus.numa, ids(mask)))
        return len(spanned) == -(-least // per_socket)

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self, pod: PodAsk, container: ContainerAsk, affinity: int | None) -> None:
        """Gives the container its CPUs. Raises AllocationFailed."""
        wanted = pod.exclusive_cpus(container, pod_level=self._settings.pod_level)
        if wanted == 0 or self._unmanaged(pod):
            return
        self._whole_cores(wanted)
        owner, reusable = self._reusable
        reusable = reusable if owner == pod.uid else 0
        given = self._allocate(wanted, affinity, reusable)
        self._held.setdefault(pod.uid, {})[container.name] = given
        left = reusable | given if container.kind == "init" else reusable & ~given
        self._reusable = (pod.uid, left)

    def allocate_pod(self, pod: PodAsk, affinity: int | None) -> None:
        """Gives the pod CPUs as one set and parts it among its containers (KEP-5526).

        Raises AllocationFailed.
        """
        total = pod.pod_cpus(pod_level=self._settings.pod_level)
        if total == 0:
            return
        problem = self._pool_problem(pod)
        if problem:
            raise EmptySharedPool(problem)
        self._whole_cores(total)
        bubble = self._of_pods[pod.uid] = self._allocate(total, affinity, 0)
        parts: dict[str, int] = {}
        sidecars = 0
        for container in pod.containers:
            wanted = pod.exclusive_cpus(container, pod_level=True)
            if container.kind == "app":
                break
            if wanted:
                parts[container.name] = self._take(bubble & ~sidecars, wanted)
                if container.kind == "sidecar":
                    sidecars |= parts[container.name]
            elif container.kind == "init":
                parts[container.name] = bubble & ~sidecars
        pool = bubble & ~sidecars
        for container in pod.containers:
            wanted = pod.exclusive_cpus(container, pod_level=True)
            if container.kind == "app" and wanted:
                parts[container.name] = self._take(pool, wanted)
                pool &= ~parts[container.name]
        self._held[pod.uid] = {c.name: parts.get(c.name, pool) for c in pod.containers}

    def _pool_problem(self, pod: PodAsk) -> str:
        """Why containers without CPUs of their own would have none at all, '' where they have."""
        total = pod.pod_cpus(pod_level=True)
        lasting = 0
        shared = False
        for container in pod.containers:
            wanted = pod.exclusive_cpus(container, pod_level=True)
            if container.kind == "init":
                if wanted == 0 and lasting >= total:
                    return _NO_POOL
            elif wanted == 0:
                shared = True
            else:
                lasting += wanted
        if shared and lasting >= total:
            return (
                "pod rejected, sum of exclusive container cpu requests equals pod budget,"
                " leaving no cpus for shared containers"
            )
        return ""

    def _whole_cores(self, wanted: int) -> None:
        if FULL_CORES not in self._options:
            return
        each = self.cpus.per_core
        if wanted % each:
            raise SmtAlignment(
                f"SMT Alignment Error: requested {wanted} cpus not multiple cpus per core = {each}"
            )
        available = (self._default & ~self._reserved_cores).bit_count()
        if wanted > available:
            raise SmtAlignment(
                "SMT Alignment Error: not enough free physical CPUs:"
                f" available physical CPUs = {available}, requested CPUs = {wanted},"
                f" CPUs per core = {each}"
            )

    def _allocate(self, wanted: int, affinity: int | None, reusable: int) -> int:
        free = self.free() | reusable
        given = 0
        if affinity is not None:
            aligned = self._aligned(affinity, free)
            given = self._take(aligned, min(wanted, aligned.bit_count()))
        given |= self._take(free & ~given, wanted - given.bit_count())
        self._default &= ~given
        return given

    def _aligned(self, affinity: int, free: int) -> int:
        cpus = self.cpus
        near = cpus.within(cpus.numa, ids(affinity))
        if BY_SOCKET in self._options:
            near = cpus.within(cpus.socket, touching(cpus.socket, near))
        return free & near

    def _take(self, free: int, count: int) -> int:
        options = self._options
        spread = ACROSS_CORES in options
        if ACROSS_NUMA in options:
            return take.distributed(
                self.cpus,
                free,
                count,
                group=self.cpus.per_core if FULL_CORES in options else 1,
                spread=spread,
                by_socket=BY_SOCKET in options,
            )
        return take.packed(self.cpus, free, count, spread=spread, caches=BY_CACHE in options)
