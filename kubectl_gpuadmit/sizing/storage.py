"""Bytes of one weight matrix as an engine keeps it: types, packed bits, scales, padding."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil

from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Quantization
from kubectl_gpuadmit.sizing.plan import Matrix, NoPlan

MIB = 1 << 20

DTYPE_BYTES = {
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "float32": 4.0,
    "float": 4.0,
}

# GGUF: bits a weight with scales, by block layout (ggml-common.h: block_q4_K is 144 bytes for 256
# weights, block_q8_0 34 bytes for 32 …). File types mix them; the mix is in the file's header only.
GGUF_BITS = {
    "F32": 32.0,
    "F16": 16.0,
    "BF16": 16.0,
    "Q8_0": 8.5,
    "Q6_K": 6.5625,
    "Q5_K": 5.5,
    "Q5_0": 5.5,
    "Q5_1": 6.0,
    "Q4_K": 4.5,
    "Q4_0": 4.5,
    "Q4_1": 5.0,
    "Q3_K": 3.4375,
    "Q2_K": 2.625,
    "IQ4_NL": 4.5,
    "IQ4_XS": 4.25,
    "IQ3_S": 3.4375,
    "IQ3_XXS": 3.0625,
    "IQ2_S": 2.5625,
    "IQ2_XS": 2.3125,
    "IQ2_XXS": 2.0625,
    "IQ1_S": 1.5625,
    "IQ1_M": 1.75,
    "MXFP4": 4.25,
}


GGUF_FILE_BITS = {
    # averages of whole files, which mix layouts (llama.cpp tools/quantize/README.md, Llama 3.1 8B)
    "Q2_K": 3.1593,
    "Q3_K_S": 3.6429,
    "Q3_K_M": 3.9960,
    "Q3_K_L": 4.2979,
    "IQ4_XS": 4.4597,
    "IQ4_NL": 4.6818,
    "Q4_K_S": 4.6672,
    "Q4_K_M": 4.8944,
    "Q5_K_S": 5.5704,
    "Q5_K_M": 5.7036,
    "Q6_K": 6.5633,
}


class Format(Struct, frozen=True, kw_only=True):
    """How the quantised matrices of a model are kept. ``bits`` of a weight without its scales."""

    bits: float
    group: int = 0
    """Weights of a row that share a scale; 0: a row or a tensor shares one."""
    scale_bytes: float = 0.0
    row_scale_bytes: float = 0.0
    """For each output, where scales are by channel."""
    zero_bits: float = 0.0
    """Of a group's zero point."""
    block: tuple[int, int] = (0, 0)
    """FP8 with block scales: rows and columns of a block with one float32."""
    quantises_head: bool = False

    def tensors(self, rows: int, cols: int) -> tuple[float, ...]:
        """Bytes of the tensors that one matrix of ``rows`` outputs and ``cols`` inputs is kept in:
        weights, scales, zero points."""
        sizes = [rows * cols * self.bits / 8, rows * self.row_scale_bytes]
        if self.group:
            groups = ceil(cols / self.group)
            sizes += [rows * groups * self.scale_bytes, rows * groups * self.zero_bits / 8]
        if self.block[0]:
            sizes.append(4 * ceil(rows / self.block[0]) * ceil(cols / self.block[1]))
        return tuple(size for size in sizes if size)


