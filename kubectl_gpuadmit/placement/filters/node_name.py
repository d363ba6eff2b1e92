"""NodeName: a pod that names its node fits no other one.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Node, Pod
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodeName"
REASON = "node(s) didn't match the requested node name"
REASONS = {
    "placement/node-name": "spec.nodeName names another node. Remove spec.nodeName and let the "
    "scheduler choose, or name a node that exists.",
}


def judge(pod: Pod, node: Node) -> tuple[Shortfall, ...]:
    """One shortfall where spec.nodeName is set and is not this node."""
    wanted = pod.spec.nodeName
    if not wanted or wanted == node.name:
        return ()
    return (shortfall(FILTER, REASON, "placement/node-name", permanent=True, subject=wanted),)
