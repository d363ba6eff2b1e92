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
from kubectl_gpuadmit.devices import allocator, extended, normal
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
from kubectl_gpuadmit.kube import dra, selectors, times
from kubectl_gpuadmit.kube.objects import ObjectMeta, OwnerReference, Pod
from kubectl_gpuadmit.kube.versions import version
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
    "placement/attempt-fails": (
        "The scheduler gives the pod up with an error, whatever other nodes offer: a selector "
        "fails on a device, or a request for all devices meets a pool that is being updated. "
        "Correct the claim or class that the text names."
    ),
}
ABORTS = "placement/attempt-fails"
_MOST_HOLDERS = 128
BINDING_TIMEOUT = dt.timedelta(minutes=10)
"""DynamicResourcesArgs.bindingTimeout: how long devices may take to be attached."""


def supplies(kubernetes: str) -> bool:
    """Whether a DeviceClass can supply extended resources: DRAExtendedResource, on since 1.36."""
    return version(kubernetes) >= (1, 36)


def delegated(cluster: Cluster, wanted: Asked, *, kubernetes: str) -> frozenset[str]:
    """Requested resources that a DeviceClass supplies where the node advertises none."""
    if not supplies(kubernetes):
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
        self._features: Features = allocator.of(kubernetes)
        self._supplied = supplied
        self._found = found
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
        found = pod_claims.of(cluster, pod)
        if not (pod.spec.resourceClaims or supplied):
            return None
        return cls(cluster, pod, found, supplied, kubernetes=kubernetes, now=now)

    # -- before any node ---------------------------------------------------------------------

    def _rejections(self) -> tuple[Shortfall, ...]:
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
        if self.rejections:
            return ()
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
        if away:
            return (_refused(ELSEWHERE, "placement/claim-elsewhere", self._named(away)),)
        return ()

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
            ("stock", self._kubernetes),
            ("DeviceClass", "DeviceTaintRule", "ResourceSlice"),
            lambda: allocator.stock(self._published, kubernetes=self._kubernetes),
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
        from kubectl_gpuadmit.kube import pods

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
        if given.node_selector is not None and not selectors.node_selector_matches(
            given.node_selector, info.labels, info.name
        ):
            return True
        return self._features.binding_conditions and self._binding_fails(claim, given)

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
