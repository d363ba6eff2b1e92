"""Devices that stand for resources of their node: what a pod's claims draw of its cpu and the like.

Source: pkg/scheduler/framework/plugins/dynamicresources (nodeallocatabledynamicresources.go;
gate DRANodeAllocatableResources), v1.37.2; what a device draws is ``devices.node_allocatable``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices import extended, node_allocatable
from kubectl_gpuadmit.devices.allocator import Features, Unsure
from kubectl_gpuadmit.devices.allocator.pools import Shelves
from kubectl_gpuadmit.devices.inventory import Published
from kubectl_gpuadmit.devices.model import Allocation, Allotted, Claim, Device, DeviceId
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.amounts import amount as spelt
from kubectl_gpuadmit.placement.filters import allocated_claims, shortfall
from kubectl_gpuadmit.placement.filters.pod_claims import FILTER
from kubectl_gpuadmit.verdict import Shortfall

REASONS = {
    "placement/devices-draw": (
        "The claims' devices stand for cpu, memory or the like of their node, and with what the "
        "containers request that is more than the node has left. Ask for fewer devices or request "
        "less."
    ),
    "placement/claim-not-shared": (
        "The claim's devices stand for cpu, memory or the like of their node, and another pod uses "
        "it: such a claim is not shared. Give the pod a claim of its own."
    ),
    "placement/pod-amounts-below-devices": (
        "The pod's own requests (spec.resources) are less than what its containers ask for and its "
        "claims draw together. Raise them."
    ),
}
_OF_NODES = ("cpu", "memory", "ephemeral-storage")


class NodeDraws:
    """Of one pod."""

    def __init__(
        self, pod: Pod, features: Features, published: Published, shelves: Shelves
    ) -> None:
        self._pod = pod
        self._features = features
        self._published = published
        self._shelves = shelves
        self._devices: dict[DeviceId, list[Device]] | None = None

    def shared(self, claims: Iterable[Claim], info: NodeInfo) -> Shortfall | None:
        """A claim that another pod has reserved and whose devices stand for the node's cpu or the
        like is not to be shared."""
        uid = self._pod.metadata.uid or ""
        for claim in claims:
            if claim.allocation is None or not claim.reserved_for:
                continue
            if allocated_claims.off(claim, info, self._features):
                continue
            if not any(uid and one.uid == uid for one in claim.reserved_for) and (
                node_allocatable.maps(claim.allocation, self._anywhere)
            ):
                text = (
                    f"node allocatable resource claim {claim.name} has a mapped device and cannot"
                    " be shared across pods"
                )
                return _refused(text, "placement/claim-not-shared", claim.name)
        return None

    def short(
        self, info: NodeInfo, draws: tuple[node_allocatable.Draw, ...]
    ) -> tuple[Shortfall, ...]:
        """What the node lacks of its resources once the claims' devices have drawn on them."""
        if not draws:
            return ()
        if text := node_allocatable.uncovered(self._pod, draws):
            return (_refused(text, "placement/pod-amounts-below-devices"),)
        wanted = pods.requests(node_allocatable.with_draws(self._pod, draws))
        found = []
        for name, amount in wanted.items():
            if name not in _OF_NODES and not name.startswith("hugepages-"):
                continue
            there, used = info.allocatable.get(name, 0), info.used.get(name, 0)
            if amount > there - used and amount > 0:
                found.append((name, amount, used, there))
        found.sort(key=lambda one: (*_OF_NODES, one[0]).index(one[0]))
        never = any(amount > there for _, amount, _, there in found)
        return tuple(
            shortfall(
                FILTER,
                f"Insufficient {name}",
                "placement/devices-draw",
                amount,
                used,
                there,
                permanent=never,
                subject=f"{name}: containers and devices ask for {spelt(name, amount)},"
                f" {spelt(name, used)} of {spelt(name, there)} used",
            )
            for name, amount, used, there in found
        )

    def must_be_sure(self, info: NodeInfo) -> None:
        """Raises Unsure where others than the devices found may be chosen and draw otherwise."""
        if self._features.orders_pools:
            return
        pools = self._shelves.pools(info)
        slices = {device.slice for pool in pools for device in pool.devices}
        if len(slices) > 1 and any(
            device.raw.nodeAllocatableResources for pool in pools for device in pool.devices
        ):
            raise Unsure(
                "which devices are chosen hangs on the order in which pools are tried, which this"
                " scheduler has not fixed, and some of them draw on their node's resources"
            )

    def of(
        self,
        info: NodeInfo,
        claims: tuple[Claim, ...],
        pairs: tuple[tuple[Claim, Allocation], ...],
    ) -> tuple[node_allocatable.Draw, ...]:
        """Of each claim of the pod with such devices; ``pairs``: what claims would get on the
        node. Raises Fatal."""
        given = {id(claim): one for claim, one in pairs}
        mine = [(claim, given.get(id(claim), claim.allocation)) for claim in claims]
        own = [(c, a) for c, a in pairs if c.name == extended.CLAIM_NAME]
        found = []
        for claim, allocation in (*mine, *own):
            if allocation is None:
                continue
            draw = node_allocatable.of_claim(claim, allocation, lambda one: self._seen(one, info))
            if draw is not None:
                draw.containers = self._times_named(claim, claims)
                found.append(draw)
        return tuple(found)

    def _times_named(self, claim: Claim, claims: tuple[Claim, ...]) -> int:
        spec = self._pod.spec
        named = dict(zip((one.name for one in spec.resourceClaims or ()), claims, strict=False))
        return sum(
            named.get(one.name) is claim
            for container in (*(spec.initContainers or ()), *(spec.containers or ()))
            for one in ((container.resources.claims or ()) if container.resources else ())
        )

    def _by_id(self) -> dict[DeviceId, list[Device]]:
        """Every device that is published under an id, of older generations too."""

        def made() -> dict[DeviceId, list[Device]]:
            found: dict[DeviceId, list[Device]] = {}
            for slice in self._published.slices_with(rules=False):
                for device in slice.devices:
                    found.setdefault(device.id, []).append(device)
            return found

        if self._devices is None:
            self._devices = made()
        return self._devices

    def _anywhere(self, one: Allotted) -> Device | None:
        return next(iter(self._by_id().get(one.device, ())), None)

    def _seen(self, one: Allotted, info: NodeInfo) -> Device | str:
        """The device as published for the node, or why it is not."""
        shelves = self._shelves
        for device in self._by_id().get(one.device, ()):
            if not shelves.concerns(device.slice, info):
                continue
            if device.slice.per_device and not shelves.reaches(device, info):
                return f"device {one.device.device} does not match node"
            return device
        return (
            f"device {one.device.device} not found in pool {one.device.pool} for driver"
            f" {one.device.driver}"
        )


def _refused(text: str, code: str, subject: str = "") -> Shortfall:
    return shortfall(FILTER, text, code, permanent=True, subject=subject)
