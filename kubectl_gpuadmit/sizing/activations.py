"""Peak memory of one step beside weights and cache, by the rule that the engine profiles with."""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.constants import GRAPH, SAMPLING, SORTED_SAMPLING, STATE_GRAPH
from kubectl_gpuadmit.sizing.plan import Layer, Plan
from kubectl_gpuadmit.sizing.versions import CHEAP_SAMPLING, Version

MOE_WORKSPACE: Version = (0, 12, 0)
"""Experts' buffers stay allocated (vLLM v1/worker/workspace.py)."""

PATCHES = 4
"""Patches that one embedding is merged from, 2 × 2 (Qwen-VL, Pixtral, Llama 4)."""

LARGEST_IMAGE = 16384
"""Embeddings that an encoder works on at once; a video goes through in parts."""

ITEM_TOKENS = {
    # embeddings of the largest image: pixels of preprocessor_config.json over those of an embedding
    "qwen3_vl": 153600,  # of the longest video, which it profiles too
    "qwen3_vl_moe": 153600,
    "qwen3_omni_moe": 153600,
    "qwen3_5": 16384,
    "qwen3_5_moe": 16384,
    "qwen2_5_vl": 16384,
    "qwen2_vl": 16384,
    "pixtral": 3025,
    "siglip_vision_model": 256,
    "clip_vision_model": 576,
    "llama4_vision_model": 2465,
    "gemma4_vision": 280,
}


class Peak(Struct, frozen=True):
    """Bytes of phases that do not overlap, and of what stays through them."""

    sampling: tuple[float, float, float]
    layer: float
    encoder: float
    """The encoder's widest layer."""
    embeddings: float
    """What the encoder made, kept while the text model runs."""
    workspace: float

    def at(self, end: int) -> float:
        """``end``: 0 low, 1 likely, 2 high."""
        text = max(self.sampling[end] + self.workspace, self.layer)
        return max(text + self.embeddings, self.encoder)


def vllm_peak(
    plan: Plan,
    *,
    batched: int,
    sequences: int,
    tensor: int,
    experts: int,
    element: float,
    version: Version,
    encoder_tokens: int,
    samples: bool,
) -> Peak:
    """As ``profile_run`` finds it: a step of ``batched`` tokens, then logits of ``sequences``.

    The whole vocabulary's logits are on every rank: tensor parallelism does not lessen sampling.
    """
    hidden = batched * plan.hidden * element
    rows = min(sequences, batched)
    copies = SAMPLING if version >= CHEAP_SAMPLING else SORTED_SAMPLING
    logits = rows * plan.vocabulary * 4.0 if samples else 0.0
    sampling = tuple(hidden + logits * c for c in (copies.low, copies.likely, copies.high))
    widest = max(
        (_layer(la, plan, batched, tensor, experts, element) for la in plan.layers), default=0.0
    )
    workspace = 0.0
    if version >= MOE_WORKSPACE:
        workspace = max(
            (_routed(layer, plan, batched, tensor, experts, element) for layer in plan.layers),
            default=0.0,
        )
    tower = max((layer.width for layer in plan.towers), default=0)
    seen = bool(plan.towers or plan.tower_elements)
    made = encoder_tokens * (plan.hidden + plan.deepstack * plan.hidden) * element if seen else 0.0
    pixels = min(encoder_tokens, LARGEST_IMAGE) * PATCHES
    encoder = made + pixels * (tower / tensor + 2 * plan.tower_hidden) * element
    three = (sampling[0], sampling[1], sampling[2])
    return Peak(three, widest + 2 * hidden, encoder, made, workspace)


def _layer(
    layer: Layer, plan: Plan, batched: int, tensor: int, experts: int, element: float
) -> float:
    """Gate and up together, then their product, beside the normed input."""
    if layer.experts_per_token:
        return _routed(layer, plan, batched, tensor, experts, element)
    return batched * (plan.hidden + 1.5 * layer.width / tensor) * element


def _routed(
    layer: Layer, plan: Plan, batched: int, tensor: int, experts: int, element: float
) -> float:
    """fused_moe: for each token and chosen expert, a hidden row and half an intermediate one."""
    if not layer.experts_per_token:
        return 0.0
    cut = 1 if experts > 1 else tensor
    width = max(plan.hidden, layer.width / cut) + layer.width / 2 / cut
    return batched * layer.experts_per_token / max(1, experts) * width * element


MOST_CAPTURED = 512
"""The largest batch whose graph vLLM captures."""


def capture_sizes(sequences: int) -> int:
    """How many batch sizes vLLM captures: 1, 2, 4, then by 8 to 256, by 16 beyond
    (``config/compilation.py``)."""
    top = min(2 * sequences, MOST_CAPTURED)
    return sum(1 for n in (1, 2, 4) if n <= top) + min(top, 255) // 8 + max(0, (top - 240) // 16)


def graph_estimate(plan: Plan, sequences: int) -> tuple[float, float, float]:
    """Bytes that newer vLLM sets aside for its graphs: piecewise ones and decode ones."""
    each = STATE_GRAPH if any(layer.state for layer in plan.layers) else GRAPH
    decode = capture_sizes(max(1, sequences // 2))
    count = capture_sizes(sequences) + decode
    return each.low * count, each.likely * count, each.high * count
