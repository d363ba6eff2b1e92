"""Shapes of the blocks that decoder layers are made of: attention, states, feed-forward."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.plan import Cache, Matrix, NoPlan, Part, State

Block = tuple[tuple[Matrix, ...], int]
"""Matrices, and elements of vectors."""


def required(architecture: Architecture, *names: str) -> list[int]:
    """Values of these fields; raises NoPlan naming those that the configuration lacks."""
    missing = [name for name in names if not getattr(architecture, name)]
    if missing:
        raise NoPlan(*(f"{name} in config.json" for name in missing))
    return [int(getattr(architecture, name)) for name in names]


def attention(
    a: Architecture,
    *,
    qkv_bias: bool,
    out_bias: bool,
    qk_norm: str = "",
    gated: bool = False,
    sinks: bool = False,
    heads: int = 0,
    kv_heads: int = 0,
    head_dim: int = 0,
    key_is_value: bool = False,
    head_gate: bool = False,
) -> Block:
    """Grouped-query attention. ``qk_norm``: ``head`` (one norm of a head's width), ``heads`` (one
    for each head), ``full`` (over all heads). ``gated``: the queries' projection also makes a gate
    of its width (Qwen3-Next); ``head_gate``: one gate a head (Laguna)."""
    heads = heads or a.num_attention_heads
    kv_heads = kv_heads or a.num_key_value_heads or heads
    dim = head_dim or head_width(a)
    queries = Part(heads * dim * (2 if gated else 1), heads)
    keys = Part(kv_heads * dim, kv_heads)
    parts: tuple[Part, ...] = (queries, keys, keys)
    if key_is_value:
        parts = (queries, keys)
    matrices = [
        Matrix(name="self_attn.qkv_proj", parts=parts, cols=a.hidden_size, bias=qkv_bias),
        Matrix(
            name="self_attn.o_proj",
            parts=(Part(a.hidden_size),),
            cols=heads * dim,
            split="row",
            bias=out_bias,
        ),
    ]
    if head_gate:
        matrices.append(
            Matrix(name="self_attn.g_proj", parts=(Part(heads, heads),), cols=a.hidden_size)
        )
    vectors = {
        "head": 2 * dim,
        "heads": (heads + kv_heads) * dim,
        "full": (heads + kv_heads) * dim,
    }.get(qk_norm, 0)
    return tuple(matrices), vectors + (heads if sinks else 0)


def head_width(a: Architecture) -> int:
    """``head_dim``, else hidden size over heads."""
    if a.head_dim:
        return a.head_dim
    if not a.num_attention_heads:
        raise NoPlan("num_attention_heads in config.json")
    if a.num_attention_heads > a.hidden_size:
        raise NoPlan("head_dim in config.json: there are more heads than the hidden size")
    return a.hidden_size // a.num_attention_heads


def grouped_cache(a: Architecture, *, kind: str = "full", heads: int = 0, dim: int = 0) -> Cache:
    """Keys and values of grouped-query attention. ``kind`` is one of ``layer_types``."""
    heads = heads or a.num_key_value_heads or a.num_attention_heads
    dim = dim or head_width(a)
    if kind.startswith("sliding") and a.sliding_window:
        return Cache(kind="sliding", heads=heads, k_dim=dim, v_dim=dim, window=a.sliding_window)
    if kind.startswith("chunked") and a.attention_chunk_size:
        window = a.attention_chunk_size
        return Cache(kind="chunked", heads=heads, k_dim=dim, v_dim=dim, window=window)
    return Cache(kind="full", heads=heads, k_dim=dim, v_dim=dim)


def latent_attention(a: Architecture) -> Block:
    """Multi-head latent attention (DeepSeek V2 paper, section 2.1; ``modeling_deepseek_v3.py``)."""
    kv_rank, rope, nope, value = required(
        a, "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"
    )
    heads, hidden = a.num_attention_heads, a.hidden_size
    queries = Part(heads * (nope + rope), heads)
    matrices: list[Matrix] = []
    vectors = kv_rank
    if a.q_lora_rank:
        matrices += [
            Matrix(
                name="self_attn.fused_qkv_a_proj",
                parts=(Part(a.q_lora_rank), Part(kv_rank + rope)),
                cols=hidden,
                split="none",
            ),
            Matrix(name="self_attn.q_b_proj", parts=(queries,), cols=a.q_lora_rank),
        ]
        vectors += a.q_lora_rank
    else:
        matrices += [
            Matrix(name="self_attn.q_proj", parts=(queries,), cols=hidden),
            Matrix(
                name="self_attn.kv_a_proj_with_mqa",
                parts=(Part(kv_rank + rope),),
                cols=hidden,
                split="none",
            ),
        ]
    matrices += [
        Matrix(
            name="self_attn.kv_b_proj",
            parts=(Part(heads * (nope + value), heads),),
            cols=kv_rank,
        ),
        Matrix(name="self_attn.o_proj", parts=(Part(hidden),), cols=heads * value, split="row"),
    ]
    if a.index_n_heads and a.index_head_dim:
        # the lightning indexer of DeepSeek V3.2: wq_b, wk with a LayerNorm, weights_proj
        dim = a.index_head_dim
        rank = a.q_lora_rank or hidden
        matrices += [
            Matrix(
                name="self_attn.indexer.wq_b",
                parts=(Part(a.index_n_heads * dim),),
                cols=rank,
                split="none",
            ),
            Matrix(name="self_attn.indexer.wk", parts=(Part(dim),), cols=hidden, split="none"),
            Matrix(
                name="self_attn.indexer.weights_proj",
                parts=(Part(a.index_n_heads),),
                cols=hidden,
                split="none",
                router=True,
            ),
        ]
        vectors += 2 * dim
    return tuple(matrices), vectors


def latent_cache(a: Architecture) -> Cache:
    """One latent and one rotary key a token; no tensor parallelism divides it."""
    rank, rope = required(a, "kv_lora_rank", "qk_rope_head_dim")
    return Cache(
        kind="latent", heads=1, k_dim=rank + rope, v_dim=0, index_dim=a.index_head_dim or 0
    )


def gated_delta(a: Architecture) -> tuple[Block, State]:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5): ``modeling_qwen3_next.py``. The state is float32 in
    vLLM for these families (``mamba_ssm_dtype`` of their configs)."""
    kernel, keys, values, key_dim, value_dim = required(
        a,
        "linear_conv_kernel_dim",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
    )
    k, v = keys * key_dim, values * value_dim
    channels = 2 * k + v
    matrices = (
        Matrix(
            name="linear_attn.in_proj_qkvz",
            parts=(Part(k, keys), Part(k, keys), Part(v, values), Part(v, values)),
            cols=a.hidden_size,
        ),
        Matrix(
            name="linear_attn.in_proj_ba",
            parts=(Part(values, values), Part(values, values)),
            cols=a.hidden_size,
        ),
        Matrix(name="linear_attn.conv1d", parts=(Part(channels, keys),), cols=kernel, linear=False),
        Matrix(name="linear_attn.out_proj", parts=(Part(a.hidden_size),), cols=v, split="row"),
    )
    state = State(
        kind="gated_delta",
        conv_channels=channels,
        conv_tail=kernel - 1,
        heads=values,
        rows=value_dim,
        cols=key_dim,
        float32=True,
    )
    return (matrices, 2 * values + value_dim), state


