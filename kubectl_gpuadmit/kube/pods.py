"""What a pod asks for, computed as Kubernetes does: requests, limits, ports, phases.

Source: k8s.io/component-helpers v0.37.2 resource/helpers.go (PodRequests, PodLimits).
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.objects import Pod


def requests(pod: Pod) -> dict[str, int]:
    """Resource -> amount in the scheduler's unit (cpu in millicores, all else rounded up to units)."""
    raise NotImplementedError


def is_terminal(pod: Pod) -> bool:
    """Succeeded or Failed: holds no resources and no node."""
    return pod.status.phase in ("Succeeded", "Failed")


def priority(pod: Pod) -> int:
    """spec.priority, 0 where unset (corev1helpers.PodPriority)."""
    return pod.spec.priority or 0
