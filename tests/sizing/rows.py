"""Rows of measured starts as questions to the envelope, and what each row's source says came out.

The rows are not part of the project: ``corpus/vram/rows.tsv``. What is read here is only what a
user would type: model, GPU, engine, version, arguments.
"""

from __future__ import annotations

import csv
import re
from typing import Any, NamedTuple

import msgspec

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.catalogue import find
from kubectl_gpuadmit.sizing.envelope import MIB, Envelope, envelope
from kubectl_gpuadmit.sizing.products import named
from kubectl_gpuadmit.sizing.serving import Serving
from tests.corpus import corpus

GIB = 1 << 30

EXPLAINED = {
    # rows that a formula cannot meet, and why; they stay in the table with their error
    "8": "the source does not list max-num-seqs; its activations are those of about 400 sequences",
    "12": "engine version not stated",
    "14": "GPU not stated",
    "17": "GPU not stated",
    "20": "GPU stated only as a class of 46 GB",
    "21": "not an NVIDIA GPU",
    "22": "GPU not stated",
    "27": "SGLang measures weights by the drop of free memory; the figures are of one rank",
    "32": "the quoted 8.69 GiB are of the other rank; arguments of the step not stated",
    "33": "vLLM of 2023, whose profiling was another one",
    "41": "model not stated",
    "50": "model not stated",
    "52": "a model whose config is not in the catalogue",
    "53": "model not stated",
    "54": "an example of the documentation: model and GPU not stated",
    "109": "dynamic quantisation: which matrices stay as they are is in the checkpoint only",
    "114": "model and draft model not in the catalogue",
    "115": "model and draft model not in the catalogue",
    "118": "dynamic quantisation: which matrices stay as they are is in the checkpoint only",
    "121": "an AMD GPU: another driver, other kernels",
    "163": "a C++ engine with several profiles: its buffers depend on how it was built",
    "164": "unified memory: 49 GiB are held by the host",
    "165": "the page contradicts itself about the cache's type",
    "169": "a regression of 0.6.4.post1: repacking counts as memory outside torch",
    "172": "rounded by the reporter; length not stated",
    "173": "rounded by the reporter; length not stated",
    "178": "latent attention of a family that is not in the catalogue; a sum over eight ranks",
    "198": "which matrices the checkpoint quantises is not in its name",
    "201": "not an NVIDIA GPU",
}

DYNAMIC = {"109", "118", "195", "198"}
"""Checkpoints whose names say a method and whose exceptions only the checkpoint says."""


class Row(NamedTuple):
    """One start."""

    id: str
    cells: dict[str, str]

    def number(self, name: str) -> float | None:
        try:
            return float(self.cells[name])
        except ValueError:
            return None

    @property
    def refused(self) -> bool | None:
        """Whether the engine would not start; None where the row does not say."""
        result = self.cells["result"]
        if result.startswith(("ok", "starts", "engine crashed later")):
            return False
        return True if result else None


def rows() -> list[Row]:
    """All rows, in the file's order; none where the corpus is absent."""
    place = corpus()
    if place is None:
        return []
    with (place / "vram" / "rows.tsv").open(newline="", encoding="utf-8") as stream:
        return [Row(row["id"], row) for row in csv.DictReader(stream, delimiter="\t")]


def model_of(row: Row) -> Architecture | None:
    """The architecture that the catalogue has for the row's model."""
    name = re.sub(r"\s*\(.*\)", "", row.cells["model"]).replace(" NVFP4", "-NVFP4")
    name = name.split(" ")[0]
    if row.id in DYNAMIC or name.endswith(".gguf") or "GGUF" in row.cells["model"]:
        return None
    found = find(name)
    return found.architecture if found else None


