"""How an engine is told to serve a model: its arguments by one name; recognises no command line.

``None`` means not given: the engine's default of the stated version applies. Lengths are tokens,
shares are 0 to 1, sizes are GiB.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Engine = Literal["vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp", "nim", "triton", "unknown"]


class Serving(Struct, frozen=True, kw_only=True):
    """One start of one engine. Names are vLLM's where engines agree on the meaning."""

    engine: Engine = "vllm"
    version: str = ""
    """As an image tag or log says it: ``0.11.2``, ``v0.10.1.dev123``; empty: not known."""

    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    enable_expert_parallel: bool | None = None
    expert_parallel_size: int | None = None
    """SGLang and TensorRT-LLM give it; vLLM's is tensor × data parallel size."""
    decode_context_parallel_size: int | None = None
    enable_dp_attention: bool | None = None
    """SGLang: attention is data parallel within the tensor-parallel group."""

    max_model_len: int | None = None
    """vLLM ``max-model-len``, SGLang ``context-length``, TensorRT-LLM ``max_seq_len``, llama.cpp
    ``ctx-size`` (there: of all sequences together), TGI ``max-total-tokens``."""
    max_num_seqs: int | None = None
    """SGLang ``max-running-requests``, TensorRT-LLM ``max_batch_size``, llama.cpp ``parallel``."""
    max_num_batched_tokens: int | None = None
    """SGLang ``chunked-prefill-size``, TensorRT-LLM ``max_num_tokens``, llama.cpp ``ubatch-size``,
    TGI ``max-batch-prefill-tokens``."""
    max_batch_total_tokens: int | None = None
    """TGI."""
    block_size: int | None = None
    """SGLang ``page-size``, TensorRT-LLM ``tokens_per_block``."""

    gpu_memory_utilization: float | None = None
    """vLLM: share of the card's total memory for everything."""
    mem_fraction_static: float | None = None
    """SGLang: share of what is free before loading, for weights and KV cache."""
    free_gpu_memory_fraction: float | None = None
    """TensorRT-LLM ``kv_cache_free_gpu_memory_fraction``: share of what is free after loading."""
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    expandable_segments: bool | None = None
    """``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True``."""
    cpu_offload_gb: float | None = None
    swap_space: float | None = None

    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    mamba_cache_dtype: str | None = None
    mamba_ssm_cache_dtype: str | None = None

    enforce_eager: bool | None = None
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    max_mamba_cache_size: int | None = None
    """SGLang: sequences whose recurrent state is held."""

    enable_lora: bool | None = None
    max_loras: int | None = None
    max_lora_rank: int | None = None
    lora_dtype: str | None = None

    speculative_method: str | None = None
    """``mtp · eagle · eagle3 · draft_model · ngram · dflash …``."""
    speculative_model: str | None = None
    num_speculative_tokens: int | None = None

    runner: Literal["generate", "pooling"] | None = None
    """``pooling``: embeddings or scores, no sampling."""
    profile_cuda_graphs: bool | None = None
    """``VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS``: graphs count in the budget."""
    language_model_only: bool | None = None
    """No encoder is loaded (vLLM ``--language-model-only``, or every limit per prompt is 0)."""
    n_gpu_layers: int | None = None
    """llama.cpp: layers on GPUs; None: all."""
    kv_unified: bool | None = None
    flash_attention: bool | None = None
    split_mode: str | None = None
    """llama.cpp ``layer · row · none``."""

    contradictions: tuple[str, ...] = ()
    """What the arguments say twice and differently, as ``--tensor-parallel-size 2 and -tp 4``."""
    not_understood: tuple[str, ...] = ()
    """Arguments that could change the memory and whose meaning nobody here knows."""

    @property
    def world_size(self) -> int:
        """GPUs of one replica: tensor × pipeline."""
        return (self.tensor_parallel_size or 1) * (self.pipeline_parallel_size or 1)
