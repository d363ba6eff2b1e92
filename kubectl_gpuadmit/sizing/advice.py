"""The smallest configurations that fit, over all known products, and what each holds by context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.sizing.envelope import Envelope, Want
from kubectl_gpuadmit.sizing.products import Product, advised
from kubectl_gpuadmit.sizing.trial import Trial

SIZES = (1, 2, 4, 8)
"""Tensor-parallel sizes that are tried: those of usual nodes."""

CONTEXTS = (2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144)

_SHORT_OF_MEMORY = frozenset(
    {"activations-exceed", "kv-below-context", "kv-below-load", "sequences-above-states"}
)
_NOT_DIVISIBLE = frozenset({"heads-not-divisible", "width-not-divisible", "groups-not-divisible"})


class Configuration(Struct, frozen=True, kw_only=True):
    """A product, how many of it, and what comes of it."""

    trial: Trial
    product: Product
    envelope: Envelope

    @property
    def total_mib(self) -> int:
        return self.product.mib * self.envelope.gpus


def advise(trial: Trial, *, products: Sequence[Product] | None = None) -> tuple[Configuration, ...]:
    """For each product the fewest GPUs that fit, least memory in all first.

    A tensor-parallel size that the trial states is kept; else those of SIZES are tried that a
    usual node of the product has. Products on which nothing fits are left out. Without a wanted
    load one request of the longest length has to fit, also in engines that would start without.
    """
    if not (trial.want.context or trial.want.concurrency):
        longest = trial.serving.max_model_len or trial.architecture.max_position_embeddings
        trial = structs.replace(trial, want=Want(context=longest))
    found = []
    for product in advised() if products is None else products:
        here = structs.replace(trial, product=product)
        for tensor in _sizes(here, product):
            tried = here.served(tensor_parallel_size=tensor)
            answer = tried.envelope()
            if answer.fits == "fits":
                found.append(Configuration(trial=tried, product=product, envelope=answer))
                break
    return tuple(sorted(found, key=lambda c: (c.total_mib, c.envelope.gpus, c.product.name)))


def _sizes(trial: Trial, product: Product) -> tuple[int, ...]:
    if trial.serving.tensor_parallel_size is not None:
        return (trial.serving.tensor_parallel_size,)
    return tuple(size for size in SIZES if size <= product.most)


class Cell(Struct, frozen=True, kw_only=True):
    """One product at one context."""

    context: int
    envelope: Envelope


class Line(Struct, frozen=True, kw_only=True):
    """One product over all contexts."""

    product: Product
    cells: tuple[Cell, ...]


def by_context(trial: Trial, *, products: Sequence[Product] | None = None) -> tuple[Line, ...]:
    """Each product × each of CONTEXTS up to the model's own length, whatever load is wanted."""
    most = trial.architecture.max_position_embeddings or CONTEXTS[-1]
    contexts = [context for context in CONTEXTS if context < most] + [most]
    lines = []
    for product in advised() if products is None else products:
        here = structs.replace(trial, product=product, want=Want())
        cells = tuple(
            Cell(context=context, envelope=here.served(max_model_len=context).envelope())
            for context in contexts
        )
        lines.append(Line(product=product, cells=cells))
    return tuple(lines)


class Alternative(Struct, frozen=True, kw_only=True):
    """One change with which it fits: tried, not guessed."""

    change: str
    """What to change, in words: ``--max-model-len 18432``."""
    trial: Trial
    envelope: Envelope


def alternatives(trial: Trial, found: Envelope) -> tuple[Alternative, ...]:
    """Single changes that make an exceeding start fit on GPUs of the same product, cheapest first:
    what costs nothing, then what costs precision, then what costs GPUs. ``found`` is what came of
    the trial."""
    if trial.product is None:
        return ()
    fitting = []
    for change, arguments in _changes(trial, trial.product, found):
        changed = trial.served(**arguments)
        answer = changed.envelope()
        if answer.fits == "fits":
            fitting.append(Alternative(change=change, trial=changed, envelope=answer))
    return tuple(fitting)


def shortest(fitting: Sequence[Alternative]) -> list[Alternative]:
    """One change of each argument: the one that asks least."""
    first: dict[str, Alternative] = {}
    for one in fitting:
        first.setdefault(one.change.partition(" ")[0], one)
    return list(first.values())


_Change = tuple[str, dict[str, Any]]
"""In words, and as the engine's argument."""


def _changes(trial: Trial, product: Product, found: Envelope) -> Iterator[_Change]:
    reasons = {problem.reason for problem in found.problems}
    yield from _of_the_load(trial, found, reasons)
    yield from _of_precision(trial, reasons)
    yield from _of_the_layout(trial, product, reasons)


def _change(argument: str, value: object) -> _Change:
    flag = f"--{argument.replace('_', '-')}"
    return (flag if value is True else f"{flag} {value}"), {argument: value}


def _of_the_load(trial: Trial, found: Envelope, reasons: set[str]) -> Iterator[_Change]:
    serving, want = trial.serving, trial.want
    if "kv-below-context" in reasons and found.longest:
        shorter = int(found.longest.likely) // 1024 * 1024
        if shorter >= max(1024, want.context or 0):
            yield _change("max_model_len", shorter)
    if want.concurrency and "concurrency-above-sequences" in reasons:
        yield _change("max_num_seqs", want.concurrency)
    if serving.engine not in ("vllm", "nim") or not reasons & _SHORT_OF_MEMORY:
        return
    for sequences in (256, 64, 16):
        if not serving.max_num_seqs or sequences < serving.max_num_seqs:
            yield _change("max_num_seqs", sequences)
    share = serving.gpu_memory_utilization
    if share is None or share < 0.95:
        yield _change("gpu_memory_utilization", 0.95)


def _of_precision(trial: Trial, reasons: set[str]) -> Iterator[_Change]:
    serving = trial.serving
    if serving.kv_cache_dtype in (None, "auto") and reasons & {"kv-below-context", "kv-below-load"}:
        yield _change("kv_cache_dtype", "fp8")
    if trial.architecture.quantization is None and not serving.quantization:
        yield _change("quantization", "fp8")


def _of_the_layout(trial: Trial, product: Product, reasons: set[str]) -> Iterator[_Change]:
    serving = trial.serving
    tensor = serving.tensor_parallel_size or 1
    if reasons & _NOT_DIVISIBLE:
        if trial.architecture.num_experts and not serving.enable_expert_parallel:
            yield _change("enable_expert_parallel", True)
        for size in reversed(SIZES):
            if size < tensor:
                yield _change("tensor_parallel_size", size)
    for size in SIZES:
        if tensor < size <= product.most:
            yield _change("tensor_parallel_size", size)
