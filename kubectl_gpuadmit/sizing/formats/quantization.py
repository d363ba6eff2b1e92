"""``quantization_config`` of the methods that checkpoints name -> one spelling.

Sources: huggingface/transformers utils/quantization_config.py; vllm-project/compressed-tensors
quantization/quant_config.py and quant_args.py; NVIDIA/Model-Optimizer hf_quant_config.json.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Quantization
from kubectl_gpuadmit.sizing.formats.fields import NAMES, Fields


def of_config(config: Fields, text: Fields) -> Quantization | None:
    """From the model's config, or its text part's; None where nothing is quantised."""
    for fields in (config, text):
        found = fields.inner("quantization_config", "compression_config")
        if found is not None:
            return quantization(found)
    return None


def of_modelopt_file(data: Fields) -> Quantization | None:
    """``hf_quant_config.json``, which older ModelOpt checkpoints keep beside ``config.json``."""
    inner = data.inner("quantization")
    return _modelopt(inner) if inner is not None else None


def quantization(fields: Fields) -> Quantization:
    method = fields.text("quant_method") or _unnamed(fields)
    match method.replace("_", "-"):
        case "compressed-tensors":
            return _compressed_tensors(fields)
        case "modelopt" | "modelopt-fp4":
            return _modelopt(fields)
        case "bitsandbytes" | "bitsandbytes-4bit":
            return _bitsandbytes(fields)
    block = fields.counts("weight_block_size")
    if block and len(block) != 2:
        fields.fail("weight_block_size", f"expected two numbers, found {len(block)}")
    activation = fields.text("activation_scheme")
    symmetric = fields.flag("sym", "symmetric")
    if fields.has("zero_point"):
        symmetric = not fields.flag("zero_point")
    bits = fields.count("bits", "w_bit", "nbits", most=64)
    return Quantization(
        method=method,
        format=fields.text("fmt", "checkpoint_format"),
        bits=bits if bits is not None else 8 if method in ("fp8", "fbgemm_fp8") else None,
        group_size=_group(fields),
        block_size=(block[0], block[1]) if block else None,
        strategy="block" if block else "",
        symmetric=symmetric,
        activations="fp8" if method in ("fp8", "fbgemm_fp8") and activation != "none" else "",
        ignored=_ignored(fields),
    )


def _unnamed(fields: Fields) -> str:
    """Older files name no method where the keys leave no doubt."""
    if fields.has("load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type"):
        return "bitsandbytes"
    if fields.has("config_groups"):
        return "compressed-tensors"
    if not fields.has("quant_algo"):
        fields.fail("quant_method", "quant_method is missing", ref="model-field-missing")
    return "modelopt"


def _group(fields: Fields) -> int | None:
    value = fields.data.get("group_size", fields.data.get("q_group_size"))
    if value == -1:
        return -1
    return fields.count("group_size", "q_group_size", most=1 << 20)


_IGNORED = ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules")


def _ignored(fields: Fields) -> tuple[str, ...]:
    for name in _IGNORED:
        if fields.has(name):
            return fields.texts(name, most=NAMES)
    return ()


def _compressed_tensors(fields: Fields) -> Quantization:
    groups = fields.inner("config_groups")
    weights: list[Fields] = []
    activations = ""
    for name in groups.data if groups is not None else ():
        assert groups is not None
        group = groups.inner(name)
        found = group.inner("weights") if group is not None else None
        if found is not None:
            weights.append(found)
        given = group.inner("input_activations") if group is not None else None
        if given is not None:
            activations = _type(given)
    cache = fields.inner("kv_cache_scheme")
    shapes = {(w.count("num_bits", most=64), w.text("type"), _group(w)) for w in weights}
    common = weights[0] if len(shapes) == 1 else None
    block = common.counts("block_structure") if common is not None else ()
    return Quantization(
        method="compressed-tensors",
        format=fields.text("format") if common is not None or not weights else "mixed-precision",
        bits=common.count("num_bits", most=64) if common is not None else None,
        group_size=_group(common) if common is not None else None,
        block_size=(block[0], block[1]) if len(block) == 2 else None,
        strategy=common.text("strategy") if common is not None else "",
        symmetric=common.flag("symmetric") if common is not None else None,
        activations=activations,
        ignored=_ignored(fields),
        kv_cache_dtype=_type(cache) if cache is not None else "",
    )


def _type(fields: Fields) -> str:
    bits = fields.count("num_bits", most=64)
    kind = fields.text("type")
    return f"{'fp' if kind == 'float' else kind or 'int'}{bits}" if bits else ""


def _modelopt(fields: Fields) -> Quantization:
    algorithm = fields.text("quant_algo").upper()
    scheme = fields.data.get("kv_cache_scheme")
    cache = fields.text("kv_cache_quant_algo").lower()
    if not cache and isinstance(scheme, dict):
        inner = fields.inner("kv_cache_scheme")
        cache = _type(inner) if inner is not None else ""
    fp4 = "FP4" in algorithm
    return Quantization(
        method="modelopt_fp4" if fp4 else "modelopt",
        format=algorithm,
        bits=4 if fp4 or "W4" in algorithm or "INT4" in algorithm else 8 if algorithm else None,
        group_size=_group(fields) or (16 if fp4 else None),
        activations="fp8" if algorithm.startswith("FP8") else "",
        ignored=_ignored(fields),
        kv_cache_dtype=cache,
    )


def _bitsandbytes(fields: Fields) -> Quantization:
    four = fields.flag("load_in_4bit", "_load_in_4bit")
    eight = fields.flag("load_in_8bit", "_load_in_8bit")
    kind = fields.text("bnb_4bit_quant_type")
    return Quantization(
        method="bitsandbytes",
        format=kind,
        bits=4 if four else 8 if eight else None,
        double_quant=bool(fields.flag("bnb_4bit_use_double_quant")),
        ignored=fields.texts("llm_int8_skip_modules", "modules_to_not_convert", most=NAMES),
    )
