"""GGUF headers -> ``Architecture`` and ``Checkpoint``.

Source: ggml-org/ggml docs/gguf.md (versions 2 and 3) and ggml.h, ggml-common.h for the sizes of the
types. The reader takes any buffer, so that a file may be mapped instead of read.
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint, StoredTensor
from kubectl_gpuadmit.sizing.formats.fields import LAYERS, MOST, Fields

MAGIC = b"GGUF"
_MOST_ENTRIES = 1_000_000
_MOST_TEXT = 64 << 20

_TYPES: dict[int, tuple[str, int, int]] = {
    # number: name, elements of a block, bytes of a block
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2),
    26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip

_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0",
    38: "MXFP4_MOE",
}  # fmt: skip

_MODEL_TYPES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next",
    "qwen2vl": "qwen2_vl",
    "qwen3vl": "qwen3_vl",
    "qwen3vlmoe": "qwen3_vl_moe",
    "qwen35": "qwen3_5",
    "qwen35moe": "qwen3_5_moe",
    "deepseek2": "deepseek_v3",
    "gemma": "gemma",
    "gemma3n": "gemma3n",
    "gpt-oss": "gpt_oss",
    "glm4moe": "glm4_moe",
    "command-r": "cohere",
    "cohere2": "cohere2",
    "nemotron_h": "nemotron_h",
    "granitemoe": "granitemoe",
    "granitehybrid": "granitemoehybrid",
    "llama4": "llama4",
    "mistral3": "mistral3",
    "falcon-h1": "falcon_h1",
    "kimi-linear": "kimi_linear",
}
"""GGUF's name -> ``model_type``; others are spelt alike."""

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_KEPT_ITEMS = LAYERS
"""Longer arrays (the vocabulary) are counted, not kept."""


class Read(Struct, frozen=True):
    """What one GGUF file says."""

    architecture: Architecture
    checkpoint: Checkpoint
    name: str = ""
    split: tuple[int, int] = (1, 1)
    """This part's number from 1, and how many parts there are."""


class _Length(int):
    """Stands for an array that is too long to keep."""


class _Cursor:
    def __init__(self, buffer: Any, file: str) -> None:
        self.buffer = buffer
        self.file = file
        self.at = 0

    def cut(self) -> BadModelFile:
        return BadModelFile(
            "model-file-cut",
            f"its GGUF header ends after {len(self.buffer):,} bytes",
            file=self.file,
            hint="copy it again",
        )

    def bad(self, message: str) -> BadModelFile:
        hint = "is it the file itself, and downloaded whole?"
        return BadModelFile("model-file-unreadable", message, file=self.file, hint=hint)

    def scalar(self, letter: str) -> Any:
        try:
            (value,) = struct.unpack_from(f"<{letter}", self.buffer, self.at)
        except struct.error:
            raise self.cut() from None
        self.at += struct.calcsize(letter)
        return value

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.buffer):
            raise self.cut()

    def text(self) -> str:
        length = self.scalar("Q")
        if length > _MOST_TEXT:
            raise self.bad(f"holds a text of {length:,} bytes")
        start = self.at
        self.skip(length)
        return bytes(self.buffer[start : self.at]).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise self.bad(f"holds a value of the unknown type {kind}")
        return self.scalar(_SCALARS[kind])

    def _array(self) -> Any:
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind == _STRING:
            for _ in range(count):
                length = self.scalar("Q")
                self.skip(length)
            return _Length(count)
        if kind not in _SCALARS:
            raise self.bad(f"holds a list of the unknown type {kind}")
        size = struct.calcsize(_SCALARS[kind])
        if count > _KEPT_ITEMS:
            self.skip(size * count)
            return _Length(count)
        return [self.scalar(_SCALARS[kind]) for _ in range(count)]


def read(buffer: Any, file: str, *, size: int | None = None) -> Read:
    """Reads the header of one GGUF file. ``size`` is that of the whole file where it is known: data
    that would lie beyond is said to be cut. Raises BadModelFile."""
    cursor = _Cursor(buffer, file)
    if bytes(buffer[:4]) != MAGIC:
        raise cursor.bad("is no GGUF file: it does not begin with GGUF")
    cursor.at = 4
    version = cursor.scalar("I")
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in (1, 2, 3)
        what = "is a GGUF file for big-endian machines" if swapped else f"is GGUF version {version}"
        raise cursor.bad(f"{what}; this program reads versions 2 and 3")
    tensors, entries = cursor.scalar("Q"), cursor.scalar("Q")
    if max(tensors, entries) > _MOST_ENTRIES:
        raise cursor.bad(f"its header would hold {max(tensors, entries):,} entries")
    metadata: dict[str, Any] = {}
    for _ in range(entries):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.scalar("I"))
    stored = tuple(_tensor(cursor) for _ in range(tensors))
    total = sum(tensor.nbytes for tensor in stored)
    if size is not None and size < total:
        raise BadModelFile(
            "model-file-cut",
            f"has {size:,} bytes, its tensors alone {total:,}",
            file=file,
            hint="copy it again",
        )
    parts = metadata.get("split.count")
    number = metadata.get("split.no")
    split = (1, 1)
    if isinstance(parts, int) and isinstance(number, int) and 1 <= parts <= 1000:
        split = (number + 1, parts)
    name = metadata.get("general.name")
    return Read(
        architecture=_architecture(metadata, stored, file),
        checkpoint=Checkpoint(source=file, total_bytes=total, tensors=stored),
        name=name if isinstance(name, str) else "",
        split=split,
    )


