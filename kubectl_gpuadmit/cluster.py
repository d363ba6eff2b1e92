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
from kubectl_gpuadmit.kube.node_info import NodeInfo, OnNode
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
)
from kubectl_gpuadmit.kube.table import Table

__all__ = ["Cluster", "Key", "NodeInfo"]

Key = tuple[str, str]
"""(namespace, name); namespace is '' for cluster-scoped kinds."""


_VERSIONS = 8
"""So many states of the same kinds are remembered: what-ifs come and go."""


def _by_namespace(pods: dict[Key, Pod]) -> dict[str, tuple[Pod, ...]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for (namespace, _), pod in pods.items():
        found[namespace].append(pod)
    return {namespace: tuple(members) for namespace, members in found.items()}


Pods = dict[str, tuple[Pod, ...]]


def _less(index: Pods, where: set[str], ids: set[int]) -> Pods:
    """The index without these pods, which are in these of its entries."""
    if not where:
        return index
    left = {key: tuple(p for p in index.get(key, ()) if id(p) not in ids) for key in where}
    return {**index, **left}


class Cluster:
    """Every object that was given, by kind; nodes with their pods; what is known, what is not."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self._objects: dict[str, Table[Key, KubeObject]] = {}
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
        by_kind: dict[str, dict[Key, KubeObject]] = {}
        table: dict[Key, KubeObject] = {}
        before: object = None  # the class of the object before: most lists are of one kind
        for obj in objects:
            if obj.__class__ is not before or before is Generic:
                table = by_kind.setdefault(obj.kind, {})
                before = obj.__class__
            metadata = obj.metadata
            table[(metadata.namespace or "", metadata.name or "")] = obj
        cluster._objects = {kind: Table(held) for kind, held in by_kind.items()}
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

    def _spread(self, pods: Iterable[Pod]) -> dict[str, OnNode]:
        """Node name -> what its pods come to; notes failed and nominated pods on the way.

        One pass in the order in which the pods were read and so lie in memory: half the time of
        going through them node by node.
        """
        on_node: dict[str, OnNode] = defaultdict(OnNode)
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
        table = self._objects.get(kind)
        return None if table is None else table.get((namespace, name))

    def every(self, kind: str, namespace: str | None = None) -> Iterator[KubeObject]:
        """All objects of a kind in insertion order, in one namespace if given."""
        if kind == "Pod" and namespace is not None:
            yield from self.pods_in(namespace)
            return
        table = self._objects.get(kind)
        for (ns, _), obj in table.items() if table is not None else ():
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

    def _table(self, kind: str) -> Table[Key, KubeObject]:
        self._states[kind] = object()
        table = self._objects.get(kind)
        if table is None or kind not in self._owned:
            table = Table() if table is None else table.copy()
            self._objects[kind] = table
            self._owned.add(kind)
        return table

    def apply(self, obj: KubeObject, *, makes_known: bool = True) -> None:
        """Adds or replaces an object, as a watch event or a document of the run does.

        ``makes_known`` False: there may be more of the kind that nobody exported.
        """
        if isinstance(obj, Pod):
            self.remove("Pod", obj.namespace, obj.name)
            index = self._pods_by_namespace
            self._pods_by_namespace = {
                **index,
                obj.namespace: (*index.get(obj.namespace, ()), obj),
            }
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
        if isinstance(gone, Pod):
            self.remove_pods((gone,))
        elif gone is not None:
            del self._table(kind)[(namespace, name)]
            if isinstance(gone, Node):
                self.nodes.pop(name, None)
                self.static_memo = {}

    def remove_pods(self, pods: Iterable[Pod]) -> None:
        """Takes the pods of these names out; unknown ones are ignored. Costs one walk over each
        namespace and node that they are in, however many they are."""
        keys = dict.fromkeys((pod.namespace, pod.name) for pod in pods)
        gone = [pod for key in keys if isinstance(pod := self.get("Pod", *key), Pod)]
        if not gone:
            return
        table = self._table("Pod")
        ids = {id(pod) for pod in gone}
        on_nodes: dict[str, list[Pod]] = {}
        namespaces, promised = set(), set()
        for pod in gone:
            del table[(pod.namespace, pod.name)]
            namespaces.add(pod.namespace)
            name = pod.spec.nodeName
            if name in self.nodes:
                on_nodes.setdefault(name, []).append(pod)
            elif not name and pod.status.nominatedNodeName:
                promised.add(pod.status.nominatedNodeName)
        for name, left in on_nodes.items():
            self.nodes[name] = self.nodes[name].without(left)
        self._pods_by_namespace = _less(self._pods_by_namespace, namespaces, ids)
        self.nominated = _less(self.nominated, promised, ids)
        if any(pod.status.phase == "Failed" for pod in gone):
            self._failed = tuple(pod for pod in self._failed if id(pod) not in ids)

    def _nominate(self, pod: Pod) -> None:
        node = pod.status.nominatedNodeName or ""
        if not podlib.is_terminal(pod):
            self.nominated = {**self.nominated, node: (*self.nominated.get(node, ()), pod)}
