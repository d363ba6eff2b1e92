"""Tokens of the cache as vLLM counts them; figures in the cases are those that engines logged."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.sizing.cache import (
    Pool,
    Rank,
    cache_element,
    pool,
    state_bytes,
    token_bytes,
)
from kubectl_gpuadmit.sizing.catalogue import find
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import Cache, NoPlan, State

GIB = 1 << 30


def of(
    name: str,
    *,
    tensor: int = 1,
    element: float = 2.0,
    chunk: int = 8192,
    speculative: int = 0,
    context: int = 1,
    prediction: bool = False,
    **settings: bool,
) -> Pool:
    found = find(name)
    assert found is not None
    parts = plan(found.architecture)
    layers = (*parts.layers, *parts.prediction) if prediction else parts.layers
    rank = Rank(tensor=tensor, element=element, speculative=speculative, context=context)
    return pool(layers, rank, chunk=chunk, **settings)


def test_grouped_attention_takes_two_tensors_of_heads() -> None:
    one = of("meta-llama/Llama-3.1-8B")
    assert one.request_bytes(16) == 16 * 131072
    assert one.tokens(19.24 * GIB, 4096) == pytest.approx(157584, rel=0.0002)
    assert one.concurrency(19.24 * GIB, 4096) == pytest.approx(38.47, rel=0.0005)


def test_a_latent_is_one_tensor_and_every_rank_has_it_whole() -> None:
    kimi = of("moonshotai/Kimi-K2-Thinking", tensor=8)
    assert kimi.tokens(46.8 * GIB, 262144) == pytest.approx(715072, rel=0.0002)
    dealt = of("moonshotai/Kimi-K2-Thinking", tensor=8, context=8)
    assert dealt.tokens(46.8 * GIB, 262144) == pytest.approx(5721088, rel=0.0002)


def test_sparse_attention_keeps_an_indexer_beside_the_latent() -> None:
    latent = Cache(kind="latent", heads=1, k_dim=576, v_dim=0, index_dim=128)
    assert token_bytes(latent, Rank(tensor=4)) == (576 + 128) * 2
    assert token_bytes(latent, Rank(sparse=True)) == 656 + 132


@pytest.mark.parametrize(
    ("name", "tensor", "block", "gib", "tokens", "concurrency"),
    [
        ("Qwen/Qwen3.5-27B", 4, 784, 7.0, 114464, 12.98),
        ("Qwen/Qwen3.5-27B", 4, 784, 7.47, 122304, 13.87),
        ("Qwen/Qwen3.5-9B", 4, 528, 15.36, 502656, 57.74),
    ],
)
def test_blocks_of_hybrid_models_grow_to_the_size_of_a_state(
    name: str, tensor: int, block: int, gib: float, tokens: int, concurrency: float
) -> None:
    kept = of(name, tensor=tensor, by_concurrency=False)
    assert {group.block for group in kept.groups} == {block}
    assert kept.tokens(gib * GIB, 32768) == pytest.approx(tokens, rel=0.002)
    assert kept.concurrency(gib * GIB, 32768) == pytest.approx(concurrency, rel=0.002)


def test_newer_releases_print_tokens_by_concurrency() -> None:
    kept = of("Qwen/Qwen3.6-27B-FP8", aligned=True)
    assert (kept.tokens(41.03 * GIB, 4096), round(kept.concurrency(41.03 * GIB, 4096), 2)) == (
        292522,
        71.42,
    )


def test_speculation_keeps_a_slot_for_each_token_and_a_layer_of_its_own() -> None:
    kept = of("Qwen/Qwen3.8-27B", element=1.0, speculative=3, prediction=True)
    assert (kept.width, kept.groups[0].block) == (17, 1600)
    assert kept.tokens(76.4 * GIB, 262144) == 2192477


def test_layers_with_windows_share_pages_of_one_size() -> None:
    kept = of("google/gemma-4-E4B-it", chunk=2048, by_concurrency=False)
    assert [group.kind for group in kept.groups].count("sliding") == 5
    assert kept.tokens(16.45 * GIB, 16384) == pytest.approx(179632, rel=0.001)
    assert kept.concurrency(16.45 * GIB, 16384) == pytest.approx(47.14, rel=0.001)


def test_layers_that_reuse_another_layers_cache_keep_none() -> None:
    found = find("google/gemma-4-E4B-it")
    assert found is not None
    layers = plan(found.architecture).layers
    assert sum(layer.cache is not None for layer in layers) == 42 - 18


def test_windows_that_are_not_honoured_cost_like_full_attention() -> None:
    off = of("openai/gpt-oss-120b", hybrid=False)
    assert off.request_bytes(1600) / 1600 == 73728


def test_a_window_never_needs_more_than_itself_and_what_is_in_flight() -> None:
    kept = of("google/gemma-3-27b-it", chunk=2048)
    sliding = next(group for group in kept.groups if group.kind == "sliding")
    short = sliding.blocks(1024, chunk=2048, context=1)
    long = sliding.blocks(1 << 20, chunk=2048, context=1)
    assert (short, long) == (1024 // 16 + 1, -(-(1023 + 2048) // 16) + 1)


def test_the_longest_request_is_the_longest_that_fits() -> None:
    kept = of("Qwen/Qwen3-32B")
    longest = kept.longest(4.45 * GIB, 40960)
    assert kept.request_bytes(longest) <= 4.45 * GIB < kept.request_bytes(longest + 16)
    assert kept.longest(0, 40960) == 0


def test_a_state_is_a_convolutions_tail_and_a_matrix_for_each_head() -> None:
    state = State(
        kind="gated_delta",
        conv_channels=10240,
        conv_tail=3,
        heads=48,
        rows=128,
        cols=128,
        float32=True,
    )
    assert state_bytes(state, Rank()) == 10240 * 3 * 2 + 48 * 128 * 128 * 4
    assert state_bytes(state, Rank(tensor=4)) == 2560 * 3 * 2 + 12 * 128 * 128 * 4


def test_a_model_without_a_cache_has_no_pool() -> None:
    kept = of("BAAI/bge-m3")
    assert (kept.groups, kept.blocks(GIB), kept.tokens(GIB, 512)) == ((), 0, 0.0)


def test_types_of_elements() -> None:
    assert cache_element("auto", 2.0) == 2.0
    assert cache_element("fp8_e4m3", 2.0) == 1.0
    assert cache_element("q8_0", 2.0) == 34 / 32
    with pytest.raises(NoPlan):
        cache_element("int3", 2.0)
