"""The smallest configurations that fit, over all known products, and what each holds by context."""

from __future__ import annotations

from collections.abc import Sequence

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
    usual node of the product has. Products on which nothing fits are left out.
    """
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
    contexts = [context for context in CONTEXTS if context <= most] or [most]
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
