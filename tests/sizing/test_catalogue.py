"""Every entry of the catalogue: what our plan counts is what its publisher says."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.sizing.catalogue import Known, find, models, suggestions
from kubectl_gpuadmit.sizing.parameters import plan

TOLERANCE = 0.005


def counted(known: Known) -> int:
    parts = plan(known.architecture)
    return {
        "all": parts.elements,
        "text": parts.text_elements,
        "stored": parts.stored_elements,
    }[known.counts]


@pytest.mark.parametrize("known", models(), ids=lambda known: known.name)
def test_the_counted_parameters_are_the_published_ones(known: Known) -> None:
    ours = counted(known)
    if known.digits is None:
        assert abs(ours / known.parameters - 1) <= TOLERANCE
    else:
        assert f"{ours:.{known.digits - 1}e}" == f"{known.parameters:.{known.digits - 1}e}"


def test_the_catalogue_knows_the_models_that_people_serve() -> None:
    assert len(models()) >= 80


def test_every_entry_says_where_it_was_read() -> None:
    unsourced = [
        known.name
        for known in models()
        if not (known.source.startswith("https://") and known.parameters_source.startswith("http"))
    ]
    assert unsourced == []


def test_no_two_entries_share_a_name() -> None:
    names = [name.lower() for known in models() for name in (known.name, *known.also)]
    assert sorted(names) == sorted(set(names))


def test_a_name_is_found_in_any_case_with_or_without_owner_and_as_a_path() -> None:
    found = [
        find(name)
        for name in (
            "Qwen/Qwen3-8B",
            "qwen3-8b",
            "/models/Qwen3-8B/",
            "someone/QWEN3-8B",
        )
    ]
    assert {f.known.name for f in found if f} == {"Qwen/Qwen3-8B"}
    assert all(found)


def test_a_quantised_name_finds_its_base_and_says_what_it_assumed() -> None:
    found = find("casperhansen/deepseek-r1-distill-qwen-14b-awq")
    assert found is not None
    assert found.known.name == "Qwen/Qwen2.5-14B"
    assert found.architecture.quantization is not None
    assert found.architecture.quantization.method == "awq"
    assert found.assumed == "Qwen/Qwen2.5-14B quantised with awq, as the name says"


def test_a_name_that_says_sixteen_bits_finds_the_model_unquantised() -> None:
    found = find("unsloth/gpt-oss-20b-BF16")
    assert found is not None
    assert found.architecture.quantization is None
    assert found.assumed == "openai/gpt-oss-20b in 16 bits, as the name says"


def test_names_of_four_bit_hybrid_models_say_too_little() -> None:
    assert find("unsloth/Qwen3.5-27B-NVFP4") is None
    assert find("unsloth/Qwen3.5-27B-FP8") is not None


@pytest.mark.parametrize("name", ["", "/", "gpt-9", "-fp8", "qwen", "Qwen/Qwen3-8B-Extra"])
def test_a_name_that_nobody_knows_is_not_guessed(name: str) -> None:
    assert find(name) is None


def test_a_misspelt_name_gets_suggestions() -> None:
    assert "Qwen/Qwen3-8B" in suggestions("Qwen/Qwen3-8-B")
