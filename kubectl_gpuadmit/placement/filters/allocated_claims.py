"""Claims that have devices: where these can be used, and how claims get and lose them in a what-if.

Source: pkg/scheduler/framework/plugins/dynamicresources (Filter and isClaimReadyForBinding of
allocated claims), v1.37.2.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices import allocator, extended, normal
from kubectl_gpuadmit.devices.allocator import (
    Allocator,
    Fatal,
    Features,
    NodeRefused,
    Stock,
    Unsure,
)
from kubectl_gpuadmit.devices.model import Allocation, Claim
from kubectl_gpuadmit.kube import dra, selectors, times
from kubectl_gpuadmit.kube.objects import ObjectMeta, OwnerReference, Pod
from kubectl_gpuadmit.placement.filters import pod_claims

_MOST_HOLDERS = 128
BINDING_TIMEOUT = dt.timedelta(minutes=10)
"""DynamicResourcesArgs.bindingTimeout: how long devices may take to be attached."""


def is_away(claim: Claim, info: NodeInfo, features: Features, now: dt.datetime | None) -> bool:
    """An allocated claim that cannot be used on the node, or whose devices do not come."""
    given = claim.allocation
    if given is None:
        return False
    if off(claim, info, features):
        return True
    return features.binding_conditions and _binding_fails(claim, given, now)


def off(claim: Claim, info: NodeInfo, features: Features) -> bool:
    """Whether the node is none of those from which the claim's devices can be used."""
    given = claim.allocation
    if given is None:
        return False
    if given.node_selector is not None and not selectors.node_selector_matches(
        given.node_selector, info.labels, info.name
    ):
        return True
    if features.skips_declared and any(one.skips for one in given.devices):
        declared = info.node.status.declaredFeatures or ()
        return allocator.OPTIONAL_OPERATIONS not in declared
    return False


def _binding_fails(claim: Claim, given: Allocation, now: dt.datetime | None) -> bool:
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
            return _timed_out(given, now)
    return False


def _timed_out(given: Allocation, now: dt.datetime | None) -> bool:
    if not given.timestamp or now is None:
        return False
    try:
        return times.parse_instant(given.timestamp) + BINDING_TIMEOUT < now
    except times.TimeError:
        return False


def in_the_way(
    wanted: Sequence[Claim],
    every: Iterable[Claim],
    info: NodeInfo,
    stock: Stock,
    features: Features,
) -> tuple[Claim, ...]:
    """Claims whose release would let the node serve those wanted, few of them; () for none."""
    pools = {tuple(pool.id) for pool in stock.shelves.pools(info)}
    there = [
        claim
        for claim in every
        if claim.allocation is not None
        and any((one.device.driver, one.device.pool) in pools for one in claim.allocation.devices)
    ]

    def serves(kept: list[Claim]) -> bool:
        given = (claim.allocation for claim in kept if claim.allocation is not None)
        state = allocator.State.of(given, features)
        try:
            return Allocator(stock, state).allocate(info, wanted) is not None
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


def written(
    cluster: Cluster,
    pod: Pod,
    given: Iterable[tuple[Claim, Allocation]],
    assumed: tuple[dra.ResourceClaim, ...],
) -> None:
    """Writes to the cluster what the claims of a replica were given; ``assumed``: claims that stand
    for those of templates."""
    made = pod_claims.of(cluster, pod).created
    by_template = {one.annotations.get(dra.POD_CLAIM_NAME): one for one in made}
    for claim, allocation in given:
        if claim.name == extended.CLAIM_NAME:
            raw = _extended_claim(pod)
        elif claim.raw is not None and claim.raw in assumed:
            raw = by_template[claim.raw.annotations.get(dra.POD_CLAIM_NAME)]
        elif claim.raw is not None:
            raw = claim.raw
        else:
            continue
        used = pod_claims.with_consumer(normal.allocated(raw, allocation), pod)
        cluster.apply(used, makes_known=False)


def _extended_claim(pod: Pod) -> dra.ResourceClaim:
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
