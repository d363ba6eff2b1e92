"""TaintToleration: every NoSchedule and NoExecute taint of the node must be tolerated.

Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Node, Pod
from kubectl_gpuadmit.kube.selectors import taint_text, tolerated
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"
REASONS = {
    "placement/taint": "The node has a taint that the pod does not tolerate. Add the toleration "
    "if the workload may use these nodes; taints of a node condition go away with it.",
}

UNTIL = {
    "node.kubernetes.io/not-ready": "the node is Ready",
    "node.kubernetes.io/unreachable": "the node is reachable again",
    "node.kubernetes.io/unschedulable": "uncordoned",
    "node.kubernetes.io/memory-pressure": "the node's memory pressure is over",
    "node.kubernetes.io/disk-pressure": "the node's disk pressure is over",
    "node.kubernetes.io/pid-pressure": "the node's PID pressure is over",
    "node.kubernetes.io/network-unavailable": "the node's network is configured",
    "node.kubernetes.io/out-of-service": "the node is back in service",
    "node.cloudprovider.kubernetes.io/uninitialized": "the cloud provider has set up the node",
    "node.cloudprovider.kubernetes.io/shutdown": "the node is started again",
}
"""Taints that Kubernetes itself sets and lifts -> what lifts them."""


def judge(pod: Pod, node: Node) -> tuple[Shortfall, ...]:
    """One shortfall for each taint that is not tolerated."""
    return tuple(
        shortfall(
            FILTER,
            REASON,
            "placement/taint",
            permanent=True,
            until=UNTIL.get(taint.key, ""),
            subject=taint_text(taint),
        )
        for taint in node.spec.taints or ()
        if taint.effect in ("NoSchedule", "NoExecute")
        and not tolerated(pod.spec.tolerations, taint)
    )


def untolerated_preferences(pod: Pod, node: Node) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate: fewer is better."""
    return sum(
        taint.effect == "PreferNoSchedule"
        and not tolerated(
            (t for t in pod.spec.tolerations or () if t.effect in (None, "", "PreferNoSchedule")),
            taint,
        )
        for taint in node.spec.taints or ()
    )
