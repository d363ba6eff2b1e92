"""DynamicResources: whether a node can serve the pod's ResourceClaims, and with which devices.

Source: pkg/scheduler/framework/plugins/dynamicresources (PreFilter, Filter, Reserve), v1.37.2; the
allocation itself is ``devices.allocator``. Pods on the node do not matter to it: a claim keeps its
devices until its pod has ended, and preemption counts on none of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

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
from kubectl_gpuadmit.devices.model import Allocation, Claim, PoolId
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.filters import allocated_claims, pod_claims, shortfall
from kubectl_gpuadmit.placement.filters.extended_resources import ExtendedResources
from kubectl_gpuadmit.placement.filters.node_draws import NodeDraws
from kubectl_gpuadmit.placement.filters.pod_claims import FILTER, PodClaims
from kubectl_gpuadmit.verdict import Shortfall, Unknown

CANNOT = "cannot allocate all claims"
ELSEWHERE = "resourceclaim not available on the node"
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
    "placement/attempt-fails": (
        "The scheduler gives the pod up with an error, whatever other nodes offer: a selector "
        "fails on a device, or a request for all devices meets a pool that is being updated. "
        "Correct the claim or class that the text names."
    ),
}
ABORTS = "placement/attempt-fails"


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
        self._extended = ExtendedResources(cluster, pod, supplied) if supplied else None
        self._claims = found.claims
        self._open: tuple[tuple[Claim, ...], tuple[Claim, ...]] = ((), ())
        self._no_devices: dict[tuple[int, ...], tuple[list[Claim], tuple[Shortfall, ...]]] = {}
        self._answers: dict[str, tuple[Shortfall, ...]] = {}
        self._allocations: dict[str, tuple[list[Claim], Found]] = {}
        self._unsure: dict[str, str] = {}
        self._judged_as: dict[str, NodeInfo] = {}
        self._of_node: NodeDraws | None = None
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
        own = self._own(info) if info is not None else None
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
        own = self._own(info)
        if isinstance(own, Shortfall):
            return (own,)
        if own is None and not self._claims:
            return ()
        if own is not None:
            claims.append(own)
        away = [
            claim
            for claim in self._claims
            if allocated_claims.is_away(claim, info, self._features, self._now)
        ]
        if self._features.node_allocatable and (
            (shared := self._node_draws().shared(self._claims, info)) is not None
        ):
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
                if info.name in self._allocations:
                    self._node_draws().must_be_sure(info)
                short = self._node_draws().short(info, self._draws(info))
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

    def _draws(self, info: NodeInfo) -> tuple[node_allocatable.Draw, ...]:
        """On the node's own resources. Raises Fatal."""
        return self._node_draws().of(info, self._claims, self._given(info))

    def _node_draws(self) -> NodeDraws:
        if self._of_node is None:
            shelves = self._stock().shelves
            self._of_node = NodeDraws(self._pod, self._features, self._published, shelves)
        return self._of_node

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
        own = self._own(info)
        if isinstance(own, Shortfall):
            return ()
        claims = [*self.to_allocate, *((own,) if own is not None else ())]
        every = Inventory.of(self._cluster).claims.values()
        return allocated_claims.in_the_way(claims, every, info, self._stock(), self._features)

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

    def _own(self, info: NodeInfo) -> Claim | Shortfall | None:
        """The claim for extended resources on this node; None where device plugins supply all."""
        if self._extended is None:
            return None
        return self._extended.on(info, alone=not self._claims)

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
        allocated_claims.written(self._cluster, pod, given, self._found.created)
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
