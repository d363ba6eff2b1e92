"""Which devices a request's class and selectors leave, what the others lack, which is nearest.

Devices that all selectors answer alike are asked once, of each lot one pool's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kubectl_gpuadmit.cel import dra as cel
from kubectl_gpuadmit.cel import terms as apart
from kubectl_gpuadmit.cel.terms import Read
from kubectl_gpuadmit.devices.lots import Entry, Lot, losses
from kubectl_gpuadmit.devices.model import Class, Device, Want
from kubectl_gpuadmit.devices.stages import Lack, Near, Stage, spelt
from kubectl_gpuadmit.devices.values import Version
from kubectl_gpuadmit.kube.quantity import QuantityError


class _Outcome(Struct, frozen=True):
    """What the selectors say to devices of one kind."""

    fails: int
    """Index of the first selector (the class's first) that does not hold; -1 where all do."""
    lacks: tuple[Lack, ...]
    """Of all selectors, not only the first."""
    error: str = ""
    unsure: str = ""


class Selected:
    """The devices that class and selectors leave."""

    def __init__(
        self, lots: Iterable[Lot], want: Want, class_: Class | None, kubernetes: str
    ) -> None:
        self._want = want
        self._of_class = len(class_.selectors) if class_ else 0
        texts = [*(class_.selectors if class_ else ()), *want.selectors]
        self._selectors = [_compiled(text, kubernetes) for text in texts]
        reads = _Reads(self._selectors)
        self.left: list[Entry] = []
        self.unsure = ""
        self._outcomes: dict[object, _Outcome] = {}
        self._first: dict[object, Entry] = {}
        self._counts: dict[object, int] = {}
        for lot in lots:
            for index, device in enumerate(lot.devices):
                entry = Entry(lot, index)
                key = reads.key(device)
                if key not in self._first:
                    self._first[key] = entry
                    self._counts[key] = 0
                    self._outcomes[key] = _asked(self._selectors, device, self._of_class)
                    self.unsure = self.unsure or self._outcomes[key].unsure
                self._counts[key] += len(lot.pools)
                if self._outcomes[key].fails < 0:
                    self.left.append(entry)

    def stages(self) -> Iterator[Stage]:
        """One for the class, one for each selector of the request."""
        numbers = [self._of_class - 1, *range(self._of_class, len(self._selectors))]
        texts = [text for _, text in self._selectors]
        before = -1
        for number in numbers:
            lost = losses(
                (_why(outcome), self._counts[key], self._first[key].example, self._first[key].at)
                for key, outcome in self._outcomes.items()
                if before < outcome.fails <= number
            )
            left = sum(
                self._counts[key]
                for key, outcome in self._outcomes.items()
                if not 0 <= outcome.fails <= number
            )
            if number < self._of_class:
                asks = f"of class {self._want.device_class}"
                yield Stage("class", asks, left, lost)
            else:
                place = number - self._of_class
                asks = f"after selector {place + 1}"
                yield Stage("selector", asks, left, lost, " ".join(texts[number].split()))
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
        return Near(self._first[key].example, self._counts[key], self._outcomes[key].lacks)


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
