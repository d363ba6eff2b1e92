"""Text Generation Inference: ``text-generation-launcher``, mostly told by its environment.

Source: huggingface/text-generation-inference launcher/src/main.rs (each flag has an environment
variable of the same name; ``find_num_shards``: without a number every visible GPU is a shard).
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag

FLAGS = (
    Flag(("--model-id",), "model"),
    Flag(("--revision",), "revision"),
    Flag(("--sharded",), "sharded"),
    Flag(("--num-shard",), "tensor_parallel_size", "int"),
    Flag(("--quantize",), "quantization"),
    Flag(("--speculate",), "num_speculative_tokens", "int"),
    Flag(("--dtype",), "dtype"),
    Flag(("--kv-cache-dtype",), "kv_cache_dtype"),
    Flag(("--max-total-tokens",), "max_model_len", "int"),
    Flag(("--max-input-tokens", "--max-input-length"), "max_input_tokens", "int"),
    Flag(("--max-batch-prefill-tokens",), "max_num_batched_tokens", "int"),
    Flag(("--max-batch-total-tokens",), "max_batch_total_tokens", "int"),
    Flag(("--max-batch-size",), "max_num_seqs", "int"),
    Flag(("--cuda-memory-fraction",), "gpu_memory_utilization", "float"),
    Flag(("--cuda-graphs",), "cudagraph_capture_sizes", "ints"),
    Flag(("--lora-adapters",), "lora_adapters"),
)

VARIABLES = tuple((flag.names[0].lstrip("-").replace("-", "_").upper(), flag) for flag in FLAGS)
"""Name of the environment variable, and its flag."""
