"""VolumeRestrictions: a ReadWriteOncePod claim in use, and disks that two pods may not share.

Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod, Volume
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.placement.filters.claims import Claims, claim_names
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "VolumeRestrictions"
REASON_DISK = "node(s) had no available disk"
REASON_ONCE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
REASONS = {
    "placement/volume-missing": "A PersistentVolumeClaim that the pod names does not exist. "
    "Create it in the pod's namespace or correct the claimName.",
    "placement/volume-in-use": "A ReadWriteOncePod claim is used by another pod. Wait until that "
    "pod ends or use another access mode.",
    "placement/volume-conflict": "A pod on the node mounts the same disk. Mount it read-only in "
    "all pods, or use another node.",
}


def reject(claims: Claims) -> tuple[Shortfall, ...]:
    """PreFilter: a claim that does not exist refuses everywhere."""
    return tuple(
        shortfall(
            FILTER,
            f'persistentvolumeclaim "{name}" not found',
            "placement/volume-missing",
            permanent=True,
            subject=name,
        )
        for name in claims.missing
    )


class Restrictions:
    """Uses of the pod's ReadWriteOncePod claims, and its disks."""

    def __init__(self, cluster: Cluster, pod: Pod, once: frozenset[str]) -> None:
        self._namespace = pod.namespace
        self._once = once
        self._disks = tuple(v for v in pod.spec.volumes or () if _is_disk(v))
        self._uses = 0
        self._trial = False
        self._skipped = False
        if once:
            used = {
                name
                for info in cluster.nodes.values()
                for other in info.pods
                if other.spec.volumes and other.namespace == self._namespace
                for name, _ in claim_names(other)
            }
            self._uses = len(once & used)

    @classmethod
    def of(cls, cluster: Cluster, pod: Pod, claims: Claims) -> Restrictions | None:
        """None for a pod without such volumes."""
        once = frozenset(
            claim.name
            for group in (claims.bound, claims.delayed, claims.immediate)
            for claim in group
            if "ReadWriteOncePod" in (claim.spec.accessModes or ())
        )
        if not once and not any(_is_disk(v) for v in pod.spec.volumes or ()):
            return None
        return cls(cluster, pod, once)

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        if self._skipped:
            return ()
        found = [
            shortfall(FILTER, REASON_DISK, "placement/volume-conflict", subject=disk.name)
            for disk in self._disks
            if any(_conflict(disk, other) for pod in info.pods for other in pod.spec.volumes or ())
        ]
        if self._uses > 0:
            found.append(
                shortfall(
                    FILTER,
                    REASON_ONCE,
                    "placement/volume-in-use",
                    subject=", ".join(sorted(self._once)),
                )
            )
        return tuple(found)

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        if pod.namespace == self._namespace:
            self._uses += by * sum(name in self._once for name, _ in claim_names(pod))

    def fork(self) -> Restrictions:
        """Without disks, and with claims that nobody uses, PreFilter skips the filter for good."""
        twin = object.__new__(Restrictions)
        twin.__dict__.update(self.__dict__)
        if not self._trial:
            twin._trial = True
            twin._skipped = not self._disks and self._uses <= 0
        return twin


def _is_disk(item: Volume) -> bool:
    return (
        item.gcePersistentDisk is not None
        or item.awsElasticBlockStore is not None
        or item.rbd is not None
        or item.iscsi is not None
    )


def _conflict(mine: Volume, other: Volume) -> bool:
    """isVolumeConflict: the same disk, unless every mount that may be read-only is."""
    if _same(mine.gcePersistentDisk, other.gcePersistentDisk, "pdName"):
        return not _read_only(mine.gcePersistentDisk, other.gcePersistentDisk)
    if _same(mine.awsElasticBlockStore, other.awsElasticBlockStore, "volumeID"):
        return True
    if _same(mine.iscsi, other.iscsi, "iqn"):
        return not _read_only(mine.iscsi, other.iscsi)
    if mine.rbd is not None and other.rbd is not None:
        a, b = mine.rbd, other.rbd
        monitors = set(a.get("monitors") or ()) & set(b.get("monitors") or ())
        if (
            monitors
            and a.get("pool", "rbd") == b.get("pool", "rbd")
            and a.get("image") == b.get("image")
        ):
            return not _read_only(a, b)
    return False


def _same(a: dict[str, Any] | None, b: dict[str, Any] | None, key: str) -> bool:
    return a is not None and b is not None and a.get(key) == b.get(key)


def _read_only(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    return bool(a and a.get("readOnly") and b and b.get("readOnly"))
