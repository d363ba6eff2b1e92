"""Baseline: no volume is a path of the node.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_hostPathVolumes.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
    named,
)
from kubectl_gpuadmit.kube.new_pods import NewPod, NewVolume

_SHARED_MEMORY = "/dev/shm"


def in_memory(volumes: Iterable[tuple[str, NewVolume]]) -> tuple[Change, ...] | None:
    """(pointer, volume) -> the same as emptyDirs, None unless all are the node's shared memory."""
    changes: list[Change] = []
    for pointer, volume in volumes:
        if volume.hostPath is None or volume.hostPath.path.rstrip("/") != _SHARED_MEMORY:
            return None
        changes.append(Change(f"{pointer}/hostPath", GONE))
        changes.append(Change(f"{pointer}/emptyDir", {"medium": "Memory"}))
    return tuple(changes)


def _run(pod: NewPod) -> Violation | None:
    bad = [
        (f"/spec/volumes/{number}", volume)
        for number, volume in enumerate(pod.spec.volumes or ())
        if volume.hostPath is not None
    ]
    if not bad:
        return None
    return Violation(
        "hostPath volumes",
        named("volume", [volume.name for _, volume in bad]),
        tuple(
            Place(
                f"{pointer}/hostPath",
                named("volume", [volume.name]),
                "hostPath.path",
                volume.hostPath.path if volume.hostPath else None,
                None,
            )
            for pointer, volume in bad
        ),
        changes=in_memory(bad),
    )


ID = "hostPathVolumes"
CHECK = Check(ID, "baseline", (Version(0, _run),))
