"""Proposes which one or two running pods to move or stop so that the workload finds a node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from kubectl_gpuadmit import occupants
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube.gpus import is_gpu
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import priority, requests
from kubectl_gpuadmit.placement.kubelet import FILTER
from kubectl_gpuadmit.placement.place import bound, node_verdicts
from kubectl_gpuadmit.proposals import Case, Proposal

NODES_LOOKED_AT = 3
PODS_TRIED = 6


def pods_moved(case: Case) -> Iterator[Proposal]:
    """For the nodes that lack least, the smallest one or two pods whose leaving covers the lack.

    Pods of a higher priority and those of DaemonSets are left alone. Deficits are whole vectors
    against one node: a set of pods counts only if it covers every resource that is short there.
    """
    if case.verdict.placement != "waits":
        return
    short: list[tuple[int, str, dict[str, int]]] = []
    unaligned: list[str] = []
    for node in case.verdict.nodes:
        if node.fits or any(s.permanent for s in node.shortfalls):
            continue
        if all(s.filter == FILTER for s in node.shortfalls):
            unaligned.append(node.node)
            continue
        if any(s.requested is None for s in node.shortfalls):
            continue
        lack = {
            s.subject: (s.requested or 0) + (s.used or 0) - (s.capacity or 0)
            for s in node.shortfalls
        }
        gpus = sum(n for name, n in lack.items() if is_gpu(name))
        short.append((gpus or 1 << 30, node.node, lack))
    own = occupants.replaced_by(case.workload, case.before.cluster)
    cluster = case.before.cluster.fork()
    for pod in own:
        cluster.remove("Pod", pod.namespace, pod.name)
    asking = [
        chain.mutate(
            group.pod, cluster, kubernetes=case.terms.kubernetes, plugins=case.terms.plugins
        ).pod
        for group in case.workload.groups
    ]
    most = max(map(priority, asking), default=0)
    for _, name, lack in sorted(short, key=lambda entry: entry[:2])[:NODES_LOOKED_AT]:
        info = cluster.nodes.get(name)
        if info is not None:
            yield from _on_node(cluster, info, lack, most)
    for name in unaligned[:NODES_LOOKED_AT]:
        yield from _one_by_one(cluster, cluster.nodes[name], most)


def _one_by_one(cluster: Cluster, info: NodeInfo, most: int) -> Iterator[Proposal]:
    """Each pod with GPUs by itself: which of them is on the wrong NUMA node, the trial shows."""
    for pod in [one for one in _movable(info, most) if _gpus(one)][:PODS_TRIED]:
        yield _proposal(cluster, info, (pod,))


def _on_node(
    cluster: Cluster, info: NodeInfo, lack: dict[str, int], most: int
) -> Iterator[Proposal]:
    for size in (1, 2):
        for chosen in itertools.combinations(_movable(info, most), size):
            if all(
                sum(requests(pod).get(name, 0) for pod in chosen) >= n for name, n in lack.items()
            ):
                yield _proposal(cluster, info, chosen)
                return


def _movable(info: NodeInfo, most: int) -> list[Pod]:
    """Pods that may have to go, those with the fewest GPUs first."""
    return sorted(
        (
            pod
            for pod in info.pods
            if priority(pod) <= most
            and not of_daemonset(pod)
            and not pod.metadata.deletionTimestamp  # it is going anyway
        ),
        key=lambda pod: (_gpus(pod), pod.namespace, pod.name),
    )


def _proposal(cluster: Cluster, info: NodeInfo, chosen: tuple[Pod, ...]) -> Proposal:
    moves = destinations(cluster, chosen, info)
    return Proposal(
        summary=" and ".join(words(pod, info, to) for pod, to in moves),
        topic="moves",
        cost=60 + 5 * len(chosen),
        command=" && ".join(f"kubectl -n {pod.namespace} delete pod {pod.name}" for pod in chosen),
        change=moved(moves),
    )


def destinations(
    cluster: Cluster, pods: Iterable[Pod], info: NodeInfo
) -> tuple[tuple[Pod, str], ...]:
    """Each pod with another node that would take it after those before it, '' if none would, or
    if no controller makes the deleted pod anew."""
    after = cluster.fork()
    for pod in pods:
        after.remove("Pod", pod.namespace, pod.name)
    found = []
    for pod in pods:
        free = structs.replace(pod, spec=structs.replace(pod.spec, nodeName=None))
        others = (v.node for v in node_verdicts(after, free) if v.fits and v.node != info.name)
        comes_back = any(o.controller for o in pod.metadata.ownerReferences or ())
        to = next(others, "") if comes_back else ""
        found.append((pod, to))
        if to:
            after.apply(bound(free, pod.name, to))
    return tuple(found)


def words(pod: Pod, info: NodeInfo, to: str) -> str:
    """``move team-a/x from inf-1 to inf-2`` where another node will take it, else ``stop``."""
    name = f"{pod.namespace}/{pod.name}"
    return f"move {name} from {info.name} to {to}" if to else f"stop {name} on {info.name}"


def moved(moves: tuple[tuple[Pod, str], ...]) -> Callable[[State], State]:
    """The cluster after these pods are where they go, '' for nowhere."""

    def change(state: State) -> State:
        for pod, to in moves:
            state.cluster.remove("Pod", pod.namespace, pod.name)
            if to:
                state.cluster.apply(bound(pod, pod.name, to))
        return state

    return change


def of_daemonset(pod: Pod) -> bool:
    """It comes back to where it was."""
    return any(o.kind == "DaemonSet" and o.controller for o in pod.metadata.ownerReferences or ())


def _gpus(pod: Pod) -> int:
    return sum(n for name, n in requests(pod).items() if is_gpu(name))
