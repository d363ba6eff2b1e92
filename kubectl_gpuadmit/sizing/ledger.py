"""Where the memory of one GPU goes under each engine: budget, weights, activations, overhead."""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.activations import ITEM_TOKENS, graph_estimate, vllm_peak
from kubectl_gpuadmit.sizing.amount import Range, certain, left, scaled, total
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.constants import (
    CONTEXT,
    LIBRARIES,
    LIBRARIES_HOPPER,
    LLAMA_CPP_BASE,
    OUTSIDE_LEAK,
    PEER,
    PEER_FABRIC,
    TENSORRT_BASE,
    Constant,
)
from kubectl_gpuadmit.sizing.defaults import Settled
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.versions import GRAPHS_PROFILED, LEAKS_TO_OUTSIDE, release, version_of

NEIGHBOURS = 3
"""Of a GPU in NCCL's rings and trees: a parent and two children."""


class Ledger(Struct, frozen=True, kw_only=True):
    """One GPU of one stage. ``budget`` is what the engine lets itself use."""

    budget: Range | None
    weights: Range
    activations: Range
    overhead: Range
    outside: Range
    """Taken beside the budget: CUDA context, graphs of older releases."""
    cache: Range | None
    """Left for caches; None where the device is unknown."""


class Start(Struct, frozen=True, kw_only=True):
    """One GPU of one stage as an engine finds it: what the account is drawn up from."""

    architecture: Architecture
    plan: Plan
    serving: Serving
    settled: Settled
    weights: Range
    states: float
    """Bytes of recurrent states that are kept apart from the pool (SGLang, llama.cpp)."""
    capacity: Range | None
    """Bytes the driver gives of the device."""
    free: Range | None
    """Bytes free of it when the engine starts."""
    element: float
    """Bytes of one number of the activations."""
    samples: bool
    product: str

    @property
    def tensor(self) -> int:
        return self.serving.tensor_parallel_size or 1

    @property
    def logits(self) -> float:
        """Bytes of float32 logits, one row a token of the step."""
        return self.settled.batched * self.plan.vocabulary * 4.0

    @property
    def hidden(self) -> float:
        """Bytes of the hidden states of one step."""
        return self.settled.batched * self.plan.hidden * self.element


def ledger(start: Start) -> Ledger:
    """The account of one GPU. Raises NoPlan for an engine whose rules nobody here knows."""
    match start.serving.engine:
        case "vllm" | "nim":
            return _vllm(start)
        case "sglang":
            return _sglang(start)
        case "tensorrt-llm" | "triton":
            return _tensorrt(start)
        case "llama.cpp":
            return _llama_cpp(start)
        case "tgi":
            return _tgi(start)
        case _:
            raise NoPlan(f"how engine {start.serving.engine} divides memory")


def _constant(value: Constant, times: float = 1.0) -> Range:
    return Range(value.low * times, value.likely * times, value.high * times)


def behind_switch(product: str) -> bool:
    """Hopper and newer data-centre GPUs, which servers join by NVSwitch."""
    return any(word in product.upper() for word in ("H100", "H200", "H800", "H20", "B200", "B300"))


def _peers(start: Start) -> Range:
    if behind_switch(start.product):
        return _constant(PEER_FABRIC, start.tensor - 1)
    return _constant(PEER, min(start.tensor - 1, NEIGHBOURS))


