"""Rows of measured starts as questions to the envelope, and what each row's source says came out.

The rows are not part of the project: ``corpus/vram/rows.tsv``. What is read here is only what a
user would type: model, GPU, engine, version, arguments.
"""

from __future__ import annotations

import csv
import re
from typing import Any, NamedTuple

import msgspec

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
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
    "19": "GPU stated only as a class of 46 GB",
    "20": "GPU stated only as a class of 46 GB",
    "21": "not an NVIDIA GPU",
    "22": "GPU not stated",
    "26": "engine version not stated, taken from the issue's date",
    "27": "SGLang measures weights by the drop of free memory; the figures are of one rank",
    "31": "length and sequences not stated",
    "32": "the quoted 8.69 GiB are of the other rank; arguments of the step not stated",
    "33": "vLLM of 2023, whose profiling was another one",
    "41": "model not stated",
    "43": "engine version not stated: without chunked prefill a step takes all 65,536 tokens",
    "46": "engine version not stated: newer ones count graphs in the budget, and run on no T4",
    "50": "model not stated",
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
    "174": "64,000 tokens in a step: linear attention's buffers, of which no plan is known",
    "175": "engine version not stated; FP8 weights run as Marlin's on this GPU",
    "178": "latent attention of a family that is not in the catalogue; a sum over eight ranks",
    "195": "which matrices the checkpoint leaves unquantised is not in its name",
    "198": "which matrices the checkpoint quantises is not in its name",
    "201": "not an NVIDIA GPU",
}

UNSTATED_LENGTH = 2048
"""Rows that do not state their length are asked at this one: their source had another."""


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
    if "wna16" in row.cells["dtype"]:
        name = "deepseek-ai/DeepSeek-R1-AWQ"  # four-bit weights in groups, as the row says
    gguf = re.match(r"(.*)-(Q\d\w*)\.gguf", name)
    found = find(gguf[1] if gguf else name)
    if found is None:
        return None
    if gguf:
        packed = Quantization(method="gguf", format=gguf[2])
        return msgspec.structs.replace(found.architecture, quantization=packed)
    return found.architecture


_ARGUMENTS: tuple[tuple[str, str, Any], ...] = (
    (r"max_num_seqs=(\d+)", "max_num_seqs", int),
    (r"max_running_requests=(\d+)", "max_num_seqs", int),
    (r"max_batch_size=(\d+)", "max_num_seqs", int),
    (r"max_num_batched_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"max_num_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"chunked_prefill_size=(\d+)", "max_num_batched_tokens", int),
    (r"max_batch_prefill_tokens=(\d+)", "max_num_batched_tokens", int),
    (r"n_parallel=(\d+)", "max_num_seqs", int),
    (r"n_ubatch=(\d+)", "max_num_batched_tokens", int),
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
    ("graph memory profiling on", "profile_cuda_graphs", True),
    ("speculative MTP", "speculative_method", "mtp"),
)


def serving_of(row: Row) -> Serving:
    """Engine, version and arguments as the row has them."""
    cells = row.cells
    extra = (
        (cells["extra_args"] or "")
        + "; "
        + (cells["notes"] or "").replace("max-num-seqs ", "max_num_seqs=")
    )
    engine = cells["engine"]
    given: dict[str, Any] = {}
    for pattern, name, kind in _ARGUMENTS:
        found = re.search(pattern, extra)
        if found and "(default)" not in extra[found.end() : found.end() + 10]:
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
    if found := re.match(r"\d+", cells["tp"]):
        given["tensor_parallel_size"] = int(found[0])
    if cells["pp"].strip().isdigit():
        given["pipeline_parallel_size"] = int(cells["pp"])
    if cells["max_model_len"].strip().isdigit():
        given["max_model_len"] = int(cells["max_model_len"])
    else:
        given["max_model_len"] = UNSTATED_LENGTH
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


_BY_ISSUE = (
    # first issue of the months in which a release was the newest (release dates of vLLM)
    (1500, "0.2.6"),
    (10000, "0.6.4"),
    (11600, "0.7.0"),
    (12900, "0.7.2"),
    (14000, "0.8.2"),
    (21000, "0.10.0"),
    (27500, "0.11.1"),
)


def _version(cells: dict[str, str]) -> str:
    stated = cells["engine_version"] or ""
    if "dev" in stated or re.match(r"(?:about )?\d+\.\d+", stated):
        return "" if stated.startswith("0.1.dev") else stated.removeprefix("about ")
    found = re.search(r"vLLM(?: V1)? (\d+\.\d+(?:\.\d+)?)", cells["engine"])
    if found:
        return found[1]
    if numbered := re.search(r"vllm-project/vllm#(\d+)", cells["source"]):
        number = int(numbered[1])
        return next((v for first, v in reversed(_BY_ISSUE) if number >= first), "")
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


def _unknown(row: Row) -> str:
    if row.id in EXPLAINED and "matrices" in EXPLAINED[row.id]:
        return "which matrices the checkpoint leaves unquantised"
    stated = "/" in row.cells["model"] or "gguf" in row.cells["model"].lower()
    return "the model's architecture" if stated else "the model: the source does not state it"


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
    if architecture is None:
        return Outcome(row, None, None, (_unknown(row),))
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
