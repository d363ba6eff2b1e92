"""Proposes which one or two running pods to move so that NVLink joins enough free GPUs again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kubectl_gpuadmit import asking, occupants
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import priority
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Landing
from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.proposals.moves import destinations, moved, of_daemonset, words

NODES_LOOKED_AT = 3
_RULE = "topology/island-integrity"


def island_freed(case: Case) -> Iterator[Proposal]:
    """For the nodes that come nearest, the one or two pods that stand in an island's way.

    Only pods of which it is told which GPUs they hold, of no higher priority, and of no DaemonSet.
    """
    if not any(
        f.reason == "topology/no-island" and f.level == "deny" for f in case.verdict.findings
    ):
        return
    cluster = case.before.cluster.fork()
    for pod in occupants.replaced_by(case.workload, case.before.cluster):
        cluster.remove("Pod", pod.namespace, pod.name)
    by_count = bool(case.terms.policy.settings(_RULE).get("by_count", True))
    for group in case.workload.groups:
        pod = chain.mutate(group.pod, cluster, kubernetes=case.terms.kubernetes).pod
        ask = asking.about(case.workload, group, pod, case.terms, ())
        count = landing.whole_gpus(ask)
        said, _ = landing.tensor_parallel(ask, cluster) if count > 1 else (0, "")
        size = min(said or (count if by_count else 0), count)
        if size < 2:
            continue
        found: list[tuple[int, int, str, tuple[Pod, ...]]] = []
        for info in landing.open_nodes(cluster, pod):
            one = landing.of_node(info, cluster, case.terms.now)
            if chosen := _in_the_way(one, size, count // size, priority(pod)):
                gpus = sum(len(_gpus(one, other)) for other in chosen)
                found.append((len(chosen), gpus, one.name, chosen))
        for _, _, name, chosen in sorted(found, key=lambda entry: entry[:3])[:NODES_LOOKED_AT]:
            yield _proposal(cluster, name, chosen)
        return


def _proposal(cluster: Cluster, name: str, chosen: tuple[Pod, ...]) -> Proposal:
    info = cluster.nodes[name]
    to = destinations(cluster, chosen, info)
    return Proposal(
        summary=" and ".join(words(pod, info, node) for pod, node in to)
        + f": frees an NVLink island of {name}",
        topic="islands",
        cost=58 + 5 * len(chosen),
        command=" && ".join(f"kubectl -n {p.namespace} delete pod {p.name}" for p in chosen),
        change=moved(to),
    )


def _in_the_way(one: Landing, size: int, groups: int, most: int) -> tuple[Pod, ...]:
    """The fewest pods, of these the smallest, without which the node has room; () for none."""
    from kubectl_gpuadmit.topology import placements

    if one.unknown or one.map is None or one.now is None or one.now.loose:
        return ()
    movable = sorted(
        (
            pod
            for pod in one.info.pods
            if priority(pod) <= most and not of_daemonset(pod) and _gpus(one, pod)
        ),
        key=lambda pod: (len(_gpus(one, pod)), pod.namespace, pod.name),
    )
    for number in (1, 2):
        for chosen in itertools.combinations(movable, number):
            gone = {(pod.namespace, pod.name) for pod in chosen}
            freed = [
                index
                for index, holders in one.now.held.items()
                if all((holder.namespace, holder.pod) in gone for holder in holders)
            ]
            free = (*one.now.free, *freed)
            if len(free) >= size * groups and (
                (placements.groups(one.map, free, size) or 0) >= groups
            ):
                return chosen
    return ()


def _gpus(one: Landing, pod: Pod) -> list[int]:
    key = (pod.namespace, pod.name)
    return [
        index
        for index, holders in (one.now.held if one.now else {}).items()
        if any((holder.namespace, holder.pod) == key for holder in holders)
    ]
