"""One node with the pods that count on it, and what these come to. Places and judges nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import Node, Pod, Taint
from kubectl_gpuadmit.kube.quantity import QuantityError


class NodeInfo:
    """One node with the pods that count on it. Compare by identity; never change one."""

    __slots__ = (
        "_allocatable",
        "_avoiding",
        "_ports",
        "_used",
        "labels",
        "memo",
        "name",
        "node",
        "pods",
        "taints",
    )

    def __init__(
        self,
        node: Node,
        pods: tuple[Pod, ...] = (),
        *,
        used: dict[str, int] | None = None,
        avoiding: tuple[Pod, ...] | None = None,
    ) -> None:
        """``used`` and ``avoiding`` may be given by who has gone through the pods anyway."""
        self.node = node
        self.name = node.name
        self.labels = node.labels
        self.taints: tuple[Taint, ...] = node.spec.taints or ()
        self.pods = pods
        self._allocatable: dict[str, int] | None = None
        self._used = used
        self._ports: frozenset[tuple[str, str, int]] | None = None
        self._avoiding = avoiding
        self.memo: dict[Any, Any] = {}
        """For other layers: what they have worked out from this node and its pods."""

    @property
    def unschedulable(self) -> bool:
        return bool(self.node.spec.unschedulable)

    @property
    def allocatable(self) -> dict[str, int]:
        """Resource -> amount in the scheduler's unit; status.capacity if allocatable is absent."""
        if self._allocatable is None:
            status = self.node.status
            listed = status.allocatable if status.allocatable is not None else status.capacity
            self._allocatable = podlib.amounts(listed)
        return self._allocatable

    @property
    def used(self) -> dict[str, int]:
        """Resource -> what the pods on it request, same unit."""
        if self._used is None:
            total: dict[str, int] = {}
            for pod in self.pods:
                podlib.add(total, podlib.requests(pod))
            self._used = total
        return self._used

    @property
    def ports(self) -> frozenset[tuple[str, str, int]]:
        """Host ports (IP, protocol, port) that its pods hold."""
        if self._ports is None:
            self._ports = frozenset(port for pod in self.pods for port in podlib.host_ports(pod))
        return self._ports

    @property
    def avoiding(self) -> tuple[Pod, ...]:
        """Its pods with required anti-affinity: they may keep newcomers away."""
        if self._avoiding is None:
            self._avoiding = tuple(pod for pod in self.pods if _avoids(pod))
        return self._avoiding

    def free(self, resource: str) -> int:
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)

    def with_pod(self, pod: Pod) -> NodeInfo:
        after = NodeInfo(self.node, (*self.pods, pod))
        after._allocatable = self._allocatable
        if self._used is not None:
            after._used = dict(self._used)
            podlib.add(after._used, podlib.requests(pod))
        return after

    def without(self, gone: Iterable[Pod]) -> NodeInfo:
        """The node as it would be after these pods (by identity) have left."""
        ids = {id(pod) for pod in gone}
        after = NodeInfo(self.node, tuple(pod for pod in self.pods if id(pod) not in ids))
        after._allocatable = self._allocatable
        return after


class OnNode:
    """What the pods of one node come to, pod by pod."""

    __slots__ = ("avoiding", "pods", "used")

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.used: dict[str, int] | None = {}
        """None where a quantity cannot be read: that is told to who asks for the node."""
        self.avoiding: list[Pod] = []

    def take(self, pod: Pod) -> None:
        self.pods.append(pod)
        if self.used is not None:
            try:
                podlib.add(self.used, podlib.requests(pod))
            except QuantityError:
                self.used = None
        if pod.spec.affinity is not None and _avoids(pod):
            self.avoiding.append(pod)

    def info(self, node: Node) -> NodeInfo:
        return NodeInfo(node, tuple(self.pods), used=self.used, avoiding=tuple(self.avoiding))


def _avoids(pod: Pod) -> bool:
    anti = pod.spec.affinity and pod.spec.affinity.podAntiAffinity
    return bool(anti and anti.requiredDuringSchedulingIgnoredDuringExecution)
