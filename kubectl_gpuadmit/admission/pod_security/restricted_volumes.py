"""Restricted: volumes are of the kinds that give no access to a node or a storage system.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_restrictedVolumes.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security import host_path_volumes
from kubectl_gpuadmit.admission.pod_security.check import (
    Check,
    Place,
    Version,
    Violation,
    named,
    plural,
    quoted,
)
from kubectl_gpuadmit.kube.new_pods import NewPod, NewVolume

_ALLOWED = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
    *("persistentVolumeClaim", "projected", "secret"),
)
_NAMED = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi"),
    *("glusterfs", "rbd", "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile"),
    *("vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume"),
    *("scaleIO", "storageos"),
)
"""In the order in which Kubernetes looks for them."""


def _type(volume: NewVolume) -> str:
    """The forbidden type, '' for a permitted one."""
    if any(getattr(volume, name) is not None for name in _ALLOWED):
        return ""
    return next((name for name in _NAMED if getattr(volume, name) is not None), "unknown")


def _run(pod: NewPod) -> Violation | None:
    bad: list[tuple[str, NewVolume]] = []
    types: set[str] = set()
    places: list[Place] = []
    for number, volume in enumerate(pod.spec.volumes or ()):
        kind = _type(volume)
        if kind:
            pointer = f"/spec/volumes/{number}"
            bad.append((pointer, volume))
            types.add(kind)
            found = volume.hostPath.path if volume.hostPath is not None else kind
            where = pointer if kind == "unknown" else f"{pointer}/{kind}"
            places.append(Place(where, named("volume", [volume.name]), kind, found, None))
    if not bad:
        return None
    return Violation(
        "restricted volume types",
        f"{named('volume', [volume.name for _, volume in bad])}"
        f" {'uses' if len(bad) == 1 else 'use'} {plural('restricted volume type', len(types))}"
        f" {quoted(sorted(types))}",
        tuple(places),
        changes=host_path_volumes.in_memory(bad),
    )


CHECK = Check("restrictedVolumes", "restricted", (Version(0, _run, (host_path_volumes.ID,)),))
