"""What each family of models does whatever its configuration says, by ``model_type``.

Sources are the families' own definitions in Hugging Face transformers,
``models/FAMILY/modeling_FAMILY.py``, checked by the published parameter counts of the catalogue.
A family that is not listed has no plan: nobody guesses its shapes from a similar name.
"""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Architecture


class Family(Struct, frozen=True, kw_only=True):
    """What a family does whatever its config says; None: as the config says, False by default."""

    qkv_bias: bool | None = None
    out_bias: bool | None = None
    norms: int = 2
    """Norms of the hidden width in a layer."""
    norm_bias: bool = False
    qk_norm: str = ""
    gated: bool = True
    mlp_bias: bool | None = None
    tied: bool = False
    """Where the config is silent."""
    gated_attention: bool = False
    head_gate: bool = False
    sinks: bool = False
    shared_gate: bool = False
    correction: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    latent: bool = False
    final_norm: bool = True
    head_bias: bool = False
    interleave: int = 0
    """``sliding_window_pattern`` where the config is silent."""
    window_everywhere: bool = False
    """``sliding_window`` binds every layer (Mistral 7B v0.1, Mixtral)."""
    dense_width_in_mlp: bool = False
    """Llama 4: dense layers are ``intermediate_size_mlp`` wide."""


_LLAMA = Family()
_GEMMA2 = Family(norms=4, tied=True, interleave=2)
_DEEPSEEK_V3 = Family(latent=True, correction=True)
_QWEN3_NEXT = Family(qk_norm="head", gated_attention=True, shared_gate=True)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": Family(window_everywhere=True),
    "ministral": Family(window_everywhere=True),
    "ministral3": _LLAMA,
    "mixtral": Family(window_everywhere=True),
    "smollm3": Family(tied=True),
    "granite": Family(tied=True),
    "granitemoe": Family(tied=True),
    "granitemoehybrid": Family(tied=True),
    "seed_oss": Family(qkv_bias=True),
    "phi3": _LLAMA,
    "phimoe": Family(qkv_bias=True, out_bias=True, norm_bias=True, head_bias=True),
    "qwen2": Family(qkv_bias=True, out_bias=False),
    "qwen2_moe": Family(qkv_bias=True, out_bias=False, shared_gate=True),
    "qwen3": Family(qk_norm="head"),
    "qwen3_moe": Family(qk_norm="head"),
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5": _QWEN3_NEXT,
    "qwen3_5_moe": _QWEN3_NEXT,
    "gemma": Family(tied=True),
    "gemma2": _GEMMA2,
    "gemma3": Family(norms=4, tied=True, qk_norm="head", interleave=6),
    "gemma3n": Family(norms=4, tied=True, qk_norm="head"),
    "gemma4": Family(norms=4, tied=True, qk_norm="head"),
    "cohere": Family(norms=1, tied=True),
    "cohere2": Family(norms=1, tied=True, interleave=4),
    "glm": Family(),
    "glm4": Family(norms=4),
    "glm4_moe": Family(correction=True, out_bias=False),
    "deepseek_v2": Family(latent=True),
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v32": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "glm4_moe_lite": _DEEPSEEK_V3,
    "glm_moe_dsa": _DEEPSEEK_V3,
    "kimi_linear": Family(latent=True, correction=True),
    "gpt_oss": Family(qkv_bias=True, out_bias=True, sinks=True, expert_bias=True, router_bias=True),
    "llama4": Family(dense_width_in_mlp=True),
    "minimax_m2": Family(qk_norm="full", correction=True),
    "laguna": Family(qk_norm="head", correction=True, head_gate=True),
    "olmo2": Family(qk_norm="full"),
    "olmo3": Family(qk_norm="full"),
    "exaone4": Family(qk_norm="head"),
    "nemotron": Family(norm_bias=True, gated=False),
    "nemotron_h": Family(norms=1, gated=False, correction=True),
    "starcoder2": Family(
        qkv_bias=True, out_bias=True, norm_bias=True, gated=False, mlp_bias=True, tied=True
    ),
    "lfm2": Family(qk_norm="head", tied=True),
    "nemotron-nas": _LLAMA,
    "deci": _LLAMA,
}
"""By ``model_type`` of the text model, without ``_text``."""

_ALIASES = {
    "mistral3": "ministral3",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen3_vl": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "qwen3_omni_moe": "qwen3_moe",
    "qwen3_omni_moe_thinker": "qwen3_moe",
    "kimi_k25": "kimi_k2",
    "deepseek": "deepseek_v2",
    "gemma4_unified": "gemma4",
    "internlm2": "llama",
}


def family_name(architecture: Architecture) -> str:
    """The family's name without ``_text``: ``gemma3_text`` and ``gemma3`` are one."""
    name = architecture.model_type.removesuffix("_text")
    return _ALIASES.get(name, name)
