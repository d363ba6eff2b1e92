"""Everything that DRA knows in a cluster: pools with taints, classes, claims, and who holds what.

Built from the objects once and shared between forks of the cluster until one of the kinds changes
there. Says what is, not what would be allocated.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import normal
from kubectl_gpuadmit.devices.model import (
    Allotted,
    Claim,
    Class,
    Device,
    DeviceId,
    Pool,
    PoolId,
    Slice,
    TaintRule,
)
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.listed import contents
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.kube.quantity import QuantityError
from kubectl_gpuadmit.verdict import Finding

_PUBLISHED = ("DeviceClass", "DeviceTaintRule", "ResourceSlice")
_KINDS = (*_PUBLISHED, "ResourceClaim")


class Inventory:
    """``of`` a cluster. Attributes are computed when first read; nothing of it may be changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._published = published(cluster)
        self._claims = tuple(cluster.every("ResourceClaim"))
        known = cluster.remembered("claims in one form", (), dict[int, Claim])
        assert isinstance(known, dict)
        self._normal: dict[int, Claim] = known
        """By the object's identity, for all forks; a claim holds the object that it was made of."""

    @classmethod
    def of(cls, cluster: Cluster) -> Inventory:
        found = cluster.remembered("Inventory", _KINDS, lambda: cls(cluster))
        assert isinstance(found, Inventory)
        return found

    @property
    def published(self) -> Published:
        """The part that claims do not change."""
        return self._published

    # -- what drivers and administrators publish ---------------------------------------------

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All that can be read, by name, older generations too."""
        return self._published.slices

    @property
    def pools(self) -> dict[PoolId, Pool]:
        """By driver and name."""
        return self._published.pools

    @property
    def devices(self) -> dict[DeviceId, Device]:
        """Of the newest generation of each pool; of two with one name, the first."""
        return self._published.devices

    @property
    def classes(self) -> dict[str, Class]:
        return self._published.classes

    @property
    def rules(self) -> tuple[TaintRule, ...]:
        return self._published.rules

    @property
    def outdated(self) -> tuple[Finding, ...]:
        """Objects in versions that are too old to be read."""
        return self._published.outdated

    # -- who has what --------------------------------------------------------------------------

    @cached_property
    def claims(self) -> dict[tuple[str, str], Claim]:
        """(namespace, name) -> claim, sorted."""
        if len(self._normal) > 2 * len(self._claims) + 1_000:
            self._normal.clear()  # most are of claims that have changed since
        found = {}
        for obj in self._claims:
            if not isinstance(obj, dra.ResourceClaim):
                continue
            claim = self._normal.get(id(obj))
            if claim is None and normal.readable(obj):
                try:
                    claim = self._normal[id(obj)] = normal.of_claim(obj)
                except QuantityError:
                    continue  # the API server holds no such object
            if claim is not None:
                found[obj.namespace, obj.name] = claim
        return dict(sorted(found.items()))

    @cached_property
    def holders(self) -> dict[DeviceId, tuple[tuple[Claim, Allotted], ...]]:
        """Device -> claims that have it or a share of it, also those with admin access."""
        found: dict[DeviceId, list[tuple[Claim, Allotted]]] = {}
        for claim in self.claims.values():
            for result in claim.allocation.devices if claim.allocation is not None else ():
                found.setdefault(result.device, []).append((claim, result))
        return {device: tuple(those) for device, those in found.items()}


class Published:
    """Slices, rules and classes: what changes seldom. Shared by forks whatever claims they make."""

    def __init__(self, cluster: Cluster) -> None:
        self.rules = tuple(
            normal.of_taint_rule(obj)
            for obj in _sorted(cluster, "DeviceTaintRule")
            if isinstance(obj, dra.DeviceTaintRule)
        )
        self.outdated = tuple(
            finding
            for kind in _PUBLISHED
            for obj in _sorted(cluster, kind)
            if (finding := normal.outdated(obj)) is not None
        )
        self._tainted: tuple[Slice, ...] | None = None
        self._slices = _sorted(cluster, "ResourceSlice")
        self._classes = _sorted(cluster, "DeviceClass")

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        return self.slices_with(rules=True)

    def slices_with(self, *, rules: bool) -> tuple[Slice, ...]:
        """By name, with the taints of DeviceTaintRules or the drivers' own alone."""
        if rules and self._tainted is not None:
            return self._tainted
        found = tuple(
            normal.of_slice(obj, self.rules if rules else ())
            for obj in self._slices
            if isinstance(obj, dra.ResourceSlice) and normal.readable(obj)
        )
        if rules:
            self._tainted = found
        return found

    @cached_property
    def pools(self) -> dict[PoolId, Pool]:
        by_pool: dict[PoolId, list[Slice]] = {}
        for slice in self.slices:
            by_pool.setdefault(PoolId(slice.driver, slice.pool), []).append(slice)
        checked: dict[object, str] = {}
        return {id: _pool(id, slices, checked) for id, slices in sorted(by_pool.items())}

    @cached_property
    def kinds(self) -> dict[PoolId, tuple[int, str]]:
        """Of pools that are of one node each: a number that is equal where they consist of the
        same, and the node."""
        numbers: dict[object, int] = {}
        found = {}
        for id, pool in self.pools.items():
            names = {slice.node_name for slice in pool.slices}
            node = names.pop()
            if names or not node or any(slice.per_device for slice in pool.slices):
                continue
            alike = (
                id.driver,
                pool.usable,
                tuple(
                    (
                        slice.template,
                        slice.kind,
                        _identity(slice.counter_sets) if slice.counter_sets else 0,
                        tuple(map(_identity, slice.rules)),
                    )
                    for slice in pool.slices
                ),
            )
            found[id] = (numbers.setdefault(alike, len(numbers)), node)
        return found

    @cached_property
    def devices(self) -> dict[DeviceId, Device]:
        found: dict[DeviceId, Device] = {}
        for pool in self.pools.values():
            for device in pool.devices:
                found.setdefault(device.id, device)
        return found

    @cached_property
    def classes(self) -> dict[str, Class]:
        return {
            obj.name: normal.of_class(obj)
            for obj in self._classes
            if isinstance(obj, dra.DeviceClass) and normal.readable(obj)
        }


