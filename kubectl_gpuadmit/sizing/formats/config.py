"""Hugging Face ``config.json`` -> ``Architecture``: spellings brought together, nothing assumed.

Rules of this module
1. A fact that the file does not state stays None: a family's default belongs to its layer plan.
2. What every family needs (hidden size, layers, vocabulary) and is missing is an error that names
   it; so is a value of the wrong type. Keys that nobody here knows are left alone.
3. ``auto_map`` means that code which comes with the model may differ: it is passed on as
   ``remote_code``, never run.

Source of the names: huggingface/transformers models/*/configuration_*.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.formats import layers, quantization, towers
from kubectl_gpuadmit.sizing.formats.fields import LAYERS, NAMES, Fields

MOST_BYTES = 64 << 20
"""A configuration is kilobytes; the largest with lists of unquantised modules are megabytes."""

_TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model_config")


def architecture(raw: bytes, file: str, *, modelopt: bytes | None = None) -> Architecture:
    """Reads one configuration. ``modelopt`` is ``hf_quant_config.json`` where it lies beside it.

    Raises BadModelFile with the field that is wrong or missing.
    """
    config = Fields(decoded(raw, file), file=file)
    text = text_part(config)
    quantised = quantization.of_config(config, text)
    if quantised is None and modelopt is not None:
        beside = Fields(decoded(modelopt, "hf_quant_config.json"), file="hf_quant_config.json")
        quantised = quantization.of_modelopt_file(beside)
    return _architecture(config, text, quantised)


def decoded(raw: bytes, file: str) -> dict[str, Any]:
    """The JSON object in ``raw``. Raises BadModelFile."""
    if len(raw) > MOST_BYTES:
        raise BadModelFile(
            "model-file-too-large",
            f"has {len(raw) >> 20} MiB, a configuration has less than {MOST_BYTES >> 20}",
            file=file,
            hint="name config.json, not the weights",
        )
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadModelFile(
            "model-file-unreadable", f"is no JSON: {problem}", file=file, hint="was it cut?"
        ) from None
    if not isinstance(data, dict):
        raise BadModelFile("model-file-unreadable", "holds no JSON object", file=file)
    return data


def text_part(config: Fields) -> Fields:
    """The language model's own object: multimodal models keep it one or two levels down."""
    for outer in ("thinker_config", *_TEXT_PARTS):
        inner = config.inner(outer)
        if inner is not None:
            return text_part(inner)
    return config


