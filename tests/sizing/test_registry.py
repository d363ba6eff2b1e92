"""Which model a name means, and what files and folders say of models."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.models import read_models
from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.sizing.architecture import Quantization
from kubectl_gpuadmit.sizing.registry import Entry, Facts, Models, gguf_name, look_up

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 100,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "torch_dtype": "bfloat16",
}


def facts(name: str, **models: object) -> Facts:
    found = look_up(Models(**models), name)  # type: ignore[arg-type]
    assert isinstance(found, Facts), found
    return found


def test_an_organisations_own_entry_wins_over_the_catalogue() -> None:
    entry = Entry(name="Qwen/Qwen3-8B", source="the policy", memory_gib=99.0)
    assert facts("qwen/qwen3-8b", entries=(entry,)).memory_gib == 99.0


def test_an_entry_may_be_like_a_public_model_and_bear_other_names() -> None:
    entry = Entry(name="acme/chat", source="the policy", like="Qwen/Qwen3-8B", also=("chat",))
    found = facts("chat", entries=(entry,))
    assert found.name == "acme/chat"
    assert found.architecture is not None
    assert found.architecture.hidden_size == 4096
    assert found.assumed == ("acme/chat has the shape of Qwen/Qwen3-8B, as the policy says",)


def test_a_folder_is_known_by_its_name_and_says_that_this_was_assumed() -> None:
    found = facts("/models/Qwen3-8B")
    assert found.source == "catalogue: Qwen/Qwen3-8B"
    assert found.assumed == ("/models/Qwen3-8B holds Qwen/Qwen3-8B, as the folder's name says",)


def test_a_gguf_file_is_known_by_its_name_with_its_type() -> None:
    found = facts("/m/Qwen3-8B-Q4_K_M.gguf")
    assert found.architecture is not None
    assert found.architecture.quantization == Quantization(method="gguf", format="Q4_K_M")
    assert gguf_name("/m/L-UD-Q4_K_XL-00001-of-00002.gguf") == ("/m/L", "Q4_K_XL")
    assert gguf_name("org/name-F16") == ("org/name-F16", "")


def test_a_name_that_nobody_knows_says_who_was_asked() -> None:
    assert look_up(Models(), "nobody/knows") == "model nobody/knows: not known to the catalogue"
    assert look_up(Models(asked=("MLflow",)), "nobody/knows") == (
        "model nobody/knows: not known to the catalogue, nor to MLflow"
    )
    assert look_up(Models(silent=("MLflow at http://m: refused",)), "nobody/knows") == (
        "model nobody/knows: not known to the catalogue; MLflow at http://m: refused"
    )
    missing = look_up(Models(), "/models/own")
    assert isinstance(missing, str)
    assert missing.startswith("model at /models/own: the folder is not to be seen from here")


def header(tensors: dict[str, list[int]]) -> bytes:
    at, listed = 0, {}
    for name, shape in tensors.items():
        size = 2 * shape[0] * shape[1]
        listed[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(listed).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def test_folders_of_models_are_read_with_what_their_headers_list(tmp_path: Path) -> None:
    cached = tmp_path / "models--acme--big" / "snapshots" / "abc"
    plain = tmp_path / "small"
    for folder in (cached, plain):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(CONFIG))
    (plain / "model.safetensors").write_bytes(header({"a": [10, 4]}))
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (cached / "model.safetensors.index.json").write_text(json.dumps(index))
    (cached / "one.safetensors").write_bytes(header({"a": [10, 4]}))
    (cached / "two.safetensors").write_bytes(header({"b": [5, 4]}))
    (tmp_path / "own.yaml").write_text("models:\n- {name: acme/box, memory: 60GB}\n")
    found = {e.name: e for e in read_models(str(tmp_path))}
    assert sorted(found) == ["acme/big", "acme/box", "small"]
    assert found["acme/box"].memory_gib == 60.0
    checkpoints = {n: e.checkpoint.total_bytes for n, e in found.items() if e.checkpoint}
    assert checkpoints == {"acme/big": 120, "small": 80}


def test_a_catalogue_may_lie_in_a_config_map(tmp_path: Path) -> None:
    text = "models:\n- {name: acme/chat, like: Qwen/Qwen3-8B}\n"
    document = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"models.yaml": text}}
    file = tmp_path / "map.json"
    file.write_text(json.dumps({**document, "metadata": {"name": "m"}}))
    (entry,) = read_models(str(file))
    assert (entry.name, entry.like, entry.source) == (
        "acme/chat",
        "Qwen/Qwen3-8B",
        f"{file} data.models.yaml",
    )


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("models:\n- {name: x, like: nobody/knows}\n", "policy-unknown-model"),
        ("models:\n- {name: x, memori: 3}\n", "policy-unknown-key"),
        ("models:\n- {name: x}\n", "policy-does-nothing"),
        ("models:\n- {name: x, config: {hidden_size: 3}}\n", "policy-bad-value"),
        ("a: 1\n", "no-models"),
        ("{", "bad-json"),
    ],
)
def test_a_catalogue_that_is_wrong_is_one_clear_error(tmp_path: Path, text: str, ref: str) -> None:
    file = tmp_path / "models.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_models(str(file))
    assert caught.value.ref == ref
    assert caught.value.message


def test_a_model_file_that_was_cut_or_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(BadInput) as caught:
        read_models(str(tmp_path / "m.gguf"))
    assert caught.value.ref == "model-file-cut"
    for path in (tmp_path / "empty.gguf", tmp_path / "gone.gguf", tmp_path / "gone"):
        if path.name == "empty.gguf":
            path.write_bytes(b"")
        with pytest.raises(BadInput):
            read_models(str(path))
