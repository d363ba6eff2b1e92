"""Whether fewer devices are left than claims still ask for, however they were chosen.

Says so only where it is certain: devices are counted, and counters looked at one by one. A search
that is told so gives up at once what it would give up in the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_gpuadmit.devices.allocator.asks import Ask, Asks
from kubectl_gpuadmit.devices.allocator.given import Given, Key
from kubectl_gpuadmit.devices.allocator.outcome import Fatal, Unsure
from kubectl_gpuadmit.devices.allocator.shop import Item, Shop
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube.dra import MAX_RESULTS


class Shortage:
    """Of one search; ``items`` in the order in which they are tried."""

    def __init__(
        self, shop: Shop, claims: Sequence[Claim], asks: Asks, given: Given, items: list[Item]
    ) -> None:
        self._shop = shop
        self._claims = claims
        self._features = shop.features
        self._asks = asks
        self._given = given
        self._items = items
        self._place = {item.key: place for place, item in enumerate(items)}

    def never_fails(self) -> bool:
        """Whether no device that may be tried raises an error, and no claim can grow too large.

        Has to be asked first.
        """
        for claim, named in enumerate(self._claims):
            most = 0
            for alternatives in self._asks.of[claim]:
                most += max(ask.count for ask in alternatives)
                for ask in alternatives:
                    try:
                        ask.able = [item for item in self._items if self._fit(named, ask, item)]
                    except (Fatal, Unsure):
                        return False
            if most > MAX_RESULTS:
                return False
        return True

    def _fit(self, claim: Claim, ask: Ask, item: Item) -> bool:
        if not self._asks.selectable(claim, ask, item):
            return False
        if not self._features.partitionable_devices and item.device.consumes:
            return False
        return not self._features.consumable_capacity or self._asks.has(ask.want, item, {}, "")

    def hopeless(self, claim: int, request: int, ask: Ask, number: int, start: int) -> bool:
        """Whether fewer devices are left than are asked for from here on, be they what they may.

        For the request at hand those from ``start`` on are left; ``number`` it has already.
        """
        needed = ask.count - number
        rest = self._free(ask, [item for item in ask.able if self._place[item.key] >= start])
        if self._supply(rest, needed) < needed:
            return True
        admin = bool(ask.want.admin_access)
        free = {} if admin else {item.key: item for item in rest}
        watched = list(rest) if admin else []
        for which in range(claim, len(self._claims)):
            of_claim: dict[Key, Item] = {}
            for alternatives in self._asks.of[which][request + 1 if which == claim else 0 :]:
                needed += min(other.count for other in alternatives)
                enough = False
                for other in alternatives:
                    able = self._free(other, other.able)
                    into = of_claim if other.want.admin_access else free
                    into.update((item.key, item) for item in able)
                    enough = enough or self._supply(able, other.count) >= other.count
                if not enough:
                    return True
            watched += of_claim.values()
        return self._supply([*free.values(), *watched], needed) < needed

    def _free(self, ask: Ask, items: list[Item]) -> list[Item]:
        """Admin access is had to devices that others have, too."""
        if ask.want.admin_access:
            return items
        return [item for item in items if not self._given.in_use(item.key)]

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
        consumed = self._given.consumed.get(members[0].pool.id, {})
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
