"""DynamicResources: says which pods depend on DRA; it does not judge them yet.

Sources: pkg/scheduler/framework/plugins/dynamicresources and noderesources/fit.go
(shouldDelegateResourceToDRA). Until claims are allocated here, such a pod's placement is unknown.
"""

from __future__ import annotations

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.dra import DeviceClass
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, is_extended
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.placement.filters.resources_fit import Asked
from kubectl_gpuadmit.verdict import Unknown

FILTER = "DynamicResources"
REASONS: dict[str, str] = {}

_HINT = "kubectl get resourceclaims,resourceslices,deviceclasses shows what DRA has"


def supplies(kubernetes: str) -> bool:
    """Whether a DeviceClass can supply extended resources: DRAExtendedResource, on since 1.36."""
    return version(kubernetes) >= (1, 36)


def delegated(cluster: Cluster, wanted: Asked, *, kubernetes: str) -> frozenset[str]:
    """Requested resources that a DeviceClass supplies where the node advertises none."""
    if not supplies(kubernetes):
        return frozenset()
    names = [name for name, _ in wanted if is_extended(name) or name.startswith(DEVICE_CLASS)]
    if not names or not cluster.knows("DeviceClass"):
        return frozenset()
    supplied = set()
    for item in cluster.every("DeviceClass"):
        supplied.add(DEVICE_CLASS + item.name)
        if isinstance(item, DeviceClass) and item.spec.extendedResourceName:
            supplied.add(item.spec.extendedResourceName)
    return frozenset(name for name in names if name in supplied)


def unknowns(pod: Pod, supplied: frozenset[str]) -> tuple[Unknown, ...]:
    """What of this pod's placement DRA decides."""
    found = [
        Unknown(
            rule="placement",
            missing=f"resource claim {claim.name!r}: DRA allocation is not evaluated yet",
            hint=_HINT,
            stage="placement",
        )
        for claim in pod.spec.resourceClaims or ()
    ]
    found += [
        Unknown(
            rule="placement",
            missing=f"{name} on nodes that do not advertise it: a DeviceClass supplies it through "
            "DRA, which is not evaluated yet",
            hint=_HINT,
            stage="placement",
        )
        for name in sorted(supplied)
    ]
    return tuple(found)