def _encoder_tokens(start: Start) -> int:
    """Embeddings of the images that are profiled: as many as fill the budget, one at least."""
    tower, batched = start.architecture.vision, start.settled.batched
    if tower is None or start.serving.language_model_only:
        return 0
    item = ITEM_TOKENS.get(tower.model_type)
    if item is None:
        return batched
    return max(1, batched // item) * item


def _vllm(start: Start) -> Ledger:
    """``gpu_worker.py``, determine_available_memory: total × share − weights − peak − what else
    was allocated, and since 0.21 an estimate of the graphs."""
    serving, settled = start.serving, start.settled
    version = release(serving.version)
    peak = vllm_peak(
        start.plan,
        batched=settled.batched,
        sequences=settled.sequences,
        tensor=start.tensor,
        experts=expert_ranks(serving),
        element=start.element,
        version=version,
        encoder_tokens=_encoder_tokens(start),
        samples=start.samples,
    )
    low, likely, high = peak.at(0), peak.at(1), peak.at(2)
    activations = Range(low * 0.9, likely, high * 1.1)
    libraries = LIBRARIES_HOPPER if behind_switch(start.product) else LIBRARIES
    overhead = total(_constant(libraries), _peers(start))
    outside = _constant(CONTEXT)
    if not settled.eager:
        graphs = Range(*graph_estimate(start.plan, settled.sequences))
        if version_of(serving.version) is None:
            graphs = Range(0.0, graphs.likely, graphs.high)  # an older release has them outside
        profiled = serving.profile_cuda_graphs
        if version >= GRAPHS_PROFILED if profiled is None else profiled:
            overhead = total(overhead, graphs)
        else:
            outside = total(outside, graphs)
    first, fixed = LEAKS_TO_OUTSIDE
    if first <= version < fixed:
        overhead = total(overhead, _constant(OUTSIDE_LEAK))
    budget = scaled(start.capacity, settled.share) if start.capacity else None
    cache = None
    if serving.kv_cache_memory_bytes is not None:
        cache = certain(serving.kv_cache_memory_bytes)
    elif budget is not None:
        cache = left(budget, start.weights, activations, overhead)
    return Ledger(
        budget=budget,
        weights=start.weights,
        activations=activations,
        overhead=overhead,
        outside=outside,
        cache=cache,
    )


def expert_ranks(serving: Serving) -> int:
    """Ranks that experts are dealt out to; 1 where they are cut like the rest."""
    if serving.expert_parallel_size:
        return serving.expert_parallel_size
    if serving.enable_expert_parallel:
        return (serving.tensor_parallel_size or 1) * (serving.data_parallel_size or 1)
    return 1


def _sglang(start: Start) -> Ledger:
    """``model_runner.py``, profile_max_num_token: what is free after loading, less the part of
    what was free before that is not static."""
    activations = Range(start.hidden, 4 * start.hidden, 12 * start.hidden)
    overhead = _constant(LIBRARIES_HOPPER if behind_switch(start.product) else LIBRARIES)
    states = certain(start.states)
    budget = scaled(start.free, start.settled.share) if start.free else None
    cache = left(budget, start.weights, overhead, states) if budget else None
    return Ledger(
        budget=budget,
        weights=start.weights,
        activations=activations,
        overhead=total(overhead, states),
        outside=total(_constant(CONTEXT), _peers(start)),
        cache=cache,
    )


def _tensorrt(start: Start) -> Ledger:
    """``_util.py``, KvCacheCreator: a share of what is free after a dry run of the model."""
    settled, free, hidden = start.settled, start.free, start.hidden
    rows = min(settled.sequences, settled.batched)
    logits = rows * start.plan.vocabulary * 4.0
    activations = Range(hidden + logits * 0.5, hidden * 2 + logits, hidden * 8 + logits * 3)
    overhead = total(_constant(TENSORRT_BASE), _peers(start))
    cache = None
    budget = free
    if free is not None:
        cache = scaled(left(free, start.weights, activations, overhead), settled.share)
    return Ledger(
        budget=budget,
        weights=start.weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )


def _llama_cpp(start: Start) -> Ledger:
    """Nothing is reserved: weights, the whole context's cache, states and a compute buffer of one
    micro-batch, whose largest tensors are logits in float32 (``llama-context.cpp``)."""
    logits, free = start.logits, start.free
    hidden = start.settled.batched * start.plan.hidden * 4.0
    activations = Range(0.5 * logits, logits + 4 * hidden, 2 * logits + 12 * hidden)
    overhead = total(_constant(LLAMA_CPP_BASE), certain(start.states))
    cache = left(free, start.weights, activations, overhead) if free else None
    return Ledger(
        budget=free,
        weights=start.weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )


def _tgi(start: Start) -> Ledger:
    """TGI measures by a warm-up prefill of ``max-batch-prefill-tokens`` and takes a share of what
    is left (``flash_causal_lm.py``, warmup). Before 1.0 the allocator decided, by no rule that
    could be told in advance."""
    version = release(start.serving.version)
    if version < (1, 0, 0):
        raise NoPlan(
            f"how TGI {start.serving.version} divides memory (before 1.0 the allocator decided)"
        )
    settled, logits, hidden = start.settled, start.logits, start.hidden
    widest = max((layer.width for layer in start.plan.layers), default=0)
    layer = settled.batched * 1.5 * widest / start.tensor * start.element
    activations = Range(layer + hidden, layer + 3 * hidden + 0.5 * logits, layer + 2 * logits)
    overhead = total(_constant(CONTEXT), _peers(start))
    budget = scaled(start.free, settled.share) if start.free else None
    cache = left(budget, start.weights, activations, overhead) if budget else None
    return Ledger(
        budget=budget,
        weights=start.weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )
