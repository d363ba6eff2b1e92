"""Extended resources that a DeviceClass supplies: the claim that the scheduler makes for them.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.37.2.
"""

from __future__ import annotations

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices import allocator, extended
from kubectl_gpuadmit.devices.inventory import published
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.filters import pod_claims, shortfall
from kubectl_gpuadmit.placement.filters.pod_claims import FILTER
from kubectl_gpuadmit.placement.filters.resources_fit import Asked
from kubectl_gpuadmit.verdict import Shortfall

STALE = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"

REASONS = {
    "placement/extended-stale": (
        "A claim for the pod's extended resources is left from an earlier attempt. The "
        "scheduler deletes it and tries again."
    ),
    "placement/extended-unserved": (
        "An extended resource is neither advertised by the node nor mapped to devices there. "
        "Check the DeviceClass's extendedResourceName and the device plugin."
    ),
}


def supplies(cluster: Cluster, kubernetes: str) -> bool:
    """Whether a DeviceClass can supply extended resources: DRAExtendedResource, on since 1.36."""
    return allocator.of(kubernetes, cluster.gates).extended_resources


def delegated(cluster: Cluster, wanted: Asked, *, kubernetes: str) -> frozenset[str]:
    """Requested resources that a DeviceClass supplies where the node advertises none."""
    if not supplies(cluster, kubernetes):
        return frozenset()
    names = [name for name, _ in wanted if extended.may_be_backed(name)]
    if not names or not cluster.knows("DeviceClass"):
        return frozenset()
    backed = extended.backed(published(cluster).classes.values())
    return frozenset(name for name in names if name in backed)


class ExtendedResources:
    """Of one pod. ``supplied``: those that classes supply where no device plugin does."""

    def __init__(self, cluster: Cluster, pod: Pod, supplied: frozenset[str]) -> None:
        self._pod = pod
        self._backed = {
            name: class_
            for name, class_ in extended.backed(published(cluster).classes.values()).items()
            if name in supplied
        }
        self._stale = pod_claims.extended_claim(cluster, pod)
        self._of_resources: dict[tuple[str, ...], Claim] = {}

    def on(self, info: NodeInfo, *, alone: bool) -> Claim | Shortfall | None:
        """The claim for extended resources on this node; None where device plugins supply all and
        the pod has no claims of its own (``alone``)."""
        if self._stale is not None and self._stale.spec.devices.requests is not None:
            return _refused(STALE, "placement/extended-stale", self._stale.name)
        from_devices = extended.from_devices(
            extended.asked(self._pod), self._backed, info.allocatable
        )
        if isinstance(from_devices, str):
            return _refused(CANNOT_FIT, "placement/extended-unserved", from_devices)
        if not from_devices and alone:
            return None
        key = tuple(sorted(from_devices))
        if key not in self._of_resources:
            self._of_resources[key] = Claim(
                self._pod.namespace,
                extended.CLAIM_NAME,
                extended.requests(self._pod, from_devices),
            )
        return self._of_resources[key]


def _refused(text: str, code: str, subject: str) -> Shortfall:
    return shortfall(FILTER, text, code, permanent=True, subject=subject)
