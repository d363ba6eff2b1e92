"""safetensors headers: whole, cut, and wrong in every way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint, StoredTensor
from kubectl_gpuadmit.sizing.formats import safetensors

HEADER: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "lm_head.weight": {"dtype": "BF16", "shape": [10, 4], "data_offsets": [0, 80]},
    "scale": {"dtype": "F32", "shape": [], "data_offsets": [80, 84]},
    "packed": {"dtype": "F4", "shape": [3, 2], "data_offsets": [84, 87]},
}


def packed(header: object) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def refused(raw: bytes, **known: int) -> str:
    with pytest.raises(BadModelFile) as caught:
        safetensors.header(raw, "m.safetensors", **known)
    return str(caught.value)


def test_a_header_lists_its_tensors_with_their_sizes() -> None:
    raw = packed(HEADER)
    assert safetensors.header(raw, "m.safetensors", size=len(raw) + 87) == Checkpoint(
        source="m.safetensors",
        total_bytes=87,
        tensors=(
            StoredTensor("lm_head.weight", "BF16", (10, 4), 80),
            StoredTensor("scale", "F32", (), 4),
            StoredTensor("packed", "F4", (3, 2), 3),
        ),
    )


def test_a_cut_file_is_said_to_be_cut() -> None:
    raw = packed(HEADER)
    assert refused(raw[:5]) == (
        "m.safetensors: has 5 bytes, fewer than a safetensors file begins with [model-file-cut]"
    )
    assert refused(raw[:30]).endswith("ends after 22 [model-file-cut]")
    assert "[model-file-cut]" in refused(raw, size=len(raw) + 86)


def test_a_header_that_contradicts_itself_is_refused() -> None:
    wrong = {"a": {"dtype": "BF16", "shape": [10], "data_offsets": [0, 19]}}
    assert refused(packed(wrong)) == (
        "m.safetensors a.data_offsets: span 19 bytes, shape and type need 20 [model-field]"
    )
    strange = {"a": {"dtype": "Q9", "shape": [1], "data_offsets": [0, 1]}}
    assert "'Q9' is no type" in refused(packed(strange))
    assert "no safetensors file" in refused(b"\xff" * 16)
    assert "no JSON object" in refused(packed([1]))


def test_an_index_gives_the_total_and_the_files() -> None:
    data = {
        "metadata": {"total_size": 16060522496},
        "weight_map": {"a": "model-2.safetensors", "b": "model-1.safetensors"},
    }
    assert safetensors.index(json.dumps(data).encode(), "i.json") == (
        Checkpoint(source="i.json", total_bytes=16060522496),
        ("model-1.safetensors", "model-2.safetensors"),
    )


def test_an_index_that_points_out_of_its_folder_is_refused() -> None:
    data = {"weight_map": {"a": "../../etc/passwd"}}
    with pytest.raises(BadModelFile):
        safetensors.index(json.dumps(data).encode(), "i.json")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_with_one_error(raw: bytes) -> None:
    for text in (raw, len(raw).to_bytes(8, "little") + raw):
        try:
            safetensors.header(text, "m")
        except BadModelFile as error:
            assert error.message


VALUE = (
    st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(-3, 2**70), max_size=3)
)


@given(
    st.dictionaries(
        st.text(max_size=6),
        VALUE | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets"]), VALUE),
        max_size=3,
    )
)
def test_any_header_is_read_or_refused_with_one_error(header: dict[str, Any]) -> None:
    try:
        safetensors.header(packed(header), "m")
    except BadModelFile as error:
        assert error.message