def format_of(quantization: Quantization) -> Format:
    """The layout of a method; raises NoPlan for methods and formats that nobody here knows.

    Sources: vLLM ``model_executor/layers/quantization`` (``create_weights`` of each method, after
    ``process_weights_after_loading``), bitsandbytes ``functional.py`` (block of 64, absmax in
    float32), OCP Microscaling v1.0 (MXFP4: a byte for 32), NVIDIA ModelOpt (NVFP4: an FP8 for 16).
    """
    q = quantization
    method = q.method.lower().replace("_marlin", "")
    group = q.group_size or 0
    group = 0 if group < 0 else group
    if method in ("awq", "gptq", "wna16", "auto-round", "inc"):
        bits = q.bits or 4
        zero = float(bits) if method == "awq" or q.symmetric is False else 0.0
        return Format(bits=bits, group=group or 128, scale_bytes=2, zero_bits=zero)
    if method == "compressed-tensors":
        return _compressed(q, group)
    if method in ("fp8", "fbgemm_fp8", "modelopt", "modelopt_fp8", "ptpc_fp8"):
        if q.block_size:
            return Format(bits=8, block=q.block_size)
        channels = 4.0 if method == "fbgemm_fp8" or q.strategy == "channel" else 0.0
        return Format(bits=8, row_scale_bytes=channels)
    if method in ("modelopt_fp4", "nvfp4", "petit_nvfp4"):
        return Format(bits=4, group=16, scale_bytes=1)
    if method == "mxfp4":
        return Format(bits=4, group=32, scale_bytes=1)
    if method == "bitsandbytes":
        if q.bits == 8:
            return Format(bits=8, row_scale_bytes=4)
        return Format(bits=4, group=64, scale_bytes=4)
    if method in ("experts_int8", "int8", "tpu_int8", "w8a8", "w8a8_int8", "w8a8_fp8"):
        return Format(bits=8, row_scale_bytes=4)
    if method == "gguf":
        packed = GGUF_FILE_BITS.get(q.format) or GGUF_BITS.get(q.format)
        if packed:
            return Format(bits=packed, quantises_head=True)
    raise NoPlan(f"how quantisation {q.method} {q.format}".rstrip() + " is stored")


def _compressed(q: Quantization, group: int) -> Format:
    """compressed-tensors: what is stored is told by ``format``."""
    if q.format == "pack-quantized":
        zero = 0.0 if q.symmetric is not False else float(q.bits or 4)
        if not group:
            return Format(bits=q.bits or 4, row_scale_bytes=2)
        return Format(bits=q.bits or 4, group=group, scale_bytes=2, zero_bits=zero)
    if q.format in ("nvfp4-pack-quantized", "mxfp4-pack-quantized"):
        return Format(bits=4, group=16 if q.format[0] == "n" else 32, scale_bytes=1)
    if q.format in ("float-quantized", "int-quantized", "naive-quantized"):
        if q.block_size:
            return Format(bits=8, block=q.block_size)
        if q.strategy == "group" and group:
            return Format(bits=8, group=group, scale_bytes=2)
        return Format(bits=8, row_scale_bytes=4.0 if q.strategy == "channel" else 0.0)
    raise NoPlan(f"how compressed-tensors format {q.format or '(none)'} is stored")


_FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj", "qkv_proj"),
    "gate_up_proj": ("gate_proj", "up_proj", "gate_up_proj"),
    "w13": ("0.gate_proj", "0.up_proj", "gate_up_proj", "w13"),
    "w2": ("0.down_proj", "down_proj", "w2"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z", "in_proj_qkvz"),
    "in_proj_ba": ("in_proj_b", "in_proj_a", "in_proj_ba"),
}


def is_quantised(matrix: Matrix, ignored: Sequence[str], *, layer: int | None) -> bool:
    """Whether a method with this list of exceptions touches the matrix."""
    if not matrix.linear or matrix.router:
        return False
    if matrix.name in ("linear_attn.in_proj_ba",) and matrix.rows < 512:
        return False  # too narrow: every publisher leaves it as it is
    prefix = "" if layer is None else f"model.layers.{layer}."
    stem, _, last = matrix.name.rpartition(".")
    stem = f"{prefix}{stem}." if stem else prefix
    return not any(
        _matches(pattern, stem + name) for name in _FUSED.get(last, (last,)) for pattern in ignored
    )


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("re:"):
        found = _compiled(pattern[3:])
        return found is not None and found.match(name) is not None
    if "*" in pattern:
        return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")
    return (
        pattern in (name, name.rpartition(".")[2])
        or name.startswith(f"{pattern}.")
        or ("." in pattern and name.endswith(f".{pattern}"))
    )


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > 400:
        return None
    try:
        return re.compile(pattern)
    except re.error:
        return None


def allocated(size: float) -> float:
    """Bytes that PyTorch's caching allocator counts for one tensor of ``size`` bytes.

    Tensors from 10 MiB get a segment of their own, rounded up to 2 MiB, and the rest is given back
    only where it exceeds 1 MiB (c10/cuda/CUDACachingAllocator.cpp: kMinLargeAlloc, kRoundLarge,
    kSmallSize, should_split). Smaller ones share segments: rounded to 512 bytes.
    """
    if size < 10 * MIB:
        return ceil(size / 512) * 512
    rest = -size % (2 * MIB)
    return size + rest if rest <= MIB else size
