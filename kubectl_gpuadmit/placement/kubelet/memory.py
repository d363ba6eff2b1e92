"""The Static memory manager: NUMA hints for memory and huge pages, and where a pod's are pinned.

Source: pkg/kubelet/cm/memorymanager/policy_static.go of Kubernetes 1.37.

A NUMA node serves either single-node pinnings or one group of nodes, never both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubectl_gpuadmit.placement.kubelet.asks import ContainerAsk, Fractional, PodAsk
from kubectl_gpuadmit.placement.kubelet.cpus import EmptySharedPool
from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed
from kubectl_gpuadmit.placement.kubelet.hints import Affinity, Hint, Hints, subsets
from kubectl_gpuadmit.placement.kubelet.machine import Machine, ids
from kubectl_gpuadmit.placement.kubelet.settings import Refused, Settings

_NOT_WHOLE = "[memorymanager] failed to represent quantity as int64"


class _Table(Struct):
    """Bytes of one resource on one NUMA node."""

    allocatable: int
    free: int
    reserved: int = 0


class _Node(Struct):
    tables: dict[str, _Table]
    group: int
    """The set of NUMA nodes that its pinnings span."""
    pinnings: int = 0

    def table(self, resource: str) -> _Table:
        """The node's own, or one of nothing where the node has none of the resource."""
        return self.tables.setdefault(resource, _Table(0, 0))


class _Block(Struct):
    nodes: int
    size: int
    resource: str