def mamba2(a: Architecture) -> tuple[Block, State]:
    """Mamba-2 mixer (``modeling_mamba2.py``, ``modeling_nemotron_h.py``, granite hybrid)."""
    heads, dim, size = required(a, "mamba_num_heads", "mamba_head_dim", "mamba_state_size")
    groups, kernel = a.mamba_n_groups or 1, a.mamba_conv_kernel or 4
    inner = heads * dim
    channels = inner + 2 * groups * size
    matrices = (
        Matrix(
            name="mixer.in_proj",
            parts=(Part(inner, heads), Part(channels, groups), Part(heads, heads)),
            cols=a.hidden_size,
        ),
        Matrix(
            name="mixer.conv1d",
            parts=(Part(channels, groups),),
            cols=kernel,
            bias=True,
            linear=False,
        ),
        Matrix(name="mixer.out_proj", parts=(Part(a.hidden_size),), cols=inner, split="row"),
    )
    state = State(
        kind="mamba2",
        conv_channels=channels,
        conv_tail=kernel - 1,
        heads=heads,
        rows=dim,
        cols=size,
        float32=a.mamba_ssm_dtype == "float32",
    )
    return (matrices, 3 * heads + inner), state


def kimi_delta(a: Architecture) -> tuple[Block, State]:
    """Kimi Delta Attention (``modeling_kimi_linear.py``): queries, keys and values of one width,
    each with its own convolution, low-rank gates for decay and output."""
    kernel, heads, dim = required(
        a, "linear_conv_kernel_dim", "linear_num_key_heads", "linear_key_head_dim"
    )
    inner = heads * dim
    hidden = a.hidden_size
    matrices = (
        Matrix(
            name="self_attn.qkv_proj",
            parts=(Part(inner, heads), Part(inner, heads), Part(inner, heads)),
            cols=hidden,
        ),
        Matrix(name="self_attn.conv1d", parts=(Part(3 * inner, heads),), cols=kernel, linear=False),
        Matrix(name="self_attn.f_a_proj", parts=(Part(dim),), cols=hidden, split="none"),
        Matrix(name="self_attn.f_b_proj", parts=(Part(inner, heads),), cols=dim),
        Matrix(name="self_attn.b_proj", parts=(Part(heads, heads),), cols=hidden),
        Matrix(name="self_attn.g_a_proj", parts=(Part(dim),), cols=hidden, split="none"),
        Matrix(name="self_attn.g_b_proj", parts=(Part(inner, heads),), cols=dim),
        Matrix(name="self_attn.o_proj", parts=(Part(hidden),), cols=inner, split="row"),
    )
    state = State(
        kind="kimi_delta",
        conv_channels=3 * inner,
        conv_tail=kernel - 1,
        heads=heads,
        rows=dim,
        cols=dim,
        float32=True,
    )
    return (matrices, heads + inner + dim), state


