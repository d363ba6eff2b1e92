"""SchedulingGates: a pod with gates is not tried at all until they are removed.

Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go (PreEnqueue). The
text is the API server's, in the condition that it sets (pkg/registry/core/pod/strategy.go).
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Pod

FILTER = "SchedulingGates"
MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
"""The message of the pod's condition PodScheduled, reason SchedulingGated."""
REASONS = {
    "placement/gated": "The pod carries scheduling gates: no scheduler looks at it until whoever "
    "set them takes them away. Remove spec.schedulingGates if nothing does.",
}


def gates(pod: Pod) -> tuple[str, ...]:
    """Names of the gates that hold the pod back."""
    return tuple(gate.name for gate in pod.spec.schedulingGates or ())
