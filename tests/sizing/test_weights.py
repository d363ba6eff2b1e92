"""Weights as engines hold them: figures that vLLM logged, and what each method stores."""

from __future__ import annotations

import pytest
from msgspec import structs

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.catalogue import find
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint, StoredTensor
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import Matrix, NoPlan, Part
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.storage import MIB, allocated, format_of, is_quantised
from kubectl_gpuadmit.sizing.stored import stored_weights
from kubectl_gpuadmit.sizing.weights import Lora, Sharding, dealt, shard, stage_weights, stages

GIB = 1 << 30


def model(name: str) -> Architecture:
    found = find(name)
    assert found is not None
    return found.architecture


def gib(
    name: str,
    *,
    element: float = 2.0,
    quantization: Quantization | None = None,
    lora: Lora | None = None,
    **sharding: object,
) -> float:
    architecture = model(name)
    cut = Sharding(**sharding)  # type: ignore[arg-type]
    parts = stage_weights(
        architecture,
        cut,
        element=element,
        quantization=quantization or architecture.quantization,
        lora=lora,
    )
    return max(stage.weights + stage.adapters for stage in parts) / GIB


@pytest.mark.parametrize(
    ("name", "tensor", "logged"),
    [
        # "Model loading took … GiB" of public vLLM logs
        ("meta-llama/Llama-3.1-8B-Instruct", 1, 14.9889),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 1, 14.9596),
        ("Qwen/Qwen3-4B", 1, 7.5552),
        ("Qwen/Qwen3-30B-A3B", 2, 28.4571),
        ("Qwen/Qwen3-32B", 8, 7.6871),
        ("Qwen/Qwen3-Embedding-8B", 1, 14.1062),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 2, 33.88),
    ],
)
def test_weights_are_those_that_engines_log(name: str, tensor: int, logged: float) -> None:
    assert gib(name, tensor=tensor) == pytest.approx(logged, rel=0.0005)


def test_experts_are_dealt_out_or_cut() -> None:
    dealt_out = gib("Qwen/Qwen3-235B-A22B-FP8", tensor=8, experts=8)
    assert dealt_out == pytest.approx(27.6656, rel=0.0005)
    assert gib("Qwen/Qwen3-235B-A22B-FP8", tensor=8) == pytest.approx(dealt_out, rel=0.001)


def test_a_rank_holds_a_whole_head_where_there_are_fewer_heads_than_ranks() -> None:
    matrix = Matrix(name="qkv", parts=(Part(64, 8), Part(16, 2), Part(16, 2)), cols=10)
    assert shard(matrix, Sharding(tensor=4)) == (16 + 8 + 8, 10, 1)
    assert shard(matrix, Sharding(tensor=2)) == (32 + 8 + 8, 10, 1)


def test_the_vocabulary_is_padded_and_cut() -> None:
    matrix = Matrix(name="lm_head", parts=(Part(100),), cols=8, split="vocab")
    assert shard(matrix, Sharding(tensor=2)) == (64, 8, 1)
    assert shard(matrix, Sharding(tensor=2, vocabulary_pad=1)) == (50, 8, 1)


def test_stages_are_cut_as_each_engine_cuts_them() -> None:
    assert stages(8, 2) == ((0, 4), (4, 8))
    assert stages(61, 4) == ((0, 15), (15, 30), (30, 46), (46, 61))
    assert stages(7, 3, even=False) == ((0, 3), (3, 5), (5, 7))
    assert dealt(40, 2) == ((0, 21), (21, 40))


def test_the_last_stage_holds_the_output_even_where_it_is_the_embedding() -> None:
    tied = model("Qwen/Qwen3-0.6B")
    first, last = stage_weights(tied, Sharding(pipeline=2), element=2.0, quantization=None)
    embedding = 151936 * 1024 * 2
    assert first.weights > embedding
    assert last.weights > embedding


def test_the_allocator_keeps_what_it_cannot_split() -> None:
    assert allocated(95 * MIB) == 96 * MIB  # a rest of 1 MiB is too small to give back
    assert allocated(96.5 * MIB) == 96.5 * MIB  # a rest of 1.5 MiB is given back
    assert allocated(3) == 512


@pytest.mark.parametrize(
    ("quantization", "nbytes"),
    [
        (Quantization(method="fp8"), 1024 * 4096),
        (Quantization(method="fp8", block_size=(128, 128)), 1024 * 4096 + 4 * 8 * 32),
        (Quantization(method="awq", bits=4, group_size=128), 1024 * 4096 / 2 + 1024 * 32 * 2.5),
        (
            Quantization(method="gptq", bits=4, group_size=128, symmetric=True),
            1024 * 4096 / 2 + 1024 * 32 * 2,
        ),
        (Quantization(method="gptq_marlin", bits=8, group_size=-1), 1024 * 4096 + 1024 * 32 * 2),
        (Quantization(method="mxfp4"), 1024 * 4096 / 2 + 1024 * 128),
        (Quantization(method="modelopt_fp4"), 1024 * 4096 / 2 + 1024 * 256),
        (Quantization(method="bitsandbytes", bits=4), 1024 * 4096 / 2 + 1024 * 64 * 4),
        (
            Quantization(
                method="compressed-tensors",
                format="pack-quantized",
                bits=4,
                group_size=32,
                symmetric=True,
            ),
            1024 * 4096 / 2 + 1024 * 128 * 2,
        ),
        (
            Quantization(
                method="compressed-tensors", format="float-quantized", bits=8, strategy="channel"
            ),
            1024 * 4096 + 1024 * 4,
        ),
        (
            Quantization(
                method="compressed-tensors", format="int-quantized", bits=8, strategy="tensor"
            ),
            1024 * 4096,
        ),
        (
            Quantization(method="compressed-tensors", format="nvfp4-pack-quantized"),
            1024 * 4096 / 2 + 1024 * 256,
        ),
        (Quantization(method="gguf", format="Q8_0"), 1024 * 4096 * 8.5 / 8),
        (Quantization(method="gguf", format="Q4_K_M"), 1024 * 4096 * 4.8944 / 8),
    ],
)
def test_what_a_method_stores_of_a_matrix(quantization: Quantization, nbytes: float) -> None:
    assert sum(format_of(quantization).tensors(1024, 4096)) == pytest.approx(nbytes)


