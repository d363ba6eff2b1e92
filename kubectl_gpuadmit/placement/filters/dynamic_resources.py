"""DynamicResources: whether a node can serve the pod's ResourceClaims, and with which devices.

Source: pkg/scheduler/framework/plugins/dynamicresources (PreFilter, Filter, Reserve), v1.37.2; the
allocation itself is ``devices.allocator``. Pods on the node do not matter to it: a claim keeps its
devices until its pod has ended, and preemption counts on none of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices import allocator, extended, node_allocatable, normal
from kubectl_gpuadmit.devices.allocator import (
    Allocator,
    Fatal,
    Features,
    Found,
    NodeRefused,
    Unsure,
)
from kubectl_gpuadmit.devices.inventory import Inventory, Published, published
from kubectl_gpuadmit.devices.model import Allocation, Allotted, Claim, Device, DeviceId, PoolId
from kubectl_gpuadmit.kube import dra, pods, selectors, times
from kubectl_gpuadmit.kube.objects import ObjectMeta, OwnerReference, Pod
from kubectl_gpuadmit.placement.amounts import amount as spelt
from kubectl_gpuadmit.placement.filters import pod_claims, shortfall
from kubectl_gpuadmit.placement.filters.pod_claims import FILTER, PodClaims
from kubectl_gpuadmit.placement.filters.resources_fit import Asked
from kubectl_gpuadmit.verdict import Shortfall, Unknown

CANNOT = "cannot allocate all claims"
ELSEWHERE = "resourceclaim not available on the node"
STALE = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
INVALID = "invalid resource pools were encountered"

REASONS = {
    "placement/no-devices": (
        "No device is left on these nodes that the pod's ResourceClaims ask for, or none ever "
        "was. Ask for what the devices offer, or wait until claims are released."
    ),
    "placement/claim-elsewhere": (
        "The pod's ResourceClaim has devices on other nodes. Run the pod there, or give it a "
        "claim of its own."
    ),
    "placement/pools-invalid": (
        "A DRA driver has published slices that contradict each other, so none of their devices"
        " is used. Restart the driver on that node and read its log."
    ),
    "placement/extended-stale": (
        "A claim for the pod's extended resources is left from an earlier attempt. The "
        "scheduler deletes it and tries again."
    ),
    "placement/extended-unserved": (
        "An extended resource is neither advertised by the node nor mapped to devices there. "
        "Check the DeviceClass's extendedResourceName and the device plugin."
    ),
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
    "placement/attempt-fails": (
        "The scheduler gives the pod up with an error, whatever other nodes offer: a selector "
        "fails on a device, or a request for all devices meets a pool that is being updated. "
        "Correct the claim or class that the text names."
    ),
}
ABORTS = "placement/attempt-fails"
_MOST_HOLDERS = 128
_OF_NODES = ("cpu", "memory", "ephemeral-storage")
BINDING_TIMEOUT = dt.timedelta(minutes=10)
"""DynamicResourcesArgs.bindingTimeout: how long devices may take to be attached."""


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


class DynamicResources:
    """Made once per pod; ``assume`` keeps it up to date with the replicas placed so far."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        found: PodClaims,
        supplied: frozenset[str],
        *,
        kubernetes: str,
        now: dt.datetime | None,
    ) -> None:
        self._cluster = cluster
        self._pod = pod
        self._kubernetes = kubernetes
        self._now = now
        self._features: Features = allocator.of(kubernetes, cluster.gates)
        self._supplied = supplied
        self._found = found
        self._unfollowed = self._features.unfollowed
        """Why nothing can be said of the pod's claims here, '' where it can."""
        group = pod.spec.schedulingGroup
        if self._features.workload_claims and group is not None and group.podGroupName:
            self._unfollowed = (
                f"DRAWorkloadResourceClaims is on, and the pod belongs to PodGroup"
                f" {group.podGroupName}: claims of PodGroups are not followed"
            )
        self._published: Published = published(cluster)
        self._classes = self._published.classes
        self._backed = {
            name: class_
            for name, class_ in extended.backed(self._classes.values()).items()
            if name in supplied
        }
        self._stale = pod_claims.extended_claim(cluster, pod) if supplied else None
        self._claims = found.claims
        self._open: tuple[tuple[Claim, ...], tuple[Claim, ...]] = ((), ())
        self._no_devices: dict[tuple[int, ...], tuple[list[Claim], tuple[Shortfall, ...]]] = {}
        self._answers: dict[str, tuple[Shortfall, ...]] = {}
        self._allocations: dict[str, tuple[list[Claim], Found]] = {}
        self._of_resources: dict[tuple[str, ...], Claim] = {}
        self._unsure: dict[str, str] = {}
        self._judged_as: dict[str, NodeInfo] = {}
        self._devices: dict[DeviceId, list[Device]] | None = None
        self.lacking: set[str] = set()
        self.failed: dict[str, Fatal] = {}
        """Names of nodes on which no devices were found, so far."""
        self._allocator: Allocator | None = None
        self._state: allocator.State | None = None
        self.rejections = self._rejections()

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        pod: Pod,
        supplied: frozenset[str],
        *,
        kubernetes: str,
        now: dt.datetime | None = None,
    ) -> DynamicResources | None:
        """None for a pod that has nothing to do with DRA."""
        found = pod_claims.of(cluster, pod, kubernetes=kubernetes)
        if not (pod.spec.resourceClaims or supplied):
            return None
        return cls(cluster, pod, found, supplied, kubernetes=kubernetes, now=now)

    # -- before any node ---------------------------------------------------------------------

    def _rejections(self) -> tuple[Shortfall, ...]:
        if self._unfollowed:
            return ()
        if self._found.refused:
            return self._found.refused
        if not self._cluster.knows("DeviceClass"):
            return ()
        for claim in self._claims:
            refusal = pod_claims.against(
                claim,
                self._pod,
                self._classes,
                alternatives=self._features.prioritized_list,
            )
            if refusal is not None:
                return (refusal,)
        return ()

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """What the source does not hold and the answer hangs on."""
        if self._unfollowed:
            return (_unknown(self._unfollowed),)
        if self.rejections:
            return ()
        found = list(self._found.unknowns)
        if self.to_allocate or self._supplied:
            for kind, plural in (
                ("ResourceSlice", "resourceslices"),
                ("DeviceClass", "deviceclasses"),
                ("ResourceClaim", "resourceclaims"),
            ):
                if not self._cluster.knows(kind):
                    found.append(
                        _unknown(
                            f"{kind} objects: not in the source",
                            f"kubectl get {plural} -A -o yaml",
                        )
                    )
            found += [
                _unknown(f"{outdated.detail}: it is not counted")
                for outdated in self._published.outdated
            ]
            if self._features.device_taint_rules and not self._cluster.knows("DeviceTaintRule"):
                found.append(
                    _unknown(
                        "DeviceTaintRule objects: not in the source, one could taint the devices",
                        "kubectl get devicetaintrules -o yaml",
                        level="audit",
                    )
                )
        found += [_unknown(text) for text in dict.fromkeys(self._unsure.values())]
        return tuple(found)

    def asks(self, info: NodeInfo | None) -> tuple[Claim, ...]:
        """The pod's claims that have no devices yet, and the one that stands for the extended
        resources which a node would have to serve by devices."""
        own = self._extended(info) if info is not None and self._supplied else None
        return (*self.to_allocate, *((own,) if isinstance(own, Claim) else ()))

    @property
    def to_allocate(self) -> tuple[Claim, ...]:
        """The pod's claims that have no devices yet."""
        if self._open[0] is not self._claims:
            waiting = tuple(claim for claim in self._claims if claim.allocation is None)
            self._open = (self._claims, waiting)
        return self._open[1]

    # -- node by node ------------------------------------------------------------------------

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """What speaks against the node. A shortfall of code ``ABORTS`` ends the whole attempt."""
        if self.rejections or self._unfollowed:
            return ()
        if self._features.node_allocatable and self._judged_as.get(info.name) is not info:
            self._answers.pop(info.name, None)  # the pods on the node matter, too
            self._judged_as[info.name] = info
        found = self._answers.get(info.name)
        if found is None:
            found = self._answers[info.name] = self._judged(info)
        return found

    def _judged(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        claims = list(self.to_allocate)
        if self._supplied:
            own = self._extended(info)
            if isinstance(own, Shortfall):
                return (own,)
            if own is None and not self._claims:
                return ()
            if own is not None:
                claims.append(own)
        away = [claim for claim in self._claims if self._is_away(claim, info)]
        if self._features.node_allocatable and (shared := self._shared_draw(info)) is not None:
            return (shared,)
        if claims:
            try:
                found = self._with_state().allocate(info, claims)
            except Fatal as problem:
                self.failed[info.name] = problem
                return (_refused(str(problem), ABORTS, problem.general),)
            except NodeRefused as problem:
                return (_refused(str(problem), "placement/pools-invalid"),)
            except Unsure as problem:
                self._unsure[info.name] = str(problem)
                return ()
            if found is None:
                self.lacking.add(info.name)
                key = tuple(map(id, claims))
                if key not in self._no_devices:
                    text = self._named(claims)
                    refused = _refused(CANNOT, "placement/no-devices", text)
                    self._no_devices[key] = (claims, (refused,))
                return self._no_devices[key][1]
            self._allocations[info.name] = (claims, found)
        if self._features.node_allocatable:
            try:
                self._must_be_sure_of_draws(info)
                short = self._short_of_node(info)
            except Fatal as problem:
                return (_refused(str(problem), ABORTS, problem.general),)
            except Unsure as problem:
                self._unsure[info.name] = str(problem)
                return ()
            if short:
                return short
        if away:
            return (_refused(ELSEWHERE, "placement/claim-elsewhere", self._named(away)),)
        return ()

    # -- devices that stand for resources of their node ------------------------------------------

    def _shared_draw(self, info: NodeInfo) -> Shortfall | None:
        """A claim that another pod has reserved and whose devices stand for the node's cpu or the
        like is not to be shared."""
        uid = self._pod.metadata.uid or ""
        for claim in self._claims:
            if claim.allocation is None or not claim.reserved_for or self._off(claim, info):
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

    def _short_of_node(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """What the node lacks of its resources once the claims' devices have drawn on them."""
        draws = self._draws(info)
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

    def _must_be_sure_of_draws(self, info: NodeInfo) -> None:
        """Raises Unsure where others than the devices found may be chosen and draw otherwise."""
        if self._features.orders_pools or info.name not in self._allocations:
            return
        pools = self._stock().shelves.pools(info)
        slices = {device.slice for pool in pools for device in pool.devices}
        if len(slices) > 1 and any(
            device.raw.nodeAllocatableResources for pool in pools for device in pool.devices
        ):
            raise Unsure(
                "which devices are chosen hangs on the order in which pools are tried, which this"
                " scheduler has not fixed, and some of them draw on their node's resources"
            )

    def _draws(self, info: NodeInfo) -> tuple[node_allocatable.Draw, ...]:
        """Of each claim of the pod with such devices. Raises Fatal."""
        claims, answer = self._allocations.get(info.name, ([], None))
        pairs = list(zip(claims, answer.allocations, strict=True)) if answer is not None else []
        given = {id(claim): one for claim, one in pairs}
        mine = [(claim, given.get(id(claim), claim.allocation)) for claim in self._claims]
        own = [(c, a) for c, a in pairs if c.name == extended.CLAIM_NAME]
        found = []
        for claim, allocation in (*mine, *own):
            if allocation is None:
                continue
            draw = node_allocatable.of_claim(claim, allocation, lambda one: self._seen(one, info))
            if draw is not None:
                draw.containers = self._times_named(claim)
                found.append(draw)
        return tuple(found)

    def _times_named(self, claim: Claim) -> int:
        spec = self._pod.spec
        named = dict(
            zip((one.name for one in spec.resourceClaims or ()), self._claims, strict=False)
        )
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
        shelves = self._stock().shelves
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

    def _named(self, claims: Iterable[Claim]) -> str:
        """Claims as the pod's author knows them: those of templates by the pod's name for them."""
        names = []
        for claim in claims:
            made = claim.raw is not None and claim.raw in self._found.created
            if claim.name == extended.CLAIM_NAME:
                names += sorted(self._supplied)
            elif made and claim.raw is not None:
                names.append(f"claim {claim.raw.annotations.get(dra.POD_CLAIM_NAME)}")
            else:
                names.append(f"claim {claim.name}")
        return " and ".join(names)

    # -- what would help -----------------------------------------------------------------------

    def incomplete(self) -> tuple[str, ...]:
        """Pools that are being updated, on nodes that lack devices: ``driver/pool: 1 of 2``."""
        found: dict[PoolId, None] = {}
        stock = self._stock()
        for name in self.lacking:
            for pool in stock.shelves.pools(self._cluster.nodes[name]):
                if not pool.complete:
                    found[pool.id] = None
        pools = self._published.pools
        return tuple(
            f"resource pool {id} is complete ({len(pools[id].slices)} of {pools[id].expected}"
            " slices are there)"
            for id in sorted(found)
        )

    def holders(self, info: NodeInfo) -> tuple[Claim, ...]:
        """Claims whose release would let the node serve the pod, few of them; () for none.

        Those of the pod itself are not among them.
        """
        claims = list(self.to_allocate)
        if self._supplied:
            own = self._extended(info)
            if isinstance(own, Shortfall):
                return ()
            claims += [own] if own is not None else []
        stock = self._stock()
        pools = {tuple(pool.id) for pool in stock.shelves.pools(info)}
        there = [
            claim
            for claim in Inventory.of(self._cluster).claims.values()
            if claim.allocation is not None
            and any(
                (one.device.driver, one.device.pool) in pools for one in claim.allocation.devices
            )
        ]

        def serves(kept: list[Claim]) -> bool:
            given = (claim.allocation for claim in kept if claim.allocation is not None)
            state = allocator.State.of(given, self._features)
            try:
                return Allocator(stock, state).allocate(info, claims) is not None
            except (Fatal, NodeRefused, Unsure):
                return False

        if len(there) > _MOST_HOLDERS or not serves([]):
            return ()
        kept: list[Claim] = []
        gone: list[Claim] = []
        for claim in there:
            if serves([*kept, claim]):
                kept.append(claim)
            else:
                gone.append(claim)
        return tuple(gone)

    def allocations(self, info: NodeInfo) -> tuple[tuple[Claim, Allocation], ...]:
        """What the claims would get on the node, () where they get nothing there."""
        return () if self.judge(info) else self._given(info)

    def _given(self, info: NodeInfo) -> tuple[tuple[Claim, Allocation], ...]:
        if info.name not in self._allocations:
            return ()
        claims, found = self._allocations[info.name]
        return tuple(zip(claims, found.allocations, strict=True))

    def score(self, info: NodeInfo) -> int:
        """How far up in their lists the alternatives are that the node would give.

        Source: computeScore in dynamicresources.go.
        """
        own: dict[int, frozenset[str]] = {}
        if info.name in self._allocations:
            claims, found = self._allocations[info.name]
            own = {id(claim): found.requests(number) for number, claim in enumerate(claims)}
        total = 0
        for claim in self._claims:
            held = claim.allocation.devices if claim.allocation is not None else ()
            names = own.get(id(claim)) or frozenset(one.request for one in held)
            for request in claim.requests:
                for place, want in enumerate(request.first_available):
                    if request.full_name(want) in names:
                        total += 8 - place
        return total

    @property
    def scores(self) -> bool:
        """Whether nodes can differ in score."""
        return any(request.first_available for c in self._claims for request in c.requests)

    def _stock(self) -> allocator.Stock:
        stock = self._cluster.remembered(
            ("stock", self._kubernetes, self._features),
            ("DeviceClass", "DeviceTaintRule", "ResourceSlice"),
            lambda: allocator.stock(
                self._published, kubernetes=self._kubernetes, gates=self._cluster.gates
            ),
        )
        assert isinstance(stock, allocator.Stock)
        return stock

    def _with_state(self) -> Allocator:
        if self._allocator is None:
            stock = self._stock()
            claims = Inventory.of(self._cluster).claims.values()
            given = (claim.allocation for claim in claims if claim.allocation is not None)
            self._state = allocator.State.of(given, self._features)
            self._allocator = Allocator(stock, self._state)
        return self._allocator

    def _extended(self, info: NodeInfo) -> Claim | Shortfall | None:
        """The claim for extended resources on this node; None where device plugins supply all."""
        if self._stale is not None and self._stale.spec.devices.requests is not None:
            return _refused(STALE, "placement/extended-stale", self._stale.name)
        from_devices = {}
        for name in self._asked_extended():
            advertised = info.allocatable.get(name)
            if name in self._backed and not advertised:
                from_devices[name] = self._backed[name]
            elif advertised is None:
                return _refused(CANNOT_FIT, "placement/extended-unserved", name)
        if not from_devices and not self._claims:
            return None
        key = tuple(sorted(from_devices))
        if key not in self._of_resources:
            self._of_resources[key] = Claim(
                self._pod.namespace,
                extended.CLAIM_NAME,
                extended.requests(self._pod, from_devices),
            )
        return self._of_resources[key]

    def _asked_extended(self) -> list[str]:
        return sorted(
            name
            for name, amount in pods.requests(self._pod).items()
            if amount > 0 and extended.may_be_backed(name)
        )

    def _is_away(self, claim: Claim, info: NodeInfo) -> bool:
        """An allocated claim that cannot be used on the node, or whose devices do not come."""
        given = claim.allocation
        if given is None:
            return False
        if self._off(claim, info):
            return True
        return self._features.binding_conditions and self._binding_fails(claim, given)

    def _off(self, claim: Claim, info: NodeInfo) -> bool:
        """Whether the node is none of those from which the claim's devices can be used."""
        given = claim.allocation
        if given is None:
            return False
        if given.node_selector is not None and not selectors.node_selector_matches(
            given.node_selector, info.labels, info.name
        ):
            return True
        if self._features.skips_declared and any(one.skips for one in given.devices):
            declared = info.node.status.declaredFeatures or ()
            return allocator.OPTIONAL_OPERATIONS not in declared
        return False

    def _binding_fails(self, claim: Claim, given: Allocation) -> bool:
        statuses = (claim.raw.status.devices or ()) if claim.raw is not None else ()
        for one in given.devices:
            if not one.binding_conditions:
                continue
            status = next(
                (s for s in statuses if (s.driver, s.pool, s.device) == tuple(one.device)), None
            )
            held = {c.type: c.status for c in (status.conditions or ())} if status else {}
            if status is not None and any(
                held.get(c) == "True" for c in one.binding_failure_conditions
            ):
                return True
            if any(held.get(c) != "True" for c in one.binding_conditions):
                return self._timed_out(given)
        return False

    def _timed_out(self, given: Allocation) -> bool:
        if not given.timestamp or self._now is None:
            return False
        try:
            return times.parse_instant(given.timestamp) + BINDING_TIMEOUT < self._now
        except times.TimeError:
            return False

    def counted(self, pod: Pod, info: NodeInfo) -> Pod:
        """A replica as it counts on the node: with what its claims draw there."""
        if not self._features.node_allocatable or self.judge(info):
            return pod
        return node_allocatable.with_draws(pod, self._draws(info))

    # -- the replicas placed so far ------------------------------------------------------------

    def assume(self, pod: Pod, info: NodeInfo) -> None:
        """A replica of the pod goes to the node: its claims get what ``judge`` found for it.

        The claims are written to the cluster, so that whoever comes next sees them.
        """
        if self._pod.spec.nodeName:
            return  # no scheduler has tried the pod, so nobody has allocated anything
        self.judge(info)
        given = self._given(info)
        made = pod_claims.of(self._cluster, pod).created
        by_template = {one.annotations.get(dra.POD_CLAIM_NAME): one for one in made}
        for claim, allocation in given:
            if claim.name == extended.CLAIM_NAME:
                raw = _extended_claim(pod, claim)
            elif claim.raw is not None and claim.raw in self._found.created:
                raw = by_template[claim.raw.annotations.get(dra.POD_CLAIM_NAME)]
            elif claim.raw is not None:
                raw = claim.raw
            else:
                continue
            self._write(pod_claims.with_consumer(normal.allocated(raw, allocation), pod))
        for claim in self._claims:
            if claim.allocation is not None:
                held = self._cluster.get("ResourceClaim", claim.namespace, claim.name)
                if isinstance(held, dra.ResourceClaim):
                    self._write(pod_claims.with_consumer(held, pod))
        if self._state is not None:
            for _, allocation in given:
                self._state.add(allocation)
            assert self._allocator is not None
            self._allocator.changed()
        self._forget(info, [allocation for _, allocation in given])
        self._renew()

    def _write(self, claim: dra.ResourceClaim) -> None:
        self._cluster.apply(claim, makes_known=False)

    def _forget(self, info: NodeInfo, given: Iterable[Allocation]) -> None:
        """Drops the answers of the nodes that see one of these devices' pools."""
        self._answers.pop(info.name, None)
        self._allocations.pop(info.name, None)
        pools = {(one.device.driver, one.device.pool) for a in given for one in a.devices}
        if pools:
            names = self._with_state().nodes_of(pools)
            for name in list(self._answers) if names is None else names:
                self._answers.pop(name, None)
                self._allocations.pop(name, None)

    def _renew(self) -> None:
        """Claims that are shared by the replicas have devices now: the next one uses those."""
        shared = [claim for claim in self._claims if claim.raw not in self._found.created]
        if not shared:
            return
        renewed = []
        changed = False
        for claim in self._claims:
            raw = self._cluster.get("ResourceClaim", claim.namespace, claim.name)
            if claim in shared and isinstance(raw, dra.ResourceClaim) and raw is not claim.raw:
                changed = changed or claim.allocation is None
                claim = normal.of_claim(raw)
            renewed.append(claim)
        self._claims = tuple(renewed)
        if changed:
            self._answers.clear()
            self._allocations.clear()
        self.rejections = self._rejections()

    # -- of a filter that looks beyond the node ------------------------------------------------

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """Nothing: what a pod holds, its claims hold until it has ended."""

    def fork(self) -> DynamicResources:
        return self


def _extended_claim(pod: Pod, claim: Claim) -> dra.ResourceClaim:
    owner = OwnerReference("v1", "Pod", pod.name, pod.metadata.uid or "", controller=True)
    return dra.ResourceClaim(
        apiVersion="resource.k8s.io/v1",
        metadata=ObjectMeta(
            name=f"{pod.name}-extended-resources-xxxxx",
            namespace=pod.namespace,
            annotations={dra.EXTENDED_CLAIM: "true"},
            ownerReferences=(owner,),
        ),
    )


def released(cluster: Cluster) -> None:
    """Every claim lets go of its devices, as when all pods had ended; in place."""
    for raw in list(cluster.every("ResourceClaim")):
        if isinstance(raw, dra.ResourceClaim) and raw.status.allocation is not None:
            cluster.apply(structs.replace(raw, status=dra.ResourceClaimStatus()))


def _refused(text: str, code: str, subject: str = "") -> Shortfall:
    return shortfall(FILTER, text, code, permanent=True, subject=subject)


def _unknown(missing: str, hint: str = "", *, level: str = "warn") -> Unknown:
    return Unknown(
        rule="placement",
        missing=missing,
        level="audit" if level == "audit" else "warn",
        hint=hint,
        stage="placement",
    )
