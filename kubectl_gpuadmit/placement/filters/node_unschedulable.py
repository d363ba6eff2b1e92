"""NodeUnschedulable: a cordoned node takes only pods that tolerate the unschedulable taint.

Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Node, Pod, Taint
from kubectl_gpuadmit.kube.selectors import tolerated
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodeUnschedulable"
REASON = "node(s) were unschedulable"
REASONS = {
    "placement/cordoned": "The node is cordoned (spec.unschedulable). Wait until it is uncordoned, "
    "or ask who cordoned it and why.",
}

TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

_CORDONED = (
    shortfall(
        FILTER,
        REASON,
        "placement/cordoned",
        permanent=True,
        until="uncordoned",
        subject="spec.unschedulable",
    ),
)


def judge(pod: Pod, node: Node) -> tuple[Shortfall, ...]:
    """One shortfall where the node is cordoned and the pod does not tolerate that."""
    if not node.spec.unschedulable or tolerated(pod.spec.tolerations, TAINT):
        return ()
    return _CORDONED
