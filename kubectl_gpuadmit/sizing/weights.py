"""Bytes of weights on each pipeline stage's fullest GPU, sharded as the engine shards them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil

from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import Layer, Matrix, NoPlan
from kubectl_gpuadmit.sizing.storage import (
    DTYPE_BYTES,
    Format,
    allocated,
    format_of,
    is_quantised,
)

VOCABULARY_PAD = 64
"""vLLM pads vocabularies to multiples of it (``vocab_parallel_embedding.py``)."""


class Sharding(Struct, frozen=True, kw_only=True):
    """How the ranks divide a model. ``experts``: ranks that routed experts are dealt out to, each
    whole (expert parallel); 1: experts are cut like other matrices."""

    tensor: int = 1
    pipeline: int = 1
    experts: int = 1
    attention: int | None = None
    """Ranks that attention is cut over, where data-parallel attention makes them fewer."""
    towers: bool = True
    """Encoders are loaded."""
    prediction: bool = False
    """Layers for multi-token prediction are loaded."""
    whole_segments: bool = True
    """PyTorch's allocator without expandable segments counts what it cannot split."""
    vocabulary_pad: int = VOCABULARY_PAD
    mxfp4_pad: tuple[int, int] = (1, 1)
    """Multiples that intermediate and hidden sizes of MXFP4 experts are padded to."""
    absorbed: bool = True
    """Latent attention keeps its up-projection a second time, transposed, unquantised."""
    layered: bool = False
    """llama.cpp: whole layers are dealt out, the output layer counted as one more, and the input
    embedding stays in the host's memory (``llama-model.cpp``, load_tensors)."""
    batched_tokens: int = 0
    """Tokens of a step, for buffers that a model keeps beside its weights."""
    even_layers: bool = True
    """Pipeline stages as vLLM cuts them; False: SGLang's, the first stages take the rest."""


class Lora(Struct, frozen=True):
    """Adapters held at once, their rank, and bytes of an element."""

    count: int
    rank: int
    element: float
    vocabulary: bool
    """Embedding and output get adapters too (vLLM's Llama and Mistral, up to 0.12)."""


class Stage(Struct, frozen=True):
    """One pipeline stage: which layers, and the bytes of its fullest GPU."""

    first: int
    last: int
    weights: float
    """Without adapters."""
    adapters: float


def stages(count: int, pipeline: int, *, even: bool = True) -> tuple[tuple[int, int], ...]:
    """First and one past the last layer of each stage.

    vLLM (``distributed/utils.py``, get_pp_indices): what does not divide goes to the stages before
    the last, from the back; SGLang's go to the first.
    """
    each, rest = divmod(count, pipeline)
    sizes = [each] * pipeline
    for i in range(rest):
        if even and pipeline > 2:
            sizes[pipeline - 2 - i % (pipeline - 1)] += 1
        else:
            sizes[i] += 1
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return tuple(pairwise(bounds))


