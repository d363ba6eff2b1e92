"""The search for devices on one node: depth first, first fit, backtracking, as the scheduler's.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go: Allocate, allocateOne, allocateDevice). Claims, requests and devices are
tried in the same order, so that the devices are the same too. It is faster in three things: of
devices that cannot be told apart by anything the claims ask, one that led nowhere stands for the
others; a long search remembers where it has been in vain; and it stops where too little is left.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator.asks import Ask, Asks
from kubectl_gpuadmit.devices.allocator.constraints import lookup
from kubectl_gpuadmit.devices.allocator.dead_ends import DeadEnds, Kinds
from kubectl_gpuadmit.devices.allocator.given import Chosen, Given, Key
from kubectl_gpuadmit.devices.allocator.orders import BY_NAME, Order
from kubectl_gpuadmit.devices.allocator.outcome import Fatal, NodeRefused, Unsure
from kubectl_gpuadmit.devices.allocator.pools import NodePool
from kubectl_gpuadmit.devices.allocator.shop import Item, Shop
from kubectl_gpuadmit.devices.allocator.shortage import Shortage
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube.dra import MAX_RESULTS

_FEW = 2_000
"""After so many devices tried it pays to remember what has led nowhere."""

_TOO_MANY = object()
"""The result would have more devices than a claim may hold: only other alternatives can help."""


class _Long(Exception):
    """So many devices were tried that it pays to start again and watch where that leads."""


class Search:
    """One node, once. ``run`` gives the devices per claim, or None where there is no way."""

    def __init__(
        self, shop: Shop, info: NodeInfo, claims: Sequence[Claim], order: Order = BY_NAME
    ) -> None:
        self._order = order
        self._shop = shop
        self._info = info
        self._claims = claims
        self._features = shop.features
        self._pools = order.of_pools(shop.pools(info))
        self._asks = Asks(shop, info, claims, self._pools, order)
        self._given = Given(shop, info, claims, self._asks)
        self._attributes = tuple(
            sorted({kept.attribute for each in self._given.constraints for kept in each})
        )
        self._items: list[Item] = []
        self._by_key: dict[Key, Item] = {}
        self._steps = 0
        self._limit = shop.steps_left()
        self._broken: NodePool | None = None
        """A pool that ends the attempt once the search has come to it; before 1.35."""
        self._dead = DeadEnds()
        self._thorough = False
        """Whether to look twice at where the search is: pays only in long ones."""
        self._steadfast = False
        """Whether nothing can end the search but a find or that there is no way."""
        self._kinds = Kinds(shop.state, self._told)
        self._kind_of: Callable[[Item], Hashable] = self._kinds.of
        self._ordered = False
        """None stands for another: a constraint that keeps one of "all" devices out is an error, so
        that it matters which comes first; derived attributes and groups are not compared."""

    def run(self) -> list[list[Chosen]] | None:
        """Raises Fatal, NodeRefused or Unsure."""
        asks = tuple(self._asks)
        self._ordered = (
            (bool(self._attributes) and any(ask.every for ask in asks))
            or any(ask.derived for ask in asks)
            or self._features.compatibility_groups
            or (not self._features.keeps_alternative and any(ask.every for ask in asks))
        )
        if self._ordered or any(kept.in_order for each in self._given.constraints for kept in each):
            self._kind_of = attrgetter("key")
        usable: Sequence[NodePool] = self._pools
        if not self._features.skips_invalid_pools:
            self._broken = next((p for p in self._pools if p.invalid), None)
            usable = usable[: usable.index(self._broken)] if self._broken else usable
        usable = [p for p in usable if not p.invalid]
        if self._features.skips_incomplete_pools:
            usable = [p for p in usable if p.complete]
        of_items = self._order.of_items
        self._items = [item for pool in usable for item in of_items(self._shop.items(pool))]
        self._by_key = {item.key: item for item in self._items}
        self._shortage = Shortage(self._shop, self._claims, self._asks, self._given, self._items)
        if self._thorough and not self._ordered and self._broken is None:
            self._steadfast = self._shortage.never_fails()
        try:
            done = self._claim(0)
        except _Long:
            return self._again()
        finally:
            if self._thorough or self._steps <= _FEW:
                self._shop.spend(self._steps)
        if done is True:
            return self._given.result
        if self._features.skips_invalid_pools and any(pool.invalid for pool in self._pools):
            raise NodeRefused("invalid resource pools were encountered")
        return None

    def _again(self) -> list[list[Chosen]] | None:
        """From the start, with an eye on what leads nowhere."""
        twin = Search(self._shop, self._info, self._claims, self._order)
        twin._thorough = True
        twin._steps = self._steps
        return twin.run()

    # -- the search --------------------------------------------------------------------------
    # Each step is True for done, False for no way, _TOO_MANY for a claim grown too large.

    def _claim(self, claim: int) -> object:
        return True if claim >= len(self._claims) else self._request(claim, 0)

    def _request(self, claim: int, request: int) -> object:
        if request >= len(self._asks.of[claim]):
            done = self._claim(claim + 1)
            return False if done is _TOO_MANY else done
        if not self._thorough:
            return self._alternatives(claim, request)
        point = self._point(claim, request)
        done = self._dead.get(point)
        if done is None:
            done = self._alternatives(claim, request)
            if done is not True:
                self._dead.add(point, done)
        return done

    def _alternatives(self, claim: int, request: int) -> object:
        asks = self._asks.of[claim][request]
        if not asks[0].request.first_available:
            return self._device(claim, request, asks[0], 0, 0)
        exceeded = True
        for ask in asks:
            done = self._device(claim, request, ask, 0, 0)
            if done is True:
                return True
            exceeded = exceeded and done is _TOO_MANY
        return _TOO_MANY if exceeded else False

    def _device(self, claim: int, request: int, ask: Ask, number: int, start: int) -> object:
        if ask.every and not ask.devices:
            return False
        if number >= ask.count:
            return self._request(claim, request + 1)
        if ask.count - number > MAX_RESULTS - len(self._given.result[claim]):
            return _TOO_MANY
        if ask.every:
            undo = self._given.give(claim, ask, ask.devices[number], must=True)
            if undo is None:
                return False
            following = (
                ask if self._features.keeps_alternative else self._asks.of[claim][request][0]
            )
            done = self._device(claim, request, following, number + 1, 0)
            if done is not True:
                self._given.take_back(claim, undo)
                return done
            return True
        if self._steadfast and self._shortage.hopeless(claim, request, ask, number, start):
            return False
        named = self._claims[claim]
        admin = bool(ask.want.admin_access)
        failed: set[Hashable] = set()
        for at in range(start, len(self._items)):
            item = self._items[at]
            self._steps += 1
            if self._steps > _FEW and not self._thorough:
                raise _Long
            if self._steps > self._limit:
                raise Unsure(
                    f"more than {self._limit:,} devices tried on {self._info.name} and others: the"
                    " search was not finished; the scheduler gives a node up after 10 s (timed out"
                    " trying to allocate devices)"
                )
            if admin:
                if claim in self._given.devices.get(item.key, ()):
                    continue
            elif self._given.in_use(item.key):
                continue
            if not self._asks.selectable(named, ask, item):
                continue
            if self._features.consumable_capacity and not self._asks.has(
                ask.want, item, self._given.amounts(item), f"claim {named}, request {ask.want.name}"
            ):
                continue
            if failed and self._standing(item) in failed:
                continue
            undo = self._given.give(claim, ask, item, must=False)
            if undo is None:
                continue
            done = self._device(claim, request, ask, number + 1, at + 1)
            if done is True:
                return True
            self._given.take_back(claim, undo)
            if done is _TOO_MANY:
                return _TOO_MANY
            if not self._ordered:
                failed.add(self._standing(item))
        if self._broken is not None:
            raise Fatal(f"pool {self._broken.id.pool} is invalid: {self._broken.invalid}")
        return False

    # -- devices that cannot be told apart -----------------------------------------------------

    def _standing(self, item: Item) -> Hashable:
        """Equal for devices of which one that has led nowhere stands for the others."""
        amounts = self._given.shares.get(item.key)
        return (
            self._kinds.of(item),
            frozenset(self._given.devices.get(item.key, ())),
            None if amounts is None else tuple(sorted(amounts.items())),
        )

    def _told(self, item: Item) -> Hashable:
        """What the claims' constraints and selectors see of a device."""
        answers: list[object] = []
        for name in self._attributes:
            value = lookup(item.device, name)
            answers.append((type(value), repr(value) if isinstance(value, tuple) else value))
        for claim, asks in zip(self._claims, self._asks.of, strict=True):
            for alternatives in asks:
                for ask in alternatives:
                    try:
                        answers.append(self._asks.selectable(claim, ask, item))
                    except (Fatal, Unsure) as problem:
                        answers.append(type(problem))
        return tuple(answers)

    def _point(self, claim: int, request: int) -> Hashable:
        """Where the search is: all that decides how it goes on from here."""
        kind_of = self._kind_of
        given = sorted(
            (kind_of(self._by_key[key]), claim in claims)
            for key, claims in self._given.devices.items()
            if claims
        )
        shares = sorted(
            (kind_of(self._by_key[key]), tuple(sorted(amounts.items())))
            for key, amounts in self._given.shares.items()
        )
        consumed = frozenset(
            (pool, counter, amount)
            for pool, amounts in self._given.consumed.items()
            for counter, amount in amounts.items()
            if amount
        )
        kept = tuple(kept.state for kept in self._given.constraints[claim])
        size = len(self._given.result[claim])
        return (claim, request, size, tuple(given), tuple(shares), consumed, kept)
