"""Proposes which one or two running pods to move or stop so that the workload finds a node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube.gpus import is_gpu
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import priority, requests
from kubectl_gpuadmit.placement.place import node_verdicts
from kubectl_gpuadmit.proposals import Case, Proposal

NODES_LOOKED_AT = 3


def pods_moved(case: Case) -> Iterator[Proposal]:
    """For the nodes that lack least, the smallest one or two pods whose leaving covers the lack.

    Pods of a higher priority and those of DaemonSets are left alone. Deficits are whole vectors
    against one node: a set of pods counts only if it covers every resource that is short there.
    """
    if case.verdict.placement != "waits":
        return
    short: list[tuple[int, str, dict[str, int]]] = []
    for node in case.verdict.nodes:
        if node.fits or any(s.permanent or s.requested is None for s in node.shortfalls):
            continue
        lack = {
            s.subject: (s.requested or 0) + (s.used or 0) - (s.capacity or 0)
            for s in node.shortfalls
        }
        gpus = sum(n for name, n in lack.items() if is_gpu(name))
        short.append((gpus or 1 << 30, node.node, lack))
    cluster = case.before.cluster
    pods = [chain.mutate(group.pod, cluster).pod for group in case.workload.groups]
    own = max(map(priority, pods), default=0)
    for _, name, lack in sorted(short, key=lambda entry: entry[:2])[:NODES_LOOKED_AT]:
        info = cluster.nodes.get(name)
        if info is not None:
            yield from _on_node(cluster, info, lack, own)


def _on_node(
    cluster: Cluster, info: NodeInfo, lack: dict[str, int], own: int
) -> Iterator[Proposal]:
    movable = sorted(
        (pod for pod in info.pods if priority(pod) <= own and not _of_daemonset(pod)),
        key=lambda pod: (_gpus(pod), pod.namespace, pod.name),
    )
    for size in (1, 2):
        for chosen in itertools.combinations(movable, size):
            if all(
                sum(requests(pod).get(name, 0) for pod in chosen) >= n for name, n in lack.items()
            ):
                yield Proposal(
                    summary=" and ".join(_what_becomes_of(pod, cluster, info) for pod in chosen),
                    topic="moves",
                    cost=60 + 5 * size,
                    command=" && ".join(
                        f"kubectl -n {pod.namespace} delete pod {pod.name}" for pod in chosen
                    ),
                    change=_without(chosen),
                )
                return


def _what_becomes_of(pod: Pod, cluster: Cluster, info: NodeInfo) -> str:
    """``move team-a/x from inf-1 to inf-2`` where another node would take the pod that its
    controller makes anew, else ``stop``."""
    name = f"{pod.namespace}/{pod.name}"
    if not any(o.controller for o in pod.metadata.ownerReferences or ()):
        return f"stop {name} on {info.name} (no controller makes it anew)"
    free = structs.replace(pod, spec=structs.replace(pod.spec, nodeName=None))
    others = (v.node for v in node_verdicts(cluster, free) if v.fits and v.node != info.name)
    to = next(others, "")
    return f"move {name} from {info.name} to {to}" if to else f"stop {name} on {info.name}"


def _without(pods: Iterable[Pod]) -> Callable[[State], State]:
    def change(state: State) -> State:
        for pod in pods:
            state.cluster.remove("Pod", pod.namespace, pod.name)
        return state

    return change


def _of_daemonset(pod: Pod) -> bool:
    return any(o.kind == "DaemonSet" and o.controller for o in pod.metadata.ownerReferences or ())


def _gpus(pod: Pod) -> int:
    return sum(n for name, n in requests(pod).items() if is_gpu(name))
