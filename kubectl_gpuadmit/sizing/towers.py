"""Encoders for images, video and sound, and what leads from them into the text model: shapes.

Sources: ``modeling_FAMILY.py`` of each in Hugging Face transformers.
"""

from __future__ import annotations

from itertools import pairwise

from kubectl_gpuadmit.sizing.architecture import Architecture, Tower
from kubectl_gpuadmit.sizing.plan import Layer, Matrix, NoPlan, Part


def tower_layers(a: Architecture) -> tuple[tuple[Layer, ...], int]:
    """Layers of all encoders, and elements of those of which only the total is known."""
    layers: list[Layer] = []
    unplanned = 0
    for tower in (a.vision, a.audio):
        if tower is None:
            continue
        if tower.parameters is not None:
            unplanned += tower.parameters
            continue
        layers += _tower(tower, a.hidden_size)
    return tuple(layers), unplanned


def _tower(t: Tower, text: int) -> list[Layer]:
    planner = _TOWERS.get(t.model_type)
    if planner is None:
        raise NoPlan(f"how encoders of type {t.model_type} are laid out")
    return planner(t, t.out_hidden_size or text)


def _block(t: Tower, *, gated: bool, bias: bool, norm_bias: bool) -> Layer:
    """One transformer layer of an encoder."""
    h, w = t.hidden_size, t.intermediate_size
    return Layer(
        matrices=(
            Matrix(
                name="vision.attn.qkv",
                parts=(Part(h), Part(h), Part(h)),
                cols=h,
                bias=bias,
            ),
            Matrix(name="vision.attn.proj", parts=(Part(h),), cols=h, split="row", bias=bias),
            Matrix(
                name="vision.mlp.up",
                parts=(Part(w), Part(w)) if gated else (Part(w),),
                cols=h,
                bias=bias,
            ),
            Matrix(name="vision.mlp.down", parts=(Part(h),), cols=w, split="row", bias=bias),
        ),
        vectors=2 * h * (2 if norm_bias else 1),
        width=w * (3 if gated else 2),  # up (and gate) and the activation's result
    )


def _stem(t: Tower, *, bias: bool, positions: int, extra: int = 0) -> Layer:
    """Patch embedding and learned positions."""
    patch = t.in_channels * t.temporal_patch_size * t.patch_size**2
    return Layer(
        matrices=(
            Matrix(
                name="vision.patch_embed",
                parts=(Part(t.hidden_size),),
                cols=patch,
                split="none",
                bias=bias,
                linear=False,
            ),
        ),
        vectors=positions * t.hidden_size + extra,
    )


def _projection(name: str, *sizes: int, bias: bool = True, norm: int = 0) -> Layer:
    """Linear layers from width to width, one after the other, whole on every rank."""
    return Layer(
        matrices=tuple(
            Matrix(name=name, parts=(Part(after),), cols=before, split="none", bias=bias)
            for before, after in pairwise(sizes)
        ),
        vectors=norm,
    )


def _merger(name: str, merged: int, text: int, norm: int) -> Layer:
    """Two linear layers, cut over the ranks (vLLM ``qwen3_vl.py``, Qwen3_VisionPatchMerger)."""
    return Layer(
        matrices=(
            Matrix(name=name, parts=(Part(merged),), cols=merged, bias=True),
            Matrix(name=name, parts=(Part(text),), cols=merged, split="row", bias=True),
        ),
        vectors=norm,
    )


def _qwen3_vl(t: Tower, text: int) -> list[Layer]:
    merged = t.hidden_size * t.spatial_merge_size**2
    stem = _stem(t, bias=True, positions=t.num_position_embeddings)
    merger = _merger("vision.merger", merged, text, 2 * t.hidden_size)
    deep = _merger("vision.deepstack", merged, text, 2 * merged)
    block = _block(t, gated=False, bias=True, norm_bias=True)
    return [stem, *[block] * t.num_hidden_layers, merger, *[deep] * t.deepstack]


def _qwen2_vl(t: Tower, text: int) -> list[Layer]:
    merged = t.hidden_size * t.spatial_merge_size**2
    merger = _merger("vision.merger", merged, text, 2 * t.hidden_size)
    block = _block(t, gated=False, bias=True, norm_bias=True)
    return [_stem(t, bias=False, positions=0), *[block] * t.num_hidden_layers, merger]


def _qwen2_5_vl(t: Tower, text: int) -> list[Layer]:
    merged = t.hidden_size * t.spatial_merge_size**2
    merger = _merger("vision.merger", merged, text, t.hidden_size)
    block = _block(t, gated=True, bias=True, norm_bias=False)
    return [_stem(t, bias=False, positions=0), *[block] * t.num_hidden_layers, merger]


def _siglip(t: Tower, text: int) -> list[Layer]:
    """SigLIP with Gemma 3's projector: one matrix without bias and a norm."""
    count = (t.image_size // t.patch_size) ** 2
    stem = _stem(t, bias=True, positions=count, extra=2 * t.hidden_size)
    project = _projection("vision.projector", t.hidden_size, text, bias=False, norm=t.hidden_size)
    block = _block(t, gated=False, bias=True, norm_bias=True)
    return [stem, *[block] * t.num_hidden_layers, project]


def _clip(t: Tower, text: int) -> list[Layer]:
    """CLIP with LLaVA's projector of two layers; a class token, norms before and after."""
    count = (t.image_size // t.patch_size) ** 2 + 1
    stem = _stem(t, bias=False, positions=count, extra=5 * t.hidden_size)
    project = _projection("vision.projector", t.hidden_size, text, text)
    block = _block(t, gated=False, bias=True, norm_bias=True)
    return [stem, *[block] * t.num_hidden_layers, project]


def _pixtral(t: Tower, text: int) -> list[Layer]:
    """Pixtral with Mistral 3's projector: a norm, a merger of patches, two layers."""
    stem = _stem(t, bias=False, positions=0, extra=t.hidden_size)
    merged = t.hidden_size * t.spatial_merge_size**2
    merger = _projection(
        "vision.patch_merger", merged, t.hidden_size, bias=False, norm=t.hidden_size
    )
    project = _projection("vision.projector", t.hidden_size, text, text, bias=False)
    block = _block(t, gated=True, bias=False, norm_bias=False)
    return [stem, *[block] * t.num_hidden_layers, merger, project]


_TOWERS = {
    "qwen3_vl": _qwen3_vl,
    "qwen3_vl_moe": _qwen3_vl,
    "qwen3_5": _qwen3_vl,
    "qwen3_5_vision": _qwen3_vl,
    "qwen3_5_moe": _qwen3_vl,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "siglip_vision_model": _siglip,
    "clip_vision_model": _clip,
    "pixtral": _pixtral,
}


def _llama4(t: Tower, text: int) -> list[Layer]:
    """Llama 4's encoder: class token, norms before and after, an adapter that merges 2 × 2 patches
    to the encoder's output width of 4096, one projection."""
    count = (t.image_size // t.patch_size) ** 2 + 1
    stem = _stem(t, bias=False, positions=count, extra=5 * t.hidden_size)
    adapter = _projection("vision.adapter", 4 * t.hidden_size, 4096, 4096, text, bias=False)
    block = _block(t, gated=False, bias=True, norm_bias=True)
    return [stem, *[block] * t.num_hidden_layers, adapter]


_TOWERS["llama4_vision_model"] = _llama4
