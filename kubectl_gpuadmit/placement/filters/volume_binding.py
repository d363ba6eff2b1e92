"""VolumeBinding: bound volumes must be reachable from the node, others must be possible there.

Sources: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go) and
component-helpers storage/volume. The translation of in-tree volumes to CSI is not evaluated.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import (
    Generic,
    LabelSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Resources,
    StorageClass,
    TopologySelectorTerm,
)
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.kube.selectors import Selector, label_selector, node_selector_matches
from kubectl_gpuadmit.placement.filters import claims as claimlib
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.placement.filters.claims import Claims
from kubectl_gpuadmit.verdict import Shortfall, Unknown

FILTER = "VolumeBinding"
REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_BIND = "node(s) didn't find available persistent volumes to bind"
REASON_NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASON_SPACE = "node(s) did not have enough free storage"
REASON_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
REASONS = {
    "placement/volume-unusable": "A claim of the pod has lost its volume or is being deleted. "
    "Recreate the claim.",
    "placement/volume-unbound": "A claim that must be bound before scheduling is not bound yet. "
    "See `kubectl describe pvc`; its class may not exist or its provisioner may be stuck.",
    "placement/volume-affinity": "The claim's volume can be reached from other nodes only. Run "
    "there or use storage that is reachable from these nodes.",
    "placement/volume-no-match": "No free volume matches the claim on this node, and its class "
    "cannot provision one there. Create a volume, or correct the class or its topologies.",
    "placement/volume-space": "The storage driver says that too little space is left for the claim "
    "where this node can reach it. Ask for less, free space, or run elsewhere.",
    "placement/volume-gone": "A claim is bound to a volume that does not exist any more. Recreate "
    "the claim.",
}
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def reject(claims: Claims) -> tuple[Shortfall, ...]:
    """PreFilter: lost or deleted claims, and immediate ones that are not bound."""
    found = [
        shortfall(FILTER, text, "placement/volume-unusable", permanent=True, subject=text)
        for text in claims.refused
    ]
    if claims.immediate:
        names = ", ".join(c.name for c in claims.immediate)
        found.append(
            shortfall(
                FILTER,
                REASON_UNBOUND,
                "placement/volume-unbound",
                permanent=True,
                until=f"claim {names} is bound",
                subject=names,
            )
        )
    return tuple(found)


class _Waiting(Struct, frozen=True):
    """An unbound claim with what could satisfy it."""

    claim: PersistentVolumeClaim
    volumes: tuple[PersistentVolume, ...]
    storage_class: StorageClass | None
    size: int
    sized: bool
    """Whether it asks for an amount of storage at all."""
    bytes: int
    order: int
    """Position among the pod's volumes."""


class Binding:
    """A pod's bound and waiting claims. Pods that come or go change nothing here."""

    def __init__(self, cluster: Cluster, claims: Claims) -> None:
        self._bound = tuple(
            (claim, claimlib.volume(cluster, claim.spec.volumeName or "")) for claim in claims.bound
        )
        self._capacities = _capacities(cluster)
        self._publishing = _publishing(cluster)
        available = [
            v for v in cluster.every("PersistentVolume") if isinstance(v, PersistentVolume)
        ]
        # smallest claims first, as findMatchingVolumes, so that each gets the smallest volume
        self._waiting = tuple(
            sorted(
                (
                    _Waiting(
                        claim,
                        tuple(v for v in available if claimlib.class_name(v) == name),
                        claimlib.storage_class(cluster, name),
                        _storage(claim).nano,
                        "storage" in _asked(claim),
                        _storage(claim).value(),
                        order,
                    )
                    for order, claim in enumerate(claims.delayed)
                    for name in (claimlib.class_name(claim),)
                ),
                key=lambda w: w.size,
            )
        )

    @classmethod
    def of(cls, cluster: Cluster, claims: Claims) -> Binding | None:
        """None for a pod without bound or waiting claims."""
        return cls(cluster, claims) if claims.bound or claims.delayed else None

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        found: list[Shortfall] = []
        gone = False
        for claim, volume in self._bound:
            if volume is None:
                gone = True
                break
            if not _reachable(volume, info):
                found.append(
                    shortfall(
                        FILTER,
                        REASON_AFFINITY,
                        "placement/volume-affinity",
                        permanent=True,
                        subject=f"claim {claim.name}, volume {volume.name}",
                    )
                )
                break
        unmatched, reason = self._unmatched(info)
        if unmatched:
            code = (
                "placement/volume-space" if reason == REASON_SPACE else "placement/volume-no-match"
            )
            found.append(
                shortfall(FILTER, reason, code, permanent=True, subject=f"claim {unmatched}")
            )
        if gone:
            found.append(
                shortfall(FILTER, REASON_NO_VOLUME, "placement/volume-gone", permanent=True)
            )
        return tuple(found)

    def _unmatched(self, info: NodeInfo) -> tuple[str, str]:
        """(name, reason) of the first claim that this node cannot satisfy, '' if none."""
        selected_here: list[_Waiting] = []
        to_provision: list[_Waiting] = []
        taken: set[str] = set()
        for waiting in self._waiting:
            selected = waiting.claim.annotations.get(claimlib.SELECTED_NODE)
            if selected is not None and selected != info.name:
                return waiting.claim.name, REASON_BIND
        for waiting in self._waiting:
            if claimlib.SELECTED_NODE in waiting.claim.annotations:
                selected_here.append(waiting)
                continue
            volume = _smallest(waiting, info, taken)
            if volume is None:
                to_provision.append(waiting)
            else:
                taken.add(volume.name)
        for waiting in (*sorted(selected_here, key=lambda w: w.order), *to_provision):
            found = waiting.storage_class
            if found is None or found.provisioner in (None, "", NO_PROVISIONER):
                return waiting.claim.name, REASON_BIND
            if not _allowed(found.allowedTopologies, info.labels):
                return waiting.claim.name, REASON_BIND
            if not self._space(waiting, found, info):
                return waiting.claim.name, REASON_SPACE
        return "", ""

    def _space(self, waiting: _Waiting, found: StorageClass, info: NodeInfo) -> bool:
        """hasEnoughCapacity: one published capacity that the node reaches is large enough alone."""
        if found.provisioner not in self._publishing or not waiting.sized:
            return True
        return any(
            name == found.name and size >= waiting.bytes and topology.matches(info.labels)
            for name, size, topology in self._capacities
        )

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """Which pod runs where does not change where volumes are."""

    def fork(self) -> Binding:
        return self