class StaticMemory:
    """The memory of one kubelet. Raises Refused where no kubelet starts so."""

    def __init__(self, machine: Machine, settings: Settings) -> None:
        reserved = settings.reserved_memory
        if not sum(amounts.get("memory", 0) for amounts in reserved.values()):
            raise Refused("[memorymanager] you should specify the system reserved memory")
        self._settings = settings
        self._nodes: dict[int, _Node] = {}
        for zone in machine.zones:
            own = reserved.get(zone.id, {})
            tables = {}
            pages = sum(amount for name, amount in zone.memory.items() if name != "memory")
            for name, total in zone.memory.items():
                rest = total - own.get(name, 0) - (pages if name == "memory" else 0)
                tables[name] = _Table(rest, rest)
            self._nodes[zone.id] = _Node(tables, 1 << zone.id)
        self._held: dict[str, dict[str, list[_Block]]] = {}
        self._of_pods: dict[str, list[_Block]] = {}
        self._reusable: tuple[str, dict[tuple[int, str], int]] = ("", {})

    # -- what is held --------------------------------------------------------------------------

    def hold(self, uid: str, container: str, nodes: int, amounts: Mapping[str, int]) -> None:
        """Notes what a running container has pinned."""
        blocks = [_Block(nodes, size, name) for name, size in sorted(amounts.items())]
        for block in blocks:
            self._pin(block, block.size)
        self._held.setdefault(uid, {})[container] = blocks

    def release(self, uid: str) -> None:
        held = self._held.pop(uid, {})
        of_pod = self._of_pods.pop(uid, None)
        if of_pod is not None and held:
            self._unpin(of_pod)
            return
        for blocks in held.values():
            self._unpin(blocks)

    def held(self, uid: str) -> dict[str, dict[str, int]]:
        """Container -> resource -> the set of NUMA nodes where it is pinned."""
        return {
            name: {block.resource: block.nodes for block in blocks}
            for name, blocks in self._held.get(uid, {}).items()
        }

    def free(self, resource: str = "memory") -> dict[int, int]:
        """NUMA node -> bytes that nobody has pinned and that are not reserved."""
        return {
            one: node.table(resource).free
            for one, node in self._nodes.items()
            if resource in node.tables
        }

    # -- hints ---------------------------------------------------------------------------------

    def container_hints(self, pod: PodAsk, container: ContainerAsk) -> list[Hints]:
        if not pod.guaranteed or self._unmanaged(pod):
            return []
        try:
            wanted = pod.pinned(container, pod_level=self._settings.pod_level)
        except Fractional:
            return []
        hints = self._hints(pod.uid, wanted) if wanted else []
        return [list(hints) for _ in wanted] if hints else []

    def pod_hints(self, pod: PodAsk) -> list[Hints]:
        if not pod.guaranteed or self._unmanaged(pod):
            return []
        try:
            wanted = pod.pod_pinned(pod_level=self._settings.pod_level)
            if pod.pod_level is not None and self._pool_problem(pod):
                return [[] for _ in wanted]
        except Fractional:
            return []
        hints = self._hints(pod.uid, wanted) if wanted else []
        return [list(hints) for _ in wanted] if hints else []

    def _unmanaged(self, pod: PodAsk) -> bool:
        return pod.pod_level is not None and not self._settings.pod_level

    def _hints(self, uid: str, wanted: Mapping[str, int]) -> list[Hint]:
        nodes = tuple(sorted(self._nodes))
        least = len(nodes)
        found = []
        for mask in subsets(nodes):
            within = [self._nodes[one] for one in ids(mask)]
            if any(
                sum(node.table(name).allocatable for node in within) < size
                for name, size in wanted.items()
            ):
                continue
            least = min(least, mask.bit_count())
            if not self._open_to(mask, within):
                continue
            if all(
                sum(node.table(name).free for node in within) + self._reuse(uid, mask, name) >= size
                for name, size in wanted.items()
            ):
                found.append(mask)
        return [(mask, mask.bit_count() == least) for mask in found]

    @staticmethod
    def _open_to(mask: int, within: Sequence[_Node]) -> bool:
        """Whether pinnings that are there allow one that spans exactly this set."""
        if mask.bit_count() == 1:
            return within[0].group.bit_count() == 1
        return all(
            not node.pinnings or (node.group.bit_count() > 1 and node.group == mask)
            for node in within
        )

    # -- allocation ----------------------------------------------------------------------------

    def allocate(self, pod: PodAsk, container: ContainerAsk, affinity: Affinity) -> None:
        """Pins the container's memory. Raises AllocationFailed."""
        if not pod.guaranteed or self._unmanaged(pod):
            return
        try:
            wanted = pod.pinned(container, pod_level=self._settings.pod_level)
        except Fractional:
            raise AllocationFailed(_NOT_WHOLE) from None
        if not wanted:
            return
        nodes = self._settled(pod.uid, wanted, affinity)
        if self._reusable[0] != pod.uid:
            self._reusable = (pod.uid, {})
        blocks = [_Block(nodes, size, name) for name, size in sorted(wanted.items())]
        for block in blocks:
            reused = self._reuse(pod.uid, nodes, block.resource)
            self._pin(block, max(0, block.size - reused))
        self._note_reuse(container, blocks)
        self._held.setdefault(pod.uid, {})[container.name] = blocks
        self._shrink_init_blocks(pod, container, blocks)

    def allocate_pod(self, pod: PodAsk, affinity: Affinity) -> None:
        """Pins the pod's memory as one. Raises AllocationFailed."""
        if not pod.guaranteed:
            return
        try:
            wanted = pod.pod_pinned(pod_level=self._settings.pod_level)
        except Fractional:
            return
        problem = self._pool_problem(pod)
        if problem:
            raise EmptySharedPool(problem)
        nodes = self._settled(pod.uid, wanted, affinity)
        parts: dict[str, list[_Block]] = {}
        pool = dict(wanted)
        for container in pod.containers:
            own = pod.pinned(container, pod_level=True)
            if container.kind == "init":
                amounts = own or pool
                parts[container.name] = [
                    _Block(nodes, size, name) for name, size in amounts.items() if size > 0
                ]
            elif own:
                parts[container.name] = [
                    _Block(nodes, size, name) for name, size in own.items() if size > 0
                ]
                for name, size in own.items():
                    if container.kind == "sidecar" and name not in wanted:
                        continue  # sidecars are taken off the pod's own amounts alone
                    # unsigned in the kubelet: what the pod's own amounts do not name ends huge
                    pool[name] = (pool.get(name, 0) - size) % (1 << 64)
        shared = [_Block(nodes, size, name) for name, size in pool.items() if size > 0]
        self._of_pods[pod.uid] = [_Block(nodes, size, name) for name, size in wanted.items()]
        for block in self._of_pods[pod.uid]:
            self._pin(block, block.size)
        self._held[pod.uid] = {c.name: parts.get(c.name, shared) for c in pod.containers}

    def _settled(self, uid: str, wanted: Mapping[str, int], affinity: Affinity) -> int:
        """The set of NUMA nodes to pin to: the gate's, or a wider one where that is too small."""
        nodes, preferred = affinity
        if nodes is None:
            hints = self._hints(uid, wanted)
            if not hints:
                raise AllocationFailed(
                    "[memorymanager] failed to get the default NUMA affinity,"
                    " no NUMA nodes with enough memory is available"
                )
            nodes, default_preferred = _best(hints)
            if preferred and not default_preferred:
                raise AllocationFailed("[memorymanager] failed to find the default preferred hint")
            preferred = default_preferred
        if not all(
            sum(self._nodes[one].table(name).free for one in ids(nodes)) >= size
            for name, size in wanted.items()
        ):
            hints = [hint for hint in self._hints(uid, wanted) if nodes & ~hint[0] == 0]
            if not hints:
                raise AllocationFailed(
                    "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
                )
            nodes, extended_preferred = _best(hints)
            if preferred and not extended_preferred:
                raise AllocationFailed("[memorymanager] failed to find the extended preferred hint")
        if nodes.bit_count() > 1 and any(
            node.pinnings and (node.group.bit_count() == 1 or node.group != nodes)
            for node in (self._nodes[one] for one in ids(nodes))
        ):
            raise AllocationFailed("[memorymanager] preferred hint violates NUMA node allocation")
        return nodes

    def _reuse(self, uid: str, nodes: int, resource: str) -> int:
        owner, amounts = self._reusable
        return amounts.get((nodes, resource), 0) if owner == uid else 0

    def _note_reuse(self, container: ContainerAsk, blocks: Sequence[_Block]) -> None:
        amounts = self._reusable[1]
        for block in blocks:
            key = (block.nodes, block.resource)
            before = amounts.get(key, 0)
            amounts[key] = (
                max(before, block.size) if container.kind == "init" else max(0, before - block.size)
            )

    def _shrink_init_blocks(
        self, pod: PodAsk, container: ContainerAsk, blocks: Sequence[_Block]
    ) -> None:
        """What a container reuses of init steps before it no longer counts as theirs."""
        held = self._held[pod.uid]
        for block in blocks:
            left = block.size
            for earlier in pod.containers:
                if earlier.name == container.name or earlier.kind == "app" or left == 0:
                    break
                if earlier.kind == "sidecar":
                    continue
                for own in held.get(earlier.name, ()):
                    if own.resource == block.resource and own.nodes == block.nodes:
                        used = min(own.size, left)
                        own.size -= used
                        left -= used

    def _pin(self, block: _Block, size: int) -> None:
        for one in ids(block.nodes):
            node = self._nodes[one]
            node.pinnings += 1
            node.group = block.nodes
            table = node.table(block.resource)
            given = min(size, max(0, table.free))
            table.reserved += given
            table.free -= given
            size -= given

    def _unpin(self, blocks: Sequence[_Block]) -> None:
        for block in blocks:
            size = block.size
            for one in ids(block.nodes):
                node = self._nodes[one]
                node.pinnings -= 1
                if node.pinnings == 0:
                    node.group = 1 << one
                table = node.table(block.resource)
                given = min(size, table.reserved)
                table.reserved -= given
                table.free += given
                size -= given

    def _pool_problem(self, pod: PodAsk) -> str:
        """Why containers without memory of their own would have none at all, '' where they have."""
        try:
            return self._pool_left(pod, pod.pod_pinned(pod_level=True))
        except Fractional:
            return _NOT_WHOLE

    @staticmethod
    def _pool_left(pod: PodAsk, total: Mapping[str, int]) -> str:
        lasting: dict[str, int] = {}
        shared = False
        for container in pod.containers:
            own = pod.pinned(container, pod_level=True)
            if container.kind == "init":
                for name, size in total.items():
                    if not own and lasting.get(name, 0) >= size:
                        return (
                            "pod rejected, pod has shared init containers"
                            f" but no {name} available for them"
                        )
            elif not own:
                shared = True
            for name, size in own.items() if container.kind != "init" else ():
                lasting[name] = lasting.get(name, 0) + size
        for name, size in total.items() if shared else ():
            if lasting.get(name, 0) >= size:
                return (
                    f"pod rejected, sum of exclusive container {name} requests equals pod budget,"
                    " leaving no memory for shared containers"
                )
        return ""


def _best(hints: Sequence[Hint]) -> Hint:
    """Preferred before others, then the fewest NUMA nodes, then the lowest IDs."""
    return min(hints, key=lambda hint: (not hint[1], hint[0].bit_count(), hint[0]))
