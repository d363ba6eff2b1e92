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


def ledger(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    *,
    weights: Range,
    states: float,
    capacity: Range | None,
    free: Range | None,
    element: float,
    samples: bool,
    product: str,
) -> Ledger:
    """The account of one GPU.

    Args:
        states: Bytes of recurrent states that are kept apart from the pool (SGLang, llama.cpp).
        capacity: Bytes the driver gives of the device.
        free: Bytes free of it when the engine starts.
    """
    context = (architecture, plan, serving, settled)
    match serving.engine:
        case "vllm" | "nim":
            return _vllm(*context, weights, capacity, element, samples, product)
        case "sglang":
            return _sglang(*context, weights, states, free, element, product)
        case "tensorrt-llm" | "triton":
            return _tensorrt(*context, weights, free, element, product)
        case "llama.cpp":
            return _llama_cpp(*context, weights, states, free, element, product)
        case "tgi":
            return _tgi(*context, weights, free, element, product)
        case _:
            raise NoPlan(f"how engine {serving.engine} divides memory")


def _constant(value: Constant, times: float = 1.0) -> Range:
    return Range(value.low * times, value.likely * times, value.high * times)


def behind_switch(product: str) -> bool:
    """Hopper and newer data-centre GPUs, which servers join by NVSwitch."""
    return any(word in product.upper() for word in ("H100", "H200", "H800", "H20", "B200", "B300"))


def _peers(tensor: int, product: str) -> Range:
    if behind_switch(product):
        return _constant(PEER_FABRIC, tensor - 1)
    return _constant(PEER, min(tensor - 1, NEIGHBOURS))


def _encoder_tokens(architecture: Architecture, serving: Serving, settled: Settled) -> int:
    """Embeddings of the images that are profiled: as many as fill the budget, one at least."""
    tower = architecture.vision
    if tower is None or serving.language_model_only:
        return 0
    item = ITEM_TOKENS.get(tower.model_type)
    if item is None:
        return settled.batched
    return max(1, settled.batched // item) * item


def _vllm(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    weights: Range,
    capacity: Range | None,
    element: float,
    samples: bool,
    product: str,
) -> Ledger:
    """``gpu_worker.py``, determine_available_memory: total × share − weights − peak − what else
    was allocated, and since 0.21 an estimate of the graphs."""
    version = release(serving.version)
    tensor = serving.tensor_parallel_size or 1
    peak = vllm_peak(
        plan,
        batched=settled.batched,
        sequences=settled.sequences,
        tensor=tensor,
        experts=expert_ranks(serving),
        element=element,
        version=version,
        encoder_tokens=_encoder_tokens(architecture, serving, settled),
        samples=samples,
    )
    low, likely, high = peak.at(0), peak.at(1), peak.at(2)
    activations = Range(low * 0.9, likely, high * 1.1)
    libraries = LIBRARIES_HOPPER if behind_switch(product) else LIBRARIES
    overhead = total(_constant(libraries), _peers(tensor, product))
    outside = _constant(CONTEXT)
    if not settled.eager:
        graphs = Range(*graph_estimate(plan, settled.sequences))
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
    budget = scaled(capacity, settled.share) if capacity else None
    cache = None
    if serving.kv_cache_memory_bytes is not None:
        cache = certain(serving.kv_cache_memory_bytes)
    elif budget is not None:
        cache = left(budget, weights, activations, overhead)
    return Ledger(
        budget=budget,
        weights=weights,
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


def _sglang(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    weights: Range,
    states: float,
    free: Range | None,
    element: float,
    product: str,
) -> Ledger:
    """``model_runner.py``, profile_max_num_token: what is free after loading, less the part of
    what was free before that is not static."""
    tensor = serving.tensor_parallel_size or 1
    hidden = settled.batched * plan.hidden * element
    activations = Range(hidden, 4 * hidden, 12 * hidden)
    overhead = _constant(LIBRARIES_HOPPER if behind_switch(product) else LIBRARIES)
    budget = scaled(free, settled.share) if free else None
    cache = left(budget, weights, overhead, certain(states)) if budget else None
    return Ledger(
        budget=budget,
        weights=weights,
        activations=activations,
        overhead=total(overhead, certain(states)),
        outside=total(_constant(CONTEXT), _peers(tensor, product)),
        cache=cache,
    )


def _tensorrt(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    weights: Range,
    free: Range | None,
    element: float,
    product: str,
) -> Ledger:
    """``_util.py``, KvCacheCreator: a share of what is free after a dry run of the model."""
    tensor = serving.tensor_parallel_size or 1
    rows = min(settled.sequences, settled.batched)
    logits = rows * plan.vocabulary * 4.0
    hidden = settled.batched * plan.hidden * element
    activations = Range(hidden + logits * 0.5, hidden * 2 + logits, hidden * 8 + logits * 3)
    overhead = total(_constant(TENSORRT_BASE), _peers(tensor, product))
    cache = None
    budget = free
    if free is not None:
        cache = scaled(left(free, weights, activations, overhead), settled.share)
    return Ledger(
        budget=budget,
        weights=weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )


def _llama_cpp(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    weights: Range,
    states: float,
    free: Range | None,
    element: float,
    product: str,
) -> Ledger:
    """Nothing is reserved: weights, the whole context's cache, states and a compute buffer of one
    micro-batch, whose largest tensors are logits in float32 (``llama-context.cpp``)."""
    logits = settled.batched * plan.vocabulary * 4.0
    hidden = settled.batched * plan.hidden * 4.0
    activations = Range(0.5 * logits, logits + 4 * hidden, 2 * logits + 12 * hidden)
    overhead = total(_constant(LLAMA_CPP_BASE), certain(states))
    cache = left(free, weights, activations, overhead) if free else None
    return Ledger(
        budget=free,
        weights=weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )


def _tgi(
    architecture: Architecture,
    plan: Plan,
    serving: Serving,
    settled: Settled,
    weights: Range,
    free: Range | None,
    element: float,
    product: str,
) -> Ledger:
    """TGI measures by a warm-up prefill of ``max-batch-prefill-tokens`` and takes a share of what
    is left (``flash_causal_lm.py``, warmup). Before 1.0 the allocator decided, by no rule that
    could be told in advance."""
    version = release(serving.version)
    if version < (1, 0, 0):
        raise NoPlan(f"how TGI {serving.version} divides memory (before 1.0 the allocator decided)")
    tensor = serving.tensor_parallel_size or 1
    logits = settled.batched * plan.vocabulary * 4.0
    hidden = settled.batched * plan.hidden * element
    widest = max((layer.width for layer in plan.layers), default=0)
    layer = settled.batched * 1.5 * widest / tensor * element
    activations = Range(layer + hidden, layer + 3 * hidden + 0.5 * logits, layer + 2 * logits)
    overhead = total(_constant(CONTEXT), _peers(tensor, product))
    budget = scaled(free, settled.share) if free else None
    cache = left(budget, weights, activations, overhead) if budget else None
    return Ledger(
        budget=budget,
        weights=weights,
        activations=activations,
        overhead=overhead,
        outside=certain(0.0),
        cache=cache,
    )
