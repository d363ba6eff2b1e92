"""An index over API objects that answers and does not decide; ``fork`` gives a what-if copy.

Rules of this module
1. Objects are never changed, only replaced: a fork shares them with its origin.
2. ``NodeInfo`` is immutable too; placing a pod replaces the node's entry. A cache may therefore be
   keyed by a NodeInfo's identity.
3. A kind that nobody exported is not the same as a kind without objects: ask ``knows``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from kubectl_gpuadmit.kube import gates
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import (
    Generic,
    KubeObject,
    LimitRange,
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    Taint,
)
from kubectl_gpuadmit.kube.quantity import QuantityError

Key = tuple[str, str]
"""(namespace, name); namespace is '' for cluster-scoped kinds."""


_VERSIONS = 8
"""So many states of the same kinds are remembered: what-ifs come and go."""


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


class _OnNode:
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


def _by_namespace(pods: dict[Key, Pod]) -> dict[str, tuple[Pod, ...]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for (namespace, _), pod in pods.items():
        found[namespace].append(pod)
    return {namespace: tuple(members) for namespace, members in found.items()}


class Cluster:
    """Every object that was given, by kind; nodes with their pods; what is known, what is not."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self._objects: dict[str, dict[Key, KubeObject]] = {}
        self._owned: set[str] = set()
        self._known: set[str] = set()
        self._partial: frozenset[str] = frozenset()
        self._pods_by_namespace: dict[str, tuple[Pod, ...]] = {}
        self._failed: tuple[Pod, ...] = ()
        self.nominated: dict[str, tuple[Pod, ...]] = {}
        """Node name -> pods that preempted others there and wait for the place to become free."""
        self.gates = gates.DEFAULT
        """Feature gates that are switched here; objects do not tell them, a policy does."""
        self.static_memo: dict[Any, Any] = {}
        """For placement: results that depend on Node objects alone. Shared by forks; emptied when a
        Node is added, changed or removed."""
        self._origin = object()
        self._states: dict[str, object] = {}
        self._remembered: dict[Any, dict[tuple[object, ...], object]] = {}
        self.pod_memo: dict[Any, Any] = {}
        """For other layers: what they have worked out from one pod, by its identity; each entry
        holds the pod itself. Shared by forks."""

    @classmethod
    def of(
        cls,
        objects: Iterable[KubeObject],
        known: Iterable[str] = (),
        *,
        partial: Iterable[str] = (),
    ) -> Cluster:
        """Builds the index in one pass. ``known`` names kinds that were exported even if empty,
        ``partial`` those of which only some objects could be read: they count as not known."""
        cluster = cls()
        cluster._known.update(known)
        by_kind = cluster._objects
        table: dict[Key, KubeObject] = {}
        before: object = None  # the class of the object before: most lists are of one kind
        for obj in objects:
            if obj.__class__ is not before or before is Generic:
                table = by_kind.setdefault(obj.kind, {})
                before = obj.__class__
            metadata = obj.metadata
            table[(metadata.namespace or "", metadata.name or "")] = obj
        cluster._owned.update(by_kind)
        cluster._known.update(by_kind)
        cluster._partial = frozenset(partial)
        cluster._known -= cluster._partial
        pods = cast(dict[Key, Pod], by_kind.get("Pod", {}))
        cluster._pods_by_namespace = _by_namespace(pods)
        on_node = cluster._spread(pods.values())
        for _, node in sorted(by_kind.get("Node", {}).items()):
            assert isinstance(node, Node)
            held = on_node.get(node.name)
            cluster.nodes[node.name] = NodeInfo(node) if held is None else held.info(node)
        return cluster

    def _spread(self, pods: Iterable[Pod]) -> dict[str, _OnNode]:
        """Node name -> what its pods come to; notes failed and nominated pods on the way.

        One pass in the order in which the pods were read and so lie in memory: half the time of
        going through them node by node.
        """
        on_node: dict[str, _OnNode] = defaultdict(_OnNode)
        failed: list[Pod] = []
        for pod in pods:
            name = pod.spec.nodeName
            phase = pod.status.phase
            if phase == "Failed":
                failed.append(pod)
            elif name and phase != "Succeeded":
                on_node[name].take(pod)
            if not name and pod.status.nominatedNodeName:
                self._nominate(pod)
        self._failed = tuple(failed)
        return on_node

    def fork(self) -> Cluster:
        """A what-if copy: cheap, and independent of this one from now on."""
        twin = self._blank()
        twin.nodes = dict(self.nodes)
        twin._objects = dict(self._objects)
        twin._known = set(self._known)
        twin._partial = self._partial
        twin._pods_by_namespace = self._pods_by_namespace
        twin._failed = self._failed
        twin.nominated = self.nominated
        twin.gates = self.gates
        twin.static_memo = self.static_memo
        twin.pod_memo = self.pod_memo
        twin._origin = self._origin
        twin._states = dict(self._states)
        twin._remembered = self._remembered
        self._owned.clear()  # both sides copy a kind's table before they write to it
        return twin

    def _blank(self) -> Cluster:
        return Cluster()

    # -- answers -----------------------------------------------------------------------------------

    def knows(self, kind: str) -> bool:
        """True where the source exported this kind, even if there was no object of it."""
        return kind in self._known

    def known_kinds(self) -> list[str]:
        """Every kind that the source exported, sorted."""
        return sorted(self._known)

    @classmethod
    def restored(cls, objects: Iterable[KubeObject], known: Iterable[str]) -> Cluster:
        """As ``of``, from what another gave away: kinds that it did not know stay unknown, whatever
        single objects of them there are."""
        listed, kinds = list(objects), frozenset(known)
        return cls.of(listed, kinds, partial={obj.kind for obj in listed} - kinds)

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def every(self, kind: str, namespace: str | None = None) -> Iterator[KubeObject]:
        """All objects of a kind in insertion order, in one namespace if given."""
        if kind == "Pod" and namespace is not None:
            yield from self.pods_in(namespace)
            return
        for (ns, _), obj in self._objects.get(kind, {}).items():
            if namespace is None or ns == namespace:
                yield obj

    def kinds(self) -> list[str]:
        return sorted(self._objects)

    def pods(self, namespace: str | None = None) -> Iterator[Pod]:
        for obj in self.every("Pod", namespace):
            assert isinstance(obj, Pod)
            yield obj

    def failed_pods(self) -> tuple[Pod, ...]:
        """Pods that have ended in failure, in insertion order."""
        return self._failed

    def advertised(self) -> frozenset[str]:
        """Every resource that some node advertises, be it with 0. Nodes are gone through once."""
        found: frozenset[str] | None = self.static_memo.get("advertised")
        if found is None:
            lists = {id(node.allocatable): node.allocatable for node in self.nodes.values()}
            found = frozenset(name for amounts in lists.values() for name in amounts)
            self.static_memo["advertised"] = found
        return found

    def pods_in(self, namespace: str) -> tuple[Pod, ...]:
        """Pods of one namespace in insertion order, at the cost of one look-up."""
        return self._pods_by_namespace.get(namespace, ())

    def remembered(self, key: object, kinds: Iterable[str], make: Callable[[], object]) -> object:
        """What ``make`` works out from objects of these kinds alone: made once for all forks in
        which these objects are the same. ``make`` must not read them later."""
        state = self.state_of(kinds)
        versions = self._remembered.setdefault(key, {})
        if state not in versions:
            while len(versions) >= _VERSIONS:
                del versions[next(iter(versions))]
            versions[state] = make()
        return versions[state]

    def state_of(self, kinds: Iterable[str]) -> tuple[object, ...]:
        """Equal for forks in which the objects of these kinds are the same."""
        return tuple(self._states.get(kind, self._origin) for kind in kinds)

    def namespace(self, name: str) -> Namespace | None:
        found = self.get("Namespace", "", name)
        return found if isinstance(found, Namespace) else None

    def quotas(self, namespace: str) -> list[ResourceQuota]:
        """By name, the order in which the API server's lister gives them is not defined."""
        return sorted(
            (q for q in self.every("ResourceQuota", namespace) if isinstance(q, ResourceQuota)),
            key=lambda q: q.name,
        )

    def limit_ranges(self, namespace: str) -> list[LimitRange]:
        return sorted(
            (r for r in self.every("LimitRange", namespace) if isinstance(r, LimitRange)),
            key=lambda r: r.name,
        )

    def priority_classes(self) -> list[PriorityClass]:
        return [p for p in self.every("PriorityClass") if isinstance(p, PriorityClass)]

    def budgets(self, namespace: str) -> list[PodDisruptionBudget]:
        return [
            b
            for b in self.every("PodDisruptionBudget", namespace)
            if isinstance(b, PodDisruptionBudget)
        ]

    # -- changes, each on this fork only -----------------------------------------------------------

    def _table(self, kind: str) -> dict[Key, KubeObject]:
        self._states[kind] = object()
        table = self._objects.get(kind, {})
        if kind not in self._owned:
            table = dict(table)
            self._objects[kind] = table
            self._owned.add(kind)
        return table

    def apply(self, obj: KubeObject, *, makes_known: bool = True) -> None:
        """Adds or replaces an object, as a watch event or a document of the run does.

        ``makes_known`` False: there may be more of the kind that nobody exported.
        """
        if isinstance(obj, Pod):
            self.remove("Pod", obj.namespace, obj.name)
            self._replace_in_namespace(obj.namespace, added=obj)
            if obj.status.phase == "Failed":
                self._failed = (*self._failed, obj)
            name = obj.spec.nodeName
            if name in self.nodes and not podlib.is_terminal(obj):
                self.nodes[name] = self.nodes[name].with_pod(obj)
            elif not name and obj.status.nominatedNodeName:
                self._nominate(obj)
        elif isinstance(obj, Node):
            before = self.nodes.get(obj.name)
            pods = (
                before.pods
                if before
                else tuple(
                    p
                    for p in self.pods()
                    if p.spec.nodeName == obj.name and not podlib.is_terminal(p)
                )
            )
            self.nodes[obj.name] = NodeInfo(obj, pods)
            if before is None:
                self.nodes = dict(sorted(self.nodes.items()))
            self.static_memo = {}
        self._table(obj.kind)[(obj.namespace, obj.name)] = obj
        if makes_known and obj.kind not in self._partial:
            self._known.add(obj.kind)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Takes an object out, as a delete event does; unknown ones are ignored."""
        gone = self.get(kind, namespace, name)
        if gone is None:
            return
        del self._table(kind)[(namespace, name)]
        if isinstance(gone, Pod):
            self._replace_in_namespace(namespace, removed=gone)
            if gone.status.phase == "Failed":
                self._failed = tuple(pod for pod in self._failed if pod is not gone)
            at = gone.spec.nodeName
            if at in self.nodes:
                self.nodes[at] = self.nodes[at].without((gone,))
            elif not at and gone.status.nominatedNodeName:
                wanted = gone.status.nominatedNodeName
                left = tuple(p for p in self.nominated.get(wanted, ()) if p is not gone)
                self.nominated = {**self.nominated, wanted: left}
        elif isinstance(gone, Node):
            self.nodes.pop(gone.name, None)
            self.static_memo = {}

    def _nominate(self, pod: Pod) -> None:
        node = pod.status.nominatedNodeName or ""
        if not podlib.is_terminal(pod):
            self.nominated = {**self.nominated, node: (*self.nominated.get(node, ()), pod)}

    def _replace_in_namespace(
        self, namespace: str, *, added: Pod | None = None, removed: Pod | None = None
    ) -> None:
        index = self._pods_by_namespace
        pods = index.get(namespace, ())
        if removed is not None:
            pods = tuple(pod for pod in pods if pod is not removed)
        self._pods_by_namespace = {**index, namespace: (*pods, added) if added else pods}
