"""How many GPUs a pod's claims ask for: counted, nothing allocated."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import gpus
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.pod_claims import of_pod
from kubectl_gpuadmit.kube.objects import Pod


class Claimed(Struct, frozen=True):
    """DeviceClass -> GPUs."""

    own: dict[str, int] = field(default_factory=dict)
    """Of claims that are made for each pod."""
    shared: dict[str, dict[str, int]] = field(default_factory=dict)
    """Name of a ResourceClaim that others may use too -> its GPUs."""

    @property
    def in_common(self) -> dict[str, int]:
        """Of all the shared claims."""
        return _sum((one, 1) for one in self.shared.values())


def claimed(pod: Pod, cluster: Cluster) -> Claimed:
    """What the pod's claims ask for, as far as the objects are known."""
    if not pod.spec.resourceClaims:
        return Claimed()
    classes = Inventory.of(cluster).classes
    own: list[dict[str, int]] = []
    shared: dict[str, dict[str, int]] = {}
    for entry in of_pod(pod, pod.namespace, cluster):
        asked = gpus.asked(entry.claim, classes) if entry.claim is not None else {}
        if entry.kind == "ResourceClaim":
            shared[entry.object] = asked
        else:
            own.append(asked)
    return Claimed(_sum((one, 1) for one in own), shared)


def total(groups: Iterable[tuple[Claimed, int]]) -> dict[str, int]:
    """(of one pod, number of pods) -> of all of them; a claim that several share counts once."""
    counted = list(groups)
    shared = {name: asked for one, _ in counted for name, asked in one.shared.items()}
    own = [(one.own, pods) for one, pods in counted]
    return _sum((*own, *((asked, 1) for asked in shared.values())))


def _sum(counts: Iterable[tuple[dict[str, int], int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one, times in counts:
        for name, number in one.items():
            found[name] = found.get(name, 0) + number * times
    return dict(sorted(found.items()))
