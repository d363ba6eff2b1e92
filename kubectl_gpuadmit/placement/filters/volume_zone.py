"""VolumeZone: zone and region labels of bound volumes must agree with the node's.

Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.filters import claims as claimlib
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.placement.filters.claims import Claims
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "VolumeZone"
REASON = "node(s) had no available volume zone"
REASONS = {
    "placement/volume-zone": "The claim's volume lies in another zone or region. Run there, or use "
    "a volume in the node's zone.",
    "placement/volume-not-found": "A claim names a volume that does not exist. Recreate the claim.",
}

_GENERAL = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS = (*_GENERAL, *_GENERAL.values())
_SEPARATOR = "__"


class _Zone(Struct, frozen=True):
    volume: str
    key: str
    values: frozenset[str]


def reject(cluster: Cluster, claims: Claims) -> tuple[Shortfall, ...]:
    """PreFilter: a bound claim whose volume does not exist refuses everywhere."""
    return tuple(
        shortfall(
            FILTER,
            f'persistentvolume "{name}" not found',
            "placement/volume-not-found",
            permanent=True,
            subject=f"claim {claim.name}, volume {name}",
        )
        for claim in claims.bound
        for name in (claim.spec.volumeName or "",)
        if claimlib.volume(cluster, name) is None
    )


class Zones:
    """Zone labels of a pod's bound volumes."""

    def __init__(self, zones: tuple[_Zone, ...]) -> None:
        self._zones = zones

    @classmethod
    def of(cls, cluster: Cluster, claims: Claims) -> Zones | None:
        """None where no bound volume carries a zone or region label."""
        zones = []
        for claim in claims.bound:
            volume = claimlib.volume(cluster, claim.spec.volumeName or "")
            for key in _LABELS if volume is not None else ():
                text = volume.labels.get(key) if volume is not None else None
                values = [part.strip() for part in text.split(_SEPARATOR)] if text else []
                if volume is not None and values and all(values):
                    zones.append(_Zone(volume.name, key, frozenset(values)))
        return cls(tuple(zones)) if zones else None

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """One shortfall for each zone label that differs; a node without any such label passes."""
        labels = info.labels
        if not any(key in labels for key in _LABELS):
            return ()
        found = []
        for zone in self._zones:
            value = labels.get(zone.key)
            if value is None:
                value = labels.get(_GENERAL.get(zone.key, zone.key))
            if value not in zone.values:
                found.append(
                    shortfall(
                        FILTER,
                        REASON,
                        "placement/volume-zone",
                        permanent=True,
                        subject=f"volume {zone.volume} in {', '.join(sorted(zone.values))}",
                    )
                )
        return tuple(found)

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """Which pod runs where does not change where volumes are."""

    def fork(self) -> Zones:
        return self
