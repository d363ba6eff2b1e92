"""What DRA would give a pod that is not there yet, node by node: for its claims, and for resources
that a DeviceClass backs.

The allocator is asked as the scheduler asks it. Nothing of the cluster changes, and whether the pod
may go to a node for other reasons is not looked at.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, structs
from msgspec.json import encode

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices import allocator, extended
from kubectl_gpuadmit.devices.allocator import (
    Allocator,
    Fatal,
    Features,
    NodeRefused,
    State,
    Unsure,
)
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Allocation, Allotted, Claim, Device
from kubectl_gpuadmit.devices.pod_claims import PodClaim, of_pod
from kubectl_gpuadmit.kube import selectors
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.quantity import QuantityError

_KEPT = 32
"""Different pods whose answers are kept: several rules ask about the one in hand."""


class Given(Struct, frozen=True):
    """One device, or a share of one, that a pod would get."""

    claim: str
    """The pod's own name for the claim; ``extended.CLAIM_NAME`` for that of its resources."""
    allotted: Allotted
    device: Device | None
    """None: nobody publishes it any more."""

    @property
    def request(self) -> str:
        """Without the alternative."""
        return self.allotted.request.partition("/")[0]

    @property
    def alternative(self) -> str:
        """'' for a request without alternatives."""
        return self.allotted.request.partition("/")[2]


Gifts = tuple[Given, ...]
"""All that one pod gets, in the order of its claims."""


