"""Plans of decoder-only models: their layers one by one, from configuration and traits."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.blocks import (
    Block,
    attention,
    experts,
    feed_forward,
    gated_delta,
    grouped_cache,
    head_width,
    kimi_delta,
    latent_attention,
    latent_cache,
    mamba2,
    required,
    short_convolution,
)
from kubectl_gpuadmit.sizing.plan import Cache, Layer, Matrix, NoPlan, Part, Plan, State, embedding
from kubectl_gpuadmit.sizing.towers import tower_layers
from kubectl_gpuadmit.sizing.traits import FAMILIES, Family, family_name


def decoder_plan(a: Architecture) -> Plan:
    """The plan of a decoder-only model; raises NoPlan with what is missing."""
    name = family_name(a)
    family = FAMILIES.get(name)
    if family is None:
        raise NoPlan(f"how models of type {a.model_type or '(none)'} are laid out")
    required(a, "hidden_size", "num_hidden_layers", "vocab_size")
    if a.attention_heads_by_layer and len(a.attention_heads_by_layer) != a.num_hidden_layers:
        raise NoPlan("attention heads of every layer")
    tied = family.tied if a.tie_word_embeddings is None else a.tie_word_embeddings
    kinds = layer_kinds(a, family)
    layers = tuple(_layer(a, name, family, i, kind) for i, kind in enumerate(kinds))
    table = embedding("embed_tokens", a.vocab_size, a.hidden_size)
    extra, extra_vectors = _extras(a, name)
    head = Matrix(
        name="lm_head",
        parts=(Part(a.vocab_size),),
        cols=a.hidden_size,
        split="vocab",
        bias=family.head_bias,
    )
    towers, unplanned = tower_layers(a)
    norm = a.hidden_size * (2 if family.norm_bias else 1) if family.final_norm else 0
    return Plan(
        hidden=a.hidden_size,
        vocabulary=a.vocab_size,
        embeddings=(table, *extra),
        layers=layers,
        head=None if tied else head,
        tail=norm + extra_vectors,
        towers=towers,
        tower_hidden=a.vision.hidden_size if a.vision else 0,
        tower_elements=unplanned,
        prediction=_prediction(a, name, family),
        rotary_dim=_rotary(a, name, family),
        positions=_positions(a),
        deepstack=a.vision.deepstack if a.vision else 0,
        token_buffer=_token_buffer(a),
    )


def layer_kinds(a: Architecture, family: Family) -> tuple[str, ...]:
    """One kind a layer, as ``layer_types`` spells them; from the config's shorthands otherwise."""
    count = a.num_hidden_layers
    if a.layer_types:
        if len(a.layer_types) != count:
            raise NoPlan(f"layer_types for all {count} layers ({len(a.layer_types)} given)")
        return a.layer_types
    pattern = a.sliding_window_pattern or family.interleave
    if a.full_attention_interval:
        every = a.full_attention_interval
        return tuple(
            "full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(count)
        )
    if a.attention_chunk_size and a.no_rope_layers:
        return tuple(
            "chunked_attention" if rope else "full_attention" for rope in a.no_rope_layers[:count]
        )
    if a.sliding_window and pattern:
        return tuple(
            "sliding_attention" if (i + 1) % pattern else "full_attention" for i in range(count)
        )
    if a.sliding_window and a.use_sliding_window and a.max_window_layers is not None:
        first = a.max_window_layers
        return tuple("sliding_attention" if i >= first else "full_attention" for i in range(count))
    if a.sliding_window and family.window_everywhere:
        return ("sliding_attention",) * count
    return ("full_attention",) * count


def _layer(a: Architecture, name: str, family: Family, index: int, kind: str) -> Layer:
    matrices: list[Matrix] = []
    vectors = family.norms * a.hidden_size * (2 if family.norm_bias else 1)
    cache: Cache | None = None
    state: State | None = None
    width, routed = 0, 0
    single = name == "nemotron_h"
    mixes = not single or kind not in ("moe", "mlp")
    feeds = not single or kind in ("moe", "mlp")
    if mixes and _has_attention(a, index):
        block, cache, state = _mixer(a, name, family, index, kind)
        matrices += block[0]
        vectors += block[1]
    elif mixes:
        vectors -= a.hidden_size  # a pruned layer without attention has no norm for it either
    if feeds:
        block, width, routed = _feeder(a, name, family, index, kind)
        matrices += block[0]
        vectors += block[1]
    per_layer = a.hidden_size_per_layer_input or 0
    if per_layer and name in ("gemma3n", "gemma4"):
        matrices += [
            Matrix(
                name="per_layer_input_gate",
                parts=(Part(per_layer),),
                cols=a.hidden_size,
                split="none",
            ),
            Matrix(
                name="per_layer_projection",
                parts=(Part(a.hidden_size),),
                cols=per_layer,
                split="none",
            ),
        ]
        vectors += a.hidden_size
    if name == "gemma3n":
        matrices += _gemma3n_extras(a)
        vectors += 3 * a.hidden_size  # laurel's norm, AltUp's router norm and output scale
    if name == "gemma4":
        vectors += 1
        if routed:
            vectors += 3 * a.hidden_size
    return Layer(
        matrices=tuple(matrices),
        vectors=vectors,
        cache=cache,
        state=state,
        width=width,
        experts_per_token=routed,
    )


