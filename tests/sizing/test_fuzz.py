"""Whatever is asked, the answer is an answer: no exception, ordered ranges, no better by asking
more."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_gpuadmit.sizing.advice import alternatives
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.catalogue import models
from kubectl_gpuadmit.sizing.envelope import Envelope, Want, envelope
from kubectl_gpuadmit.sizing.products import Product, named
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.startlog import read_log
from kubectl_gpuadmit.sizing.trial import Trial

ARCHITECTURES = st.sampled_from([known.architecture for known in models()])
INTEGERS = [
    name
    for name, kind in Architecture.__annotations__.items()
    if "int" in str(kind) and "tuple" not in str(kind)
]
NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.integers(0, 1 << 40))
SMALL = st.one_of(st.none(), st.integers(1, 64))
SERVINGS = st.builds(
    Serving,
    engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm", "tgi", "llama.cpp", "unknown"]),
    version=st.sampled_from(["", "0.6.4", "0.9.0", "0.11.2", "0.26.0", "latest", "9.9.9"]),
    tensor_parallel_size=SMALL,
    pipeline_parallel_size=SMALL,
    data_parallel_size=SMALL,
    enable_expert_parallel=st.booleans(),
    enable_dp_attention=st.booleans(),
    max_model_len=st.one_of(st.none(), st.integers(1, 1 << 22)),
    max_num_seqs=st.one_of(st.none(), st.integers(1, 4096)),
    max_num_batched_tokens=st.one_of(st.none(), st.integers(1, 1 << 20)),
    gpu_memory_utilization=st.one_of(st.none(), st.floats(0.01, 1.0)),
    kv_cache_dtype=st.sampled_from([None, "auto", "fp8", "fp8_ds_mla", "int3"]),
    quantization=st.sampled_from([None, "fp8", "awq", "bitsandbytes", "what"]),
    enable_lora=st.booleans(),
    enforce_eager=st.booleans(),
    num_speculative_tokens=st.one_of(st.none(), st.integers(0, 8)),
    speculative_method=st.sampled_from([None, "mtp", "eagle"]),
)


def sound(found: Envelope) -> None:
    assert bool(found.unknown) is (found.fits == "unknown")
    assert (found.fits == "exceeds") is (bool(found.problems) and not found.unknown)
    for amount in (
        found.weights,
        found.activations,
        found.overhead,
        found.kv_cache,
        found.kv_tokens,
        found.max_concurrency,
        found.longest,
    ):
        if amount is not None:
            assert amount.low <= amount.likely <= amount.high


@settings(max_examples=300, deadline=None)
@given(ARCHITECTURES, SERVINGS, st.one_of(st.none(), st.integers(-1, 1 << 20)))
def test_any_serving_of_a_known_model_gets_an_answer(
    architecture: Architecture, serving: Serving, mib: int | None
) -> None:
    sound(envelope(architecture, serving, device_mib=mib, want=Want(concurrency=4, context=4096)))


@settings(max_examples=300, deadline=None)
@given(ARCHITECTURES, st.dictionaries(st.sampled_from(INTEGERS), NUMBERS, max_size=6))
def test_a_mangled_architecture_gets_an_answer_too(
    architecture: Architecture, changed: dict[str, Any]
) -> None:
    numbers = {
        "hidden_size",
        "num_hidden_layers",
        "vocab_size",
        "num_attention_heads",
        "intermediate_size",
        "num_kv_shared_layers",
    }
    changed = {k: v for k, v in changed.items() if v is not None or k not in numbers}
    mangled = structs.replace(architecture, **changed)
    sound(envelope(mangled, Serving(), device_mib=81559))


@settings(max_examples=100, deadline=None)
@given(
    ARCHITECTURES,
    st.builds(
        Quantization,
        method=st.sampled_from(["awq", "gptq", "fp8", "compressed-tensors", "mxfp4", "gguf", "?"]),
        format=st.sampled_from(["", "pack-quantized", "float-quantized", "Q4_K_M", "Q9"]),
        bits=st.one_of(st.none(), st.integers(-1, 16)),
        group_size=st.one_of(st.none(), st.integers(-1, 1 << 20)),
        ignored=st.tuples(st.text(max_size=8), st.sampled_from(["re:(", "re:.*", "lm_head"])),
    ),
)
def test_any_quantisation_gets_an_answer(
    architecture: Architecture, quantization: Quantization
) -> None:
    quantised = structs.replace(architecture, quantization=quantization)
    sound(envelope(quantised, Serving(), device_mib=81559))


@settings(max_examples=60, deadline=None)
@given(ARCHITECTURES, st.integers(1, 5))
def test_more_memory_never_holds_less_and_a_longer_request_never_more(
    architecture: Architecture, step: int
) -> None:
    small = envelope(architecture, Serving(max_model_len=4096), device_mib=40960)
    large = envelope(architecture, Serving(max_model_len=4096), device_mib=40960 * (1 + step))
    longer = envelope(architecture, Serving(max_model_len=4096 * (1 + step)), device_mib=40960)
    if small.max_concurrency and large.max_concurrency and longer.max_concurrency:
        assert large.max_concurrency.likely >= small.max_concurrency.likely
        assert longer.max_concurrency.likely <= small.max_concurrency.likely
    if small.fits == "fits":
        assert large.fits == "fits" or large.problems[0].dimension in ("activations", "sequences")


@settings(max_examples=40, deadline=None)
@given(ARCHITECTURES, st.sampled_from([16384, 24576, 49140, 81920]))
def test_what_would_fit_fits(architecture: Architecture, mib: int) -> None:
    trial = Trial(model="any", source="", product=Product("", mib), architecture=architecture)
    found = trial.envelope()
    if found.fits == "exceeds":
        for one in alternatives(trial, found):
            assert one.trial.envelope().fits == "fits"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_gpu_or_none(text: str) -> None:
    product = named(text)
    assert product is None or product.mib > 0


LOG_LINES = st.sampled_from(
    [
        "Model loading took 7.5 GiB",
        "Available KV cache memory: 1,2,3 GiB",
        "GPU KV cache size: 99999999999999999999 tokens",
        "non-default args: {'model': 'x', 'max_model_len': -5, 'tensor_parallel_size': 'two'}",
        "Initializing a V1 LLM engine (v0.11) with config: max_seq_len=0, dtype=torch.odd,",
        "server_args=ServerArgs(tp_size=, mem_fraction_static=9e9, context_length=None)",
        "KV Cache is allocated. #tokens: 12, K size: 0.1 GB, V size: 0.1 GB",
        "Maximum concurrency for 4,096 tokens per request: 1.5x",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(LOG_LINES, st.text(max_size=80)), max_size=12))
def test_any_text_is_a_log_that_says_little(lines: list[str]) -> None:
    log = read_log("\n".join(lines))
    architecture = models()[0].architecture
    sound(envelope(architecture, log.serving, device_mib=81559))
