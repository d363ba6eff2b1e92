"""SGLang: ``python -m sglang.launch_server``, ``sglang serve``.

Source: sgl-project/sglang python/sglang/srt/server_args.py.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag, Given, Parsed

FLAGS = (
    Flag(("--model-path", "--model"), "model"),
    Flag(("--served-model-name",), "served_model_name"),
    Flag(("--config",), "config_file"),
    Flag(("--json-model-override-args",), ""),
    Flag(("--load-format",), "load_format"),
    Flag(("--tensor-parallel-size", "--tp-size", "--tp"), "tensor_parallel_size", "int"),
    Flag(("--pipeline-parallel-size", "--pp-size", "--pp"), "pipeline_parallel_size", "int"),
    Flag(("--data-parallel-size", "--dp-size", "--dp"), "data_parallel_size", "int"),
    Flag(("--expert-parallel-size", "--ep-size", "--ep"), "expert_parallel_size", "int"),
    Flag(("--enable-dp-attention",), "enable_dp_attention", "flag"),
    Flag(("--context-length",), "max_model_len", "int"),
    Flag(("--max-running-requests",), "max_num_seqs", "int"),
    Flag(("--chunked-prefill-size",), "max_num_batched_tokens", "int"),
    Flag(("--page-size",), "block_size", "int"),
    Flag(("--mem-fraction-static",), "mem_fraction_static", "float"),
    Flag(("--max-total-tokens",), "max_batch_total_tokens", "int"),
    Flag(("--cpu-offload-gb",), "cpu_offload_gb", "float"),
    Flag(("--dtype",), "dtype"),
    Flag(("--quantization",), "quantization"),
    Flag(("--kv-cache-dtype",), "kv_cache_dtype"),
    Flag(("--mamba-ssm-dtype",), "mamba_ssm_cache_dtype"),
    Flag(("--max-mamba-cache-size",), "max_mamba_cache_size", "int"),
    Flag(("--disable-cuda-graph",), "enforce_eager", "flag"),
    Flag(("--cuda-graph-bs",), "cudagraph_capture_sizes", "ints"),
    Flag(("--disable-radix-cache",), "enable_prefix_caching", "not-flag"),
    Flag(("--disable-hybrid-swa-memory",), "disable_hybrid_kv_cache_manager", "flag"),
    Flag(("--enable-lora",), "enable_lora", "flag"),
    Flag(("--max-loras-per-batch",), "max_loras", "int"),
    Flag(("--max-lora-rank",), "max_lora_rank", "int"),
    Flag(("--speculative-algorithm",), "speculative_method"),
    Flag(("--speculative-draft-model-path", "--speculative-draft-model"), "speculative_model"),
    Flag(("--speculative-num-draft-tokens",), "num_speculative_tokens", "int"),
    Flag(("--language-only",), "language_model_only", "flag"),
    Flag(("--nnodes",), "nodes", "int"),
)

BARE = frozenset(
    {
        "--trust-remote-code",
        "--enable-metrics",
        "--enable-torch-compile",
        "--enable-mixed-chunk",
        "--enable-p2p-check",
        "--log-requests",
        "--skip-tokenizer-init",
        "--enable-deepep-moe",
        "--enable-multimodal",
        "--is-embedding",
    }
)


def refine(parsed: Parsed) -> None:
    """The tensor-parallel group of SGLang spans the replicas of DP attention: tp stays as given."""
    method = parsed.last("speculative_method")
    if method is not None and isinstance(method.value, str):
        name = {"NEXTN": "mtp", "STANDALONE": "draft_model"}.get(
            method.value.upper(), method.value.lower()
        )
        parsed.given.append(
            Given("speculative_method", name, method.text, method.where, method.pointer)
        )