def _has_attention(a: Architecture, index: int) -> bool:
    return not a.attention_heads_by_layer or a.attention_heads_by_layer[index] > 0


def _mixer(
    a: Architecture, name: str, family: Family, index: int, kind: str
) -> tuple[Block, Cache | None, State | None]:
    if kind == "linear_attention":
        delta = kimi_delta if name == "kimi_linear" else gated_delta
        block, state = delta(a)
        return block, None, state
    if kind == "mamba":
        block, state = mamba2(a)
        return block, None, state
    if kind == "conv":
        block, state = short_convolution(a)
        return block, None, state
    if family.latent and a.kv_lora_rank:
        return latent_attention(a), latent_cache(a), None
    heads = a.attention_heads_by_layer[index] if a.attention_heads_by_layer else 0
    kv_heads = a.kv_heads_by_layer[index] if a.kv_heads_by_layer else 0
    dim = 0
    full = not kind.startswith(("sliding", "chunked"))
    if full and a.global_head_dim:
        dim = a.global_head_dim
    if full and a.num_global_key_value_heads:
        kv_heads = a.num_global_key_value_heads
    reuses = index >= a.num_hidden_layers - a.num_kv_shared_layers
    bias = bool(a.attention_bias)
    out_bias = family.out_bias if family.out_bias is not None else bias
    if name in ("glm", "glm4"):
        out_bias = False
    qk_norm = family.qk_norm
    if name == "cohere":
        qk_norm = "heads" if a.use_qk_norm else ""
    if name == "glm4_moe":
        qk_norm = "head" if a.use_qk_norm else ""
    block = attention(
        a,
        qkv_bias=family.qkv_bias if family.qkv_bias is not None else bias,
        out_bias=out_bias,
        qk_norm=qk_norm,
        gated=family.gated_attention,
        sinks=family.sinks,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=dim,
        key_is_value=a.attention_k_eq_v and full,
        head_gate=family.head_gate,
    )
    # a layer that reuses another's cache still stores projections for keys and values of its own
    cache = None if reuses else grouped_cache(a, kind=kind, heads=kv_heads, dim=dim)
    return block, cache, None


def _feeder(
    a: Architecture, name: str, family: Family, index: int, kind: str
) -> tuple[Block, int, int]:
    """Block, width of its intermediate (gate and up together), experts a token."""
    hidden = a.hidden_size
    bias = family.mlp_bias if family.mlp_bias is not None else bool(a.mlp_bias)
    sides = 2 if family.gated else 1
    if routes(a, name, index, kind):
        count, width = _expert_count(a), a.moe_intermediate_size or a.intermediate_size
        shared = a.shared_expert_intermediate_size or (a.n_shared_experts or 0) * width
        if name == "llama4":
            shared = width
        block = experts(
            hidden,
            count=count,
            width=width,
            shared_width=shared,
            shared_gate=family.shared_gate,
            correction=family.correction,
            bias=family.expert_bias,
            router_bias=family.router_bias,
            gated=family.gated,
        )
        if name == "gemma4":  # a dense block runs beside the experts
            dense = feed_forward(hidden, a.intermediate_size)
            block = ((*block[0], *dense[0]), block[1] + hidden + count)
        return block, sides * (width + shared), a.num_experts_per_tok or 1
    width = a.intermediate_size
    if family.dense_width_in_mlp and a.intermediate_size_mlp:
        width = a.intermediate_size_mlp
    if a.intermediate_by_layer:
        width = a.intermediate_by_layer[index]
    if name == "granitemoehybrid" and not a.num_experts:
        width = a.shared_expert_intermediate_size or width
    if not width:
        if a.intermediate_by_layer:
            return ((), -hidden), 0, 0
        raise NoPlan("intermediate_size in config.json")
    return feed_forward(hidden, width, gated=family.gated, bias=bias), sides * width, 0


