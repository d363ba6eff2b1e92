"""What a search has given out so far: devices, shares, counters; how one more is given and taken.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go: allocateDevice and the function that it returns).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator import capacity, compatibility, taints
from kubectl_gpuadmit.devices.allocator.asks import Ask, Asks
from kubectl_gpuadmit.devices.allocator.compatibility import Company
from kubectl_gpuadmit.devices.allocator.constraints import Kept
from kubectl_gpuadmit.devices.allocator.outcome import Fatal
from kubectl_gpuadmit.devices.allocator.shop import Item, Shop
from kubectl_gpuadmit.devices.model import Claim, Want
from kubectl_gpuadmit.kube.quantity import Quantity

Key = tuple[str, str, str]
"""Of a device: driver, pool, name."""

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"
"""What a node declares that lets its kubelet leave out calls to drivers."""


class Chosen(NamedTuple):
    """One device for a claim."""

    request: str
    want: Want
    item: Item
    consumed: dict[str, Quantity] | None
    """What a share takes; None for the whole device."""


class Undo(NamedTuple):
    item: Item
    counted: bool
    joined: list[Kept]
    share: dict[str, Quantity] | None
    existed: bool
    company: dict[str, Company] | None


class Given:
    """Changes by ``give`` and ``take_back``, the last first."""

    def __init__(self, shop: Shop, info: NodeInfo, claims: Sequence[Claim], asks: Asks) -> None:
        self._shop = shop
        self._info = info
        self._claims = claims
        self._features = shop.features
        self._asks = asks
        self.constraints = [
            [Kept(constraint, shop.features) for constraint in claim.constraints]
            for claim in claims
        ]
        self.result: list[list[Chosen]] = [[] for _ in claims]
        self.devices: dict[Key, set[int]] = {}
        """Device -> places of the claims that have it as a whole."""
        self.shares: dict[Key, dict[str, int]] = {}
        """Device -> capacity -> nanos that shares of it take."""
        self.consumed: dict[object, dict[tuple[str, str], int]] = {}
        """Pool -> (counter set, counter) -> nanos."""
        self._company: dict[object, dict[str, Company]] = {}
        """Pool -> counter set -> the devices that are given out of it."""

    def give(self, claim: int, ask: Ask, item: Item, *, must: bool) -> Undo | None:
        """Gives the device to the claim; None where that cannot be."""
        want, named = ask.want, self._claims[claim]
        admin = bool(want.admin_access)
        shareable = item.shareable
        if not shareable and admin and claim in self.devices.get(item.key, ()):
            return None
        if not admin and self.in_use(item.key):
            return None
        if not self._features.partitionable_devices and item.device.consumes:
            return None
        if item.device.slice.skips and not self._skips_operations():
            return None
        counted = bool(item.device.raw.consumesCounters) and not (
            shareable and self._share_in_use(item.key)
        )
        before = None
        if counted and self._features.compatibility_groups:
            before = self._join(item)
            if before is None:
                return None
        if counted and not self._count(item):
            self._leave(item, before)
            return None
        if self._features.device_taints and taints.untolerated(item.device, want.tolerations):
            self._uncount(item, counted)
            self._leave(item, before)
            return None
        joined: list[Kept] = []
        for kept in self.constraints[claim]:
            if not kept.concerns(ask.request, want):
                continue
            value = self._asks.value(ask, item.device, kept.attribute)
            if not kept.add(value, ask.request.name):
                for other in reversed(joined):
                    other.remove()
                self._uncount(item, counted)
                self._leave(item, before)
                if must:
                    raise Fatal(
                        f"claim {named}, request {want.name}: cannot add device"
                        f" {item.device.id} because a claim constraint would not be satisfied"
                    )
                return None
            joined.append(kept)
        where = f"claim {named}, request {want.name}"
        if self._features.consumable_capacity and not self._asks.has(
            want, item, self.amounts(item), where
        ):
            for other in reversed(joined):
                other.remove()
            self._uncount(item, counted)
            self._leave(item, before)
            return None
        share = None
        existed = False
        if shareable:
            share = capacity.consumed(
                item.capacities, want.capacity, fractional=self._features.fractional_range
            )
            existed = item.key in self.shares
            held = self.shares.setdefault(item.key, {})
            for name, amount in share.items():
                held[name] = held.get(name, 0) + amount.nano
        else:
            self.devices.setdefault(item.key, set()).add(claim)
        self.result[claim].append(Chosen(ask.request.full_name(want), want, item, share))
        return Undo(item, counted, joined, share, existed, before)

    def take_back(self, claim: int, undo: Undo) -> None:
        item = undo.item
        self.result[claim].pop()
        if undo.share is None:
            self.devices[item.key].discard(claim)
        else:
            held = self.shares[item.key]
            for name, amount in undo.share.items():
                held[name] -= amount.nano
            if not undo.existed:
                del self.shares[item.key]
        for kept in reversed(undo.joined):
            kept.remove()
        self._uncount(item, undo.counted)
        self._leave(item, undo.company)

    def _skips_operations(self) -> bool:
        """Whether devices that need no visit to their driver on the node may be given out here."""
        if self._features.allocator != "experimental":
            return True  # it does not look
        declared = self._info.node.status.declaredFeatures or ()
        return self._features.optional_node_operations and OPTIONAL_OPERATIONS in declared

    def _join(self, item: Item) -> dict[str, Company] | None:
        """The company in the device's counter sets before it came; None where it is not fit for it,
        and then nothing has changed."""
        pool = self._company.setdefault(item.pool.id, {})
        settled = self._shop.company(item.pool)
        before = dict(pool)
        for name, groups in compatibility.groups_of(item.device):
            there = pool.get(name) or settled.get(name) or Company()
            if not there.admits(groups):
                self._company[item.pool.id] = before
                return None
            pool[name] = there.joined(groups)
        return before

    def _leave(self, item: Item, before: dict[str, Company] | None) -> None:
        if before is not None:
            self._company[item.pool.id] = before

    def amounts(self, item: Item) -> dict[str, int]:
        held = self._shop.state.amounts.get(item.key)
        giving = self.shares.get(item.key)
        if not held or not giving:
            return held or giving or {}
        return {
            name: held.get(name, 0) + giving.get(name, 0) for name in held.keys() | giving.keys()
        }

    def in_use(self, id: Key) -> bool:
        return id in self._shop.state.taken or bool(self.devices.get(id))

    def _share_in_use(self, id: Key) -> bool:
        if id in self.shares:
            return True
        state = self._shop.state
        return id in (state.shared if self._features.bare_shares_count else state.amounts)

    def _count(self, item: Item) -> bool:
        """Charges the counters of a device; False, and nothing charged, where one is used up."""
        available, overdrawn = self._shop.available(item.pool)
        if overdrawn:
            return False
        consumed = self.consumed.setdefault(item.pool.id, {})
        for key, amount in item.counters:
            consumed[key] = consumed.get(key, 0) + amount
        if all(consumed[key] <= available[key] for key, _ in item.counters):
            return True
        self._uncount(item, True)
        return False

    def _uncount(self, item: Item, counted: bool) -> None:
        if counted:
            consumed = self.consumed[item.pool.id]
            for key, amount in item.counters:
                consumed[key] -= amount