def _tensor(cursor: _Cursor) -> StoredTensor:
    name = cursor.text()
    dimensions = cursor.scalar("I")
    if dimensions > 8:
        raise cursor.bad(f"tensor {name[:80]} has {dimensions} dimensions")
    shape = tuple(cursor.scalar("Q") for _ in range(dimensions))
    kind = cursor.scalar("I")
    cursor.scalar("Q")  # its offset
    if kind not in _TYPES:
        raise cursor.bad(f"tensor {name[:80]} is of type {kind}, which this program does not know")
    label, block, size = _TYPES[kind]
    elements = prod(shape)
    if elements > MOST * 64:
        raise cursor.bad(f"tensor {name[:80]} is larger than any tensor")
    if shape and shape[0] % block:
        raise cursor.bad(f"tensor {name[:80]}: {shape[0]} is no multiple of {label}'s {block}")
    return StoredTensor(name, label, tuple(reversed(shape)), elements // block * size)


def _architecture(
    metadata: dict[str, Any], stored: tuple[StoredTensor, ...], file: str
) -> Architecture:
    family = metadata.get("general.architecture")
    if not isinstance(family, str) or not family:
        raise BadModelFile(
            "model-field-missing",
            "general.architecture is missing",
            file=file,
            field="general.architecture",
        )
    prefix = f"{family}."
    own = {k[len(prefix) :]: v for k, v in metadata.items() if k.startswith(prefix)}
    fields = Fields(
        {k: v for k, v in own.items() if not isinstance(v, _Length)}, file=file, at=family
    )

    def of(*names: str, most: int = MOST) -> int | None:
        return fields.count(*names, most=most) if not _is_list(own, names) else None

    def by_layer(name: str) -> tuple[int, ...]:
        return fields.counts(name) if isinstance(own.get(name), list) else ()

    layers = fields.needed("block_count", most=LAYERS)
    heads = of("attention.head_count")
    heads_by_layer = by_layer("attention.head_count")
    kv_by_layer = by_layer("attention.head_count_kv")
    latent = of("attention.kv_lora_rank")
    rope = of("rope.dimension_count")
    key = of("attention.key_length_mla") if latent else None
    inner, rank = of("ssm.inner_size"), of("ssm.time_step_rank")
    names = {tensor.name for tensor in stored}
    file_type = metadata.get("general.file_type")
    label = _FILE_TYPES.get(file_type, "") if isinstance(file_type, int) else ""
    return Architecture(
        model_type=_MODEL_TYPES.get(family, family),
        hidden_size=fields.needed("embedding_length"),
        num_hidden_layers=layers,
        vocab_size=_vocabulary(fields, metadata, stored, file),
        num_attention_heads=heads or max(heads_by_layer, default=0),
        num_key_value_heads=of("attention.head_count_kv"),
        attention_heads_by_layer=heads_by_layer,
        kv_heads_by_layer=kv_by_layer,
        head_dim=of("attention.key_length") if not latent else None,
        intermediate_size=of("feed_forward_length") or 0,
        intermediate_by_layer=by_layer("feed_forward_length"),
        max_position_embeddings=of("context_length"),
        tie_word_embeddings="output.weight" not in names if stored else None,
        sliding_window=of("attention.sliding_window"),
        full_attention_interval=of("full_attention_interval"),
        q_lora_rank=of("attention.q_lora_rank"),
        kv_lora_rank=latent,
        qk_rope_head_dim=rope if latent else None,
        qk_nope_head_dim=key - rope if key and rope else None,
        v_head_dim=of("attention.value_length_mla") if latent else None,
        num_experts=of("expert_count") or None,
        num_experts_per_tok=of("expert_used_count"),
        moe_intermediate_size=of("expert_feed_forward_length"),
        n_shared_experts=of("expert_shared_count"),
        shared_expert_intermediate_size=of("expert_shared_feed_forward_length"),
        first_k_dense_replace=of("leading_dense_block_count"),
        num_nextn_predict_layers=of("nextn_predict_layers"),
        mamba_state_size=of("ssm.state_size"),
        mamba_conv_kernel=of("ssm.conv_kernel"),
        mamba_n_groups=of("ssm.group_count"),
        mamba_num_heads=rank if inner else None,
        mamba_head_dim=inner // rank if inner and rank else None,
        quantization=Quantization(method="gguf", format=label) if label else None,
    )


def _is_list(own: dict[str, Any], names: tuple[str, ...]) -> bool:
    return any(isinstance(own.get(name), list | _Length) for name in names)


def _vocabulary(
    fields: Fields, metadata: dict[str, Any], stored: tuple[StoredTensor, ...], file: str
) -> int:
    said = fields.count("vocab_size")
    if said:
        return said
    tokens = metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, _Length) and tokens:
        return int(tokens)
    for tensor in stored:
        if tensor.name == "token_embd.weight" and tensor.shape:
            return tensor.shape[0]
    raise BadModelFile("model-field-missing", "nothing says how large the vocabulary is", file=file)
