"""A cluster that notes which of its objects it, or a fork of it, is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.kube.pods import is_terminal


class Reads:
    """What has been asked for so far."""

    def __init__(self) -> None:
        self.objects: dict[int, KubeObject] = {}
        """By identity: objects are never changed, only replaced."""
        self.nodes = False
        """Nodes are asked for together, with what runs on them or is nominated for them."""

    def note(self, obj: KubeObject | None) -> None:
        if obj is not None:
            self.objects[id(obj)] = obj


class Recorder(Cluster):
    """As the cluster that ``over`` is given."""

    def __init__(self, reads: Reads | None = None) -> None:
        self.reads = reads or Reads()
        super().__init__()

    @classmethod
    def over(cls, cluster: Cluster) -> Recorder:
        """The same objects in the same order, nothing worked out yet."""
        every = [obj for kind in cluster.kinds() for obj in cluster.every(kind)]
        made = cls.restored(every, cluster.known_kinds())
        assert isinstance(made, Recorder)
        made.reads.objects.clear()
        made.reads.nodes = False
        return made

    def _blank(self) -> Cluster:
        return Recorder(self.reads)

    @property
    def nodes(self) -> dict[str, NodeInfo]:
        self.reads.nodes = True
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: dict[str, NodeInfo]) -> None:
        self._nodes = nodes

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        found = super().get(kind, namespace, name)
        self.reads.note(found)
        return found

    def every(self, kind: str, namespace: str | None = None) -> Iterator[KubeObject]:
        for obj in super().every(kind, namespace):
            self.reads.note(obj)
            yield obj

    def failed_pods(self) -> tuple[Pod, ...]:
        found = super().failed_pods()
        for pod in found:
            self.reads.note(pod)
        return found

    def pods_in(self, namespace: str) -> tuple[Pod, ...]:
        found = super().pods_in(namespace)
        for pod in found:
            self.reads.note(pod)
        return found


def read(cluster: Cluster, reads: Reads) -> list[KubeObject]:
    """The cluster's own objects that were asked for, in the cluster's order."""
    chosen: list[KubeObject] = []
    for kind in cluster.kinds():
        for obj in cluster.every(kind):
            if id(obj) in reads.objects or (reads.nodes and _counts_on_a_node(obj)):
                chosen.append(obj)
    return chosen


def _counts_on_a_node(obj: KubeObject) -> bool:
    if obj.kind == "Node":
        return True
    if not isinstance(obj, Pod) or is_terminal(obj):
        return False
    return bool(obj.spec.nodeName or obj.status.nominatedNodeName)