def _publishing(cluster: Cluster) -> frozenset[str]:
    """Drivers that publish CSIStorageCapacity, where that can be looked at."""
    if not cluster.knows("CSIStorageCapacity"):
        return frozenset()
    return frozenset(
        driver.name
        for driver in cluster.every("CSIDriver")
        if isinstance(driver, Generic)
        and ((driver.document.get("spec") or {}).get("storageCapacity") is True)
    )


def _capacities(cluster: Cluster) -> tuple[tuple[str, int, Selector], ...]:
    """(storage class, bytes of the largest volume, where) of every published capacity."""
    found = []
    for item in cluster.every("CSIStorageCapacity"):
        if not isinstance(item, Generic):
            continue
        document = item.document
        limit = document.get("maximumVolumeSize", document.get("capacity"))
        topology = document.get("nodeTopology")
        if limit is None or topology is None:
            continue
        try:
            size = quantity.parse(limit).value()
            selector = label_selector(msgspec.convert(topology, LabelSelector))
        except (quantity.QuantityError, msgspec.ValidationError):
            continue
        found.append((str(document.get("storageClassName", "")), size, selector))
    return tuple(found)


def unknowns(cluster: Cluster, claims: Claims) -> tuple[Unknown, ...]:
    """Free space that a CSI driver publishes, where those objects are not in the source."""
    if cluster.knows("CSIStorageCapacity"):
        return ()
    found = []
    for claim in claims.delayed:
        cls = claimlib.storage_class(cluster, claimlib.class_name(claim))
        driver = cluster.get("CSIDriver", "", (cls.provisioner or "") if cls else "")
        spec = driver.document.get("spec") if isinstance(driver, Generic) else None
        if isinstance(spec, dict) and spec.get("storageCapacity"):
            found.append(
                Unknown(
                    rule="placement",
                    missing=f"free space for claim {claim.name}: CSIStorageCapacity objects are"
                    " not in the source",
                    level="audit",
                    hint="kubectl get csistoragecapacities -A -o yaml",
                    stage="placement",
                )
            )
    return tuple(found)


def _reachable(volume: PersistentVolume, info: NodeInfo) -> bool:
    """CheckNodeAffinity: against labels only, so that matchFields decide nothing."""
    affinity = volume.spec.nodeAffinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector_matches(affinity.required, info.labels, "")


def _asked(item: PersistentVolumeClaim) -> Resources:
    resources = item.spec.resources
    return (resources.requests or {}) if resources is not None else {}


def _storage(item: PersistentVolumeClaim) -> Quantity:
    return quantity.parse(_asked(item).get("storage", "0"))


def _smallest(waiting: _Waiting, info: NodeInfo, taken: set[str]) -> PersistentVolume | None:
    """FindMatchingVolume: the volume bound to the claim by name, else the smallest that fits."""
    claim = waiting.claim
    selector = label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    best: PersistentVolume | None = None
    best_size = 0
    for volume in waiting.volumes:
        spec = volume.spec
        reserved = spec.claimRef is not None
        if volume.name in taken or (reserved and not _reserved_for(volume, claim)):
            continue
        size = quantity.parse((spec.capacity or {}).get("storage", "0")).nano
        if (
            size < waiting.size
            or (claim.spec.volumeMode or "Filesystem") != (spec.volumeMode or "Filesystem")
            or (claim.spec.volumeAttributesClassName or "")
            != (spec.volumeAttributesClassName or "")
            or volume.metadata.deletionTimestamp is not None
        ):
            continue
        if reserved:
            return volume if _reachable(volume, info) else None
        if (
            volume.status.phase == "Available"
            and (selector is None or selector.matches(volume.labels))
            and _reachable(volume, info)
            and set(claim.spec.accessModes or ()) <= set(spec.accessModes or ())
            and (best is None or size < best_size)
        ):
            best, best_size = volume, size
    return best


def _reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    ref = volume.spec.claimRef
    return (
        ref is not None
        and ref.name == claim.name
        and (ref.namespace or "") == claim.namespace
        and (not ref.uid or ref.uid == claim.metadata.uid)
    )


def _allowed(terms: tuple[TopologySelectorTerm, ...] | None, labels: dict[str, str]) -> bool:
    """MatchTopologySelectorTerms: no list allows all, an empty term none."""
    if not terms:
        return True
    return any(
        term.matchLabelExpressions
        and all(labels.get(e.key) in (e.values or ()) for e in term.matchLabelExpressions)
        for term in terms
    )
