"""What a model's configuration says that decides its parameters and its cache; reads no file.

Fields carry the names of Hugging Face's ``config.json`` (the text model's part, flattened), in one
spelling where families spell one fact in several ways. ``None`` means the configuration does not
say; a family's own default is applied where its layers are planned, never by a reader.
"""

from __future__ import annotations

from msgspec import Struct


class Quantization(Struct, frozen=True, kw_only=True):
    """``quantization_config``, one spelling for all methods.

    ``method``: ``fp8 · awq · gptq · compressed-tensors · bitsandbytes · mxfp4 · modelopt ·
    modelopt_fp4 · gguf …`` as the checkpoint names it. ``format`` tells apart what one method
    stores: compressed-tensors' ``pack-quantized · float-quantized · int-quantized ·
    nvfp4-pack-quantized``, GGUF's file type (``Q4_K_M``).
    """

    method: str
    format: str = ""
    bits: int | None = None
    group_size: int | None = None
    """Weights that share a scale; -1 or None: one a row (channel) or a tensor, by ``strategy``."""
    block_size: tuple[int, int] | None = None
    """``weight_block_size`` of FP8 with block scales: one FP32 scale for each block."""
    strategy: str = ""
    """``tensor · channel · group · block``; empty where the method has only one."""
    symmetric: bool | None = None
    """False: zero points are stored too (AWQ always; GPTQ stores them either way)."""
    activations: str = ""
    """Type of quantised activations, as ``fp8`` or ``int8``; empty: weights only."""
    double_quant: bool = False
    """bitsandbytes: the scales are quantised too."""
    ignored: tuple[str, ...] = ()
    """``ignore``, ``modules_to_not_convert``: names, prefixes or ``re:…``; not quantised."""
    kv_cache_dtype: str = ""
    """``kv_cache_scheme``: the checkpoint's own wish, taken by ``--kv-cache-dtype auto``."""


class Tower(Struct, frozen=True, kw_only=True):
    """A vision or audio encoder, with what leads from it into the text model."""

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int = 0
    intermediate_size: int = 0
    patch_size: int = 0
    temporal_patch_size: int = 1
    image_size: int = 0
    in_channels: int = 3
    num_position_embeddings: int = 0
    spatial_merge_size: int = 1
    out_hidden_size: int = 0
    """Width of the text model that the projector leads to."""
    projector: str = ""
    """Kind of the projector, where the family has several (``mlp2x_gelu``)."""
    deepstack: int = 0
    """How many layers feed features into the text model's layers (Qwen3-VL)."""
    max_source_positions: int = 0
    num_mel_bins: int = 0
    parameters: int | None = None
    """Total of the tower and its projector where a source says it and no plan is known."""


class Architecture(Struct, frozen=True, kw_only=True):
    """Sizes are counts of elements. Tuples have one entry a layer."""

    model_type: str
    """As in the text model's config: ``llama``, ``qwen3_moe``, ``deepseek_v3`` …"""
    architectures: tuple[str, ...] = ()
    dtype: str = ""
    """``torch_dtype`` / ``dtype``: ``bfloat16 · float16 · float32``."""

    hidden_size: int
    num_hidden_layers: int
    vocab_size: int
    num_attention_heads: int = 0
    num_key_value_heads: int | None = None
    """None: as many as attention heads."""
    head_dim: int | None = None
    """None: hidden_size / num_attention_heads."""
    intermediate_size: int = 0
    max_position_embeddings: int | None = None
    partial_rotary_factor: float | None = None
    tie_word_embeddings: bool | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    use_qk_norm: bool | None = None

    # layers that are not all alike
    layer_types: tuple[str, ...] = ()
    """``full_attention · sliding_attention · chunked_attention · linear_attention · mamba · conv ·
    moe · mlp``; the last two are layers that are nothing but that (Nemotron-H)."""
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    sliding_window_pattern: int | None = None
    """Every n-th layer is full, the others slide (Gemma 3, Cohere 2)."""
    max_window_layers: int | None = None
    attention_chunk_size: int | None = None
    no_rope_layers: tuple[int, ...] = ()
    full_attention_interval: int | None = None
    num_kv_shared_layers: int = 0
    """The last n layers reuse the cache of earlier ones (Gemma 3n, 4)."""
    global_head_dim: int | None = None
    num_global_key_value_heads: int | None = None
    attention_k_eq_v: bool = False
    attention_heads_by_layer: tuple[int, ...] = ()
    kv_heads_by_layer: tuple[int, ...] = ()
    intermediate_by_layer: tuple[int, ...] = ()
    """Of pruned models whose layers differ (Nemotron-Super, OpenELM); 0: the layer has none."""

    # latent attention (DeepSeek)
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    index_n_heads: int | None = None
    index_head_dim: int | None = None

    # experts
    num_experts: int | None = None
    """``num_experts``, ``num_local_experts``, ``n_routed_experts``."""
    num_experts_per_tok: int | None = None
    moe_intermediate_size: int | None = None
    n_shared_experts: int | None = None
    shared_expert_intermediate_size: int | None = None
    """Of all shared experts of a layer together."""
    first_k_dense_replace: int | None = None
    decoder_sparse_step: int | None = None
    """``decoder_sparse_step``, ``moe_layer_freq``, ``interleave_moe_layer_step``."""
    mlp_only_layers: tuple[int, ...] = ()
    moe_layers: tuple[int, ...] = ()
    intermediate_size_mlp: int | None = None
    """Width of the dense layers where they differ from the experts' (Llama 4)."""
    num_nextn_predict_layers: int | None = None
    """Layers for multi-token prediction; loaded only for speculative decoding."""

    # state of linear attention and state-space layers
    linear_num_key_heads: int | None = None
    linear_num_value_heads: int | None = None
    linear_key_head_dim: int | None = None
    linear_value_head_dim: int | None = None
    linear_conv_kernel_dim: int | None = None
    mamba_num_heads: int | None = None
    mamba_head_dim: int | None = None
    mamba_state_size: int | None = None
    mamba_n_groups: int | None = None
    mamba_conv_kernel: int | None = None
    mamba_expand: int | None = None
    mamba_ssm_dtype: str = ""

    # per-layer embeddings (Gemma 3n, 4)
    hidden_size_per_layer_input: int | None = None
    vocab_size_per_layer_input: int | None = None

    # encoder and decoder (Whisper), encoders (BERT)
    encoder_layers: int | None = None
    encoder_ffn_dim: int | None = None
    type_vocab_size: int | None = None
    max_source_positions: int | None = None
    num_mel_bins: int | None = None
    num_labels: int | None = None

    vision: Tower | None = None
    audio: Tower | None = None
    quantization: Quantization | None = None
    remote_code: bool = False
    """``auto_map`` is present: the code that comes with the model may differ from the family."""
