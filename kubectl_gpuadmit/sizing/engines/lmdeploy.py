"""LMDeploy: ``lmdeploy serve api_server MODEL``.

Which model, over how many GPUs and at what lengths is read; how its two backends (TurboMind,
PyTorch) use the memory beside the weights is not known here. Source: InternLM/lmdeploy
lmdeploy/cli/utils.py (ArgumentHelper), lmdeploy/messages.py (TurbomindEngineConfig,
PytorchEngineConfig: ``tp`` is 1 unless told, the cache takes a share of what is free after
loading).
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag

FLAGS = (
    Flag(("--tp",), "tensor_parallel_size", "int"),
    Flag(("--dp",), "data_parallel_size", "int"),
    Flag(("--ep",), "expert_parallel_size", "int"),
    Flag(("--session-len",), "max_model_len", "int"),
    Flag(("--max-batch-size",), "max_num_seqs", "int"),
    Flag(("--max-prefill-token-num",), "max_num_batched_tokens", "int"),
    Flag(("--cache-max-entry-count",), "free_gpu_memory_fraction", "float"),
    Flag(("--cache-block-seq-len",), "block_size", "int"),
    Flag(("--quant-policy",), "kv_cache_dtype"),
    Flag(("--model-format",), "quantization"),
    Flag(("--dtype",), "dtype"),
)

BARE = frozenset(
    {
        *("--enable-prefix-caching", "--allow-credentials", "--ssl", "--eager-mode"),
        *("--disable-fastapi-docs", "--disable-vision-encoder", "--enable-metrics"),
    }
)
STORED_AS_NAMED = frozenset({"hf", "llama"})
"""Values of ``--model-format`` that say nothing of quantised weights."""
