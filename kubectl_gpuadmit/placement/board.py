"""Static and local answers of all nodes for one kind of pod, brought up to date node by node.

A board belongs to one static signature and one set of requests and ports. Forks of a cluster share
it: before each read it is synchronised with the cluster at hand, which costs one identity
comparison per node and one evaluation per node whose NodeInfo differs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import is_not

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.pods import HostPort
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement.filters import node_ports, resources_fit
from kubectl_gpuadmit.placement.filters.resources_fit import Asked
from kubectl_gpuadmit.placement.static import View
from kubectl_gpuadmit.verdict import NodeVerdict, Shortfall

_KEPT = 64
"""Boards kept for one set of nodes; a workload whose kind was dropped is evaluated anew."""

Rank = tuple[int, int, int, int]
"""Order of choice: (PreferNoSchedule taints, minus affinity weight, GPUs left over, position)."""


class Board:
    """Answers in node name order. ``lenient`` leaves out what an operator or node event lifts."""

    def __init__(
        self,
        view: View,
        wanted: Asked,
        ports: tuple[HostPort, ...],
        delegated: frozenset[str],
        *,
        lenient: bool = False,
    ) -> None:
        size = len(view.shortfalls)
        self._view = view
        self._static = (
            [tuple(s for s in found if not s.until) for found in view.shortfalls]
            if lenient
            else view.shortfalls
        )
        self._wanted = wanted
        self._ports = ports
        self._delegated = delegated
        self._packed = packed_resources(wanted)
        self._infos: Sequence[NodeInfo | None] = [None] * size
        self._verdicts: list[NodeVerdict] = [NodeVerdict("", False)] * size
        self._ranks: list[Rank | None] = [None] * size
        self._heap: list[Rank] = []

    def sync(self, cluster: Cluster) -> None:
        """Takes over the cluster's nodes; evaluates those that differ from what was seen last."""
        infos = list(cluster.nodes.values())
        changed = list(compress(range(len(infos)), map(is_not, infos, self._infos)))
        if not changed:
            return
        self._infos = infos
        for i in changed:
            self._evaluate(i, infos[i])
        if len(changed) > 64 or len(self._heap) > 4 * len(infos) + 64:
            self._heap = [rank for rank in self._ranks if rank is not None]
            heapq.heapify(self._heap)
        else:
            for i in changed:
                rank = self._ranks[i]
                if rank is not None:
                    heapq.heappush(self._heap, rank)

    def _evaluate(self, i: int, info: NodeInfo) -> None:
        static = self._static[i]
        local = resources_fit.judge(self._wanted, info, self._delegated)
        if self._ports:
            local = (*node_ports.judge(self._ports, info), *local)
        found = (*static, *local) if static and local else static or local
        before = self._verdicts[i]
        if before.node != info.name or before.shortfalls != found:
            self._verdicts[i] = NodeVerdict(info.name, not found, found)
        self._ranks[i] = None if found else (*self._view.preference[i], self._left(info), i)

    def _left(self, info: NodeInfo) -> int:
        """GPUs (or what the pod asks for in their stead) that stay free beside the pod."""
        allocatable, used = info.allocatable, info.used
        if self._packed:
            return sum(allocatable.get(n, 0) - used.get(n, 0) for n in self._packed)
        return sum(
            amount - used.get(name, 0)
            for name, amount in allocatable.items()
            if amount and is_extended(name)
        )

    def verdicts(self) -> tuple[NodeVerdict, ...]:
        return tuple(self._verdicts)

    def shortfalls(self, i: int) -> tuple[Shortfall, ...]:
        return self._verdicts[i].shortfalls

    def best(self) -> NodeInfo | None:
        """The node to choose next, None where none is feasible."""
        heap, ranks = self._heap, self._ranks
        while heap:
            rank = heap[0]
            if ranks[rank[3]] == rank:
                return self._infos[rank[3]]
            heapq.heappop(heap)
        return None

    def feasible(self) -> Iterator[NodeInfo]:
        """Feasible nodes, best first."""
        for rank in sorted(rank for rank in self._ranks if rank is not None):
            info = self._infos[rank[3]]
            assert info is not None
            yield info


def packed_resources(wanted: Asked) -> tuple[str, ...]:
    """Extended resources that the pod asks for: the pods that do so are packed by them."""
    return tuple(name for name, _ in wanted if is_extended(name))


def board(
    cluster: Cluster,
    view: View,
    key: object,
    wanted: Asked,
    ports: tuple[HostPort, ...],
    delegated: frozenset[str],
    *,
    lenient: bool = False,
) -> Board:
    """The board of this kind of pod, not yet synchronised."""
    boards: dict[object, Board] = cluster.static_memo.setdefault("boards", {})
    whole = (key, wanted, ports, delegated, lenient)
    found = boards.get(whole)
    if found is None:
        if len(boards) >= _KEPT:
            del boards[next(iter(boards))]
        found = boards[whole] = Board(view, wanted, ports, delegated, lenient=lenient)
    return found
