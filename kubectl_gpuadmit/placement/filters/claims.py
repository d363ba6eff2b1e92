"""The claims behind a pod's volumes, looked up once; shared by the volume filters.

Says what is bound, what waits for its first consumer, what should have been bound already and what
could not be looked up because the kind was not exported.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    StorageClass,
    Volume,
)
from kubectl_gpuadmit.verdict import Level, Unknown

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


class Claims(Struct, frozen=True):
    """A pod's claims by state, each with its name in spec.volumes order."""

    missing: tuple[str, ...] = ()
    """Claims that the pod names and that do not exist."""
    refused: tuple[str, ...] = ()
    """The scheduler's own sentences for claims that are lost or being deleted."""
    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound, and its class waits for the first consumer."""
    immediate: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound although it should be bound before scheduling."""
    unknowns: tuple[Unknown, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.missing or self.refused or self.bound or self.delayed or self.immediate)


_NONE = Claims()


def class_name(claim: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class: the beta annotation first, then spec."""
    beta = claim.annotations.get(BETA_CLASS)
    return beta if beta is not None else claim.spec.storageClassName or ""


def storage_class(cluster: Cluster, name: str) -> StorageClass | None:
    found = cluster.get("StorageClass", "", name)
    return found if isinstance(found, StorageClass) else None


def volume(cluster: Cluster, name: str) -> PersistentVolume | None:
    found = cluster.get("PersistentVolume", "", name)
    return found if isinstance(found, PersistentVolume) else None


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """isPVCFullyBound: names a volume and the binding is complete."""
    return bool(claim.spec.volumeName) and BIND_COMPLETED in claim.annotations


def claim_names(pod: Pod) -> Iterator[tuple[str, Volume]]:
    """(claim name, volume) of volumes that name a claim."""
    for item in pod.spec.volumes or ():
        if item.persistentVolumeClaim is not None:
            yield item.persistentVolumeClaim.claimName, item


def of(cluster: Cluster, pod: Pod) -> Claims:
    """Looks a pod's claims up. Without volumes that need one this costs nothing."""
    volumes = pod.spec.volumes
    if not volumes:
        return _NONE
    wanted = list(claim_names(pod))
    if not wanted and not any(v.ephemeral is not None for v in volumes):
        return _NONE
    unknowns: list[Unknown] = []
    if wanted and not cluster.knows("PersistentVolumeClaim"):
        names = ", ".join(name for name, _ in wanted)
        return Claims(
            unknowns=(
                _unknown(
                    f"PersistentVolumeClaim objects: not in the source, the pod uses {names}",
                    "kubectl get pvc -A -o yaml",
                ),
            )
        )
    groups: dict[str, list[PersistentVolumeClaim]] = {"bound": [], "delayed": [], "immediate": []}
    missing: list[str] = []
    refused: list[str] = []
    for item in volumes:
        if item.persistentVolumeClaim is not None:
            name = item.persistentVolumeClaim.claimName
            claim = cluster.get("PersistentVolumeClaim", pod.namespace, name)
            if isinstance(claim, PersistentVolumeClaim):
                _sort(cluster, claim, groups, refused, unknowns)
            else:
                missing.append(name)
        elif item.ephemeral is not None:
            _ephemeral(cluster, pod, item, groups, refused, unknowns)
    if groups["bound"] and not cluster.knows("PersistentVolume"):
        unknowns.append(
            _unknown("PersistentVolume objects: not in the source", "kubectl get pv -o yaml")
        )
        groups["bound"] = []
    return Claims(
        tuple(missing),
        tuple(refused),
        tuple(groups["bound"]),
        tuple(groups["delayed"]),
        tuple(groups["immediate"]),
        tuple(unknowns),
    )


def _ephemeral(
    cluster: Cluster,
    pod: Pod,
    item: Volume,
    groups: dict[str, list[PersistentVolumeClaim]],
    refused: list[str],
    unknowns: list[Unknown],
) -> None:
    """The claim made for a live pod; for one that is to come, the claim that will be made."""
    claim = cluster.get("PersistentVolumeClaim", pod.namespace, f"{pod.name}-{item.name}")
    if pod.metadata.uid and isinstance(claim, PersistentVolumeClaim):
        if _owned(claim, pod):
            _sort(cluster, claim, groups, refused, unknowns)
        else:
            refused.append(
                f"PVC {claim.namespace}/{claim.name} was not created for pod "
                f"{pod.namespace}/{pod.name} (pod is not owner)"
            )
        return
    made = _of_template(pod, item)
    if made is not None and _unbound(cluster, made)[0] == "delayed":
        groups["delayed"].append(made)
    else:
        unknowns.append(
            _unknown(
                f"volume {item.name!r}: its claim is made with the pod; where its volume will "
                "be is not known",
                level="audit",
            )
        )


def _sort(
    cluster: Cluster,
    claim: PersistentVolumeClaim,
    groups: dict[str, list[PersistentVolumeClaim]],
    refused: list[str],
    unknowns: list[Unknown],
) -> None:
    """Puts a claim that exists where it belongs."""
    if claim.status.phase == "Lost":
        refused.append(
            f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume '
            f'"{claim.spec.volumeName or ""}"'
        )
    elif claim.metadata.deletionTimestamp is not None:
        refused.append(f'persistentvolumeclaim "{claim.name}" is being deleted')
    elif is_bound(claim):
        groups["bound"].append(claim)
    else:
        kind, unknown = _unbound(cluster, claim)
        if unknown is not None:
            unknowns.append(unknown)
        else:
            groups[kind].append(claim)


def _owned(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """metav1.IsControlledBy: the claim's controlling owner is this very pod."""
    return any(
        owner.controller and owner.uid == pod.metadata.uid
        for owner in claim.metadata.ownerReferences or ()
    )


def _unbound(cluster: Cluster, claim: PersistentVolumeClaim) -> tuple[str, Unknown | None]:
    """``delayed`` or ``immediate`` (IsDelayBindingMode); prebound claims count as immediate."""
    name = class_name(claim)
    if claim.spec.volumeName or not name:
        return "immediate", None
    if not cluster.knows("StorageClass"):
        return "", _unknown(
            f"StorageClass {name}: not in the source, claim {claim.name} is unbound",
            "kubectl get storageclass -o yaml",
        )
    found = storage_class(cluster, name)
    waits = found is not None and found.volumeBindingMode == "WaitForFirstConsumer"
    return ("delayed" if waits else "immediate"), None


def _of_template(pod: Pod, item: Volume) -> PersistentVolumeClaim | None:
    """The claim that the ephemeral volume controller will make, None where it cannot be read."""
    template = (item.ephemeral or {}).get("volumeClaimTemplate")
    spec = template.get("spec") if isinstance(template, dict) else None
    try:
        return PersistentVolumeClaim(
            metadata=ObjectMeta(name=f"{pod.name}-{item.name}", namespace=pod.namespace),
            spec=msgspec.convert(spec or {}, PersistentVolumeClaimSpec),
        )
    except msgspec.ValidationError:
        return None


def _unknown(missing: str, hint: str = "", *, level: Level = "warn") -> Unknown:
    return Unknown(rule="placement", missing=missing, level=level, hint=hint, stage="placement")