def dealt(count: int, cards: int) -> tuple[tuple[int, int], ...]:
    """llama.cpp's split by layers over like cards: the output layer is the last of count + 1."""
    units = count + 1
    bounds = [min(count, -(-units * i // cards)) for i in range(cards)]
    return tuple(pairwise((*bounds, count)))


def element_bytes(architecture: Architecture, dtype: str | None) -> float:
    """Of an unquantised weight; float32 checkpoints are served as float16 by ``auto``."""
    name = (dtype or "auto").lower()
    if name == "auto":
        name = architecture.dtype or "bfloat16"
        if name == "float32":
            return 2.0
    if name not in DTYPE_BYTES:
        raise NoPlan(f"how large an element of type {name} is")
    return DTYPE_BYTES[name]


@lru_cache(maxsize=512)
def stage_weights(
    architecture: Architecture,
    sharding: Sharding,
    *,
    element: float,
    quantization: Quantization | None,
    lora: Lora | None = None,
) -> tuple[Stage, ...]:
    """Weights of every stage; raises NoPlan with what is missing."""
    parts = plan(architecture)
    layout = format_of(quantization) if quantization else None
    ignored = quantization.ignored if quantization else ()
    mxfp4 = quantization is not None and quantization.method == "mxfp4"
    measure = _Measure(sharding, element, layout, ignored, mxfp4)
    bounds = stages(len(parts.layers), sharding.pipeline, even=sharding.even_layers)
    if sharding.layered:
        bounds = dealt(len(parts.layers), sharding.pipeline)
    found = []
    for index, (first, last) in enumerate(bounds):
        size = sum(measure.layer(parts.layers[i], i) for i in range(first, last))
        adapters = sum(_adapters(parts.layers[i], sharding, lora) for i in range(first, last))
        if index == 0 and not sharding.layered:
            size += sum(measure.matrix(m, None) for m in parts.embeddings)
            if sharding.towers:
                size += sum(measure.unquantised(layer) for layer in parts.towers)
                size += parts.tower_elements * element
            if lora and lora.vocabulary:
                adapters += _vocabulary_adapters(parts.vocabulary, parts.hidden, sharding, lora)
        if index == len(bounds) - 1:
            size += parts.tail * element
            if parts.head is not None:
                size += measure.matrix(parts.head, None)
            elif (index or sharding.layered) and parts.embeddings and not parts.encoder_only:
                size += measure.matrix(parts.embeddings[0], None)  # tied, on another stage
            if sharding.prediction:
                size += sum(measure.layer(layer, None) for layer in parts.prediction)
        if sharding.layered:
            found.append(Stage(first, last, size, adapters))
            continue
        size += parts.positions * parts.rotary_dim * element
        size += parts.token_buffer * sharding.batched_tokens * element
        found.append(Stage(first, last, size, adapters))
    return tuple(found)


class _Measure:
    """Bytes of matrices and layers on one rank."""

    def __init__(
        self,
        sharding: Sharding,
        element: float,
        layout: Format | None,
        ignored: Sequence[str],
        mxfp4: bool,
    ) -> None:
        self.sharding = sharding
        self.element = element
        self.layout = layout
        self.ignored = ignored
        self.mxfp4 = mxfp4
        self._seen: dict[Layer, float] = {}
        self._by_layer = any(any(c.isdigit() for c in pattern) for pattern in ignored)

    def layer(self, layer: Layer, index: int | None) -> float:
        if not self._by_layer and (known := self._seen.get(layer)) is not None:
            return known
        size = sum(self.matrix(m, index) for m in layer.matrices) + layer.vectors * self.element
        self._seen[layer] = size
        return size

    def unquantised(self, layer: Layer) -> float:
        size = 0.0
        for matrix in layer.matrices:
            rows, cols, stack = shard(matrix, self.sharding)
            size += self._counted(stack * rows * (cols + matrix.bias) * self.element)
        return size + layer.vectors * self.element

    def matrix(self, matrix: Matrix, index: int | None) -> float:
        rows, cols, stack = shard(matrix, self.sharding)
        bias = stack * rows * self.element if matrix.bias else 0.0
        layout = self.layout
        takes = layout is not None and (matrix.name != "lm_head" or layout.quantises_head)
        if self.mxfp4 and ".experts." not in matrix.name:
            takes = False  # only experts come in MXFP4 (gpt-oss)
        if layout is None or not takes or not is_quantised(matrix, self.ignored, layer=index):
            return self._counted(stack * rows * cols * self.element) + bias
        if self.mxfp4:
            inner, hidden = self.sharding.mxfp4_pad
            if matrix.split == "column":
                rows, cols = _up(rows, 2 * inner), _up(cols, hidden)
            else:
                rows, cols = _up(rows, hidden), _up(cols, inner)
            bias = stack * rows * self.element if matrix.bias else 0.0
        size = sum(self._counted(stack * part) for part in layout.tensors(rows, cols)) + bias
        if self.sharding.absorbed and matrix.name.endswith("kv_b_proj"):
            size += rows * cols * self.element
        return size

    def _counted(self, size: float) -> float:
        return allocated(size) if self.sharding.whole_segments else size


def shard(matrix: Matrix, sharding: Sharding) -> tuple[int, int, int]:
    """Rows, columns and stack of the fullest rank."""
    ranks = sharding.tensor
    stack = matrix.stack
    if ".experts." in matrix.name and sharding.experts > 1:
        return matrix.rows, matrix.cols, ceil(stack / sharding.experts)
    if matrix.name.startswith("self_attn") and sharding.attention is not None:
        ranks = sharding.attention
    if matrix.split == "none" or ranks == 1:
        rows = matrix.rows
        if matrix.split == "vocab":
            rows = _up(rows, sharding.vocabulary_pad)
        return rows, matrix.cols, stack
    if matrix.split == "row":
        return matrix.rows, ceil(matrix.cols / ranks), stack
    if matrix.split == "vocab":
        return ceil(_up(matrix.rows, sharding.vocabulary_pad) / ranks), matrix.cols, stack
    rows = 0
    for part in matrix.parts:
        if part.heads:
            rows += part.rows // part.heads * ceil(part.heads / ranks)
        else:
            rows += ceil(part.rows / ranks)
    return rows, matrix.cols, stack


def _adapters(layer: Layer, sharding: Sharding, lora: Lora | None) -> float:
    """vLLM keeps, for each adapter held, ``A`` of the inputs for every part of a fused matrix and
    ``B`` of the rank's outputs (``lora/layers``); experts and routers get none."""
    if lora is None:
        return 0.0
    elements = 0
    for matrix in layer.matrices:
        if matrix.router or not matrix.linear or ".experts." in matrix.name:
            continue
        rows, cols, _ = shard(matrix, sharding)
        elements += lora.rank * (cols * len(matrix.parts) + rows)
    return lora.count * elements * lora.element


def _vocabulary_adapters(vocabulary: int, hidden: int, sharding: Sharding, lora: Lora) -> float:
    """Input and output embeddings' adapters and 256 extra words (``lora_extra_vocab_size``)."""
    rows = ceil(_up(vocabulary + 256, 64) / sharding.tensor)
    elements = lora.rank * (vocabulary + 256 + hidden) + lora.rank * (hidden + rows) + 512 * hidden
    return lora.count * elements * lora.element


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
