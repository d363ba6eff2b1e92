"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. Counts claims bound to CSI volumes
and claims that a class will provision, per driver with a limit in the node's CSINode. In-tree
volumes that migration turns into CSI volumes, VolumeAttachments that outlive their pod and
CSIDriver.spec.preventPodSchedulingIfMissing are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import CSINode, PersistentVolumeClaim, Pod
from kubectl_gpuadmit.placement.filters import claims as claimlib
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.placement.filters.claims import Claims
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodeVolumeLimits"
REASON = "node(s) exceed max volume count"
REASONS = {
    "placement/volume-limit": "The node has attached as many volumes of this CSI driver as it can. "
    "Use another node or fewer volumes.",
}


class Limits:
    """The pod's CSI volumes by driver, compared with each node's limit."""

    def __init__(self, cluster: Cluster, wanted: dict[str, str]) -> None:
        self._cluster = cluster
        self._wanted = wanted

    @classmethod
    def of(cls, cluster: Cluster, claims: Claims) -> Limits | None:
        """None where no CSINode is known or the pod has no CSI volume."""
        if not cluster.knows("CSINode"):
            return None
        wanted = dict(_handles(cluster, (*claims.bound, *claims.delayed)))
        return cls(cluster, wanted) if wanted else None

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        limits = _limits(self._cluster, info.name)
        if not any(driver in limits for driver in self._wanted.values()):
            return ()
        attached = dict(
            _handles(
                self._cluster,
                [
                    claim
                    for pod in info.pods
                    for name, _ in claimlib.claim_names(pod)
                    if isinstance(
                        claim := self._cluster.get("PersistentVolumeClaim", pod.namespace, name),
                        PersistentVolumeClaim,
                    )
                ],
            )
        )
        found = []
        for driver in sorted(set(self._wanted.values())):
            more = sum(d == driver and h not in attached for h, d in self._wanted.items())
            have = sum(d == driver for d in attached.values())
            limit = limits.get(driver)
            if more and limit is not None and have + more > limit:
                found.append(
                    shortfall(
                        FILTER,
                        REASON,
                        "placement/volume-limit",
                        more,
                        have,
                        limit,
                        subject=driver,
                    )
                )
        return tuple(found)

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """The node's own pods are counted when it is asked."""

    def fork(self) -> Limits:
        return self


def _handles(
    cluster: Cluster, found: tuple[PersistentVolumeClaim, ...] | list[PersistentVolumeClaim]
) -> Iterator[tuple[str, str]]:
    """(unique volume name, driver) of claims on CSI volumes (getCSIDriverInfo)."""
    for claim in found:
        volume = claimlib.volume(cluster, claim.spec.volumeName or "")
        if volume is not None:
            csi = volume.spec.csi or {}
            driver, handle = csi.get("driver"), csi.get("volumeHandle")
            if isinstance(driver, str) and isinstance(handle, str) and driver and handle:
                yield f"{driver}/{handle}", driver
            continue
        cls = claimlib.storage_class(cluster, claimlib.class_name(claim))
        if cls is not None and cls.provisioner:
            # an arbitrary, unique stand-in: the volume does not exist yet
            yield f"{cls.provisioner}/{claim.namespace}/{claim.name}", cls.provisioner


def _limits(cluster: Cluster, node: str) -> dict[str, int]:
    found = cluster.get("CSINode", "", node)
    drivers = (found.spec or {}).get("drivers") if isinstance(found, CSINode) else None
    result = {}
    for driver in drivers or ():
        count = (driver.get("allocatable") or {}).get("count")
        if isinstance(count, int):
            result[str(driver.get("name"))] = count
    return result
