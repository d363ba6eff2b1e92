"""Which kind each layer of a model is, where its configuration spells it out in its own way.

Sources: huggingface/transformers models/*/configuration_*.py and the remote code of Nemotron-H,
Nemotron-Super (DeciLM), Kimi Linear and MiniMax-Text-01.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.formats.fields import LAYERS, Fields

_SAME_AS = {
    "attention": "full_attention",
    "full": "full_attention",
    "global": "full_attention",
    "global_attention": "full_attention",
    "sliding": "sliding_attention",
    "local": "sliding_attention",
    "sliding_window_attention": "sliding_attention",
    "gated_deltanet": "linear_attention",
    "linear": "linear_attention",
    "mamba2": "mamba",
    "shortconv": "conv",
}

_NEMOTRON_H = {"M": "mamba", "*": "full_attention", "-": "mlp", "E": "moe"}


def kinds(text: Fields, layers: int) -> tuple[str, ...]:
    """One kind a layer; () where the configuration leaves it to the family."""
    found = _listed(text) or _pattern(text) or _indexed(text, layers) or _periodic(text, layers)
    if found and len(found) < layers:
        text.fail(
            "num_hidden_layers", f"{layers} layers, but only {len(found)} of them have a kind"
        )
    return found[:layers]


def _listed(text: Fields) -> tuple[str, ...]:
    names = text.texts("layer_types", "layers_block_type")
    return tuple(_SAME_AS.get(name, name) for name in names)


def _pattern(text: Fields) -> tuple[str, ...]:
    pattern = text.text("hybrid_override_pattern")
    if len(pattern) > LAYERS:
        text.fail("hybrid_override_pattern", f"describes {len(pattern):,} layers")
    strange = set(pattern) - _NEMOTRON_H.keys() - {"|"}
    if strange:
        text.fail("hybrid_override_pattern", f"holds the unknown kind {min(strange)!r}")
    return tuple(_NEMOTRON_H[letter] for letter in pattern if letter != "|")


def _indexed(text: Fields, layers: int) -> tuple[str, ...]:
    """Layers with attention by their numbers; the others are what the family has besides."""
    kimi = text.inner("linear_attn_config")
    if kimi is not None:
        full = kimi.counts("full_attn_layers")  # counted from 1
        return tuple(
            "full_attention" if n + 1 in full else "linear_attention" for n in range(layers)
        )
    if text.has("attn_type_list"):
        flags = text.counts("attn_type_list")
        return tuple("full_attention" if flag else "linear_attention" for flag in flags)
    for name, other in (("attn_layer_indices", "mamba"), ("full_attn_idxs", "conv")):
        if text.has(name):
            chosen = set(text.counts(name))
            return tuple("full_attention" if n in chosen else other for n in range(layers))
    return ()


def _periodic(text: Fields, layers: int) -> tuple[str, ...]:
    """Jamba: attention in every ``attn_layer_period``-th layer from ``attn_layer_offset`` on."""
    period = text.count("attn_layer_period", least=1)
    if period is None:
        return ()
    offset = text.count("attn_layer_offset") or 0
    return tuple("full_attention" if n % period == offset else "mamba" for n in range(layers))


def expert_layers(text: Fields, layers: int) -> tuple[int, ...]:
    """Numbers of the layers with experts, where they are listed or periodic."""
    listed = text.counts("moe_layers")
    if listed:
        return listed
    words = text.text("moe_layers_enum")  # Step 3: "4,5,6"
    if words:
        parts = words.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            text.fail("moe_layers_enum", "expected numbers between commas")
        return tuple(int(part) for part in parts)
    period = text.count("expert_layer_period", least=1)
    if period is None:
        return ()
    offset = text.count("expert_layer_offset") or 0
    return tuple(n for n in range(layers) if n % period == offset)


class Blocks:
    """``block_configs`` of pruned models (Nemotron-Super): heads and widths layer by layer."""

    def __init__(self, text: Fields, heads: int, hidden: int) -> None:
        self.kv_heads: tuple[int, ...] = ()
        self.intermediate: tuple[int, ...] = ()
        entries = text.items("block_configs")
        if not entries:
            return
        kv: list[int] = []
        widths: list[int] = []
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                text.fail("block_configs", f"entry {index} is no object")
            block = Fields(entry, file=text.file, at=f"block_configs[{index}]")
            kv.append(_kv_heads(block, heads))
            widths.append(_width(block, hidden))
        self.kv_heads, self.intermediate = tuple(kv), tuple(widths)


def _kv_heads(block: Fields, heads: int) -> int:
    attention = block.inner("attention")
    if attention is None or attention.flag("no_op") or attention.flag("replace_with_linear"):
        return 0
    shared = attention.count("n_heads_in_group", least=1)
    return heads // shared if shared else attention.needed("num_key_value_heads")


def _width(block: Fields, hidden: int) -> int:
    ffn = block.inner("ffn")
    if ffn is None or ffn.flag("no_op"):
        return 0
    if ffn.has("intermediate_size"):
        return ffn.needed("intermediate_size")
    times = ffn.number("ffn_mult")
    if times is None or not 0 <= times <= 1000:
        return 0
    return -(-int(2 * times * hidden / 3) // 256) * 256  # modeling_decilm.py: a multiple of 256