class Prospects:
    """Of one pod, or of any that asks for the same."""

    def __init__(self, cluster: Cluster, pod: Pod, namespace: str, kubernetes: str) -> None:
        self._pod = pod
        self._namespace = namespace
        self._features = allocator.of(kubernetes, cluster.gates)
        self._inventory = Inventory.of(cluster)
        self._claims: tuple[PodClaim, ...] = of_pod(pod, namespace, cluster)
        self._backed = _backed(self._inventory, pod, self._features)
        self._known: dict[tuple[str, int, bool], tuple[NodeInfo, tuple[Gifts, ...] | str]] = {}
        self._own_claims: dict[tuple[str, ...], Claim] = {}
        self._allocators: dict[bool, Allocator] = {}
        self._per_pool: dict[tuple[str, str], list[Allocation]] | None = None
        self.missing_of_devices = self._missing(cluster)
        """Why nothing can be told even of what there is, whoever has it; '' where it can."""
        self.missing = self.missing_of_devices
        """Why nothing can be told, '' where it can."""
        if not self.missing and not cluster.knows("ResourceClaim"):
            self.missing = "ResourceClaim objects: not in the source"
        stock = cluster.remembered(
            ("stock", kubernetes, self._features),
            ("DeviceClass", "DeviceTaintRule", "ResourceSlice"),
            lambda: allocator.stock(
                self._inventory.published, kubernetes=kubernetes, gates=cluster.gates
            ),
        )
        assert isinstance(stock, allocator.Stock)
        self._stock = stock

    @classmethod
    def of(cls, cluster: Cluster, pod: Pod, namespace: str, *, kubernetes: str) -> Prospects | None:
        """None for a pod to which DRA gives nothing on any node."""
        features = allocator.of(kubernetes, cluster.gates)
        backs = features.extended_resources and cluster.knows("DeviceClass")
        if not pod.spec.resourceClaims and not (backs and _may_be_backed(pod)):
            return None
        amounts = [one.resources for one in _containers(pod)]
        known: Any = cluster.remembered("prospects", extended.KINDS, dict)
        key = encode(
            (kubernetes, cluster.gates.switched, namespace, pod.spec.resourceClaims, amounts)
        )
        found: Prospects | None = known.get(key)
        if found is None:
            if len(known) >= _KEPT:
                known.clear()
            found = known[key] = cls(cluster, pod, namespace, kubernetes)
        return found if found._claims or found._backed else None

    def _missing(self, cluster: Cluster) -> str:
        for claim in self._claims:
            if claim.claim is None:
                return f"{claim}: {'there is none' if claim.known else 'not in the source'}"
        if not cluster.knows("ResourceSlice"):
            return "ResourceSlice objects: not in the source"
        for claim in self._claims:
            assert claim.claim is not None
            for want in _wants([("", claim.claim)]):
                if want.device_class not in self._inventory.classes:
                    known = cluster.knows("DeviceClass")
                    found = "there is none" if known else "not in the source"
                    return f"DeviceClass {want.device_class}: {found}"
        return ""

    @property
    def has_claims(self) -> bool:
        """Claims of its own, not only resources that a class backs."""
        return bool(self._claims)

    @property
    def alternatives(self) -> tuple[tuple[str, str, str], ...]:
        """(claim, request, alternative) of each request that has several."""
        return tuple(
            (entry.name, request.name, want.name)
            for entry in self._claims
            if entry.claim is not None and entry.claim.allocation is None
            for request in entry.claim.requests
            for want in request.first_available
        )

    def only(self, claim: str, request: str, alternative: str) -> Prospects:
        """The same if the request named this alternative alone."""
        twin = copy.copy(self)
        twin._known, twin._allocators = {}, {}
        twin._claims = tuple(
            structs.replace(entry, claim=_narrowed(entry.claim, request, alternative))
            if entry.name == claim and entry.claim is not None
            else entry
            for entry in self._claims
        )
        return twin

    def by_devices(self, info: NodeInfo) -> bool:
        """Whether anything of what the pod asks would come by DRA on this node."""
        return bool(self._claims) or any(not info.allocatable.get(name) for name in self._backed)

    def delegated(self, info: NodeInfo) -> frozenset[str]:
        """Resources that devices would stand for on this node: nothing need be free of them."""
        return frozenset(name for name in self._backed if not info.allocatable.get(name))

    def on(
        self, info: NodeInfo, *, pods: int = 1, emptied: bool = False
    ) -> tuple[Gifts, ...] | str:
        """What so many such pods would get there one after another, as many as get something; or
        what is missing to tell. ``emptied``: if no other claim had anything."""
        if missing := self.missing_of_devices if emptied else self.missing:
            return missing
        key = (info.name, pods, emptied)
        known = self._known.get(key)
        if known is None or known[0] is not info:
            known = self._known[key] = (info, self._on(info, pods, emptied))
        return known[1]

    def _on(self, info: NodeInfo, pods: int, emptied: bool) -> tuple[Gifts, ...] | str:
        wanted: list[tuple[str, Claim]] = []
        held: list[tuple[str, Claim]] = []
        for entry in self._claims:
            assert entry.claim is not None
            there = held if entry.claim.allocation is not None else wanted
            there.append((entry.name, entry.claim))
        for _, claim in held:
            selector = claim.allocation.node_selector if claim.allocation is not None else None
            if selector is not None and not selectors.node_selector_matches(
                selector, info.labels, info.name
            ):
                return ()
        own = self._own(info)
        if isinstance(own, str):
            return ()
        if own is not None:
            wanted.append((extended.CLAIM_NAME, own))
        # a claim that the pods share gets its devices once
        shared = [one for one in self._claims if one.kind == "ResourceClaim"]
        names = {one.name for one in shared}
        fixed = [one for name, claim in held for one in self._gifts(name, claim.allocation)]
        try:
            return self._one_after_another(info, pods, emptied, wanted, names, fixed)
        except (Fatal, NodeRefused):
            return ()
        except (Unsure, QuantityError) as problem:
            return str(problem)

    def _one_after_another(
        self,
        info: NodeInfo,
        pods: int,
        emptied: bool,
        wanted: list[tuple[str, Claim]],
        shared: set[str],
        fixed: list[Given],
    ) -> tuple[Gifts, ...]:
        search = self._allocator(emptied)
        state: State | None = None
        found: list[Gifts] = []
        while len(found) < pods:
            given = search.allocate(info, [claim for _, claim in wanted])
            if given is None:
                break
            if state is None and len(found) + 1 < pods:
                # the next pod meets what this one has got, and other nodes do not
                state = self._state(info, emptied)
                search = Allocator(self._stock, state)
            gifts = list(fixed)
            for (name, _), allocation in zip(wanted, given.allocations, strict=True):
                new = self._gifts(name, allocation)
                if state is not None:
                    state.add(allocation)
                gifts += new
                if name in shared:
                    fixed = [*fixed, *new]
            wanted = [one for one in wanted if one[0] not in shared]
            search.changed()
            found.append(tuple(gifts))
            if not wanted:
                found += [tuple(gifts)] * (pods - len(found))
        return tuple(found)

    def _own(self, info: NodeInfo) -> Claim | str | None:
        """The claim for resources that devices stand for here; None for none, or the name of a
        resource that nothing serves."""
        if not self._backed:
            return None
        found = extended.from_devices(extended.asked(self._pod), self._backed, info.allocatable)
        if isinstance(found, str):
            return found
        if not found:
            return None
        key = tuple(found)
        if key not in self._own_claims:
            requests = extended.requests(self._pod, found)
            self._own_claims[key] = Claim(self._namespace, extended.CLAIM_NAME, requests)
        return self._own_claims[key]

    def _gifts(self, name: str, allocation: Allocation | None) -> list[Given]:
        devices = self._inventory.devices
        given = allocation.devices if allocation is not None else ()
        return [Given(name, one, devices.get(one.device)) for one in given]

    def _allocator(self, emptied: bool) -> Allocator:
        """For the first pod: nodes that are alike share its answers."""
        if emptied not in self._allocators:
            claims = () if emptied else self._inventory.claims.values()
            given = (claim.allocation for claim in claims if claim.allocation is not None)
            self._allocators[emptied] = Allocator(self._stock, State.of(given, self._features))
        return self._allocators[emptied]

    def _state(self, info: NodeInfo, emptied: bool) -> State:
        """What is taken of the pools that the node sees: the rest cannot matter to it."""
        if emptied:
            return State(self._features)
        if self._per_pool is None:
            self._per_pool = {}
            for claim in self._inventory.claims.values():
                if claim.allocation is not None:
                    pools = {(a.device.driver, a.device.pool) for a in claim.allocation.devices}
                    for pool in pools:
                        self._per_pool.setdefault(pool, []).append(claim.allocation)
        here: dict[int, Allocation] = {}
        for seen in self._stock.shelves.pools(info):
            for one in self._per_pool.get((seen.id.driver, seen.id.pool), ()):
                here[id(one)] = one
        return State.of(here.values(), self._features)


def _narrowed(claim: Claim, request: str, alternative: str) -> Claim:
    return structs.replace(
        claim,
        requests=tuple(
            structs.replace(
                one,
                first_available=tuple(w for w in one.first_available if w.name == alternative),
            )
            if one.name == request
            else one
            for one in claim.requests
        ),
    )


def _wants(claims: Iterable[tuple[str, Claim]]) -> Iterable[Any]:
    return (want for _, claim in claims for request in claim.requests for want in request.wants)


def _containers(pod: Pod) -> tuple[Any, ...]:
    return (*(pod.spec.initContainers or ()), *(pod.spec.containers or ()))


def _may_be_backed(pod: Pod) -> bool:
    try:
        return bool(extended.asked(pod))
    except QuantityError:
        return False


def _backed(inventory: Inventory, pod: Pod, features: Features) -> dict[str, Any]:
    """Resource that the pod asks for -> the class that backs it."""
    if not features.extended_resources or not _may_be_backed(pod):
        return {}
    names = extended.asked(pod)
    found = extended.backed(inventory.classes.values())
    return {name: found[name] for name in names if name in found}
