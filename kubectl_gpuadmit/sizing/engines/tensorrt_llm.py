"""TensorRT-LLM: ``trtllm-serve`` and the YAML file of ``--extra_llm_api_options``.

Source: NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py, tensorrt_llm/llmapi/llm_args.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.sizing.engines.arguments import Flag, Parsed, settings
from kubectl_gpuadmit.sizing.startup.blanks import Blanks

FLAGS = (
    Flag(("--model", "--model-path"), "model"),
    Flag(("--served-model-name",), "served_model_name"),
    Flag(
        ("--extra-llm-api-options", "--extra-engine-args", "--config"),
        "config_file",
    ),
    Flag(("--tp-size", "--tensor-parallel-size"), "tensor_parallel_size", "int"),
    Flag(("--pp-size", "--pipeline-parallel-size"), "pipeline_parallel_size", "int"),
    Flag(
        ("--ep-size", "--expert-parallel-size", "--moe-expert-parallel-size"),
        "expert_parallel_size",
        "int",
    ),
    Flag(("--max-seq-len",), "max_model_len", "int"),
    Flag(("--max-batch-size",), "max_num_seqs", "int"),
    Flag(("--max-num-tokens",), "max_num_batched_tokens", "int"),
    Flag(
        ("--kv-cache-free-gpu-memory-fraction", "--free-gpu-memory-fraction"),
        "free_gpu_memory_fraction",
        "float",
    ),
    Flag(("--kv-cache-dtype",), "kv_cache_dtype"),
    Flag(("--enable-attention-dp",), "enable_dp_attention", "flag"),
    Flag(("--backend",), "backend"),
)

_CACHE = (
    Flag(("--free-gpu-memory-fraction",), "free_gpu_memory_fraction", "float"),
    Flag(("--dtype",), "kv_cache_dtype"),
    Flag(("--tokens-per-block",), "block_size", "int"),
    Flag(("--max-tokens",), "max_batch_total_tokens", "int"),
    Flag(("--enable-block-reuse",), "enable_prefix_caching", "flag"),
)
_SPECULATION = (
    Flag(("--decoding-type",), "speculative_method"),
    Flag(("--speculative-model-dir", "--speculative-model"), "speculative_model"),
    Flag(("--max-draft-len", "--num-nextn-predict-layers"), "num_speculative_tokens", "int"),
)

BARE = frozenset({"--trust-remote-code"})


def from_file(data: Mapping[str, Any], blanks: Blanks, *, where: str) -> Parsed:
    """The options file; it overrides the command line (llm_args.py update_llm_args_with_extra)."""
    found = settings(data, FLAGS, blanks, where=where)
    for key, table in (("kv_cache_config", _CACHE), ("speculative_config", _SPECULATION)):
        inner = data.get(key)
        if isinstance(inner, dict):
            found.add(settings(inner, table, blanks, where=where))
    return found