def published(cluster: Cluster) -> Published:
    """The part that claims do not change."""
    found = cluster.remembered("Published", _PUBLISHED, lambda: Published(cluster))
    assert isinstance(found, Published)
    return found


def _sorted(cluster: Cluster, kind: str) -> list[KubeObject]:
    return sorted(cluster.every(kind), key=lambda obj: (obj.namespace, obj.name))


def _pool(id: PoolId, slices: list[Slice], checked: dict[object, str]) -> Pool:
    """``checked``: what was found out about pools that consist of the same."""
    newest = max(slice.generation for slice in slices)
    current = tuple(slice for slice in slices if slice.generation == newest)
    alike = tuple((slice.template, _identity(slice.counter_sets)) for slice in current)
    if alike not in checked:
        checked[alike] = invalidity(current)
    return Pool(
        id,
        newest,
        current,
        current[0].slice_count,
        tuple(slice for slice in slices if slice.generation != newest),
        checked[alike],
    )


_identity = id


def invalidity(slices: Iterable[Slice]) -> str:
    """Why the slices of a pool, by name, contradict each other, '' if they do not.

    Source: pools_incubating.go (validateDeviceNames, getAndValidateCounterSets,
    validateDeviceCounterConsumption).
    """
    seen: set[str] = set()
    sets: dict[str, dict[str, dra.Counter]] = {}
    listed = tuple(slices)
    for slice in listed:
        for device in () if slice.counter_sets else slice.template.devices:
            if device.name in seen:
                return f"duplicate device name {device.name}"
            seen.add(device.name)
    for slice in listed:
        for counter_set in slice.counter_sets:
            if counter_set.name in sets:
                return f"duplicate counter set name {counter_set.name}"
            sets[counter_set.name] = counter_set.counters or {}
    for slice in listed:
        for content in () if slice.counter_sets else contents(slice.template):
            for consumption in content.consumesCounters or ():
                if consumption.counterSet not in sets:
                    return f"counter set {consumption.counterSet} not found"
                for name in consumption.counters or ():
                    if name not in sets[consumption.counterSet]:
                        return f"counter {name} not found in counter set {consumption.counterSet}"
    return ""
