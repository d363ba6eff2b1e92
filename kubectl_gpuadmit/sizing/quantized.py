"""How a model's weights are quantised when it is served: the checkpoint's way, or the engine's."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.plan import NoPlan
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.storage import format_of

EXACT = 0.004
"""Doubt of weights that are counted part by part: small buffers that no plan lists."""
FROM_NAME = 0.03
"""Where only a name says how a checkpoint is quantised."""

_ONLINE = {
    # engines' own quantisation of an unquantised checkpoint while loading
    "fp8": Quantization(method="fp8", bits=8, activations="fp8", ignored=("lm_head",)),
    "bitsandbytes": Quantization(
        method="bitsandbytes", bits=4, group_size=64, ignored=("lm_head",)
    ),
    "experts_int8": Quantization(method="experts_int8", bits=8, ignored=("lm_head",)),
    "w8a8_fp8": Quantization(method="fp8", bits=8, strategy="channel", ignored=("lm_head",)),
    "w8a8_int8": Quantization(method="w8a8_int8", bits=8, ignored=("lm_head",)),
}
_STORED = (
    "awq",
    "gptq",
    "compressed-tensors",
    "modelopt",
    "modelopt_fp4",
    "mxfp4",
    "gguf",
    "fbgemm_fp8",
)


def served_quantization(
    architecture: Architecture, serving: Serving
) -> tuple[Quantization | None, float, tuple[str, str] | None]:
    """Method, doubt of the weights as a share, and what was assumed.

    Raises NoPlan where the argument and the checkpoint disagree.
    """
    asked = (serving.quantization or "").lower().replace("_marlin", "")
    stored = architecture.quantization
    if stored is None:
        if not asked or asked == "none":
            return None, EXACT, None
        if asked in _ONLINE:
            note = (f"weights are quantised to {asked} while loading", "the engine's argument")
            return _ONLINE[asked], 0.01, note
        if asked in _STORED:
            raise NoPlan(f"a checkpoint that is quantised with {asked}: this one is not")
        raise NoPlan(f"how quantisation {asked} is stored")
    own = stored.method.lower()
    same = asked in (own, "") or {asked, own} <= {"modelopt", "modelopt_fp4", "fp8"}
    if not same:
        raise NoPlan(
            f"one quantisation: the checkpoint is {stored.method}, the argument says {asked}"
        )
    if own == "gguf":
        note = (
            f"{stored.format} takes {format_of(stored).bits:g} bits a weight on average",
            "llama.cpp",
        )
        return stored, 0.002 if stored.format == "Q8_0" else FROM_NAME, note
    return stored, EXACT * 2, None
