"""SchedulingGates: a pod with gates is not tried at all until they are removed.

Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go (PreEnqueue).
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Pod

FILTER = "SchedulingGates"
CONDITION_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
REASONS = {
    "placement/gated": "The pod carries scheduling gates: no scheduler looks at it until whoever "
    "set them takes them away. Remove spec.schedulingGates if nothing does.",
}


def gates(pod: Pod) -> tuple[str, ...]:
    """Names of the gates that hold the pod back."""
    return tuple(gate.name for gate in pod.spec.schedulingGates or ())


def message(pod: Pod) -> str:
    """The scheduler's own text, '' for a pod without gates (Go prints a slice as ``[a b]``)."""
    names = gates(pod)
    return f"waiting for scheduling gates: [{' '.join(names)}]" if names else ""