def _expert_count(a: Architecture) -> int:
    return a.num_experts or 0


def routes(a: Architecture, name: str, index: int, kind: str) -> bool:
    """Whether the layer has routed experts."""
    if not a.num_experts or a.num_experts < 2:
        return False
    if name == "nemotron_h":
        return kind == "moe"
    if a.moe_layers:
        return index in a.moe_layers
    if index in a.mlp_only_layers or index < (a.first_k_dense_replace or 0):
        return False
    step = a.decoder_sparse_step or 1
    if name in ("deepseek_v2", "deepseek_v3"):
        return index % step == 0
    return (index + 1) % step == 0


def _extras(a: Architecture, name: str) -> tuple[tuple[Matrix, ...], int]:
    """Whatever a family has beside layers, embedding and head: per-layer embeddings, AltUp."""
    per_layer = a.hidden_size_per_layer_input or 0
    if name not in ("gemma3n", "gemma4") or not per_layer:
        return (), 0
    wide = a.num_hidden_layers * per_layer
    matrices = [
        embedding("embed_tokens_per_layer", a.vocab_size_per_layer_input or a.vocab_size, wide),
        Matrix(
            name="per_layer_model_projection", parts=(Part(wide),), cols=a.hidden_size, split="none"
        ),
    ]
    if name == "gemma3n":
        inputs = 4  # altup_num_inputs of configuration_gemma3n.py
        matrices.append(
            Matrix(
                name="altup_projections",
                parts=(Part(a.hidden_size),),
                cols=a.hidden_size,
                split="none",
                stack=2 * (inputs - 1),
            )
        )
    return tuple(matrices), per_layer


def _gemma3n_extras(a: Architecture) -> tuple[Matrix, ...]:
    hidden, rank, inputs = a.hidden_size, 64, 4  # laurel_rank, altup_num_inputs by default
    return (
        Matrix(name="laurel.linear_left", parts=(Part(rank),), cols=hidden, split="none"),
        Matrix(name="laurel.linear_right", parts=(Part(hidden),), cols=rank, split="none"),
        Matrix(
            name="altup.coefficients",
            parts=(Part(inputs + inputs**2),),
            cols=inputs,
            split="none",
            linear=False,
        ),
        Matrix(
            name="altup.modality_router",
            parts=(Part(inputs),),
            cols=hidden,
            split="none",
            router=True,
        ),
    )


def _prediction(a: Architecture, name: str, family: Family) -> tuple[Layer, ...]:
    """Layers for multi-token prediction: a full decoder layer after a projection of two states."""
    count = a.num_nextn_predict_layers or 0
    if not count:
        return ()
    last = a.num_hidden_layers - 1
    full = _layer(a, name, family, last, "full_attention")
    join = Matrix(
        name="mtp.eh_proj",
        parts=(Part(a.hidden_size),),
        cols=2 * a.hidden_size,
        split="none",
        router=True,
    )
    stored = 0
    if name in ("deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe"):
        stored = 2 * a.vocab_size * a.hidden_size  # copies of embedding and head in the checkpoint
    extended = Layer(
        matrices=(*full.matrices, join),
        vectors=full.vectors + 3 * a.hidden_size,
        copies=stored,
        cache=full.cache,
        width=full.width,
        experts_per_token=full.experts_per_token,
    )
    return (extended,) * count


def _rotary(a: Architecture, name: str, family: Family) -> int:
    """Widths of all tables: Gemma 3 and 4 keep one for windows and one for full attention."""
    if family.latent and a.qk_rope_head_dim:
        return a.qk_rope_head_dim
    if not a.num_attention_heads or name == "nemotron_h":
        return 0
    width = int(head_width(a) * (a.partial_rotary_factor or 1))
    if name in ("gemma3", "gemma3n", "gemma4"):
        width += a.global_head_dim or width
    return width


def _positions(a: Architecture) -> int:
    """Rows of a table. Models with positions in three dimensions keep four times as many (vLLM
    ``rotary_embedding/mrope.py``, cache_max_position_num)."""
    positions = a.max_position_embeddings or 0
    name = a.model_type.removesuffix("_text")
    three = name.startswith(("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen3_omni"))
    return positions * 4 if three else positions


def _token_buffer(a: Architecture) -> int:
    """vLLM's ``deepstack_input_embeds`` of Qwen3-VL, ``per_layer_embeddings`` of Gemma 3n and 4."""
    deep = a.vision.deepstack if a.vision else 0
    per_layer = a.hidden_size_per_layer_input or 0
    return deep * a.hidden_size + per_layer * a.num_hidden_layers
