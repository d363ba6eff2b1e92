"""A pod that names its node goes there past the scheduler: the kubelet alone has the last word.

It asks less: taints of effect NoSchedule, cordons, volumes, spreading and other pods' wishes do not
count. What does not fit now never will, for the refused pod has failed. The NUMA gate comes after
this and is asked elsewhere.

Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/lifecycle/predicate.go (Admit, generalFilter,
removeMissingExtendedResources).
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement import suggest
from kubectl_gpuadmit.placement.amounts import amount
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters import (
    node_affinity,
    node_ports,
    resources_fit,
    taint_toleration,
)
from kubectl_gpuadmit.verdict import Evidence, Finding, Shortfall

REASONS = {
    "placement/kubelet-refuses": "The pod names its node, so no scheduler looks for another, and"
    " the kubelet there would refuse it: the pod fails. Remove spec.nodeName, or make room.",
    "placement/no-such-node": "The pod names a node that does not exist: no kubelet starts it, and"
    " no scheduler looks at it. Remove spec.nodeName, or name a node that exists.",
}

_ASKED = frozenset({node_affinity.FILTER, node_ports.FILTER, resources_fit.FILTER})


def refusals(cycle: Cycle, info: NodeInfo) -> tuple[Shortfall, ...]:
    """Those of the scheduler's objections to this node that its kubelet shares."""
    return tuple(s for s in cycle.refusals(info) if _shared(s, info))


def _shared(found: Shortfall, info: NodeInfo) -> bool:
    if found.filter == taint_toleration.FILTER:
        return found.subject.endswith(":NoExecute")
    if found.filter == resources_fit.FILTER and is_extended(found.subject):
        return found.subject in info.allocatable  # what the node does not list is not looked at
    return found.filter in _ASKED


def _free(found: Shortfall) -> int:
    return max((found.capacity or 0) - (found.used or 0), 0)


def no_such_node(name: str) -> Finding:
    """The pod names a node that is not there."""
    return Finding(
        "placement/no-such-node",
        f"spec.nodeName names {name}, which does not exist: nobody starts the pod",
        evidence=(Evidence("pod", "spec.nodeName", name, None, "manifest"),),
        field="/spec/nodeName",
        suggest=(suggest.removed("nodeName", "let the scheduler choose the node"),),
        rule="placement",
    )


def findings(
    info: NodeInfo, found: tuple[Shortfall, ...], *, placed: int, count: int
) -> Iterator[Finding]:
    """Why the kubelet would refuse replica ``placed + 1`` of ``count``."""
    which = f"pod {placed + 1} of {count}: " if count > 1 else ""
    for shortfall in found:
        words, reason = shortfall.reason, shortfall.filter
        if shortfall.requested is not None:
            reason = f"OutOf{shortfall.subject}"
            asked, used, capacity = (
                amount(shortfall.subject, number or 0)
                for number in (shortfall.requested, shortfall.used, shortfall.capacity)
            )
            words = f"{shortfall.subject} asked {asked} · used {used} · capacity {capacity}"
        yield Finding(
            "placement/kubelet-refuses",
            f"{which}spec.nodeName names {info.name}, whose kubelet would refuse it ({reason}):"
            f" {words}",
            evidence=(
                Evidence(
                    f"Node {info.name}",
                    shortfall.subject or shortfall.filter,
                    None if shortfall.capacity is None else _free(shortfall),
                    shortfall.requested,
                    shortfall.reason,
                    bound="least",
                ),
            ),
            field="/spec/nodeName",
            suggest=(suggest.removed("nodeName", "let the scheduler choose the node"),),
            rule="placement",
        )