def _architecture(config: Fields, text: Fields, quantised: Quantization | None) -> Architecture:
    def of(name: str, *also: str, most: int = 1 << 40) -> int | None:
        return text.count(name, *also, most=most)

    def shared(name: str, *also: str) -> int | None:
        """Facts that some families state beside the text part."""
        found = text.count(name, *also)
        return found if found is not None else config.count(name, *also)

    hidden = text.needed("hidden_size", "n_embd", "d_model", "model_dim", "n_embed")
    count = text.needed(
        "num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers", most=LAYERS
    )
    vocabulary = shared("vocab_size", "padded_vocab_size")
    if not vocabulary:
        text.fail("vocab_size", "vocab_size is missing", ref="model-field-missing")
    heads = of("num_attention_heads", "n_head", "num_heads", "n_heads", "decoder_attention_heads")
    blocks = layers.Blocks(text, heads or 0, hidden)
    linear = text.inner("linear_attn_config") or Fields({}, file=text.file)
    mpt = text.inner("attn_config") or Fields({}, file=text.file)
    experts = text.inner("ffn_config") or Fields({}, file=text.file)
    vision, audio = towers.of(config)
    tied = text.flag("tie_word_embeddings")
    return Architecture(
        model_type=text.text("model_type") or config.text("model_type"),
        architectures=config.texts("architectures"),
        dtype=_dtype(text) or _dtype(config),
        hidden_size=hidden,
        num_hidden_layers=count,
        vocab_size=vocabulary,
        num_attention_heads=heads or 0,
        num_key_value_heads=_kv_heads(text, mpt),
        head_dim=of("head_dim", "kv_channels", "attention_head_dim"),
        intermediate_size=_width(text, experts),
        max_position_embeddings=shared(
            "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"
        ),
        tie_word_embeddings=tied if tied is not None else config.flag("tie_word_embeddings"),
        attention_bias=text.flag("attention_bias", "use_qkv_bias", "add_qkv_bias", "qkv_bias"),
        mlp_bias=text.flag("mlp_bias"),
        use_qk_norm=text.flag("use_qk_norm", "qk_norm"),
        layer_types=layers.kinds(text, count),
        sliding_window=of("sliding_window", "sliding_window_size"),
        use_sliding_window=text.flag("use_sliding_window"),
        sliding_window_pattern=_period(text),
        max_window_layers=of("max_window_layers"),
        attention_chunk_size=of("attention_chunk_size"),
        no_rope_layers=text.counts("no_rope_layers"),
        full_attention_interval=of("full_attention_interval"),
        num_kv_shared_layers=of("num_kv_shared_layers") or 0,
        global_head_dim=of("global_head_dim"),
        num_global_key_value_heads=of("num_global_key_value_heads"),
        attention_heads_by_layer=_listed(text, "num_query_heads"),
        attention_k_eq_v=bool(text.flag("attention_k_eq_v")),
        kv_heads_by_layer=blocks.kv_heads or _listed(text, "num_key_value_heads"),
        intermediate_by_layer=blocks.intermediate or _listed(text, "intermediate_size"),
        q_lora_rank=of("q_lora_rank"),
        kv_lora_rank=of("kv_lora_rank"),
        qk_nope_head_dim=of("qk_nope_head_dim"),
        qk_rope_head_dim=of("qk_rope_head_dim"),
        v_head_dim=of("v_head_dim"),
        index_n_heads=of("index_n_heads"),
        index_head_dim=of("index_head_dim"),
        num_experts=_experts(text, experts),
        num_experts_per_tok=of(
            "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts"
        )
        or experts.count("moe_top_k"),
        moe_intermediate_size=of(
            "moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"
        ),
        n_shared_experts=of("n_shared_experts", "num_shared_experts", "num_shared_expert"),
        shared_expert_intermediate_size=of(
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "shared_intermediate_size",
        ),
        first_k_dense_replace=of("first_k_dense_replace", "num_dense_layers"),
        decoder_sparse_step=of(
            "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"
        ),
        mlp_only_layers=text.counts("mlp_only_layers"),
        moe_layers=layers.expert_layers(text, count),
        intermediate_size_mlp=of("intermediate_size_mlp"),
        num_nextn_predict_layers=of("num_nextn_predict_layers", "mtp_num_hidden_layers"),
        linear_num_key_heads=of("linear_num_key_heads") or linear.count("num_heads"),
        linear_num_value_heads=of("linear_num_value_heads") or linear.count("num_heads"),
        linear_key_head_dim=of("linear_key_head_dim") or linear.count("head_dim"),
        linear_value_head_dim=of("linear_value_head_dim") or linear.count("head_dim"),
        linear_conv_kernel_dim=of("linear_conv_kernel_dim")
        or linear.count("short_conv_kernel_size"),
        mamba_num_heads=of("mamba_num_heads", "mamba_n_heads"),
        mamba_head_dim=of("mamba_head_dim", "mamba_d_head"),
        mamba_state_size=of("ssm_state_size", "mamba_d_state", "state_size"),
        mamba_n_groups=of("mamba_n_groups", "n_groups"),
        mamba_conv_kernel=of("mamba_d_conv", "conv_kernel", "conv_kernel_size", "conv_L_cache"),
        mamba_expand=of("mamba_expand", "expand"),
        mamba_ssm_dtype=text.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
        hidden_size_per_layer_input=of("hidden_size_per_layer_input"),
        vocab_size_per_layer_input=of("vocab_size_per_layer_input"),
        encoder_layers=of("encoder_layers", most=LAYERS),
        encoder_ffn_dim=of("encoder_ffn_dim"),
        type_vocab_size=of("type_vocab_size"),
        max_source_positions=of("max_source_positions"),
        num_mel_bins=of("num_mel_bins"),
        num_labels=_labels(config),
        vision=vision,
        audio=audio,
        quantization=quantised,
        remote_code=config.has("auto_map") or text.has("auto_map"),
    )


def _dtype(fields: Fields) -> str:
    return fields.text("torch_dtype", "dtype").removeprefix("torch.")


def _kv_heads(text: Fields, mpt: Fields) -> int | None:
    if text.has("num_key_value_heads", "num_kv_heads", "n_head_kv"):
        if isinstance(text.data.get("num_key_value_heads"), list):
            return None  # one a layer, as OpenELM has it
        return text.count("num_key_value_heads", "num_kv_heads", "n_head_kv", least=1)
    if text.flag("multi_query_attention"):  # ChatGLM
        return text.count("multi_query_group_num", least=1) or 1
    if text.flag("multi_query") and not text.flag("new_decoder_architecture"):  # Falcon 7B
        return 1
    return mpt.count("kv_n_heads", least=1)


def _width(text: Fields, experts: Fields) -> int:
    names = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "decoder_ffn_dim")
    for name in names:
        if isinstance(text.data.get(name), list):
            return 0  # one a layer
    return text.count(*names) or experts.count("ffn_hidden_size") or 0


def _listed(text: Fields, name: str) -> tuple[int, ...]:
    """One number a layer, where the file has a list in place of the number."""
    return text.counts(name) if isinstance(text.data.get(name), list) else ()


def _period(text: Fields) -> int | None:
    value = text.data.get("sliding_window_pattern")
    if isinstance(value, str):
        return len(value) or None  # Exaone 4: "LLLG", of which the last one is full
    return text.count("sliding_window_pattern", least=1, most=LAYERS)


def _experts(text: Fields, experts: Fields) -> int | None:
    names = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    return text.count(*names) or experts.count("moe_num_experts") or None


def _labels(config: Fields) -> int | None:
    named = config.inner("id2label")
    if config.has("num_labels"):
        return config.count("num_labels", most=NAMES)
    return len(named.data) if named is not None else None
