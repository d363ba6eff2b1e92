"""GGUF headers, written here byte by byte: whole, cut, and wrong in every way."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.checkpoint import StoredTensor
from kubectl_gpuadmit.sizing.formats import gguf


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, value: Any) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            body = b"".join(map(text, value))
            return text(key) + struct.pack("<IIQ", 9, 8, len(value)) + body
        return text(key) + struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)
    return text(key) + struct.pack("<II", 4, value)


def tensor(name: str, shape: tuple[int, ...], kind: int) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, 0)


METADATA: dict[str, Any] = {
    "general.architecture": "qwen3moe",
    "general.name": "Small",
    "general.file_type": 15,
    "qwen3moe.block_count": 2,
    "qwen3moe.embedding_length": 512,
    "qwen3moe.feed_forward_length": 1024,
    "qwen3moe.attention.head_count": 8,
    "qwen3moe.attention.head_count_kv": [2, 1],
    "qwen3moe.attention.key_length": 64,
    "qwen3moe.context_length": 4096,
    "qwen3moe.expert_count": 16,
    "qwen3moe.rope.freq_base": 1000000.0,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
}
TENSORS = [("token_embd.weight", (512, 3), 12), ("blk.0.attn_norm.weight", (512,), 0)]


def file_of(
    metadata: dict[str, Any] = METADATA,
    tensors: list[tuple[str, tuple[int, ...], int]] = TENSORS,
    version: int = 3,
) -> bytes:
    return (
        b"GGUF"
        + struct.pack("<IQQ", version, len(tensors), len(metadata))
        + b"".join(entry(k, v) for k, v in metadata.items())
        + b"".join(tensor(*t) for t in tensors)
    )


def refused(raw: bytes, **known: int) -> str:
    with pytest.raises(BadModelFile) as caught:
        gguf.read(raw, "m.gguf", **known)
    return str(caught.value)


def test_a_header_gives_architecture_and_tensors() -> None:
    found = gguf.read(file_of(), "m.gguf")
    assert found.architecture == Architecture(
        model_type="qwen3_moe",
        hidden_size=512,
        num_hidden_layers=2,
        vocab_size=3,
        num_attention_heads=8,
        kv_heads_by_layer=(2, 1),
        head_dim=64,
        intermediate_size=1024,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        num_experts=16,
        quantization=Quantization(method="gguf", format="Q4_K_M"),
    )
    assert found.checkpoint.tensors == (
        StoredTensor("token_embd.weight", "Q4_K", (3, 512), 3 * 2 * 144),
        StoredTensor("blk.0.attn_norm.weight", "F32", (512,), 2048),
    )
    assert found.checkpoint.total_bytes == 2912
    assert found.name == "Small"


def test_parts_of_a_split_file_say_which_they_are() -> None:
    assert gguf.read(file_of({**METADATA, "split.no": 1, "split.count": 4}), "m").split == (2, 4)


def test_a_file_that_was_cut_anywhere_is_said_to_be_cut() -> None:
    whole = file_of()
    for end in range(8, len(whole)):
        assert "[model-file-cut]" in refused(whole[:end])
    assert "its tensors alone 2,912 [model-file-cut]" in refused(whole, size=2911)


def test_what_is_no_gguf_file_of_ours_is_said() -> None:
    assert "does not begin with GGUF" in refused(b"GGML" + bytes(40))
    assert "GGUF version 9" in refused(file_of(version=9))
    assert "big-endian" in refused(file_of(version=3 << 24))
    assert "would hold 18,446,744,073,709,551,615 entries" in refused(
        b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 1)
    )
    assert "of type 77" in refused(file_of(tensors=[("a", (32,), 77)]))
    assert "no multiple of Q4_K's 256" in refused(file_of(tensors=[("a", (32,), 12)]))
    without = {k: v for k, v in METADATA.items() if k != "qwen3moe.embedding_length"}
    assert refused(file_of(without)).endswith("embedding_length is missing [model-field-missing]")


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_one_error(raw: bytes) -> None:
    for whole in (raw, b"GGUF\x03\0\0\0" + raw):
        with pytest.raises(BadModelFile):
            gguf.read(whole, "m")


@given(st.integers(0, len(file_of()) - 1), st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused_with_one_error(at: int, value: int) -> None:
    raw = bytearray(file_of())
    raw[at] = value
    try:
        gguf.read(bytes(raw), "m")
    except BadModelFile as error:
        assert error.message
