"""Plans of encoders and encoder-decoders: BERT, XLM-RoBERTa, ModernBERT, Whisper."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.blocks import required
from kubectl_gpuadmit.sizing.plan import Cache, Layer, Matrix, Part, Plan, embedding


def _attention(hidden: int, *, key_bias: bool = True) -> tuple[tuple[Matrix, ...], int]:
    """Queries, keys, values and output with biases; Whisper's keys have none: ``-hidden``."""
    matrices = (
        Matrix(name="attention.qkv", parts=(Part(hidden),) * 3, cols=hidden, bias=True),
        Matrix(name="attention.output", parts=(Part(hidden),), cols=hidden, split="row", bias=True),
    )
    return matrices, 0 if key_bias else -hidden


def _feed(hidden: int, width: int) -> tuple[Matrix, ...]:
    return (
        Matrix(name="intermediate", parts=(Part(width),), cols=hidden, bias=True),
        Matrix(name="output", parts=(Part(hidden),), cols=width, split="row", bias=True),
    )


def bert_plan(a: Architecture) -> Plan:
    """BERT and RoBERTa with a pooler, as embedding and reranking models are stored."""
    hidden, count, vocabulary, width, positions = required(
        a,
        "hidden_size",
        "num_hidden_layers",
        "vocab_size",
        "intermediate_size",
        "max_position_embeddings",
    )
    block, _ = _attention(hidden)
    layer = Layer(matrices=(*block, *_feed(hidden, width)), vectors=4 * hidden, width=width)
    sequence = any("SequenceClassification" in name for name in a.architectures)
    pooler = hidden * hidden + hidden
    if sequence:  # RoBERTa's head: a dense layer and the labels
        pooler += (hidden + 1) * (a.num_labels or 1)
    return Plan(
        hidden=hidden,
        vocabulary=vocabulary,
        embeddings=(embedding("embeddings.word_embeddings", vocabulary, hidden),),
        layers=(layer,) * count,
        head=None,
        tail=(positions + (a.type_vocab_size or 0) + 2) * hidden + pooler,
        encoder_only=True,
        positions=positions,
    )


def modernbert_plan(a: Architecture) -> Plan:
    """ModernBERT: gated feed-forward, no biases, rotary positions; first layer has no norm."""
    hidden, count, vocabulary, width = required(
        a, "hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"
    )
    layer = Layer(
        matrices=(
            Matrix(name="attn.Wqkv", parts=(Part(hidden),) * 3, cols=hidden),
            Matrix(name="attn.Wo", parts=(Part(hidden),), cols=hidden, split="row"),
            Matrix(name="mlp.Wi", parts=(Part(width), Part(width)), cols=hidden),
            Matrix(name="mlp.Wo", parts=(Part(hidden),), cols=width, split="row"),
        ),
        vectors=2 * hidden,
        width=2 * width,
    )
    return Plan(
        hidden=hidden,
        vocabulary=vocabulary,
        embeddings=(embedding("embeddings.tok_embeddings", vocabulary, hidden),),
        layers=(layer,) * count,
        head=None,
        tail=hidden,
        encoder_only=True,
    )


def whisper_plan(a: Architecture) -> Plan:
    """Whisper: an encoder over mel frames and a decoder that also attends to it."""
    hidden, decoders, encoders, vocabulary, width, wide, frames, positions, mels = required(
        a,
        "hidden_size",
        "num_hidden_layers",
        "encoder_layers",
        "vocab_size",
        "intermediate_size",
        "encoder_ffn_dim",
        "max_source_positions",
        "max_position_embeddings",
        "num_mel_bins",
    )
    block, lacking = _attention(hidden, key_bias=False)
    heads = a.num_attention_heads
    dim = hidden // heads if heads else hidden
    own = Cache(kind="full", heads=heads, k_dim=dim, v_dim=dim)
    encoder = Layer(
        matrices=(*block, *_feed(hidden, wide)), vectors=4 * hidden + lacking, width=wide
    )
    decoder = Layer(
        matrices=(*block, *block, *_feed(hidden, width)),
        vectors=6 * hidden + 2 * lacking,
        cache=own,
        width=width,
    )
    convolutions = hidden * (3 * mels + 1) + hidden * (3 * hidden + 1)
    return Plan(
        hidden=hidden,
        vocabulary=vocabulary,
        embeddings=(embedding("decoder.embed_tokens", vocabulary, hidden),),
        layers=(decoder,) * decoders,
        head=None,
        tail=(positions + frames) * hidden + 4 * hidden + convolutions,
        towers=(encoder,) * encoders,
        positions=positions,
    )
