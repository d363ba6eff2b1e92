"""What the kubelet asks of a pod that names its node and so goes past the scheduler.

Source: pkg/kubelet/lifecycle/predicate.go (Admit, generalFilter) with AdmissionCheck of the
scheduler: resources, node affinity, ports and NoExecute taints. Cordons and NoSchedule taints do
not stop such a pod, and nothing makes it wait: what the kubelet refuses has failed. Topology
Manager, device health and volumes are not looked at.
"""

from __future__ import annotations

from msgspec import structs

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement import suggest
from kubectl_gpuadmit.placement.filters import (
    node_affinity,
    node_ports,
    resources_fit,
    taint_toleration,
)
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy, Shortfall

RULE = "placement"
REASONS = {
    "placement/no-such-node": "spec.nodeName names a node that does not exist. No kubelet starts "
    "the pod, and no scheduler looks at it. Remove spec.nodeName or name a node that exists.",
    "placement/kubelet-refuses": "The pod names its node, so no scheduler waits until it fits: the "
    "kubelet refuses it at once and it has failed. Remove spec.nodeName and let the scheduler "
    "choose, or make room first.",
    "placement/node-without-resource": "The pod names a node that does not advertise a resource "
    "that it asks for. The kubelet overlooks that and starts the pod without it. Remove "
    "spec.nodeName.",
}
_FAILS_AS = {
    "NodeResourcesFit": "OutOf",
    "TaintToleration": "TaintToleration",
    "NodeAffinity": "NodeAffinity",
    "NodePorts": "NodePorts",
}


def overlooked(pod: Pod, info: NodeInfo) -> tuple[str, ...]:
    """Extended resources that the pod asks for and the node does not know: none of them count."""
    return tuple(
        name
        for name, _ in resources_fit.asked(pod)
        if is_extended(name) and name not in info.allocatable
    )


def shortfalls(pod: Pod, info: NodeInfo) -> tuple[Shortfall, ...]:
    """Why the kubelet of this node would refuse the pod, in the order in which it asks.

    Raises QuantityError where the pod's requests cannot be read.
    """
    without = overlooked(pod, info)
    wanted = tuple(one for one in resources_fit.asked(pod) if one[0] not in without)
    executing = tuple(t for t in info.taints if t.effect == "NoExecute")
    node = structs.replace(info.node, spec=structs.replace(info.node.spec, taints=executing))
    return (
        *resources_fit.judge(wanted, info),
        *node_affinity.judge(pod, info.node),
        *node_ports.judge(podlib.host_ports(pod), info),
        *taint_toleration.judge(pod, node),
    )


def no_such_node(name: str) -> Finding:
    """The pod names a node that is not there."""
    return Finding(
        reason="placement/no-such-node",
        detail=f"the pod names node {name}, which does not exist: nobody starts it",
        evidence=(Evidence("pod", "spec.nodeName", name, None, "manifest"),),
        field="/spec/nodeName",
        suggest=_any_node(),
        rule=RULE,
    )


def refused(node: str, found: Shortfall, *, placed: int) -> Finding:
    """One reason for which the kubelet of ``node`` refuses pod ``placed + 1``."""
    reason = _FAILS_AS.get(found.filter, found.filter)
    if reason == "OutOf":
        reason += found.subject
    what = found.subject or found.reason
    before = f"takes {placed} and then " if placed else ""
    return Finding(
        reason="placement/kubelet-refuses",
        detail=f"the kubelet of {node} {before}refuses it at once ({reason}), it does not wait",
        evidence=(
            Evidence(
                subject=f"Node {node}",
                what=what,
                observed=None
                if found.capacity is None
                else max(found.capacity - (found.used or 0), 0),
                wanted=found.requested,
                source="status.allocatable less what its pods request",
                bound="least" if found.requested is not None else "",
            ),
        ),
        field="/spec/nodeName",
        suggest=_any_node(),
        rule=RULE,
    )


def started_without(node: str, names: tuple[str, ...]) -> Finding:
    """The kubelet starts the pod without resources that its node does not have."""
    return Finding(
        reason="placement/node-without-resource",
        detail=f"{node} has no {', '.join(names)}: its kubelet starts the pod without",
        evidence=tuple(
            Evidence(f"Node {node}", name, 0, None, "status.allocatable") for name in names
        ),
        field="/spec/nodeName",
        suggest=_any_node(),
        rule=RULE,
        level="warn",
    )


def _any_node() -> tuple[Remedy, ...]:
    return (suggest.removed("nodeName", "let the scheduler choose the node"),)
