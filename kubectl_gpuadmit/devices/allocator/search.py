"""The search for devices on one node: depth first, first fit, backtracking, as the scheduler's.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go: Allocate, allocateOne, allocateDevice). Claims, requests and devices are
tried in the same order, so that the devices are the same too. In one thing it is faster: of devices
that cannot be told apart by anything the claims ask, one that led nowhere stands for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator import capacity, taints
from kubectl_gpuadmit.devices.allocator.constraints import Kept, lookup
from kubectl_gpuadmit.devices.allocator.dead_ends import DeadEnds, Kinds
from kubectl_gpuadmit.devices.allocator.outcome import FailedSelector, Fatal, NodeRefused, Unsure
from kubectl_gpuadmit.devices.allocator.pools import NodePool
from kubectl_gpuadmit.devices.allocator.shop import Item, Shop
from kubectl_gpuadmit.devices.model import Claim, Class, Device, Request, Want
from kubectl_gpuadmit.devices.selection import CelError
from kubectl_gpuadmit.kube.dra import MAX_RESULTS
from kubectl_gpuadmit.kube.quantity import Quantity

Key = tuple[str, str, str]
"""Of a device: driver, pool, name."""

_FEW = 2_000
"""After so many devices tried it pays to remember what has led nowhere."""

_TOO_MANY = object()
"""The result would have more devices than a claim may hold: only other alternatives can help."""


class Chosen(NamedTuple):
    """One device for a claim."""

    request: str
    want: Want
    item: Item
    consumed: dict[str, Quantity] | None
    """What a share takes; None for the whole device."""


class _Ask:
    """One request or alternative with what was found out about it beforehand."""

    __slots__ = (
        "able",
        "class_",
        "count",
        "devices",
        "every",
        "matches",
        "request",
        "selected",
        "want",
    )

    def __init__(
        self, request: Request, want: Want, class_: Class, selected: dict[Device, bool]
    ) -> None:
        self.selected = selected
        self.request = request
        self.want = want
        self.class_ = class_
        self.every = want.mode == "All"
        self.count = want.count
        self.devices: list[Item] = []
        self.able: list[Item] = []
        self.matches: dict[Item, bool] = {}


class Search:
    """One node, once. ``run`` gives the devices per claim, or None where there is no way."""

    def __init__(self, shop: Shop, info: NodeInfo, claims: Sequence[Claim]) -> None:
        self._shop = shop
        self._info = info
        self._claims = claims
        self._features = shop.features
        self._asks: list[list[list[_Ask]]] = []
        self._constraints: list[list[Kept]] = []
        self._attributes: tuple[str, ...] = ()
        self._result: list[list[Chosen]] = [[] for _ in claims]
        self._giving: dict[Key, set[int]] = {}
        self._giving_amounts: dict[Key, dict[str, int]] = {}
        self._consumed: dict[object, dict[tuple[str, str], int]] = {}
        self._pools: tuple[NodePool, ...] = ()
        self._items: list[Item] = []
        self._by_key: dict[Key, Item] = {}
        self._steps = 0
        self._limit = shop.steps_left()
        self._broken: NodePool | None = None
        """A pool that ends the attempt once the search has come to it; before 1.35."""
        self._dead = DeadEnds()
        self._steadfast: bool | None = None
        """Whether nothing can end the search but a find or that there is no way."""
        self._kinds = Kinds(shop.state, self._told)
        self._kind_of: Callable[[Item], Hashable] = self._kinds.of
        self._ordered = False
        """A constraint that keeps one of "all" devices out is an error, so that it matters which
        device comes first: then none stands for another."""

    def run(self) -> list[list[Chosen]] | None:
        """Raises Fatal, NodeRefused or Unsure."""
        self._pools = self._shop.pools(self._info)
        for position, claim in enumerate(self._claims):
            self._prepare(position, claim)
        self._attributes = tuple(
            sorted({kept.attribute for each in self._constraints for kept in each})
        )
        asks = [ask for claim in self._asks for several in claim for ask in several]
        self._ordered = bool(self._attributes) and any(ask.every for ask in asks)
        if self._ordered or any(kept.in_order for each in self._constraints for kept in each):
            self._kind_of = attrgetter("key")
        if not self._features.skips_invalid_pools:
            self._broken = next((p for p in self._pools if p.invalid), None)
        usable = [p for p in self._pools if not p.invalid]
        if self._features.skips_incomplete_pools:
            usable = [p for p in usable if p.complete]
        self._items = [item for pool in usable for item in self._shop.items(pool)]
        self._by_key = {item.key: item for item in self._items}
        try:
            done = self._claim(0)
        finally:
            self._shop.spend(self._steps)
        if done is True:
            return self._result
        if any(pool.invalid for pool in self._pools):
            raise NodeRefused("invalid resource pools were encountered")
        return None

    # -- before the search -------------------------------------------------------------------

    def _prepare(self, position: int, claim: Claim) -> None:
        least_of_claim = 0
        asks: list[list[_Ask]] = []
        for request in claim.requests:
            where = f"claim {claim}, request {request.name}"
            if request.first_available and not self._features.prioritized_list:
                raise Fatal(
                    f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            if not self._features.consumable_capacity:
                for want in request.wants:
                    if want.capacity is not None:
                        which = f"request {request.name}"
                        if request.first_available and self._features.names_subrequests:
                            which = f"subrequest {want.name}"
                        raise Fatal(
                            f"claim {claim}, {which}: has capacity requests, but the"
                            " DRAConsumableCapacity feature is disabled"
                        )
            checked = [self._checked(claim, request, want) for want in request.wants]
            least = min(ask.count for ask in checked)
            if least > MAX_RESULTS - least_of_claim:
                raise Fatal(
                    f"{where}: adding {least} devices exceeds the claim limit of {MAX_RESULTS},"
                    f" with {least_of_claim} already accounted for"
                )
            least_of_claim += least
            asks.append(checked)
        for number, constraint in enumerate(claim.constraints):
            if not constraint.match and not constraint.distinct:
                raise Fatal(
                    f"claim {claim}, constraint #{number}: empty constraint"
                    " (unsupported constraint type?)"
                )
        self._asks.append(asks)
        self._constraints.append(
            [
                Kept(constraint, among_all=self._features.distinct_among_all)
                for constraint in claim.constraints
            ]
        )

    def _checked(self, claim: Claim, request: Request, want: Want) -> _Ask:
        where = f"claim {claim}, request {want.name}"
        if want.derived:
            raise Fatal(
                f"{where}: cannot handle request with derived attributes, the feature is disabled"
            )
        for number, expression in enumerate(want.selectors):
            if expression is None:
                raise Fatal(
                    f"{where}, selector #{number}: CEL expression empty (unsupported selector"
                    " type?)"
                )
        if not self._features.admin_access and want.admin_access is not None:
            raise Fatal(f"{where}: admin access is requested, but the feature is disabled")
        if not want.device_class:
            raise Fatal(f"{where}: missing device class name (unsupported request type?)")
        class_ = self._shop.classes.get(want.device_class)
        if class_ is None:
            raise Fatal(
                f"{where}: could not retrieve device class {want.device_class}:"
                f' deviceclass.resource.k8s.io "{want.device_class}" not found'
            )
        selected = self._shop.selected.setdefault((class_.name, want.selectors), {})
        ask = _Ask(request, want, class_, selected)
        if want.mode == "All":
            self._find_all(claim, ask, where)
        elif want.mode != "ExactCount":
            raise Fatal(f"{where}: unsupported count mode {want.mode}")
        return ask

    def _find_all(self, claim: Claim, ask: _Ask, where: str) -> None:
        for pool in self._pools:
            if not pool.complete:
                raise Fatal(
                    f"{where}: asks for all devices, but resource pool {pool.id} is currently"
                    " being updated"
                )
            if pool.invalid:
                raise Fatal(
                    f"{where}: asks for all devices, but resource pool {pool.id} is currently"
                    " invalid"
                )
            for item in self._shop.items(pool):
                if not self._selectable(claim, ask, item):
                    continue
                if self._features.consumable_capacity and not self._has(ask.want, item, {}, where):
                    continue
                ask.devices.append(item)
        ask.count = len(ask.devices)

    # -- the search --------------------------------------------------------------------------
    # Each step is True for done, False for no way, _TOO_MANY for a claim grown too large.

    def _claim(self, claim: int) -> object:
        return True if claim >= len(self._claims) else self._request(claim, 0)

    def _request(self, claim: int, request: int) -> object:
        if request >= len(self._asks[claim]):
            done = self._claim(claim + 1)
            return False if done is _TOO_MANY else done
        if self._steps < _FEW:
            return self._alternatives(claim, request)
        if self._steadfast is None:
            self._steadfast = self._never_fails()
        if self._steadfast and self._hopeless(claim, request):
            return False
        point = self._point(claim, request)
        done = self._dead.get(point)
        if done is None:
            done = self._alternatives(claim, request)
            if done is not True:
                self._dead.add(point, done)
        return done

    def _alternatives(self, claim: int, request: int) -> object:
        asks = self._asks[claim][request]
        if not asks[0].request.first_available:
            return self._device(claim, request, asks[0], 0, 0)
        exceeded = True
        for ask in asks:
            done = self._device(claim, request, ask, 0, 0)
            if done is True:
                return True
            exceeded = exceeded and done is _TOO_MANY
        return _TOO_MANY if exceeded else False

    def _device(self, claim: int, request: int, ask: _Ask, number: int, start: int) -> object:
        if ask.every and not ask.devices:
            return False
        if number >= ask.count:
            return self._request(claim, request + 1)
        if ask.count - number > MAX_RESULTS - len(self._result[claim]):
            return _TOO_MANY
        if ask.every:
            undo = self._give(claim, ask, ask.devices[number], must=True)
            if undo is None:
                return False
            done = self._device(claim, request, ask, number + 1, 0)
            if done is not True:
                self._take_back(claim, undo)
                return done
            return True
        named = self._claims[claim]
        admin = bool(ask.want.admin_access)
        failed: set[Hashable] = set()
        for at in range(start, len(self._items)):
            item = self._items[at]
            self._steps += 1
            if self._steps > self._limit:
                raise Unsure(
                    f"more than {self._limit:,} devices tried on {self._info.name} and others: the"
                    " search was not finished (the scheduler gives a node up after 10 s)"
                )
            if admin:
                if claim in self._giving.get(item.key, ()):
                    continue
            elif self._in_use(item.key):
                continue
            if not self._selectable(named, ask, item):
                continue
            if self._features.consumable_capacity and not self._has(
                ask.want, item, self._amounts(item), f"claim {named}, request {ask.want.name}"
            ):
                continue
            if failed and self._standing(item) in failed:
                continue
            undo = self._give(claim, ask, item, must=False)
            if undo is None:
                continue
            done = self._device(claim, request, ask, number + 1, at + 1)
            if done is True:
                return True
            self._take_back(claim, undo)
            if done is _TOO_MANY:
                return _TOO_MANY
            if not self._ordered:
                failed.add(self._standing(item))
        if self._broken is not None:
            raise Fatal(f"pool {self._broken.id.pool} is invalid: {self._broken.invalid}")
        return False

    # -- one device --------------------------------------------------------------------------

    def _give(self, claim: int, ask: _Ask, item: Item, *, must: bool) -> _Undo | None:
        """Gives the device to the claim; None where that cannot be."""
        want, named = ask.want, self._claims[claim]
        admin = bool(want.admin_access)
        shareable = item.shareable
        if not shareable and admin and claim in self._giving.get(item.key, ()):
            return None
        if not admin and self._in_use(item.key):
            return None
        if not self._features.partitionable_devices and item.device.consumes:
            return None
        counted = bool(item.device.raw.consumesCounters) and not (
            shareable and self._share_in_use(item.key)
        )
        if counted and not self._count(item):
            return None
        if self._features.device_taints and taints.untolerated(item.device, want.tolerations):
            self._uncount(item, counted)
            return None
        joined: list[Kept] = []
        for kept in self._constraints[claim]:
            if not kept.concerns(ask.request, want):
                continue
            if not kept.add(item.device, ask.request.name):
                for other in reversed(joined):
                    other.remove()
                self._uncount(item, counted)
                if must:
                    raise Fatal(
                        f"claim {named}, request {want.name}: cannot add device"
                        f" {item.device.id} because a claim constraint would not be satisfied"
                    )
                return None
            joined.append(kept)
        where = f"claim {named}, request {want.name}"
        if self._features.consumable_capacity and not self._has(
            want, item, self._amounts(item), where
        ):
            for other in reversed(joined):
                other.remove()
            self._uncount(item, counted)
            return None
        share = None
        existed = False
        if shareable:
            share = capacity.consumed(
                item.capacities, want.capacity, fractional=self._features.fractional_range
            )
            existed = item.key in self._giving_amounts
            held = self._giving_amounts.setdefault(item.key, {})
            for name, amount in share.items():
                held[name] = held.get(name, 0) + amount.nano
        else:
            self._giving.setdefault(item.key, set()).add(claim)
        self._result[claim].append(Chosen(ask.request.full_name(want), want, item, share))
        return _Undo(item, counted, joined, share, existed)

    def _take_back(self, claim: int, undo: _Undo) -> None:
        item = undo.item
        self._result[claim].pop()
        if undo.share is None:
            self._giving[item.key].discard(claim)
        else:
            held = self._giving_amounts[item.key]
            for name, amount in undo.share.items():
                held[name] -= amount.nano
            if not undo.existed:
                del self._giving_amounts[item.key]
        for kept in reversed(undo.joined):
            kept.remove()
        self._uncount(item, undo.counted)

    def _selectable(self, claim: Claim, ask: _Ask, item: Item) -> bool:
        if item.binds and not self._features.binding_conditions:
            return False
        found = ask.matches.get(item)
        if found is None:
            device = item.device
            selected = ask.selected.get(device)
            if selected is None:
                selected = ask.selected[device] = self._selected(claim, ask, item)
            found = selected and (
                not device.slice.per_device or self._shop.reaches(device, self._info)
            )
            ask.matches[item] = found
        return found

    def _selected(self, claim: Claim, ask: _Ask, item: Item) -> bool:
        device = item.device
        for whose, expressions in (
            (f"class {ask.class_.name}", ask.class_.selectors),
            (f"claim {claim}", ask.want.selectors),
        ):
            for number, expression in enumerate(expressions):
                try:
                    if not self._shop.selectors.matches(expression or "", device):
                        return False
                except CelError as error:
                    if error.compiling:
                        text = f"{whose}: selector #{number}: CEL compile error: {error}"
                        raise Fatal(text) from None
                    if not self._features.explains_keys:
                        error = CelError(str(error).partition(". consider using CEL")[0])
                    general = f"{whose}: selector #{number}: CEL runtime error: {error}"
                    on = f" on device {item.device.id}" if self._features.names_device else ""
                    text = f"{whose}: selector #{number}{on}: CEL runtime error: {error}"
                    of = ask.class_.name if whose.startswith("class ") else ""
                    failed = FailedSelector(
                        ask.request.full_name(ask.want),
                        of,
                        number,
                        expression or "",
                        device,
                        str(error),
                    )
                    raise Fatal(text, general=general, selector=failed) from None
        return True

    def _has(self, want: Want, item: Item, taken: dict[str, int], where: str) -> bool:
        """Whether the capacity that the request takes is left."""
        if item.plain and not taken and not want.capacity:
            return True
        try:
            return capacity.fits(
                item.capacities,
                want.capacity,
                taken,
                fractional=self._features.fractional_range,
            )
        except capacity.NotRepresentable as problem:
            raise Fatal(
                f"{where}: checking capacity for device {item.device.id}: {problem}"
            ) from None

    def _amounts(self, item: Item) -> dict[str, int]:
        held = self._shop.state.amounts.get(item.key)
        giving = self._giving_amounts.get(item.key)
        if not held or not giving:
            return held or giving or {}
        return {
            name: held.get(name, 0) + giving.get(name, 0) for name in held.keys() | giving.keys()
        }

    def _in_use(self, id: Key) -> bool:
        return id in self._shop.state.taken or bool(self._giving.get(id))

    def _share_in_use(self, id: Key) -> bool:
        return id in self._shop.state.shared or id in self._giving_amounts

    def _count(self, item: Item) -> bool:
        """Charges the counters of a device; False, and nothing charged, where one is used up."""
        available, overdrawn = self._shop.available(item.pool)
        if overdrawn:
            return False
        consumed = self._consumed.setdefault(item.pool.id, {})
        for key, amount in item.counters:
            consumed[key] = consumed.get(key, 0) + amount
        if all(consumed[key] <= available[key] for key, _ in item.counters):
            return True
        self._uncount(item, True)
        return False

    def _uncount(self, item: Item, counted: bool) -> None:
        if counted:
            consumed = self._consumed[item.pool.id]
            for key, amount in item.counters:
                consumed[key] -= amount

    # -- devices that cannot be told apart -----------------------------------------------------

    def _standing(self, item: Item) -> Hashable:
        """Equal for devices of which one that has led nowhere stands for the others."""
        amounts = self._giving_amounts.get(item.key)
        return (
            self._kinds.of(item),
            frozenset(self._giving.get(item.key, ())),
            None if amounts is None else tuple(sorted(amounts.items())),
        )

    def _told(self, item: Item) -> Hashable:
        """What the claims' constraints and selectors see of a device."""
        answers: list[object] = []
        for name in self._attributes:
            value = lookup(item.device, name)
            answers.append((type(value), repr(value) if isinstance(value, tuple) else value))
        for claim, asks in zip(self._claims, self._asks, strict=True):
            for alternatives in asks:
                for ask in alternatives:
                    try:
                        answers.append(self._selectable(claim, ask, item))
                    except (Fatal, Unsure) as problem:
                        answers.append(type(problem))
        return tuple(answers)

    def _point(self, claim: int, request: int) -> Hashable:
        """Where the search is: all that decides how it goes on from here."""
        kind_of = self._kind_of
        given = sorted(
            (kind_of(self._by_key[key]), claim in claims)
            for key, claims in self._giving.items()
            if claims
        )
        shares = sorted(
            (kind_of(self._by_key[key]), tuple(sorted(amounts.items())))
            for key, amounts in self._giving_amounts.items()
        )
        consumed = frozenset(
            (pool, counter, amount)
            for pool, amounts in self._consumed.items()
            for counter, amount in amounts.items()
            if amount
        )
        kept = tuple(kept.state for kept in self._constraints[claim])
        size = len(self._result[claim])
        return (claim, request, size, tuple(given), tuple(shares), consumed, kept)

    # -- too little left, whatever is tried ----------------------------------------------------

    def _never_fails(self) -> bool:
        """Whether no device that may be tried raises an error, and no claim can grow too large."""
        if self._ordered or self._broken is not None:
            return False
        for claim, named in enumerate(self._claims):
            most = 0
            for alternatives in self._asks[claim]:
                most += max(ask.count for ask in alternatives)
                for ask in alternatives:
                    try:
                        ask.able = [item for item in self._items if self._fit(named, ask, item)]
                    except (Fatal, Unsure):
                        return False
            if most > MAX_RESULTS:
                return False
        return True

    def _fit(self, claim: Claim, ask: _Ask, item: Item) -> bool:
        if not self._selectable(claim, ask, item):
            return False
        if not self._features.partitionable_devices and item.device.consumes:
            return False
        return not self._features.consumable_capacity or self._has(ask.want, item, {}, "")

    def _hopeless(self, claim: int, request: int) -> bool:
        """Whether fewer devices are left than are asked for from here on, be they what they may."""
        needed = 0
        open_: dict[Key, Item] = {}
        watched: list[Item] = []
        for number in range(claim, len(self._claims)):
            seen: dict[Key, Item] = {}
            for alternatives in self._asks[number][request if number == claim else 0 :]:
                needed += min(ask.count for ask in alternatives)
                enough = False
                for ask in alternatives:
                    admin = bool(ask.want.admin_access)
                    able = [i for i in ask.able if admin or not self._in_use(i.key)]
                    (seen if admin else open_).update((item.key, item) for item in able)
                    enough = enough or self._supply(able, ask.count) >= ask.count
                if not enough:
                    return True
            watched += seen.values()
        return self._supply([*open_.values(), *watched], needed) < needed

    def _supply(self, items: list[Item], enough: int) -> int:
        """No fewer than can be had of these together; counters are looked at one by one."""
        total = 0
        of_set: dict[tuple[object, str], list[Item]] = {}
        for item in items:
            if item.shareable:
                return enough
            if item.counters:
                of_set.setdefault((item.pool.id, item.counters[0][0][0]), []).append(item)
            else:
                total += 1
        for members in of_set.values():
            if total >= enough:
                break
            total += self._fitting(members)
        return total

    def _fitting(self, members: list[Item]) -> int:
        available, overdrawn = self._shop.available(members[0].pool)
        if overdrawn:
            return 0
        consumed = self._consumed.get(members[0].pool.id, {})
        members = [
            one
            for one in members
            if all(amount + consumed.get(key, 0) <= available[key] for key, amount in one.counters)
        ]
        amounts: dict[tuple[str, str], list[int]] = {}
        for one in members:
            for key, amount in one.counters:
                amounts.setdefault(key, []).append(amount)
        fewest = len(members)
        for key, those in amounts.items():
            left = available[key] - consumed.get(key, 0)
            fit = 0
            for amount in sorted(those):
                left -= amount
                fit += left >= 0
            fewest = min(fewest, len(members) - len(those) + fit)
        return fewest


class _Undo(NamedTuple):
    item: Item
    counted: bool
    joined: list[Kept]
    share: dict[str, Quantity] | None
    existed: bool
