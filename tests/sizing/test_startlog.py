"""Start-up logs of the engines that print one: what is read of them, and what is left alone."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.startlog import StartLog, read_log

GIB = 1 << 30


def test_vllm_before_v1_says_all_parts_in_one_sentence() -> None:
    log = read_log(
        "INFO llm_engine.py:234] Initializing an LLM engine (v0.6.6.post1) with config: "
        "model='Qwen/Qwen2.5-1.5B-Instruct', dtype=torch.float16, max_seq_len=4096, "
        "tensor_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto\n"
        "INFO model_runner.py:1099] Loading model weights took 2.8875 GB\n"
        "INFO worker.py:241] the current vLLM instance can use total_gpu_memory (44.52GiB) x "
        "gpu_memory_utilization (0.90) = 40.07GiB\n"
        "INFO worker.py:241] model weights take 2.89GiB; non_torch_memory takes 0.23GiB; PyTorch "
        "activation peak memory takes 1.40GiB; the rest of the memory reserved for KV Cache is "
        "35.55GiB.\n"
        "INFO gpu_executor.py:76] # GPU blocks: 83208, # CPU blocks: 9362\n"
    )
    assert log == StartLog(
        model="Qwen/Qwen2.5-1.5B-Instruct",
        serving=Serving(
            engine="vllm",
            version="0.6.6.post1",
            tensor_parallel_size=1,
            max_model_len=4096,
            gpu_memory_utilization=0.9,
            dtype="float16",
            kv_cache_dtype="auto",
            enforce_eager=False,
        ),
        total=44.52 * GIB,
        weights=2.89 * GIB,
        activations=1.40 * GIB,
        outside_torch=0.23 * GIB,
        cache=35.55 * GIB,
        tokens=1331328,
        ranks=1,
    )


def test_of_several_ranks_the_one_with_least_room_decides() -> None:
    log = read_log(
        "(Worker_TP0) INFO Available KV cache memory: 55.71 GiB\n"
        "(Worker_TP1) INFO Available KV cache memory: 55.62 GiB\n"
        "INFO GPU KV cache size: 3,650,960 tokens\nINFO GPU KV cache size: 3,644,816 tokens\n"
    )
    assert (log.cache, log.tokens, log.ranks) == (55.62 * GIB, 3644816, 2)


def test_sglang_allocates_keys_and_values_apart() -> None:
    log = read_log(
        "server_args=ServerArgs(model_path='Qwen/Qwen2.5-1.5B-Instruct', context_length=None, "
        "mem_fraction_static=0.85, tp_size=1, chunked_prefill_size=4096)\n"
        "Load weight end. type=Qwen2ForCausalLM, dtype=torch.float16, avail mem=40.99 GB, "
        "mem usage=3.03 GB.\n"
        "KV Cache is allocated. #tokens: 1287482, K size: 17.19 GB, V size: 17.19 GB\n"
        "max_total_num_tokens=1287482, context_len=32768\n"
    )
    assert log.serving == Serving(
        engine="sglang",
        tensor_parallel_size=1,
        max_model_len=32768,
        mem_fraction_static=0.85,
        max_num_batched_tokens=4096,
    )
    assert (log.weights, log.cache, log.tokens) == (3.03 * GIB, 34.38 * GIB, 1287482)


def test_llama_cpp_prints_buffers_of_each_card() -> None:
    log = read_log(
        "load_tensors:        CUDA0 model buffer size = 17931.70 MiB\n"
        "load_tensors:        CUDA1 model buffer size = 16736.08 MiB\n"
        "llama_context: n_ctx         = 32768\n"
        "llama_kv_cache:      CUDA0 KV buffer size =   320.00 MiB\n"
        "sched_reserve:      CUDA0 compute buffer size =   372.06 MiB\n"
    )
    assert (log.serving.engine, log.serving.max_model_len) == ("llama.cpp", 32768)
    assert log.weights == 17931.70 * (1 << 20)
    assert log.cache == 320 * (1 << 20)


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        (
            "ValueError: Free memory on device cuda:0 (13.58/15.99 GiB) on startup is less than "
            "desired GPU memory utilization (0.85, 13.59 GiB). Decrease",
            "Free memory on device cuda:0 (13.58/15.99 GiB) on startup is less than desired GPU "
            "memory utilization (0.85",
        ),
        (
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (939). Each",
            "max_num_seqs (1024) exceeds available Mamba cache blocks (939)",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing",
            "No available memory for the cache blocks",
        ),
    ],
)
def test_a_refusal_is_kept_in_the_engines_words(line: str, refusal: str) -> None:
    log = read_log(line)
    assert log.refusal == refusal
    assert log.says_anything


def test_any_other_text_says_nothing() -> None:
    log = read_log("Successfully assigned team-a/llama to inf-0\n")
    assert log == StartLog()
    assert not log.says_anything
