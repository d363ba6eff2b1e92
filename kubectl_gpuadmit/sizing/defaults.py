"""What an engine does where nobody told it: its arguments' defaults, by version and GPU.

Sources: vLLM ``engine/arg_utils.py`` (``_set_default_args``, UsageContext.OPENAI_API_SERVER) and
``config/cache.py``; SGLang ``server_args.py``; TensorRT-LLM ``llmapi/llm_args.py``; TGI
``launcher``; llama.cpp ``common/common.h``.
"""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.versions import (
    HYBRID_ALLOCATOR,
    UTILIZATION_92,
    V1_DEFAULT,
    release,
)

GIB = 1 << 30
LARGE_GPU = 70 * GIB
"""vLLM: from here, and not an A100, a step takes more tokens and more sequences."""
LARGE_DEFAULTS = (0, 9, 0)
HUGE_GPU = 160 * GIB
"""vLLM: from here a step takes 16384 tokens (vllm-project/vllm#54703)."""
HUGE_DEFAULTS = (0, 20, 0)


class Settled(Struct, frozen=True, kw_only=True):
    """Arguments with defaults filled in; ``assumed`` says which and whose."""

    length: int
    sequences: int
    batched: int
    block: int
    share: float
    """Of memory, in the engine's own sense."""
    eager: bool
    prefix_caching: bool
    hybrid: bool
    assumed: tuple[tuple[str, str], ...]


def settled(
    architecture: Architecture, serving: Serving, *, capacity: float | None, product: str
) -> Settled:
    """Every argument that matters. ``capacity``: bytes the driver gives, None where unknown."""
    match serving.engine:
        case "sglang":
            return _sglang(architecture, serving, capacity=capacity)
        case "tensorrt-llm":
            return _tensorrt(architecture, serving)
        case "llama.cpp":
            return _llama_cpp(architecture, serving)
        case "tgi":
            return _tgi(architecture, serving)
        case _:
            return _vllm(architecture, serving, capacity=capacity, product=product)


class _Notes:
    """Collects what was assumed while values are chosen."""

    def __init__(self, serving: Serving, source: str) -> None:
        self.serving = serving
        self.source = source
        self.assumed: list[tuple[str, str]] = []

    def value(self, name: str, default: int) -> int:
        given = getattr(self.serving, name)
        if given is not None:
            return int(given)
        self.assumed.append((f"{name} {default}", self.source))
        return default

    def share(self, name: str, default: float) -> float:
        given = getattr(self.serving, name)
        if given is not None:
            return float(given)
        self.assumed.append((f"{name} {default:g}", self.source))
        return default


def _length(architecture: Architecture, notes: _Notes) -> int:
    if notes.serving.max_model_len:
        return notes.serving.max_model_len
    derived = architecture.max_position_embeddings or 2048
    notes.assumed.append((f"max_model_len {derived}", "max_position_embeddings of the model"))
    return derived


def _vllm(
    architecture: Architecture, serving: Serving, *, capacity: float | None, product: str
) -> Settled:
    version = release(serving.version)
    notes = _Notes(serving, f"vLLM {serving.version or 'newest release'}, its default")
    length = _length(architecture, notes)
    first = version < V1_DEFAULT or "V0" in serving.version
    large = (
        not first
        and version >= LARGE_DEFAULTS
        and capacity is not None
        and capacity >= LARGE_GPU
        and "A100" not in product.upper()
    )
    sequences = notes.value("max_num_seqs", 1024 if large else 256)
    if first:
        batched = notes.value(
            "max_num_batched_tokens", 2048 if length > 32768 else max(length, 2048)
        )
    else:
        step = 8192 if large else 2048
        if large and capacity is not None and capacity >= HUGE_GPU and version >= HUGE_DEFAULTS:
            step = 16384
        batched = notes.value("max_num_batched_tokens", step)
    hybrid = not serving.disable_hybrid_kv_cache_manager and version >= HYBRID_ALLOCATOR
    return Settled(
        length=length,
        sequences=min(sequences, batched),
        batched=batched,
        block=serving.block_size or 16,
        share=notes.share("gpu_memory_utilization", 0.92 if version >= UTILIZATION_92 else 0.9),
        eager=bool(serving.enforce_eager),
        prefix_caching=bool(serving.enable_prefix_caching),
        hybrid=hybrid and not first,
        assumed=tuple(notes.assumed),
    )