_ARGUMENTS: tuple[tuple[str, str, Any], ...] = (
    (r"max_num_seqs=(\d+)", "max_num_seqs", int),
    (r"max_running_requests=(\d+)", "max_num_seqs", int),
    (r"max_batch_size=(\d+)", "max_num_seqs", int),
    (r"max_num_batched_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"max_num_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"chunked_prefill_size=(\d+)", "max_num_batched_tokens", int),
    (r"max_batch_prefill_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"max_lora_rank=(\d+)", "max_lora_rank", int),
    (r"decode_context_parallel_size=(\d+)", "decode_context_parallel_size", int),
    (r"block_size=(\d+)", "block_size", int),
    (r"max_mamba_cache_size=(\d+)", "max_mamba_cache_size", int),
    (r"speculative MTP (\d+) tokens", "num_speculative_tokens", int),
    (r"kv_cache_dtype=(\w+)", "kv_cache_dtype", str),
)
_FLAGS: tuple[tuple[str, str, Any], ...] = (
    ("enable_lora", "enable_lora", True),
    ("enforce_eager", "enforce_eager", True),
    ("enable_expert_parallel", "enable_expert_parallel", True),
    ("expert parallel", "enable_expert_parallel", True),
    ("language_model_only", "language_model_only", True),
    ("quantization=fp8", "quantization", "fp8"),
    ("speculative MTP", "speculative_method", "mtp"),
)


def serving_of(row: Row) -> Serving:
    """Engine, version and arguments as the row has them."""
    cells = row.cells
    extra = cells["extra_args"] or ""
    engine = cells["engine"]
    given: dict[str, Any] = {}
    for pattern, name, kind in _ARGUMENTS:
        if found := re.search(pattern, extra):
            given[name] = kind(found[1])
    for flag, name, value in _FLAGS:
        if flag in extra:
            given[name] = value
    if "prefix caching" in extra and "off" not in extra:
        given["enable_prefix_caching"] = True
    if cells["source"].startswith("unslothai/"):
        given["expandable_segments"] = True  # unsloth sets PYTORCH_CUDA_ALLOC_CONF
    given["engine"] = _engine(engine)
    given["version"] = _version(cells)
    if cells["tp"].strip().isdigit():
        given["tensor_parallel_size"] = int(cells["tp"])
    if cells["pp"].strip().isdigit():
        given["pipeline_parallel_size"] = int(cells["pp"])
    if cells["max_model_len"].strip().isdigit():
        given["max_model_len"] = int(cells["max_model_len"])
    share = re.search(r"0\.\d+", cells["gpu_mem_util"])
    if share:
        name = {
            "sglang": "mem_fraction_static",
            "tensorrt-llm": "free_gpu_memory_fraction",
        }.get(given["engine"], "gpu_memory_utilization")
        given[name] = float(share[0])
    if cells["kv_dtype"].startswith("fp8"):
        given.setdefault("kv_cache_dtype", "fp8")
    if cells["dtype"] == "fp16":
        given["dtype"] = "float16"
    if "embedding" in (cells["architecture"] or ""):
        given["runner"] = "pooling"
    return Serving(**given)


def _engine(text: str) -> str:
    for word, engine in (
        ("SGLang", "sglang"),
        ("TensorRT", "tensorrt-llm"),
        ("TGI", "tgi"),
        ("llama.cpp", "llama.cpp"),
    ):
        if word in text:
            return engine
    return "unknown" if "Ascend" in text else "vllm"


def _version(cells: dict[str, str]) -> str:
    stated = cells["engine_version"] or ""
    if "dev" in stated or re.match(r"(?:about )?\d+\.\d+", stated):
        return "" if stated.startswith("0.1.dev") else stated.removeprefix("about ")
    found = re.search(r"vLLM(?: V1)? (\d+\.\d+(?:\.\d+)?)", cells["engine"])
    if found:
        return found[1]
    dated = re.search(r"(\d\d)-(20\d\d)", cells["engine"])
    by_date = {
        "12-2023": "0.2.6",
        "12-2024": "0.6.4",
        "01-2025": "0.7.0",
        "02-2025": "0.7.2",
        "04-2025": "0.8.4",
        "11-2025": "0.11.1",
    }
    return by_date.get(dated[0], "") if dated else ""


def device_of(row: Row) -> tuple[int | None, str]:
    """MiB of one GPU and its product's name; None where the row does not say enough."""
    text = row.cells["gpu"]
    if re.search(r"Ascend|RX 9070|not stated|-GPU node", text):
        return None, ""
    words = re.sub(r"\s*\(.*\)| Blackwell", "", text).strip()
    product = named(words)
    if product is not None:
        return product.mib, product.name
    printed = row.number("gpu_mem_gib")
    if printed is None:
        sized = re.search(r"(\d+) ?GB", text)
        return (int(float(sized[1]) * 1024), "") if sized and "class" not in text else (None, "")
    # what an engine prints is what the driver gives: less than NVML's total by the usual share
    return round(printed * GIB / MIB / (1 - 0.0095)), ""


class Outcome(NamedTuple):
    """A row with our answer beside it."""

    row: Row
    ours: Envelope | None
    given_cache: Envelope | None
    """With the cache's bytes as the log says them: tests the token formula alone."""
    missing: tuple[str, ...]


def outcome(row: Row) -> Outcome:
    """Our answer to one row's question."""
    architecture = model_of(row)
    if row.id in DYNAMIC:
        return Outcome(row, None, None, ("which matrices the checkpoint leaves unquantised",))
    if architecture is None:
        return Outcome(row, None, None, ("the model's architecture",))
    serving = serving_of(row)
    mib, product = device_of(row)
    free = None
    if found := re.search(
        r"free memory ([\d.]+) of|free ([\d.]+) GiB at start", row.cells["result"]
    ):
        free = int(float(found[1] or found[2]) * 1024)
    if row.id == "164":
        free = round((119.7 - 49.28 + 2.5) * 1024)  # what the host does not hold
    ours = envelope(architecture, serving, device_mib=mib, free_mib=free, product=product)
    cache = row.number("kv_gib_per_gpu")
    alone = None
    if cache is not None and not ours.unknown:
        alone = envelope(
            architecture,
            serving,
            device_mib=mib or 81559,
            product=product,
            measured_cache=cache * GIB,
        )
    elif cache is not None and ours.unknown == ("the memory of the GPU",):
        alone = envelope(architecture, serving, device_mib=81559, measured_cache=cache * GIB)
    return Outcome(row, ours, alone, ours.unknown)


def without(architecture: Architecture) -> Architecture:
    """The model unquantised."""
    return msgspec.structs.replace(architecture, quantization=None)
