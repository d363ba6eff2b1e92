"""What the name of a checkpoint says of its quantisation, by the habits of those who publish them.

A name is weak evidence: whoever uses this says so. Sources: model cards of the Qwen, RedHatAI,
unsloth and casperhansen organisations on the Hugging Face Hub.
"""

from __future__ import annotations

import re

from kubectl_gpuadmit.sizing.architecture import Quantization

_FP8 = Quantization(
    method="compressed-tensors",
    format="float-quantized",
    bits=8,
    strategy="channel",
    activations="fp8",
    ignored=("lm_head",),
)
_FP8_BLOCK = Quantization(
    method="fp8", bits=8, block_size=(128, 128), activations="fp8", ignored=("lm_head",)
)
_INT8 = Quantization(
    method="compressed-tensors",
    format="int-quantized",
    bits=8,
    strategy="channel",
    activations="int8",
    ignored=("lm_head",),
)
_W4 = Quantization(
    method="compressed-tensors",
    format="pack-quantized",
    bits=4,
    group_size=128,
    strategy="group",
    symmetric=True,
    ignored=("lm_head",),
)
_AWQ = Quantization(method="awq", bits=4, group_size=128, symmetric=False, ignored=("lm_head",))
_AWQ_PACKED = Quantization(
    method="compressed-tensors",
    format="pack-quantized",
    bits=4,
    group_size=32,
    strategy="group",
    symmetric=True,
    ignored=("lm_head",),
)
_GPTQ4 = Quantization(method="gptq", bits=4, group_size=128, symmetric=True, ignored=("lm_head",))
_GPTQ8 = Quantization(method="gptq", bits=8, group_size=128, symmetric=True, ignored=("lm_head",))
_BNB = Quantization(
    method="bitsandbytes", bits=4, group_size=64, double_quant=True, ignored=("lm_head",)
)
_NVFP4 = Quantization(method="modelopt_fp4", bits=4, group_size=16, ignored=("lm_head",))

_QWEN_FP8 = re.compile(r"qwen3.*-fp8$")
_SIXTEEN_BITS = re.compile(r"-(?:bf16|fp16)$")
_SUFFIXES: tuple[tuple[str, Quantization], ...] = (
    (r"-fp8-dynamic$", _FP8),
    (r"-fp8-block$", _FP8_BLOCK),
    (r"-fp8$", _FP8),
    (r"-quantized\.w8a8$", _INT8),
    (r"-quantized\.w4a16$", _W4),
    (r"-w4a16$", _W4),
    (r"-(?:gptq-int4|gptq)$", _GPTQ4),
    (r"-gptq-int8$", _GPTQ8),
    (r"-awq-4bit$", _AWQ_PACKED),  # llm-compressor, as cyankiwi publishes: compressed-tensors, 32
    (r"-awq(?:-int4)?$", _AWQ),
    (r"-bnb-4bit$", _BNB),
    (r"-(?:nvfp4|fp4)$", _NVFP4),
)


def named_quantization(name: str) -> tuple[str, Quantization | None]:
    """The name without its suffix, and what the suffix says: None for sixteen bits. The name as it
    is and None where it says nothing.

    ``name`` is lower case and without owner.
    """
    if found := _SIXTEEN_BITS.search(name):
        return name[: found.start()], None
    for pattern, quantization in _SUFFIXES:
        base, count = re.subn(pattern, "", name)
        if count and base:
            if _QWEN_FP8.search(name):
                return base, _FP8_BLOCK
            return base, quantization
    return name, None
