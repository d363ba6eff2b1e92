"""config.json as families write it, and as files that are broken in every way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization, Tower
from kubectl_gpuadmit.sizing.formats import config

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rope_scaling": {"factor": 8.0},
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}


def read(data: object) -> Architecture:
    return config.architecture(json.dumps(data).encode(), "config.json")


def refused(data: object) -> str:
    with pytest.raises(BadModelFile) as caught:
        read(data)
    return str(caught.value)


def test_a_dense_model_is_read_as_it_stands() -> None:
    assert read(LLAMA) == Architecture(
        model_type="llama",
        architectures=("LlamaForCausalLM",),
        dtype="bfloat16",
        hidden_size=4096,
        num_hidden_layers=32,
        vocab_size=128256,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=14336,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
    )


def test_older_spellings_mean_the_same_facts() -> None:
    gpt2 = {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert read(gpt2) == Architecture(
        model_type="gpt2",
        hidden_size=768,
        num_hidden_layers=12,
        vocab_size=50257,
        num_attention_heads=12,
        max_position_embeddings=1024,
    )


def test_the_text_part_of_a_multimodal_model_is_found_and_its_tower_kept() -> None:
    data = {
        "model_type": "qwen3_vl",
        "tie_word_embeddings": True,
        "text_config": {
            k: v for k, v in LLAMA.items() if k not in ("architectures", "tie_word_embeddings")
        },
        "vision_config": {
            "model_type": "qwen3_vl",
            "hidden_size": 1152,
            "depth": 27,
            "num_heads": 16,
            "intermediate_size": 4304,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "in_channels": 3,
            "num_position_embeddings": 2304,
            "spatial_merge_size": 2,
            "out_hidden_size": 4096,
            "deepstack_visual_indexes": [8, 16, 24],
        },
    }
    found = read(data)
    assert found.hidden_size == 4096
    assert found.tie_word_embeddings is True
    assert found.vision == Tower(
        model_type="qwen3_vl",
        hidden_size=1152,
        num_hidden_layers=27,
        num_attention_heads=16,
        intermediate_size=4304,
        patch_size=16,
        temporal_patch_size=2,
        num_position_embeddings=2304,
        spatial_merge_size=2,
        out_hidden_size=4096,
        deepstack=3,
    )


def test_layers_of_hybrids_get_their_kinds_from_every_spelling() -> None:
    def kinds(**extra: object) -> tuple[str, ...]:
        return read({**LLAMA, "num_hidden_layers": 4, **extra}).layer_types

    assert kinds(layer_types=["mamba", "attention", "sliding_attention", "conv"]) == (
        "mamba",
        "full_attention",
        "sliding_attention",
        "conv",
    )
    assert kinds(hybrid_override_pattern="M-*E") == ("mamba", "mlp", "full_attention", "moe")
    assert kinds(attn_layer_period=4, attn_layer_offset=2) == (
        "mamba",
        "mamba",
        "full_attention",
        "mamba",
    )
    assert kinds(attn_type_list=[0, 0, 0, 1])[3] == "full_attention"
    assert kinds(linear_attn_config={"full_attn_layers": [4], "num_heads": 2})[2:] == (
        "linear_attention",
        "full_attention",
    )


def test_a_pruned_model_has_heads_and_widths_layer_by_layer() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"no_op": True}, "ffn": {"no_op": True}},
    ]
    found = read(
        {**LLAMA, "num_hidden_layers": 2, "num_key_value_heads": None, "block_configs": blocks}
    )
    assert found.kv_heads_by_layer == (4, 0)
    assert found.intermediate_by_layer == (14336, 0)


@pytest.mark.parametrize(
    ("given_config", "means"),
    [
        (
            {
                "quant_method": "fp8",
                "activation_scheme": "dynamic",
                "weight_block_size": [128, 128],
            },
            Quantization(
                method="fp8", bits=8, block_size=(128, 128), strategy="block", activations="fp8"
            ),
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
            Quantization(method="awq", bits=4, group_size=128, symmetric=False),
        ),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": -1, "sym": True},
            Quantization(method="gptq", bits=4, group_size=-1, symmetric=True),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {
                    "group_0": {
                        "weights": {
                            "num_bits": 4,
                            "type": "int",
                            "strategy": "group",
                            "group_size": 32,
                            "symmetric": True,
                        }
                    }
                },
                "ignore": ["lm_head"],
                "kv_cache_scheme": {"num_bits": 8, "type": "float"},
            },
            Quantization(
                method="compressed-tensors",
                format="pack-quantized",
                bits=4,
                group_size=32,
                strategy="group",
                symmetric=True,
                ignored=("lm_head",),
                kv_cache_dtype="fp8",
            ),
        ),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            Quantization(method="bitsandbytes", format="nf4", bits=4, double_quant=True),
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
            Quantization(
                method="modelopt_fp4",
                format="NVFP4",
                bits=4,
                group_size=16,
                ignored=("lm_head",),
            ),
        ),
        ({"quant_method": "mxfp4"}, Quantization(method="mxfp4")),
    ],
)
def test_each_method_of_quantisation_has_one_spelling(
    given_config: dict[str, Any], means: Quantization
) -> None:
    assert read({**LLAMA, "quantization_config": given_config}).quantization == means


def test_older_modelopt_files_are_read_from_beside_the_configuration() -> None:
    beside = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    found = config.architecture(
        json.dumps(LLAMA).encode(), "config.json", modelopt=json.dumps(beside).encode()
    )
    assert found.quantization == Quantization(
        method="modelopt", format="FP8", bits=8, activations="fp8", kv_cache_dtype="fp8"
    )


def test_groups_of_several_widths_are_not_taken_for_one_of_them() -> None:
    groups = {
        "a": {"weights": {"num_bits": 4, "type": "int"}},
        "b": {"weights": {"num_bits": 8, "type": "int"}},
    }
    found = read(
        {
            **LLAMA,
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": groups,
            },
        }
    )
    assert found.quantization == Quantization(method="compressed-tensors", format="mixed-precision")


def test_code_that_comes_with_the_model_is_passed_on_and_never_run() -> None:
    assert read({**LLAMA, "auto_map": {"AutoConfig": "configuration_x.X"}}).remote_code


def test_what_is_wrong_is_named_with_its_field() -> None:
    without = {k: v for k, v in LLAMA.items() if k != "hidden_size"}
    assert refused(without) == (
        "config.json hidden_size: hidden_size or n_embd or d_model is missing [model-field-missing]"
    )
    assert refused({**LLAMA, "num_hidden_layers": "32"}) == (
        "config.json num_hidden_layers: expected a whole number, found the text '32' [model-field]"
    )
    assert refused({**LLAMA, "num_hidden_layers": 10**9}) == (
        "config.json num_hidden_layers: 1000000000 is not between 1 and 10000 [model-field]"
    )
    assert refused({**LLAMA, "vocab_size": 0}) == (
        "config.json vocab_size: vocab_size is missing [model-field-missing]"
    )
    assert refused([LLAMA]) == "config.json: holds no JSON object [model-file-unreadable]"
    assert "layers, but only 1 of them have a kind" in refused(
        {**LLAMA, "layer_types": ["full_attention"]}
    )


def test_a_configuration_of_50_megabytes_is_read_and_a_larger_file_refused() -> None:
    names = [f"model.layers.{n}.mlp.down_proj" + "x" * 300 for n in range(150_000)]
    large = {**LLAMA, "quantization_config": {"quant_method": "fp8", "ignored_layers": names}}
    raw = json.dumps(large).encode()
    assert len(raw) > 48 << 20
    found = config.architecture(raw, "config.json").quantization
    assert found is not None
    assert len(found.ignored) == 150_000
    with pytest.raises(BadModelFile) as caught:
        config.architecture(b" " * ((64 << 20) + 1), "config.json")
    assert caught.value.ref == "model-file-too-large"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = sorted(
    {*LLAMA, "quantization_config", "text_config", "vision_config", "layer_types", "block_configs"}
    | {
        "hybrid_override_pattern",
        "linear_attn_config",
        "thinker_config",
        "audio_config",
        "id2label",
    }
    | {"config_groups", "ffn_config", "moe_layers_enum", "sliding_window_pattern", "quant_method"}
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
def test_any_value_in_any_field_is_read_or_refused_with_one_error(change: dict[str, Any]) -> None:
    try:
        found = config.architecture(json.dumps({**LLAMA, **change}).encode(), "c.json")
    except BadModelFile as error:
        assert error.message
        assert error.ref.startswith("model-f")
    else:
        assert found.hidden_size > 0
        assert found.num_hidden_layers > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_one_error(raw: bytes) -> None:
    with pytest.raises(BadModelFile):
        config.architecture(raw, "c.json")


@given(st.integers(0, len(json.dumps(LLAMA)) - 1))
def test_a_configuration_that_was_cut_is_refused(end: int) -> None:
    with pytest.raises(BadModelFile):
        config.architecture(json.dumps(LLAMA).encode()[:end], "c.json")
