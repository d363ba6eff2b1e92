"""One pod against one cluster: what the scheduler's PreFilter computes, then answers per node.

A cycle sees the cluster as it was when the cycle was made, plus the pods that ``assume`` put onto
it. It says what each node has against the pod; it does not choose, explain or preempt.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.placement import board as boards
from kubectl_gpuadmit.placement import static
from kubectl_gpuadmit.placement.filters import (
    RANK,
    Wide,
    claims,
    extended_resources,
    inter_pod_affinity,
    node_affinity,
    node_ports,
    resources_fit,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from kubectl_gpuadmit.placement.filters.dynamic_resources import ABORTS, DynamicResources
from kubectl_gpuadmit.placement.filters.inter_pod_affinity import InterPod
from kubectl_gpuadmit.placement.filters.node_volume_limits import Limits
from kubectl_gpuadmit.placement.filters.pod_topology_spread import Spread
from kubectl_gpuadmit.placement.filters.volume_binding import Binding
from kubectl_gpuadmit.placement.filters.volume_restrictions import Restrictions
from kubectl_gpuadmit.placement.filters.volume_zone import Zones
from kubectl_gpuadmit.verdict import NodeVerdict, Shortfall, Unknown


class Cycle:
    """``cluster`` is forked by whoever wants to ``assume`` pods; the cycle never forks itself.

    ``lenient`` asks what could be if everything that time alone clears were cleared: it leaves out
    shortfalls with an ``until`` (cordons, node conditions, pods that should come first).
    Raises QuantityError where the pod's requests cannot be read.
    """

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        *,
        lenient: bool = False,
        kubernetes: str = LATEST,
        now: dt.datetime | None = None,
    ) -> None:
        self.cluster = cluster
        self.pod = pod
        self.kubernetes = kubernetes
        self.asked = resources_fit.asked(pod)
        self.ports = podlib.host_ports(pod)
        self.delegated = extended_resources.delegated(cluster, self.asked, kubernetes=kubernetes)
        self._lenient = lenient
        self._positions = static.positions(cluster)
        key = static.signature(pod)
        self._view = static.view(cluster, pod, key)
        self._board = boards.board(
            cluster, self._view, key, self.asked, self.ports, self.delegated, lenient=lenient
        )
        self.dra = DynamicResources.of(cluster, pod, self.delegated, kubernetes=kubernetes, now=now)
        found = claims.of(cluster, pod)
        self.rejections = self._kept(
            (
                *node_affinity.reject(pod),
                *volume_restrictions.reject(found),
                *volume_binding.reject(found),
                *volume_zone.reject(cluster, found),
                *inter_pod_affinity.reject(pod),
                *(self.dra.rejections if self.dra is not None else ()),
            )
        )
        """What refuses the pod before any node is looked at; every node's verdict has it too."""
        self._unknowns: tuple[Unknown, ...] = (
            *found.unknowns,
            *volume_binding.unknowns(cluster, found),
            *inter_pod_affinity.unknowns(cluster, pod),
        )
        wide: tuple[Wide | None, ...] = (
            Restrictions.of(cluster, pod, found),
            Limits.of(cluster, found),
            Binding.of(cluster, found),
            Zones.of(cluster, found),
            Spread.of(cluster, pod),
            InterPod.of(cluster, pod),
            self.dra,
        )
        self._wide: tuple[Wide, ...] = tuple(f for f in wide if f is not None)
        self._nominated = {} if lenient else _nominated(cluster, pod)

    def _kept(self, found: tuple[Shortfall, ...]) -> tuple[Shortfall, ...]:
        return tuple(s for s in found if not s.until) if self._lenient and found else found

    # -- answers -------------------------------------------------------------------------------

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """What the answers so far hang on and the source does not tell."""
        return (*self._unknowns, *(self.dra.unknowns if self.dra is not None else ()))

    def verdicts(self) -> tuple[NodeVerdict, ...]:
        """Every node's answer, in name order."""
        base = self._synced().verdicts()
        if self._wide or self.rejections:
            infos = self.cluster.nodes.values()
            base = tuple(
                self._widened(verdict, info) for verdict, info in zip(base, infos, strict=True)
            )
        for name in self._nominated:
            i = self._positions[name]
            found = self._beside_nominated(self.cluster.nodes[name])
            if found:
                base = (*base[:i], NodeVerdict(name, False, found), *base[i + 1 :])
        return _aborted(base) if self.dra is not None else base

    def _beside_nominated(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """What the node has against the pod once those who preempted for it have moved in."""
        return self.what_if(info).shortfalls()

    def _widened(self, verdict: NodeVerdict, info: NodeInfo) -> NodeVerdict:
        more = (*self.rejections, *self._judge_wide(info, self._wide))
        if not more:
            return verdict
        return NodeVerdict(verdict.node, False, _in_order((*verdict.shortfalls, *more)))

    def best(self) -> NodeInfo | None:
        """The feasible node that the model chooses, None where there is none."""
        if self.rejections:
            return None
        if not self._wide and not self._nominated:
            return self._synced().best()
        if self.dra is not None:
            return self._best_with_devices(self.dra)
        return next(self.feasible(), None)

    def feasible(self) -> Iterator[NodeInfo]:
        """All feasible nodes, in the order in which the model chooses them."""
        if self.rejections:
            return
        for info in self._synced().feasible():
            if self._wide and self._judge_wide(info, self._wide):
                continue
            if info.name in self._nominated and self._beside_nominated(info):
                continue
            yield info

    def _best_with_devices(self, dra: DynamicResources) -> NodeInfo | None:
        """Every node is asked: an error on one ends the attempt, and alternatives have a score."""
        others = tuple(f for f in self._wide if f is not dra)
        for info in self._synced().feasible():
            fails = any(s.code == ABORTS for s in dra.judge(info))
            if fails and not self._judge_wide(info, others):
                return None
        found = self.feasible()
        return max(found, key=dra.score, default=None) if dra.scores else next(found, None)

    def _synced(self) -> boards.Board:
        """Other cycles may have shown the shared board another cluster since."""
        self._board.sync(self.cluster)
        return self._board

    def _judge_wide(self, info: NodeInfo, wide: tuple[Wide, ...]) -> tuple[Shortfall, ...]:
        found: tuple[Shortfall, ...] = ()
        for f in wide:
            found += f.judge(info)
        return self._kept(found)

    def nominated(self, name: str) -> tuple[Pod, ...]:
        """Pods that were promised the node and that this pod must leave room for."""
        return self._nominated.get(name, ())

    # -- what-ifs ------------------------------------------------------------------------------

    def assume(self, pod: Pod) -> None:
        """Puts a pod that names its node onto the cluster."""
        name = pod.spec.nodeName or ""
        for f in self._wide:
            f.moved(pod, self.cluster.nodes[name], 1)
        counted = pod
        if self.dra is not None:
            counted = self.dra.counted(pod, self.cluster.nodes[name])
            self.dra.assume(pod, self.cluster.nodes[name])
            if self.dra.rejections:
                self.rejections = self._kept((*self.rejections, *self.dra.rejections))
        self.cluster.apply(counted)

    def what_if(self, info: NodeInfo) -> WhatIf:
        """This node with its pods coming and going, everything else as it is."""
        return WhatIf(self, info)

    def refusals(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """What one node of the cluster has against the pod, as the pods are now."""
        return self.on_node(info, self._wide)

    def on_node(self, info: NodeInfo, wide: tuple[Wide, ...]) -> tuple[Shortfall, ...]:
        """Evaluates one node, which need not be as in the cluster, without the board."""
        found = (
            *self.rejections,
            *self._kept(self._view.shortfalls[self._positions[info.name]]),
            *node_ports.judge(self.ports, info),
            *resources_fit.judge(self.asked, info, self.delegated),
            *self._judge_wide(info, wide),
        )
        return _in_order(found)

    def fork_wide(self) -> tuple[Wide, ...]:
        return tuple(f.fork() for f in self._wide)


class WhatIf:
    """One node of a cycle from which pods are removed and to which they are returned."""

    def __init__(self, cycle: Cycle, info: NodeInfo) -> None:
        self._cycle = cycle
        self._wide = cycle.fork_wide()
        self.info = info

    def remove(self, pods: tuple[Pod, ...]) -> None:
        for pod in pods:
            for f in self._wide:
                f.moved(pod, self.info, -1)
        self.info = self.info.without(pods)

    def put_back(self, pod: Pod) -> None:
        for f in self._wide:
            f.moved(pod, self.info, 1)
        self.info = self.info.with_pod(pod)

    def shortfalls(self) -> tuple[Shortfall, ...]:
        """With nominated pods and without: both must pass (RunFilterPluginsWithNominatedPods)."""
        promised = self._cycle.nominated(self.info.name)
        if promised:
            wide, info = tuple(f.fork() for f in self._wide), self.info
            for pod in promised:
                for f in wide:
                    f.moved(pod, info, 1)
                info = info.with_pod(pod)
            found = self._cycle.on_node(info, wide)
            if found:
                return found
        return self._cycle.on_node(self.info, self._wide)


def _aborted(verdicts: tuple[NodeVerdict, ...]) -> tuple[NodeVerdict, ...]:
    """An error of DynamicResources on a node that passes all other filters holds for all nodes."""
    lone = (v.shortfalls[0] for v in verdicts if len(v.shortfalls) == 1)
    error = next((s for s in lone if s.code == ABORTS), None)
    if error is None:
        return verdicts
    return tuple(
        v if error in v.shortfalls else NodeVerdict(v.node, False, (*v.shortfalls, error))
        for v in verdicts
    )


def _nominated(cluster: Cluster, pod: Pod) -> dict[str, tuple[Pod, ...]]:
    """Waiting pods of the same or a higher priority to whom a node is promised."""
    if not cluster.nominated:
        return {}
    own = podlib.priority(pod)
    found = {}
    for name, waiting in cluster.nominated.items():
        others = tuple(
            p
            for p in waiting
            if podlib.priority(p) >= own and (p.namespace, p.name) != (pod.namespace, pod.name)
        )
        if others and name in cluster.nodes:
            found[name] = others
    return found


def _in_order(found: tuple[Shortfall, ...]) -> tuple[Shortfall, ...]:
    """In the order in which the scheduler asks its filters."""
    return tuple(sorted(found, key=lambda s: RANK[s.filter])) if len(found) > 1 else found
