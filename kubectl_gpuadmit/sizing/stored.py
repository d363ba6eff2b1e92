"""Weights of each stage from the tensors that a checkpoint stores, cut as the engine cuts them."""

from __future__ import annotations

import re

from kubectl_gpuadmit.sizing.checkpoint import Checkpoint, StoredTensor
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.weights import Sharding, Stage, dealt, stages

_LAYER = re.compile(r"(?:^|\.)(?:layers|blk|h|block)\.(\d{1,5})\.")
_WHOLE = re.compile(
    r"norm|bias$|router|gate\.(?:weight|e_score)|kv_a_proj|q_a_proj|indexer|ffn_gate_inp"
)
"""Tensors that every rank holds whole."""
_EXPERT = re.compile(r"experts\.|_exps\.")
_EMBEDDING = re.compile(r"embed_tokens|word_embeddings|token_embd|wte")
_PREDICTION = re.compile(r"(?:^|\.)mtp\.|nextn")


def stored_weights(
    checkpoint: Checkpoint,
    plan: Plan,
    sharding: Sharding,
    serving: Serving,
    *,
    element: float,
) -> tuple[Stage, ...]:
    """Stages with the bytes of their fullest GPU.

    Where the checkpoint lists no tensors, its total is cut evenly. An engine that quantises while
    loading does not keep what is stored: NoPlan.
    """
    if serving.quantization in ("fp8", "bitsandbytes", "experts_int8"):
        raise NoPlan("what is kept of a checkpoint that is quantised while loading")
    count = len(plan.layers)
    bounds = stages(count, sharding.pipeline, even=sharding.even_layers)
    if serving.engine == "llama.cpp":
        bounds = dealt(count, serving.world_size)
    table = plan.positions * plan.rotary_dim * element
    if not checkpoint.tensors:
        share = checkpoint.total_bytes / len(bounds) / sharding.tensor
        return tuple(Stage(first, last, share + table, 0.0) for first, last in bounds)
    sizes = [table if serving.engine != "llama.cpp" else 0.0 for _ in bounds]
    for tensor in checkpoint.tensors:
        size = _of_rank(tensor, sharding, serving)
        found = _LAYER.search(tensor.name)
        if _PREDICTION.search(tensor.name) or (found and int(found[1]) >= count):
            if sharding.prediction:
                sizes[-1] += size
            continue
        if found:
            layer = int(found[1])
            at = next(i for i, (first, last) in enumerate(bounds) if first <= layer < last)
        elif _EMBEDDING.search(tensor.name):
            if serving.engine == "llama.cpp":
                continue  # stays in the host's memory
            at = 0
        else:
            at = len(bounds) - 1
        sizes[at] += size
    return tuple(
        Stage(first, last, size, 0.0) for (first, last), size in zip(bounds, sizes, strict=True)
    )


def _of_rank(tensor: StoredTensor, sharding: Sharding, serving: Serving) -> float:
    if serving.engine == "llama.cpp":
        return float(tensor.nbytes)
    if _EXPERT.search(tensor.name):
        return tensor.nbytes / max(sharding.experts, sharding.tensor)
    if len(tensor.shape) < 2 or _WHOLE.search(tensor.name):
        return float(tensor.nbytes)
    return tensor.nbytes / sharding.tensor
