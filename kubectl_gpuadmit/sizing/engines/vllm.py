"""vLLM: ``vllm serve``, its OpenAI server module, ``--config`` files.

Source: vllm-project/vllm vllm/engine/arg_utils.py, vllm/utils/argparse_utils.py
(FlexibleArgumentParser: underscores are dashes, ``--config`` yields to the command line),
vllm/entrypoints/openai/cli_args.py.
"""

from __future__ import annotations

import json
from typing import Any

from kubectl_gpuadmit.sizing.engines.arguments import Flag, Given, Parsed
from kubectl_gpuadmit.sizing.startup.blanks import is_known

FLAGS = (
    Flag(("--model", "--model-tag"), "model"),
    Flag(("--served-model-name",), "served_model_name"),
    Flag(("--revision",), "revision"),
    Flag(("--config",), "config_file"),
    Flag(("--hf-config-path",), ""),
    Flag(("--hf-overrides",), ""),
    Flag(("--load-format",), "load_format"),
    Flag(("--tensor-parallel-size", "-tp"), "tensor_parallel_size", "int"),
    Flag(("--pipeline-parallel-size", "-pp"), "pipeline_parallel_size", "int"),
    Flag(("--data-parallel-size", "-dp"), "data_parallel_size", "int"),
    Flag(("--data-parallel-size-local", "-dpl"), "data_parallel_size_local", "int"),
    Flag(("--decode-context-parallel-size", "-dcp"), "decode_context_parallel_size", "int"),
    Flag(("--enable-expert-parallel", "-ep"), "enable_expert_parallel", "flag"),
    Flag(("--max-model-len",), "max_model_len", "human-int"),
    Flag(("--max-num-seqs",), "max_num_seqs", "int"),
    Flag(("--max-num-batched-tokens",), "max_num_batched_tokens", "human-int"),
    Flag(("--block-size",), "block_size", "int"),
    Flag(("--gpu-memory-utilization",), "gpu_memory_utilization", "float"),
    Flag(("--kv-cache-memory-bytes", "--kv-cache-memory"), "kv_cache_memory_bytes", "bytes"),
    Flag(("--num-gpu-blocks-override",), "num_gpu_blocks_override", "int"),
    Flag(("--cpu-offload-gb",), "cpu_offload_gb", "float"),
    Flag(("--swap-space",), "swap_space", "float"),
    Flag(("--dtype",), "dtype"),
    Flag(("--quantization", "-q"), "quantization"),
    Flag(("--kv-cache-dtype",), "kv_cache_dtype"),
    Flag(("--mamba-cache-dtype",), "mamba_cache_dtype"),
    Flag(("--mamba-ssm-cache-dtype",), "mamba_ssm_cache_dtype"),
    Flag(("--enforce-eager",), "enforce_eager", "flag"),
    Flag(("--cudagraph-capture-sizes", "--cuda-graph-sizes"), "cudagraph_capture_sizes", "ints"),
    Flag(("--enable-prefix-caching",), "enable_prefix_caching", "flag"),
    Flag(("--enable-chunked-prefill",), "enable_chunked_prefill", "flag"),
    Flag(("--disable-hybrid-kv-cache-manager",), "disable_hybrid_kv_cache_manager", "flag"),
    Flag(("--enable-lora",), "enable_lora", "flag"),
    Flag(("--max-loras",), "max_loras", "int"),
    Flag(("--max-lora-rank",), "max_lora_rank", "int"),
    Flag(("--lora-dtype",), "lora_dtype"),
    Flag(("--speculative-config",), "speculative_config"),
    Flag(("--speculative-model",), "speculative_model"),
    Flag(("--num-speculative-tokens",), "num_speculative_tokens", "int"),
    Flag(("--language-model-only",), "language_model_only", "flag"),
    Flag(("--limit-mm-per-prompt",), "limit_mm_per_prompt"),
    Flag(("--nnodes", "-n"), "nodes", "int"),
    Flag(("--runner",), "runner"),
    Flag(("--task",), "task"),
)

BARE = frozenset(
    {
        "--trust-remote-code",
        "--disable-log-requests",
        "--enable-log-requests",
        "--enable-log-outputs",
        "--disable-log-stats",
        "--enable-auto-tool-choice",
        "--enable-reasoning",
        "--disable-custom-all-reduce",
        "--skip-tokenizer-init",
        "--enable-sleep-mode",
        "--async-scheduling",
        "--headless",
        "--enable-server-load-tracking",
        "--enable-prompt-tokens-details",
        "--enable-ssl-refresh",
        "--disable-frontend-multiprocessing",
        "--data-parallel-hybrid-lb",
        "--data-parallel-external-lb",
        "--disable-uvicorn-access-log",
        "--return-tokens-as-token-ids",
        "--allow-credentials",
        "--enable-eplb",
        "--use-v2-block-manager",
        "--disable-sliding-window",
        "--disable-fastapi-docs",
    }
)
"""Flags without a value, so that a model's name behind one is not taken for its value."""


def refine(parsed: Parsed) -> None:
    """Values that are JSON become the fields that they stand for."""
    speculative = parsed.last("speculative_config")
    if speculative is not None:
        _speculative(parsed, speculative)
    limits = parsed.last("limit_mm_per_prompt")
    if limits is not None and _all_zero(limits.value):
        parsed.given.append(
            Given("language_model_only", True, limits.text, limits.where, limits.pointer)
        )
    _runner(parsed)
    length = parsed.last("max_model_len")
    if length is not None and length.value == -1:  # "auto": the longest that fits
        parsed.given = [g for g in parsed.given if g.field != "max_model_len"]
        parsed.missing.append(f"{length.text}: the engine chooses the longest that fits")


_POOLING = frozenset({"embed", "embedding", "classify", "score", "reward", "reranking", "pooling"})


def _runner(parsed: Parsed) -> None:
    """``--task embed`` of older versions is ``--runner pooling``; auto is left to the model."""
    task, runner = parsed.last("task"), parsed.last("runner")
    parsed.given = [g for g in parsed.given if g.field != "runner"]
    if runner is not None and runner.value in ("generate", "pooling"):
        parsed.given.append(runner)
    elif task is not None and task.value in ("generate", *_POOLING):
        kind = "generate" if task.value == "generate" else "pooling"
        parsed.given.append(Given("runner", kind, task.text, task.where, task.pointer))


def _speculative(parsed: Parsed, said: Given) -> None:
    data = _json(said.value)
    if data is None:
        parsed.missing.append(f"{said.text[:80]}: expected a JSON object")
        parsed.unknown_fields.add("speculative_model")
        return
    for key, field, kind in (
        ("method", "speculative_method", str),
        ("model", "speculative_model", str),
        ("num_speculative_tokens", "num_speculative_tokens", int),
    ):
        value = data.get(key)
        if isinstance(value, kind) and not isinstance(value, bool):
            text = f"--speculative-config {key}: {value}"
            parsed.given.append(Given(field, value, text, said.where, said.pointer))


def _all_zero(text: Any) -> bool:
    data = _json(text)
    if data is None and isinstance(text, str):  # image=0,video=0 of older versions
        data = dict(p.partition("=")[::2] for p in text.split(",") if "=" in p)
    return bool(data) and all(str(v) == "0" for v in (data or {}).values())


def _json(text: Any) -> dict[str, Any] | None:
    if not isinstance(text, str) or not is_known(text):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