def short_convolution(a: Architecture) -> tuple[Block, State]:
    """Gated short convolution (LFM2)."""
    kernel = a.mamba_conv_kernel or 3
    hidden = a.hidden_size
    matrices = (
        Matrix(name="conv.in_proj", parts=(Part(3 * hidden),), cols=hidden),
        Matrix(name="conv.conv", parts=(Part(hidden),), cols=kernel, linear=False),
        Matrix(name="conv.out_proj", parts=(Part(hidden),), cols=hidden, split="row"),
    )
    state = State(
        kind="short_conv", conv_channels=hidden, conv_tail=kernel - 1, heads=0, rows=0, cols=0
    )
    return (matrices, 0), state


def feed_forward(
    hidden: int, width: int, *, gated: bool = True, bias: bool = False, name: str = "mlp"
) -> Block:
    """Up (and gate) and down."""
    parts = (Part(width), Part(width)) if gated else (Part(width),)
    return (
        Matrix(name=f"{name}.gate_up_proj", parts=parts, cols=hidden, bias=bias),
        Matrix(name=f"{name}.down_proj", parts=(Part(hidden),), cols=width, split="row", bias=bias),
    ), 0


def experts(
    hidden: int,
    *,
    count: int,
    width: int,
    shared_width: int = 0,
    shared_gate: bool = False,
    correction: bool = False,
    bias: bool = False,
    router_bias: bool = False,
    gated: bool = True,
) -> Block:
    """Routed experts, the shared ones as one wider block, and the router. ``correction``: a bias
    for each expert that balances their load (DeepSeek V3)."""
    parts = (Part(width), Part(width)) if gated else (Part(width),)
    matrices = [
        Matrix(
            name="mlp.gate",
            parts=(Part(count),),
            cols=hidden,
            split="none",
            bias=router_bias,
            router=True,
        ),
        Matrix(name="mlp.experts.w13", parts=parts, cols=hidden, stack=count, bias=bias),
        Matrix(
            name="mlp.experts.w2",
            parts=(Part(hidden),),
            cols=width,
            split="row",
            stack=count,
            bias=bias,
        ),
    ]
    if shared_width:
        shared, _ = feed_forward(hidden, shared_width, gated=gated, name="mlp.shared_experts")
        matrices += shared
        if shared_gate:
            matrices.append(
                Matrix(
                    name="mlp.shared_expert_gate",
                    parts=(Part(1),),
                    cols=hidden,
                    split="none",
                    router=True,
                )
            )
    return tuple(matrices), count if correction else 0
