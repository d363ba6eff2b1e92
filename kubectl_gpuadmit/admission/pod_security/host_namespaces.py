"""Baseline: no use of the node's own network, process or IPC namespace.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_hostNamespaces.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
)
from kubectl_gpuadmit.kube.new_pods import NewPod


def _run(pod: NewPod) -> Violation | None:
    spec = pod.spec
    fields = {
        "hostNetwork": spec.hostNetwork,
        "hostPID": spec.hostPID,
        "hostIPC": spec.hostIPC,
    }
    bad = [name for name, shared in fields.items() if shared]
    if not bad:
        return None
    only_memory = bad == ["hostIPC"]  # what training jobs want it for, an emptyDir gives as well
    return Violation(
        "host namespaces",
        ", ".join(f"{name}=true" for name in bad),
        tuple(Place(f"/spec/{name}", "pod", name, "true", "false") for name in bad),
        changes=(Change("/spec/hostIPC", GONE),) if only_memory else None,
        loses="the node's IPC (mount an emptyDir of medium Memory at /dev/shm instead)"
        if only_memory
        else "",
    )


CHECK = Check("hostNamespaces", "baseline", (Version(0, _run),))
