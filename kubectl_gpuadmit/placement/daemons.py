"""Places a DaemonSet: one pod for each node that its controller would choose.

Source: pkg/controller/daemon (nodeShouldRunDaemonPod, util/daemonset_util.go). The controller pins
each pod to its node and adds tolerations for node conditions; the scheduler's other filters decide.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    Affinity,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Toleration,
)
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.placement import alignment
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters import node_affinity, node_name, taint_toleration
from kubectl_gpuadmit.placement.filters.inter_pod_affinity import merged_label_keys
from kubectl_gpuadmit.placement.place import Placed, bound, place, pod_name
from kubectl_gpuadmit.policy import Policy

_EFFECTS = {
    "node.kubernetes.io/not-ready": "NoExecute",
    "node.kubernetes.io/unreachable": "NoExecute",
    "node.kubernetes.io/disk-pressure": "NoSchedule",
    "node.kubernetes.io/memory-pressure": "NoSchedule",
    "node.kubernetes.io/pid-pressure": "NoSchedule",
    "node.kubernetes.io/unschedulable": "NoSchedule",
}
_HOST_NETWORK = "node.kubernetes.io/network-unavailable"


def daemon_pod(pod: Pod) -> Pod:
    """The template with the tolerations that the controller adds to every pod of a DaemonSet."""
    keys = [*_EFFECTS, *((_HOST_NETWORK,) if pod.spec.hostNetwork else ())]
    added = tuple(
        Toleration(key=key, operator="Exists", effect=_EFFECTS.get(key, "NoSchedule"))
        for key in keys
    )
    spec = structs.replace(pod.spec, tolerations=(*(pod.spec.tolerations or ()), *added))
    return structs.replace(pod, spec=spec)


def nodes_for(cluster: Cluster, pod: Pod) -> tuple[str, ...]:
    """Names of the nodes that would get a pod: name, affinity and taints allow it."""
    wanted = daemon_pod(pod)
    return tuple(
        info.name
        for info in cluster.nodes.values()
        if not node_name.judge(wanted, info.node)
        and node_affinity.matches(wanted, info.node)
        and not taint_toleration.judge(wanted, info.node)
    )


def place_on_each(
    cluster: Cluster,
    pod: Pod,
    *,
    now: dt.datetime,
    names: Sequence[str] | None = None,
    decided_by: str = "",
    ttl_annotations: Sequence[str] = (),
    kubernetes: str = LATEST,
    policy: Policy | None = None,
) -> Placed:
    """One pod on each node that the controller chooses; ``asked`` says on how many.

    ``names`` are the pods', and no more pods are made than there are names. ``policy`` may declare
    the kubelets of its pools.

    A node that cannot take its pod does not hold up the others; the first such node is explained.
    With no node to run on nothing is asked for, and nothing stands in the way.
    """
    nodes = nodes_for(cluster, pod)[: None if names is None else len(names)]
    wanted = merged_label_keys(daemon_pod(pod))
    done = place(cluster, wanted, 0, now=now, decided_by=decided_by, kubernetes=kubernetes)
    if not nodes or done.placement == "unknown":
        return structs.replace(done, asked=len(nodes))
    cycle = Cycle(done.cluster, wanted, kubernetes=kubernetes)
    gates = alignment.gates_for(done.cluster, wanted, policy, now)
    places: list[str] = []
    first_refused = ""
    for node in nodes:
        info = done.cluster.nodes[node]
        if cycle.refusals(info) or (gates is not None and gates.judge(info).says == "refuses"):
            first_refused = first_refused or node
            continue
        cycle.assume(bound(wanted, pod_name(pod, names, len(places)), node))
        places.append(node)
    if not first_refused:
        return structs.replace(done, places=tuple(places), asked=len(nodes))
    refused = place(
        done.cluster,
        _pinned(wanted, first_refused),
        1,
        now=now,
        decided_by=decided_by,
        ttl_annotations=ttl_annotations,
        kubernetes=kubernetes,
        policy=policy,
    )
    return structs.replace(
        refused,
        places=tuple(places),
        nodes=tuple(v for v in refused.nodes if v.node == first_refused),
        asked=len(nodes),
    )


def _pinned(pod: Pod, name: str) -> Pod:
    """ReplaceDaemonSetPodNodeNameNodeAffinity: one term by name for all others."""
    by_name = LabelSelectorRequirement("metadata.name", "In", (name,))
    affinity = pod.spec.affinity or Affinity()
    nodes = structs.replace(
        affinity.nodeAffinity or NodeAffinity(),
        requiredDuringSchedulingIgnoredDuringExecution=NodeSelector(
            (NodeSelectorTerm(matchFields=(by_name,)),)
        ),
    )
    spec = structs.replace(pod.spec, affinity=structs.replace(affinity, nodeAffinity=nodes))
    return structs.replace(pod, spec=spec)