@pytest.mark.parametrize(
    "quantization",
    [
        Quantization(method="quip"),
        Quantization(method="compressed-tensors", format="sparse-24"),
        Quantization(method="gguf", format="Q9_X"),
    ],
)
def test_a_method_that_nobody_knows_is_not_guessed(quantization: Quantization) -> None:
    with pytest.raises(NoPlan, match="stored"):
        format_of(quantization)


@pytest.mark.parametrize(
    ("ignored", "quantised"),
    [
        ((), True),
        (("lm_head",), True),
        (("model.layers.3.mlp.down_proj",), True),
        (("model.layers.2.mlp.down_proj",), False),
        (("down_proj",), False),
        (("re:.*mlp.*",), False),
        (("model.layers.*.mlp",), False),
        (("model.layers.2",), False),
        (("re:(",), True),
    ],
)
def test_what_a_checkpoint_lists_stays_as_it_is(ignored: tuple[str, ...], quantised: bool) -> None:
    matrix = Matrix(name="mlp.down_proj", parts=(Part(8),), cols=8)
    assert is_quantised(matrix, ignored, layer=2) is quantised


def test_fused_matrices_are_matched_by_the_names_of_their_parts() -> None:
    matrix = Matrix(name="self_attn.qkv_proj", parts=(Part(8),), cols=8)
    assert not is_quantised(matrix, ("model.layers.0.self_attn.k_proj",), layer=0)


def test_routers_embeddings_and_outputs_are_never_quantised() -> None:
    half = structs.replace(model("Qwen/Qwen3-30B-A3B"), quantization=None)
    fp8 = Quantization(method="fp8")
    whole = stage_weights(half, Sharding(), element=2.0, quantization=None)[0].weights
    packed = stage_weights(half, Sharding(), element=2.0, quantization=fp8)[0].weights
    kept = 2 * 151936 * 2048 * 2
    assert packed > (whole - kept) / 2 + kept


def test_adapters_are_kept_for_every_part_of_a_fused_matrix() -> None:
    without = gib("unsloth/Qwen3-4B-Base", whole_segments=False)
    held = gib("unsloth/Qwen3-4B-Base", whole_segments=False, lora=Lora(1, 32, 2.0, False))
    layer = 32 * ((3 * 2560 + 4096 + 2 * 2560 + 9728) + (6144 + 2560 + 2 * 9728 + 2560))
    assert (held - without) * GIB == pytest.approx(36 * layer * 2)
    assert held == pytest.approx(7.6334, rel=0.002)  # as vLLM 0.8.5 logged it


def test_layers_for_multi_token_prediction_are_loaded_on_demand() -> None:
    without = gib("deepseek-ai/DeepSeek-V3", tensor=8)
    loaded = gib("deepseek-ai/DeepSeek-V3", tensor=8, prediction=True)
    assert 1.2 < loaded - without < 1.7


def checkpoint(*tensors: tuple[str, tuple[int, ...], int]) -> Checkpoint:
    stored = tuple(StoredTensor(name, "BF16", shape, size) for name, shape, size in tensors)
    return Checkpoint(source="test", total_bytes=sum(t.nbytes for t in stored), tensors=stored)


def test_stored_tensors_outrank_the_plan_and_are_cut_by_their_names() -> None:
    parts = plan(model("Qwen/Qwen3-0.6B"))
    stored = checkpoint(
        ("model.embed_tokens.weight", (10, 10), 800),
        ("model.layers.0.mlp.down_proj.weight", (10, 10), 400),
        ("model.layers.27.input_layernorm.weight", (10,), 20),
        ("model.layers.28.mlp.down_proj.weight", (10, 10), 9999),
        ("model.norm.weight", (10,), 20),
    )
    table = parts.positions * parts.rotary_dim * 2
    found = stored_weights(stored, parts, Sharding(tensor=4, pipeline=2), Serving(), element=2.0)
    assert [stage.weights - table for stage in found] == [300, 40]
    whole = stored_weights(stored, parts, Sharding(prediction=True), Serving(), element=2.0)
    assert whole[0].weights - table == 800 + 400 + 20 + 9999 + 20


def test_a_total_alone_is_cut_evenly() -> None:
    parts = plan(model("Qwen/Qwen3-0.6B"))
    total = Checkpoint(source="index", total_bytes=8000)
    found = stored_weights(total, parts, Sharding(tensor=4), Serving(), element=2.0)
    assert found[0].weights - parts.positions * parts.rotary_dim * 2 == 2000


def test_a_stored_checkpoint_says_nothing_of_what_is_quantised_while_loading() -> None:
    parts = plan(model("Qwen/Qwen3-0.6B"))
    total = Checkpoint(source="index", total_bytes=8000)
    with pytest.raises(NoPlan):
        stored_weights(total, parts, Sharding(), Serving(quantization="fp8"), element=2.0)
