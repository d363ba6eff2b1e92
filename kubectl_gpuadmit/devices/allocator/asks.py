"""What a pod's claims ask of one node: each request checked, and which devices it may have.

Source: k8s.io/dynamic-resource-allocation v0.37.2 structured/internal/incubating
(allocator_incubating.go: Allocate up to the search, validateDeviceRequest, isSelectable).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.devices.allocator import capacity
from kubectl_gpuadmit.devices.allocator.constraints import Absent, lookup
from kubectl_gpuadmit.devices.allocator.orders import Order
from kubectl_gpuadmit.devices.allocator.outcome import FailedSelector, Fatal
from kubectl_gpuadmit.devices.allocator.pools import NodePool
from kubectl_gpuadmit.devices.allocator.shop import Item, Shop
from kubectl_gpuadmit.devices.model import Claim, Class, Device, Request, Want
from kubectl_gpuadmit.devices.selection import CelError
from kubectl_gpuadmit.devices.values import Value
from kubectl_gpuadmit.kube.dra import MAX_RESULTS


class Ask:
    """One request or alternative with what was found out about it beforehand."""

    __slots__ = (
        "able",
        "class_",
        "count",
        "derived",
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
        self.derived = dict(want.derived)
        self.devices: list[Item] = []
        self.able: list[Item] = []
        self.matches: dict[Item, bool] = {}


class Asks:
    """Of all claims, in their order. Raises Fatal where one cannot be understood."""

    def __init__(
        self,
        shop: Shop,
        info: NodeInfo,
        claims: Sequence[Claim],
        pools: tuple[NodePool, ...],
        order: Order,
    ) -> None:
        self._shop = shop
        self._info = info
        self._features = shop.features
        self._pools = pools
        self._order = order
        self.of: list[list[list[Ask]]] = []
        """Claim -> request -> its alternatives, one for a request without."""
        for claim in claims:
            self._prepare(claim)

    def __iter__(self) -> Iterator[Ask]:
        return (ask for claim in self.of for several in claim for ask in several)

    def _prepare(self, claim: Claim) -> None:
        least_of_claim = 0
        asks: list[list[Ask]] = []
        for request in claim.requests:
            where = f"claim {claim}, request {request.name}"
            if request.first_available and not self._features.prioritized_list:
                raise Fatal(
                    f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled"
                )
            if not self._features.consumable_capacity and self._features.refuses_amounts:
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
            distinct = constraint.distinct if self._features.distinct_attribute else ""
            if not constraint.match and not distinct:
                raise Fatal(
                    f"claim {claim}, constraint #{number}: empty constraint"
                    " (unsupported constraint type?)"
                )
        self.of.append(asks)

    def _checked(self, claim: Claim, request: Request, want: Want) -> Ask:
        where = f"claim {claim}, request {want.name}"
        if want.derived and not self._features.derived_attributes:
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
        ask = Ask(request, want, class_, selected)
        if want.mode == "All":
            self._find_all(claim, ask, where)
        elif want.mode != "ExactCount":
            raise Fatal(f"{where}: unsupported count mode {want.mode}")
        return ask

    def _find_all(self, claim: Claim, ask: Ask, where: str) -> None:
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
            for item in self._order.of_items(self._shop.items(pool)):
                if not self.selectable(claim, ask, item):
                    continue
                if self._features.consumable_capacity:
                    taken = (
                        {}
                        if self._features.all_means_all
                        else self._shop.state.amounts.get(item.key) or {}
                    )
                    if not self.has(ask.want, item, taken, where):
                        continue
                ask.devices.append(item)
        ask.count = len(ask.devices)

    def selectable(self, claim: Claim, ask: Ask, item: Item) -> bool:
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

    def _selected(self, claim: Claim, ask: Ask, item: Item) -> bool:
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

    def has(self, want: Want, item: Item, taken: dict[str, int], where: str) -> bool:
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
            if not self._features.fails_on_amounts:
                return False
            raise Fatal(
                f"{where}: checking capacity for device {item.device.id}: {problem}"
            ) from None

    def value(self, ask: Ask, device: Device, attribute: str) -> Value | Absent:
        """Of an attribute as constraints see it: one that the request derives comes first."""
        expression = ask.derived.get(attribute)
        if expression is None:
            return lookup(device, attribute)
        try:
            return self._shop.selectors.derived(expression, device)
        except CelError as error:
            if error.compiling:
                raise Fatal(f"compile derived attribute {attribute} failed: {error}") from None
            raise Fatal(
                f"evaluate derived attribute {attribute} on device {device.id} failed: {error}",
                general=f"evaluate derived attribute {attribute} failed: {error}",
            ) from None
