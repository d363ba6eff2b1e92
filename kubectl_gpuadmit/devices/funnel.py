"""Why a claim finds no device: how many are left after each thing that it asks, which was near.

For each request: the devices in usable pools, those of the class, after each selector, on nodes
that the pod may use, free, untainted, with amounts left, as many as one node has together, and of
those as many as agree with the claim's constraints. It explains; ``allocator`` decides. Where every
number is high enough the requests stand in each other's way, which only the allocator sees.

Devices that look alike to all that reads them are asked once: 40,000 GPUs have few kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.cel import dra as cel
from kubectl_gpuadmit.cel import terms as apart
from kubectl_gpuadmit.cel.terms import Read
from kubectl_gpuadmit.devices.allocator import Features, State, capacity, taints
from kubectl_gpuadmit.devices.allocator.shop import counters_of
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import (
    Claim,
    Constraint,
    Device,
    PoolId,
    Request,
    Taint,
    Version,
    Want,
)
from kubectl_gpuadmit.kube.objects import NodeSelector
from kubectl_gpuadmit.kube.quantity import Quantity, QuantityError, parse

StageName = Literal[
    "pools", "class", "selector", "nodes", "free", "untainted", "amounts", "together", "constraint"
]


class Loss(Struct, frozen=True):
    """Why devices were lost at a stage, most of them first."""

    why: str
    count: int
    example: str
    """One of them, ``driver/pool/device``."""


class Stage(Struct, frozen=True):
    """How many devices are left after one thing that is asked."""

    name: StageName
    asks: str
    """``of class gpu.nvidia.com``, ``after selector 1``, ``not in use``."""
    left: int
    losses: tuple[Loss, ...] = ()
    expression: str = ""
    """Of a selector, its text."""


class Lack(Struct, frozen=True):
    """A term of a selector that a device fails."""

    term: str
    values: tuple[tuple[str, str], ...]
    """(what it reads, the device's value); the value is '' where the device has none."""
    selector: int = -1
    """Place of the selector among the request's own, -1 for one of the class."""


class Near(Struct, frozen=True):
    """The devices that lack least."""

    device: str
    count: int
    """How many are alike."""
    lacks: tuple[Lack, ...]


class Funnel(Struct, frozen=True):
    """One request, or one alternative of it."""

    claim: str
    request: str
    """``gpu``, ``gpu/big`` for an alternative."""
    device_class: str
    needs: int
    """Devices together on one node, with the other requests that ask for the very same; 1 for
    allocationMode All."""
    everything: bool
    """allocationMode All: every device that matches on the node."""
    stages: tuple[Stage, ...]
    nearest: Near | None = None
    best_node: str = ""
    """The node with most of what is left."""
    unsure: str = ""
    """Why a selector could not be evaluated."""

    @property
    def falls(self) -> Stage | None:
        """The stage that leaves too few; None where there are enough.

        Of kinds that leave some but too few, the number is what is wrong: ``together``.
        """
        before = 0
        for stage in self.stages:
            few = stage.left < self.needs
            if stage.left == 0 or (few and stage.name in ("together", "constraint")):
                return stage
            if few and before >= self.needs and stage.name not in ("class", "selector"):
                return stage
            before = stage.left
        return None


class Surroundings(Struct, frozen=True):
    """What a pod brings to its claims: which nodes it may use, and what others have already."""

    nodes: frozenset[str] | None = None
    """Nodes that nothing else speaks against; None for all."""
    every: Callable[[NodeSelector], frozenset[str]] | None = None
    """Names of the nodes that a slice's or device's node selector selects."""


def of_claims(
    claims: Sequence[Claim],
    inventory: Inventory,
    *,
    features: Features,
    kubernetes: str,
    around: Surroundings | None = None,
) -> tuple[Funnel, ...]:
    """The funnels of all requests of claims that have no devices yet, in order."""
    around = around or Surroundings()
    state = State.of((c.allocation for c in inventory.claims.values() if c.allocation), features)
    look = _Look(inventory, state, features, kubernetes, around)
    needs = _needs(claims)
    found = []
    for claim in claims:
        if claim.allocation is not None:
            continue
        for request in claim.requests:
            for want in request.wants:
                found.append(look.funnel(claim, request, want, needs))
    return tuple(found)


def _kind(want: Want) -> tuple[object, ...]:
    """Requests of one kind draw on the same devices."""
    amounts = tuple(sorted((want.capacity or {}).items(), key=lambda pair: pair[0]))
    return want.device_class, want.selectors, want.tolerations, amounts, bool(want.admin_access)


def _needs(claims: Iterable[Claim]) -> Counter[tuple[object, ...]]:
    """How many devices requests of one kind ask for together; of alternatives none is added up."""
    total: Counter[tuple[object, ...]] = Counter()
    for claim in claims:
        for request in claim.requests if claim.allocation is None else ():
            if request.exactly is not None and request.exactly.mode != "All":
                total[_kind(request.exactly)] += request.exactly.count
    return total


class _Outcome(Struct, frozen=True):
    """What the selectors say to devices of one kind."""

    fails: int
    """Index of the first selector (the class's first) that does not hold; -1 where all do."""
    lacks: tuple[Lack, ...]
    """Of all selectors, not only the first."""
    error: str = ""
    unsure: str = ""


class _Look:
    """One look at the cluster's devices, for several requests."""

    def __init__(
        self,
        inventory: Inventory,
        state: State,
        features: Features,
        kubernetes: str,
        around: Surroundings,
    ) -> None:
        self.inventory = inventory
        self.state = state
        self.features = features
        self.kubernetes = kubernetes
        self.around = around
        self.usable: list[Device] = []
        self.lost: list[tuple[Device, str]] = []
        for pool in inventory.pools.values():
            why = pool.invalid and f"pool {pool.id} is invalid: {pool.invalid}"
            if not why and not pool.complete and features.skips_incomplete_pools:
                why = f"pool {pool.id} has {len(pool.slices)} of {pool.expected} slices"
            if why:
                self.lost += [(device, why) for device in pool.devices]
            else:
                self.usable += pool.devices
        self._left: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        self._reach: dict[int, frozenset[str] | None] = {}

    def funnel(
        self, claim: Claim, request: Request, want: Want, needs: Counter[tuple[object, ...]]
    ) -> Funnel:
        everything = want.mode == "All"
        number = 1 if everything else max(want.count, needs[_kind(want)])
        stages = [Stage("pools", "devices published", len(self.usable), _losses(iter(self.lost)))]
        chosen = _Chosen(self, want)
        stages += chosen.stages()
        left = chosen.left
        checks: list[tuple[StageName, str, Callable[[Device], str]]] = [
            ("nodes", "on nodes that the pod may use", self._is_away),
            ("free", "not in use", lambda d: "" if want.admin_access else self._in_use(d)),
            ("untainted", "without taints that keep it away", lambda d: self._taint(want, d)),
            ("amounts", "with what is asked of it left", lambda d: self._amounts(want, d)),
        ]
        for name, asks, why_not in checks:
            if name == "nodes" and self.around.nodes is None:
                continue
            kept, gone = [], []
            for device in left:
                if why := why_not(device):
                    gone.append((device, why))
                else:
                    kept.append(device)
            left = kept
            stages.append(Stage(name, asks, len(left), _losses(iter(gone))))
        best_node, best = self._together(left)
        stages.append(Stage("together", f"together on one node{_at(best_node)}", len(best)))
        for constraint in claim.constraints:
            if _concerns(constraint, request, want):
                best_node, agreeing = self._agreeing(left, constraint)
                kind = "one" if constraint.match else "different"
                asks = f"of {kind} {constraint.match or constraint.distinct}{_at(best_node)}"
                stages.append(Stage("constraint", asks, agreeing))
        return Funnel(
            claim=str(claim) if claim.name else "",
            request=request.full_name(want),
            device_class=want.device_class,
            needs=number,
            everything=everything,
            stages=tuple(stages),
            nearest=chosen.nearest() if not chosen.left else None,
            best_node=best_node,
            unsure=chosen.unsure,
        )

    # -- one device --------------------------------------------------------------------------

    def nodes_of(self, device: Device) -> frozenset[str] | None:
        """Nodes that can use it; None for all."""
        slice = device.slice
        if slice.node_name:
            return frozenset((slice.node_name,))
        raw = device.raw
        if slice.per_device:
            if raw.nodeName:
                return frozenset((raw.nodeName,))
            return self._selected(raw.nodeSelector)
        return self._selected(slice.node_selector)

    def _selected(self, selector: NodeSelector | None) -> frozenset[str] | None:
        if selector is None or self.around.every is None:
            return None
        if id(selector) not in self._reach:
            self._reach[id(selector)] = self.around.every(selector)
        return self._reach[id(selector)]

    def _is_away(self, device: Device) -> str:
        mine, its = self.around.nodes, self.nodes_of(device)
        if mine is None or its is None or mine & its:
            return ""
        return "on a node that the pod may not use"

    def _in_use(self, device: Device) -> str:
        if device.id in self.state.taken:
            holders = self.inventory.holders.get(device.id, ())
            claim = next((str(c) for c, held in holders if not held.admin_access), "")
            return f"allocated to {claim}"
        if device.id in self.state.shared and not self._is_shared(device):
            return "shares of it are allocated"
        return ""

    def _is_shared(self, device: Device) -> bool:
        return self.features.consumable_capacity and device.shareable

    def _taint(self, want: Want, device: Device) -> str:
        if not self.features.device_taints or not device.taints:
            return ""
        kept = taints.untolerated(device, want.tolerations)
        return "taint " + ", ".join(map(_taint_text, kept)) if kept else ""

    def _amounts(self, want: Want, device: Device) -> str:
        if device.raw.consumesCounters and self.features.partitionable_devices:
            left = self._counters(device)
            short = [
                name for (held, name), n in counters_of(device) if left.get((held, name), 0) < n
            ]
            if short:
                return f"its GPU has too little left of {', '.join(short[:3])}"
        if self.features.consumable_capacity and (want.capacity or self._is_shared(device)):
            taken = self.state.amounts.get(device.id, {}) if self._is_shared(device) else {}
            try:
                fits = capacity.fits(
                    device.capacity_as_written,
                    want.capacity,
                    taken,
                    fractional=self.features.fractional_range,
                )
            except (capacity.NotRepresentable, QuantityError):
                return "its capacity cannot be compared"
            if not fits:
                return _shortage(device, want, taken)
        return ""

    def _counters(self, device: Device) -> dict[tuple[str, str], int]:
        """What is left of the counters of the device's pool."""
        key = (device.driver, device.pool)
        left = self._left.get(key)
        if left is None:
            pool = self.inventory.pools[PoolId(*key)]
            left = {
                (held.name, name): parse(counter.value).nano
                for slice in pool.slices
                for held in slice.counter_sets
                for name, counter in (held.counters or {}).items()
            }
            for one in pool.devices:
                if self.state.is_allocated(one.id):
                    for counted, amount in counters_of(one):
                        left[counted] = left.get(counted, 0) - amount
            self._left[key] = left
        return left

    # -- several devices ---------------------------------------------------------------------

    def _by_node(self, devices: Iterable[Device]) -> dict[str, list[Device]]:
        """Devices of each node; those that any node can use under ''."""
        found: dict[str, list[Device]] = {}
        for device in devices:
            names = self.nodes_of(device)
            for name in ("",) if names is None else names:
                if name == "" or self.around.nodes is None or name in self.around.nodes:
                    found.setdefault(name, []).append(device)
        everywhere = found.get("", [])
        return {name: [*own, *(everywhere if name else ())] for name, own in sorted(found.items())}

    def _together(self, devices: Iterable[Device]) -> tuple[str, list[Device]]:
        """The node with most devices that can be had at a time, and those."""
        best: tuple[str, list[Device]] = ("", [])
        for name, own in self._by_node(devices).items():
            if len(own) > len(best[1]):
                kept = self._compatible(own)
                if len(kept) > len(best[1]):
                    best = (name, kept)
        return best

    def _compatible(self, devices: list[Device]) -> list[Device]:
        """Those that fit into their counters beside each other, the smallest first."""
        if not any(device.raw.consumesCounters for device in devices):
            return devices
        spent: Counter[tuple[str, str, str, str]] = Counter()
        kept = []
        for device in sorted(devices, key=lambda d: sum(n for _, n in counters_of(d))):
            left = self._counters(device) if device.raw.consumesCounters else {}
            takes = [((device.driver, device.pool, *key), key, n) for key, n in counters_of(device)]
            if all(left.get(key, 0) - spent[place] >= n for place, key, n in takes):
                kept.append(device)
                spent.update({place: n for place, _, n in takes})
        return kept

    def _agreeing(self, devices: Iterable[Device], constraint: Constraint) -> tuple[str, int]:
        best = ("", 0)
        for name, own in self._by_node(devices).items():
            groups: dict[object, list[Device]] = {}
            for device in own:
                value = device.attributes.get(constraint.match or constraint.distinct)
                if value is not None and not isinstance(value, tuple):
                    groups.setdefault((type(value), value), []).append(device)
            if constraint.match:
                size = max((len(self._compatible(g)) for g in groups.values()), default=0)
            else:
                size = len(groups)
            if size > best[1]:
                best = (name, size)
        return best


class _Chosen:
    """The devices that class and selectors leave."""

    def __init__(self, look: _Look, want: Want) -> None:
        self._want = want
        class_ = look.inventory.classes.get(want.device_class)
        self._of_class = len(class_.selectors) if class_ else 0
        texts = [*(class_.selectors if class_ else ()), *want.selectors]
        self._selectors = [_compiled(text, look.kubernetes) for text in texts]
        reads = _Reads(self._selectors)
        self.left: list[Device] = []
        self.unsure = ""
        self._outcomes: dict[object, _Outcome] = {}
        self._groups: dict[object, list[Device]] = {}
        for device in look.usable:
            key = reads.key(device)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = []
                self._outcomes[key] = _asked(self._selectors, device, self._of_class)
                self.unsure = self.unsure or self._outcomes[key].unsure
            group.append(device)
            if self._outcomes[key].fails < 0:
                self.left.append(device)
        self._total = len(look.usable)

    def stages(self) -> Iterator[Stage]:
        """One for the class, one for each selector of the request."""
        numbers = [self._of_class - 1, *range(self._of_class, len(self._selectors))]
        texts = [text for _, text in self._selectors]
        before = -1
        for number in numbers:
            gone = [
                (device, _why(self._outcomes[key]))
                for key, group in self._groups.items()
                if before < self._outcomes[key].fails <= number
                for device in group[:1]
            ]
            counts = {
                id(group[0]): len(group)
                for key, group in self._groups.items()
                if before < self._outcomes[key].fails <= number
            }
            left = sum(
                len(group)
                for key, group in self._groups.items()
                if not 0 <= self._outcomes[key].fails <= number
            )
            if number < self._of_class:
                asks = f"of class {self._want.device_class}"
                yield Stage("class", asks, left, _losses(iter(gone), counts))
            else:
                place = number - self._of_class
                asks = f"after selector {place + 1}"
                text = " ".join(texts[number].split())
                yield Stage("selector", asks, left, _losses(iter(gone), counts), text)
            before = number

    def nearest(self) -> Near | None:
        """The kind of device that fails the fewest terms; of several the one that gets furthest."""
        failing = [
            (len(outcome.lacks), -outcome.fails, number, key)
            for number, (key, outcome) in enumerate(self._outcomes.items())
            if outcome.fails >= 0 and outcome.lacks
        ]
        if not failing:
            return None
        key = min(failing, key=lambda entry: entry[:3])[3]
        group = self._groups[key]
        return Near(str(group[0].id), len(group), self._outcomes[key].lacks)


_Compiled = tuple[cel.Selector | cel.Problem, str]


def _compiled(text: str | None, kubernetes: str) -> _Compiled:
    if text is None:
        return cel.Problem("a kind of selector that is not known"), "a selector of another kind"
    return cel.compile(text, kubernetes=kubernetes), text


class _Reads:
    """What of a device any of the selectors looks at."""

    def __init__(self, selectors: Iterable[_Compiled]) -> None:
        reads = {
            read
            for selector, _ in selectors
            if isinstance(selector, cel.Selector)
            for part in apart.parts(selector)
            for read in part.reads
        }
        self._whole = any(r.kind in ("attribute", "capacity") and not r.name for r in reads)
        self._attributes = self._named(reads, "attribute")
        self._capacities = self._named(reads, "capacity")

    @staticmethod
    def _named(reads: Iterable[Read], kind: str) -> tuple[tuple[str, str, str], ...]:
        return tuple(
            sorted((f"{r.domain}/{r.name}", r.domain, r.name) for r in reads if r.kind == kind)
        )

    def key(self, device: Device) -> object:
        """Equal for devices that all selectors answer alike."""
        if self._whole:
            return device.id
        raw, driver = device.raw, device.driver
        attributes, amounts = raw.attributes or {}, raw.capacity or {}
        values: list[object] = [driver, raw.allowMultipleAllocations]
        for full, domain, name in self._attributes:
            found = attributes.get(full)
            values.append(attributes.get(name) if found is None and domain == driver else found)
        for full, domain, name in self._capacities:
            held = amounts.get(full)
            held = amounts.get(name) if held is None and domain == driver else held
            values.append(held and held.value)
        return tuple(values)


def _asked(selectors: list[_Compiled], device: Device, of_class: int) -> _Outcome:
    """What every selector says to a device. Terms are asked one by one where one fails."""
    try:
        seen = as_seen(device)
    except QuantityError as problem:
        return _Outcome(0, (), error=str(problem))
    fails, error, unsure = -1, "", ""
    lacks: list[Lack] = []
    for number, (selector, text) in enumerate(selectors):
        if isinstance(selector, cel.Problem):
            answer: cel.Answer = cel.RuntimeProblem(selector.message)
        else:
            answer = selector.matches(seen)
        if answer is True:
            continue
        if isinstance(answer, cel.NotEvaluable):
            unsure = unsure or answer.why
        elif isinstance(answer, cel.RuntimeProblem):
            error = error or answer.message
        fails = number if fails < 0 else fails
        lacks += _lacking(selector, text, seen, number - of_class if number >= of_class else -1)
    return _Outcome(fails, tuple(lacks), error, unsure)


def _lacking(
    selector: cel.Selector | cel.Problem, text: str, seen: cel.Device, place: int
) -> Iterator[Lack]:
    if isinstance(selector, cel.Problem):
        yield Lack(" ".join(text.split()), (), place)
        return
    for term in apart.terms(selector, seen):
        if term.answer is not True:
            values = tuple((str(read), read.value(seen) or "") for read in term.reads)
            yield Lack(term.text, values, place)


def as_seen(device: Device) -> cel.Device:
    """The device as expressions see it. Raises QuantityError."""
    attributes: dict[str, cel.Attribute] = {}
    for name, value in device.attributes.items():
        match value:
            case Version():
                attributes[name] = cel.Version(value.text)
            case tuple():
                attributes[name] = tuple(
                    cel.Version(one.text) if isinstance(one, Version) else one for one in value
                )
            case None:
                continue
            case _:
                attributes[name] = value
    amounts = {name: held.value for name, held in device.capacity.items()}
    return cel.Device(device.driver, attributes, amounts, allow_multiple=device.shareable)


def _why(outcome: _Outcome) -> str:
    if outcome.unsure:
        return f"not evaluated: {outcome.unsure}"
    first = next(iter(outcome.lacks), None)
    if first is None:
        return outcome.error
    values = ", ".join(f"{what} is {spelt(value)}" for what, value in first.values)
    return values or outcome.error or first.term


def spelt(value: str) -> str:
    """``81559Mi`` -> ``79.65Gi (81559Mi)``: in the unit in which people ask."""
    if not value:
        return "not there"
    try:
        amount = parse(value).nano / 10**9 / 2**30
    except QuantityError:
        return value
    if value.endswith("Gi") or amount < 1 or not any(c.isalpha() for c in value):
        return value
    return f"{amount:.2f}Gi ({value})"


def _losses(
    gone: Iterator[tuple[Device, str]], counts: dict[int, int] | None = None
) -> tuple[Loss, ...]:
    total: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for device, why in gone:
        total[why] += counts[id(device)] if counts else 1
        examples.setdefault(why, str(device.id))
    return tuple(Loss(why, count, examples[why]) for why, count in total.most_common(4))


def _shortage(device: Device, want: Want, taken: dict[str, int]) -> str:
    said = []
    for name, asked in (want.capacity or {}).items():
        held = device.capacity_as_written.get(name)
        if held is None:
            said.append(f"it has no {name}")
            continue
        left = held.value.nano - taken.get(name, 0)
        if asked.nano > left:
            of = Quantity(left, held.value.format)
            said.append(f"{name}: asked {asked}, {of} of {held.value} left")
    return ", ".join(said) or "what it gives out does not fit the amount asked for"


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _at(node: str) -> str:
    return f" ({node})" if node else ""


def _concerns(constraint: Constraint, request: Request, want: Want) -> bool:
    named = constraint.requests
    return not named or request.name in named or request.full_name(want) in named
