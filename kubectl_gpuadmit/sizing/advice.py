"""The smallest configurations that fit, over all known products, and what each holds by context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.envelope import Envelope, Want, envelope
from kubectl_gpuadmit.sizing.products import Product, advised
from kubectl_gpuadmit.sizing.serving import Serving

SIZES = (1, 2, 4, 8)
"""Tensor-parallel sizes that are tried: those of usual nodes."""

CONTEXTS = (2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144)


class Configuration(Struct, frozen=True, kw_only=True):
    """A product, how many of it, and what comes of it."""

    product: Product
    serving: Serving
    envelope: Envelope

    @property
    def total_mib(self) -> int:
        return self.product.mib * self.envelope.gpus


def advise(
    architecture: Architecture,
    serving: Serving,
    *,
    want: Want | None = None,
    checkpoint: Checkpoint | None = None,
    products: Sequence[Product] | None = None,
) -> tuple[Configuration, ...]:
    """For each product the fewest GPUs that fit, least memory in all first.

    A tensor-parallel size that ``serving`` states is kept; else those of SIZES are tried that a
    usual node of the product has. Products on which nothing fits are left out. Without a wanted
    load one request of the longest length has to fit, also in engines that would start without.
    """
    if want is None or not (want.context or want.concurrency):
        want = Want(context=serving.max_model_len or architecture.max_position_embeddings)
    found = []
    for product in advised() if products is None else products:
        for tensor in _sizes(serving, product):
            tried = structs.replace(serving, tensor_parallel_size=tensor)
            answer = _ask(architecture, tried, product, want, checkpoint)
            if answer.fits == "fits":
                found.append(Configuration(product=product, serving=tried, envelope=answer))
                break
    return tuple(sorted(found, key=lambda c: (c.total_mib, c.envelope.gpus, c.product.name)))


def _sizes(serving: Serving, product: Product) -> tuple[int, ...]:
    if serving.tensor_parallel_size is not None:
        return (serving.tensor_parallel_size,)
    return tuple(size for size in SIZES if size <= product.most)


def _ask(
    architecture: Architecture,
    serving: Serving,
    product: Product,
    want: Want | None,
    checkpoint: Checkpoint | None,
) -> Envelope:
    return envelope(
        architecture,
        serving,
        device_mib=product.mib,
        product=product.name,
        want=want,
        checkpoint=checkpoint,
    )


class Cell(Struct, frozen=True, kw_only=True):
    """One product at one context."""

    context: int
    envelope: Envelope


class Line(Struct, frozen=True, kw_only=True):
    """One product over all contexts."""

    product: Product
    cells: tuple[Cell, ...]


def by_context(
    architecture: Architecture,
    serving: Serving,
    *,
    checkpoint: Checkpoint | None = None,
    products: Sequence[Product] | None = None,
) -> tuple[Line, ...]:
    """Each product × each of CONTEXTS up to the model's own length."""
    most = architecture.max_position_embeddings or CONTEXTS[-1]
    contexts = [context for context in CONTEXTS if context < most] + [most]
    lines = []
    for product in advised() if products is None else products:
        cells = tuple(
            Cell(
                context=context,
                envelope=_ask(
                    architecture,
                    structs.replace(serving, max_model_len=context),
                    product,
                    None,
                    checkpoint,
                ),
            )
            for context in contexts
        )
        lines.append(Line(product=product, cells=cells))
    return tuple(lines)


class Alternative(Struct, frozen=True, kw_only=True):
    """One change with which it fits: tried, not guessed."""

    change: str
    """What to change, in words: ``--max-model-len 18432``."""
    serving: Serving
    envelope: Envelope


def alternatives(
    architecture: Architecture,
    serving: Serving,
    product: Product,
    found: Envelope,
    *,
    want: Want | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Alternative, ...]:
    """Single changes that make an exceeding start fit on GPUs of the same product, cheapest first:
    what costs nothing, then what costs precision, then what costs GPUs."""
    fitting = []
    for change, changed in _changes(architecture, serving, product, found, want):
        answer = _ask(architecture, changed, product, want, checkpoint)
        if answer.fits == "fits":
            fitting.append(Alternative(change=change, serving=changed, envelope=answer))
    return tuple(fitting)


def _changes(
    architecture: Architecture,
    serving: Serving,
    product: Product,
    found: Envelope,
    want: Want | None,
) -> list[tuple[str, Serving]]:
    reasons = {problem.reason for problem in found.problems}
    tried: list[tuple[str, Serving]] = []

    def of(change: str, **fields: Any) -> None:
        tried.append((change, structs.replace(serving, **fields)))

    if "kv-below-context" in reasons and found.longest:
        least = want.context if want and want.context else 0
        shorter = int(found.longest.likely) // 1024 * 1024
        if shorter >= max(1024, least):
            of(f"--max-model-len {shorter}", max_model_len=shorter)
    if want and want.concurrency and "concurrency-above-sequences" in reasons:
        of(f"--max-num-seqs {want.concurrency}", max_num_seqs=want.concurrency)
    if serving.engine in ("vllm", "nim") and reasons & {
        "activations-exceed",
        "kv-below-context",
        "kv-below-load",
        "sequences-above-states",
    }:
        for sequences in (256, 64, 16):
            if not serving.max_num_seqs or sequences < serving.max_num_seqs:
                of(f"--max-num-seqs {sequences}", max_num_seqs=sequences)
        share = serving.gpu_memory_utilization
        if share is None or share < 0.95:
            of("--gpu-memory-utilization 0.95", gpu_memory_utilization=0.95)
    if serving.kv_cache_dtype in (None, "auto") and reasons & {"kv-below-context", "kv-below-load"}:
        of("--kv-cache-dtype fp8", kv_cache_dtype="fp8")
    if architecture.quantization is None and not serving.quantization:
        of("--quantization fp8", quantization="fp8")
    if reasons & {"heads-not-divisible", "width-not-divisible", "groups-not-divisible"}:
        if architecture.num_experts and not serving.enable_expert_parallel:
            of("--enable-expert-parallel", enable_expert_parallel=True)
        for size in reversed(SIZES):
            if size < (serving.tensor_parallel_size or 1):
                of(f"--tensor-parallel-size {size}", tensor_parallel_size=size)
    for size in SIZES:
        if (serving.tensor_parallel_size or 1) < size <= product.most:
            of(f"--tensor-parallel-size {size}", tensor_parallel_size=size)
    return tried