SGLANG_STEPS: tuple[tuple[float, int, tuple[int, int]], ...] = (
    # MiB of the GPU below which: tokens of a prefill step, largest graph for tp < 4 and above
    (20 * 1024, 2048, (8, 8)),
    (35 * 1024, 2048, (24, 80)),
    (60 * 1024, 4096, (32, 160)),
    (90 * 1024, 8192, (256, 512)),
    (160 * 1024, 8192, (256, 512)),
    (float("inf"), 16384, (512, 512)),
)
"""``server_args.py``, _handle_gpu_memory_settings (since sgl-project/sglang#10975)."""


def _sglang(architecture: Architecture, serving: Serving, *, capacity: float | None) -> Settled:
    """The share is what is left after amounts that are set aside by the GPU's size."""
    notes = _Notes(serving, f"SGLang {serving.version or 'newest release'}, its default")
    tensor = serving.tensor_parallel_size or 1
    mib = (capacity or 80 * GIB) / (1 << 20)
    step, graphs = next((s, g) for below, s, g in SGLANG_STEPS if mib < below)
    batched = notes.value("max_num_batched_tokens", step)
    largest = graphs[0] if tensor < 4 else graphs[1]
    aside = 512 + max(batched, 2048) * 1.5 + largest * 2
    aside += tensor * (serving.pipeline_parallel_size or 1) / 8 * 1024
    if serving.enable_dp_attention:
        aside += largest * (serving.data_parallel_size or 1) * (4.5 if largest > 300 else 3)
    if mib > 60 * 1024:
        aside = max(aside, 10 * 1024)
    if serving.speculative_method not in (None, "ngram"):
        aside += 2 * 1024
    share = min(0.95, max(0.1, round((mib - aside) / mib, 3)))
    return Settled(
        length=_length(architecture, notes),
        sequences=notes.value("max_num_seqs", 256),
        batched=batched,
        block=serving.block_size or 1,
        share=notes.share("mem_fraction_static", share),
        eager=bool(serving.enforce_eager),
        prefix_caching=True,
        hybrid=True,
        assumed=tuple(notes.assumed),
    )


def _tensorrt(architecture: Architecture, serving: Serving) -> Settled:
    notes = _Notes(serving, f"TensorRT-LLM {serving.version or 'newest release'}, its default")
    return Settled(
        length=_length(architecture, notes),
        sequences=notes.value("max_num_seqs", 2048),
        batched=notes.value("max_num_batched_tokens", 8192),
        block=serving.block_size or 32,
        share=notes.share("free_gpu_memory_fraction", 0.9),
        eager=bool(serving.enforce_eager),
        prefix_caching=True,
        hybrid=False,
        assumed=tuple(notes.assumed),
    )


def _llama_cpp(architecture: Architecture, serving: Serving) -> Settled:
    notes = _Notes(serving, "llama.cpp server, its default")
    return Settled(
        length=_length(architecture, notes),
        sequences=notes.value("max_num_seqs", 4),
        batched=notes.value("max_num_batched_tokens", 512),
        block=1,
        share=1.0,
        eager=True,
        prefix_caching=False,
        hybrid=True,
        assumed=tuple(notes.assumed),
    )


def _tgi(architecture: Architecture, serving: Serving) -> Settled:
    notes = _Notes(serving, f"TGI {serving.version or 'newest release'}, its default")
    return Settled(
        length=_length(architecture, notes),
        sequences=notes.value("max_num_seqs", 128),
        batched=notes.value("max_num_batched_tokens", 4096),
        block=serving.block_size or 1,
        share=notes.share("gpu_memory_utilization", 0.95),
        eager=bool(serving.enforce_eager),
        prefix_caching=True,
        hybrid=False,
        assumed=tuple(notes.assumed),
    )
