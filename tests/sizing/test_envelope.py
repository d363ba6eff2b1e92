"""What the envelope answers, by what is asked: budgets, layouts, loads, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.catalogue import find
from kubectl_gpuadmit.sizing.envelope import GIB, Envelope, Want, envelope
from kubectl_gpuadmit.sizing.problem import REASONS
from kubectl_gpuadmit.sizing.serving import Serving

H100 = {"device_mib": 81559, "product": "NVIDIA-H100-80GB-HBM3"}
L4 = {"device_mib": 23034, "product": "NVIDIA-L4"}


def model(name: str) -> Architecture:
    found = find(name)
    assert found is not None
    return found.architecture


def ask(name: str, gpu: dict[str, Any] = H100, **fields: Any) -> Envelope:
    extra = {
        key: fields.pop(key) for key in ("want", "shm_bytes", "free_mib", "draft") if key in fields
    }
    fields.setdefault("version", "0.11.0")
    return envelope(model(name), Serving(**fields), **gpu, **extra)


def reasons(found: Envelope) -> list[str]:
    return [problem.reason for problem in found.problems]


def test_a_model_that_fits_says_how_much_is_left() -> None:
    found = ask("Qwen/Qwen3-4B", max_model_len=40960)
    assert found.fits == "fits"
    assert found.weights is not None
    assert found.kv_tokens is not None
    assert found.max_concurrency is not None
    assert round(found.weights.likely / GIB, 2) == 7.56
    assert round(found.max_concurrency.likely, 1) == 10.3
    assert found.kv_bytes_per_token == 147456


def test_weights_that_exceed_are_refused_by_name() -> None:
    found = ask("meta-llama/Llama-3.3-70B-Instruct", L4)
    assert reasons(found) == ["weights-exceed"]
    assert found.problems[0].detail == (
        "weights need 131.4 GiB a GPU, and the engine lets itself use 19.9"
    )


def test_two_cards_of_24_are_not_one_of_48() -> None:
    model_of_30 = "Qwen/Qwen2.5-14B"
    alone = ask(model_of_30, L4, max_model_len=2048)
    assert reasons(alone) == ["weights-exceed"]
    both = ask(model_of_30, L4, max_model_len=2048, tensor_parallel_size=2)
    assert both.fits == "fits"
    assert both.gpus == 2


def test_activations_alone_may_leave_nothing() -> None:
    found = ask("google/gemma-2-9b", L4, max_num_seqs=1024, max_model_len=2048)
    assert reasons(found) == ["activations-exceed"]


def test_a_context_that_the_cache_does_not_hold_is_refused_with_the_longest_that_it_does() -> None:
    found = ask("Qwen/Qwen3-32B")
    assert reasons(found) == ["kv-below-context"]
    assert found.longest is not None
    again = ask("Qwen/Qwen3-32B", max_model_len=int(found.longest.likely))
    assert again.fits == "fits"
    assert ask("Qwen/Qwen3-32B", max_model_len=int(found.longest.likely) + 16).fits == "exceeds"


def test_the_wanted_load_is_judged_beyond_the_start() -> None:
    found = ask(
        "Qwen/Qwen3-8B",
        max_model_len=8192,
        max_num_seqs=64,
        want=Want(concurrency=100, context=16384),
    )
    assert reasons(found) == [
        "context-above-length",
        "concurrency-above-sequences",
        "kv-below-load",
    ]


def test_heads_that_do_not_divide_are_a_finding() -> None:
    found = ask("Qwen/Qwen2.5-7B", tensor_parallel_size=8, max_model_len=2048)
    assert reasons(found) == ["heads-not-divisible"]
    assert found.problems[0].detail == (
        "28 attention heads do not divide by tensor-parallel-size 8"
    )


def test_scales_of_quantised_experts_that_do_not_divide_are_a_finding() -> None:
    found = ask("Qwen/Qwen3-30B-A3B-FP8", tensor_parallel_size=4, max_model_len=2048)
    assert reasons(found) == ["groups-not-divisible"]
    dealt = ask(
        "Qwen/Qwen3-30B-A3B-FP8",
        tensor_parallel_size=4,
        enable_expert_parallel=True,
        max_model_len=2048,
    )
    assert dealt.fits == "fits"


def test_layers_that_do_not_divide_are_a_warning() -> None:
    found = ask("deepseek-ai/DeepSeek-V2-Lite", pipeline_parallel_size=2, max_model_len=2048)
    assert [w.reason for w in found.warnings] == ["layers-not-divisible"]
    assert found.warnings[0].detail == "27 layers over 2 stages: the fullest has 14"


def test_too_little_shared_memory_is_a_warning_for_several_gpus_alone() -> None:
    small = 64 << 20
    several = ask("Qwen/Qwen3-8B", tensor_parallel_size=2, shm_bytes=small)
    assert [w.reason for w in several.warnings] == ["shm-too-small"]
    assert ask("Qwen/Qwen3-8B", shm_bytes=small).warnings == ()
    assert ask("Qwen/Qwen3-8B", tensor_parallel_size=2, shm_bytes=8 << 30).warnings == ()


def test_pipelines_cut_weights_and_cache_by_layers() -> None:
    whole = ask("Qwen/Qwen3-32B", max_model_len=4096)
    halves = ask("Qwen/Qwen3-32B", max_model_len=4096, pipeline_parallel_size=2)
    assert whole.weights is not None
    assert halves.weights is not None
    assert 0.5 < halves.weights.likely / whole.weights.likely < 0.52
    assert halves.kv_bytes_per_token == (whole.kv_bytes_per_token or 0) / 2


def test_heads_that_are_fewer_than_ranks_are_copied_to_each() -> None:
    four = ask("Qwen/Qwen3-235B-A22B", tensor_parallel_size=4, max_model_len=4096)
    eight = ask("Qwen/Qwen3-235B-A22B", tensor_parallel_size=8, max_model_len=4096)
    assert four.kv_bytes_per_token == eight.kv_bytes_per_token == 94 * 2 * 128 * 2


def test_a_latent_cache_is_whole_on_every_rank_unless_contexts_are_dealt_out() -> None:
    gpu = {"device_mib": 143771, "product": "NVIDIA-H200"}
    eight = ask("moonshotai/Kimi-K2-Thinking", gpu, tensor_parallel_size=8, max_model_len=4096)
    dealt = ask(
        "moonshotai/Kimi-K2-Thinking",
        gpu,
        tensor_parallel_size=8,
        decode_context_parallel_size=8,
        max_model_len=4096,
    )
    assert eight.kv_bytes_per_token == 61 * 576 * 2
    assert eight.kv_tokens is not None
    assert dealt.kv_tokens is not None
    assert dealt.kv_tokens.likely == 8 * eight.kv_tokens.likely


def test_an_fp8_cache_holds_twice_the_tokens() -> None:
    own = ask("Qwen/Qwen3-8B")
    half = ask("Qwen/Qwen3-8B", kv_cache_dtype="fp8")
    assert half.kv_bytes_per_token == (own.kv_bytes_per_token or 0) / 2


def test_the_checkpoints_own_cache_type_is_taken_by_auto() -> None:
    quantised = Quantization(method="modelopt", bits=8, kv_cache_dtype="fp8")
    architecture = structs.replace(model("Qwen/Qwen3-8B"), quantization=quantised)
    found = envelope(architecture, Serving(version="0.11.0"), **H100)
    assert found.kv_bytes_per_token == 147456 / 2
    assert "kv_cache_dtype fp8" in [a.what for a in found.assumptions]


def test_windows_cost_less_where_the_engine_honours_them() -> None:
    old = ask("google/gemma-3-27b-it", version="0.9.0", max_model_len=65536)
    new = ask("google/gemma-3-27b-it", version="0.11.0", max_model_len=65536)
    off = ask(
        "google/gemma-3-27b-it",
        version="0.11.0",
        max_model_len=65536,
        disable_hybrid_kv_cache_manager=True,
    )
    assert old.kv_bytes_per_token == off.kv_bytes_per_token
    assert (new.kv_bytes_per_token or 0) < (old.kv_bytes_per_token or 0) / 3


def test_recurrent_states_bound_the_sequences_of_hybrid_models() -> None:
    found = ask(
        "Qwen/Qwen3.5-27B",
        version="0.23.0",
        tensor_parallel_size=1,
        max_num_seqs=512,
        max_model_len=4096,
    )
    assert reasons(found) == ["sequences-above-states"]
    eager = ask(
        "Qwen/Qwen3.5-27B",
        version="0.23.0",
        max_num_seqs=512,
        max_model_len=4096,
        enforce_eager=True,
    )
    assert eager.fits == "fits"


def test_newer_releases_count_graphs_in_the_share_and_take_a_larger_one() -> None:
    old = ask("meta-llama/Llama-3.1-8B", version="0.20.0", max_model_len=8192)
    new = ask("meta-llama/Llama-3.1-8B", version="0.22.0", max_model_len=8192)
    assert old.budget is not None
    assert new.budget is not None
    assert old.overhead is not None
    assert new.overhead is not None
    assert new.budget / old.budget == pytest.approx(0.92 / 0.9)
    assert new.overhead.likely > old.overhead.likely
    off = ask(
        "meta-llama/Llama-3.1-8B", version="0.22.0", max_model_len=8192, profile_cuda_graphs=False
    )
    assert off.overhead == old.overhead


def test_a_share_that_is_not_free_is_refused_before_loading() -> None:
    gpu = {"device_mib": 16376, "product": "RTX-4080-16GB"}
    held = ask(
        "llava-hf/llava-1.5-7b-hf-AWQ",
        gpu,
        gpu_memory_utilization=0.85,
        max_model_len=4096,
        free_mib=13905,
    )
    assert reasons(held) == ["free-memory-below-share"]
    free = ask(
        "llava-hf/llava-1.5-7b-hf-AWQ",
        gpu,
        gpu_memory_utilization=0.85,
        max_model_len=4096,
        free_mib=15011,
    )
    assert free.fits == "fits"


def test_a_share_without_room_for_context_and_graphs_is_a_warning() -> None:
    found = ask("Qwen/Qwen3-8B", gpu_memory_utilization=0.99)
    assert [w.reason for w in found.warnings] == ["no-headroom"]
    assert ask("Qwen/Qwen3-8B", gpu_memory_utilization=0.9).warnings == ()


def test_quantising_while_loading_needs_the_unquantised_weights_first() -> None:
    found = ask(
        "meta-llama/Llama-3.3-70B-Instruct",
        quantization="fp8",
        max_model_len=2048,
        max_num_seqs=16,
        gpu_memory_utilization=0.95,
    )
    assert found.loading is not None
    assert found.loading / GIB > 130
    assert "loading-exceeds" in [w.reason for w in found.warnings]


def test_adapters_take_memory() -> None:
    without = ask("Qwen/Qwen3-8B")
    held = ask("Qwen/Qwen3-8B", enable_lora=True, max_loras=4, max_lora_rank=64)
    assert without.weights is not None
    assert held.weights is not None
    assert 1.2 < (held.weights.likely - without.weights.likely) / GIB < 1.4


def test_a_draft_model_takes_weights_and_cache() -> None:
    without = ask("Qwen/Qwen3-32B-FP8", max_model_len=4096)
    drafted = ask("Qwen/Qwen3-32B-FP8", max_model_len=4096, draft=model("Qwen/Qwen3-0.6B"))
    assert without.weights is not None
    assert drafted.weights is not None
    assert drafted.weights.likely - without.weights.likely == pytest.approx(1.12 * GIB, rel=0.01)
    assert (drafted.kv_bytes_per_token or 0) > (without.kv_bytes_per_token or 0)


def test_encoders_may_be_left_out() -> None:
    whole = ask("Qwen/Qwen3.5-9B", version="0.20.0", max_model_len=4096, max_num_seqs=16)
    text = ask(
        "Qwen/Qwen3.5-9B",
        version="0.20.0",
        max_model_len=4096,
        max_num_seqs=16,
        language_model_only=True,
    )
    assert whole.weights is not None
    assert text.weights is not None
    assert 0.7 < (whole.weights.likely - text.weights.likely) / GIB < 1.0


def test_an_embedding_model_needs_no_cache_and_no_sampling() -> None:
    found = ask("BAAI/bge-m3", L4, runner="pooling")
    assert found.fits == "fits"
    assert (found.kv_tokens, found.max_concurrency) == (None, None)


def test_engines_divide_memory_in_their_own_ways() -> None:
    shares = {
        engine: ask("meta-llama/Llama-3.1-8B", engine=engine, version="", max_model_len=8192)
        for engine in ("vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp")
    }
    assert {found.fits for found in shares.values()} == {"fits"}
    assert len({found.kv_cache for found in shares.values()}) == 5


def test_llama_cpp_needs_what_it_allocates() -> None:
    architecture = structs.replace(
        model("meta-llama/Llama-3.1-8B"), quantization=Quantization(method="gguf", format="Q4_K_M")
    )
    serving = Serving(engine="llama.cpp", max_model_len=8192)
    assert envelope(architecture, serving, device_mib=8192).fits == "fits"
    assert envelope(architecture, serving, device_mib=4096).fits == "exceeds"


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        (
            {"contradictions": ("-tp 2 and --tensor-parallel-size 4",)},
            "one meaning for -tp 2 and --tensor-parallel-size 4",
        ),
        ({"not_understood": ("--kv-offload",)}, "what --kv-offload does to memory"),
        ({"quantization": "awq"}, "a checkpoint that is quantised with awq: this one is not"),
        ({"quantization": "quip"}, "how quantisation quip is stored"),
        ({"kv_cache_dtype": "int3"}, "how large an element of a cache of type int3 is"),
        ({"dtype": "float8"}, "how large an element of type float8 is"),
        ({"tensor_parallel_size": 0}, "a sound tensor_parallel_size (0 cannot be)"),
        (
            {"gpu_memory_utilization": 1.5},
            "a sound gpu_memory_utilization (1.5 is not between 0 and 1)",
        ),
        ({"pipeline_parallel_size": 99}, "a pipeline of no more stages than the model has layers"),
        ({"engine": "triton", "version": ""}, ""),
        ({"engine": "unknown"}, "how engine unknown divides memory"),
    ],
)
def test_what_is_not_known_is_said_and_not_guessed(fields: dict[str, Any], missing: str) -> None:
    found = ask("Qwen/Qwen3-8B", **fields)
    if not missing:
        assert found.fits != "unknown"
        return
    assert (found.fits, found.unknown) == ("unknown", (missing,))


def test_two_quantisations_contradict_each_other() -> None:
    found = ask("Qwen/Qwen3-8B-AWQ", quantization="gptq")
    assert found.unknown == ("one quantisation: the checkpoint is awq, the argument says gptq",)
    assert ask("Qwen/Qwen3-8B-AWQ", quantization="awq_marlin", max_model_len=8192).fits == "fits"


def test_a_family_that_nobody_knows_is_unknown() -> None:
    architecture = structs.replace(model("Qwen/Qwen3-8B"), model_type="qwen9")
    found = envelope(architecture, Serving(), **H100)
    assert found.unknown == ("how models of type qwen9 are laid out",)


def test_missing_keys_are_named() -> None:
    architecture = structs.replace(model("deepseek-ai/DeepSeek-V2-Lite"), v_head_dim=None)
    found = envelope(architecture, Serving(), **H100)
    assert found.unknown == ("v_head_dim in config.json",)


def test_without_the_gpus_memory_the_needs_are_still_said() -> None:
    found = envelope(model("Qwen/Qwen3-8B"), Serving(), device_mib=None)
    assert (found.fits, found.unknown) == ("unknown", ("the memory of the GPU",))
    assert found.weights is not None
    assert found.kv_bytes_per_token == 147456


def test_code_that_comes_with_a_model_is_an_assumption() -> None:
    architecture = structs.replace(model("Qwen/Qwen3-8B"), remote_code=True)
    found = envelope(architecture, Serving(version="0.11.0"), **H100)
    assert found.assumptions[-1].what == "the model's own code lays it out as qwen3"


def test_every_assumption_names_its_source() -> None:
    found = ask("Qwen/Qwen3-8B", version="")
    assert [(a.what, a.source) for a in found.assumptions] == [
        ("max_model_len 40960", "max_position_embeddings of the model"),
        ("max_num_seqs 1024", "vLLM newest release, its default"),
        ("max_num_batched_tokens 8192", "vLLM newest release, its default"),
        ("gpu_memory_utilization 0.92", "vLLM newest release, its default"),
    ]


def test_reasons_are_catalogued() -> None:
    found = [
        ask("meta-llama/Llama-3.3-70B-Instruct", L4),
        ask("Qwen/Qwen3-32B"),
        ask("Qwen/Qwen2.5-7B", tensor_parallel_size=8),
        ask("Qwen/Qwen3-8B", gpu_memory_utilization=0.99),
    ]
    said = {f"fit/{p.reason}" for answer in found for p in (*answer.problems, *answer.warnings)}
    assert len(said) == 4
    assert said <= set(REASONS)


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
def test_engines_that_start_with_the_cache_there_is_are_warned_of(engine: str) -> None:
    found = ask("meta-llama/Llama-3.1-8B", L4, engine=engine, version="", max_num_seqs=64)
    assert found.fits == "fits"
    assert "kv-below-context" in [w.reason for w in found.warnings]
    wanted = ask(
        "meta-llama/Llama-3.1-8B",
        L4,
        engine=engine,
        version="",
        max_num_seqs=64,
        want=Want(context=131072),
    )
    assert reasons(wanted) == ["kv-below-load"]


def test_sglang_sets_aside_by_the_size_of_the_gpu() -> None:
    found = ask(
        "meta-llama/Llama-3.1-8B",
        engine="sglang",
        version="0.5.4",
        max_model_len=8192,
        tensor_parallel_size=8,
    )
    assert ("mem_fraction_static 0.817", "SGLang 0.5.4, its default") in [
        (a.what, a.source) for a in found.assumptions
    ]
