"""``snapshot``, ``diff`` and capsules as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_gpuadmit.cli.main import main

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples/cluster")
POLICY = str(ROOT / "examples/policy.yaml")
FITS = str(ROOT / "examples/workloads/fits.yaml")


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = main(list(args))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("name", ["s.json", "s.json.zst"])
def test_a_snapshot_stands_in_for_what_it_was_made_from(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / name)
    code, out, err = call(capsys, "snapshot", "--snapshot", CLUSTER, "-o", file)
    assert (code, out) == (0, "")
    assert err.startswith(f"{file}: 142 objects of 19 kinds, ")
    question = ("explain", "-f", FITS, "--policy", POLICY, "-o", "json", "--snapshot")
    first, second = (json.loads(call(capsys, *question, source)[1]) for source in (CLUSTER, file))
    assert second["workloads"] == first["workloads"]
    assert (second["asOf"], second["skipped"]) == (first["asOf"], first["skipped"])
    again = str(tmp_path / ("again" + name[1:]))
    assert call(capsys, "snapshot", "--snapshot", file, "-o", again)[0] == 0
    assert Path(again).read_bytes() == Path(file).read_bytes()


def test_a_snapshot_is_not_overwritten_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    file.write_text("mine")
    args = ("snapshot", "--snapshot", CLUSTER, "-o", str(file))
    assert call(capsys, *args) == (
        2,
        "",
        f"error: {file}: is there already, and is not overwritten [file-exists]\n"
        "hint: name another file, or remove it first\n",
    )
    assert file.read_text() == "mine"
    assert call(capsys, *args, "--force")[0] == 0
    assert file.read_text().startswith('{"apiVersion":"gpu-admit.io/v1","kind":"Snapshot"')


def test_a_source_that_does_not_say_when_it_was_taken_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "nodes.yaml"
    source.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    file = tmp_path / "s.json"
    code, _, err = call(capsys, "snapshot", "--snapshot", str(source), "-o", str(file))
    assert code == 0
    assert err.startswith(f"warning: {source} does not say when it was taken; its newest file says")
    moment = "2026-11-29T14:00:00Z"
    args = ("snapshot", "--snapshot", str(source), "-o", str(file), "--force", "--now", moment)
    assert not call(capsys, *args)[2].startswith("warning")
    assert json.loads(file.read_text())["asOf"] == moment


def test_a_snapshot_goes_to_stdout_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "snapshot", "--snapshot", CLUSTER, "-o", "-", "--redact")
    assert (code, err) == (0, "")
    assert "llama" not in out
    assert len(json.loads(out)["items"]) == 142


def test_what_contradicts_itself_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "s.json")
    code, _, err = call(capsys, "snapshot", "-A", "-n", "a", "--snapshot", CLUSTER, "-o", file)
    assert (code, err.splitlines()[0]) == (2, "error: -n and -A contradict each other [usage]")


def test_diff_says_by_its_exit_code_whether_something_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, "diff", CLUSTER, CLUSTER)
    assert (code, out.splitlines()[0]) == (
        0,
        "18 workloads compared · 0 objects differ · no verdict changed",
    )
    less = tmp_path / "less.json"
    args = ("snapshot", "--snapshot", CLUSTER, "-o", str(less), "--now", "2026-11-29T18:00:00Z")
    call(capsys, *args)
    code, out, _ = call(capsys, "diff", CLUSTER, str(less), "--policy", POLICY, "-o", "json")
    assert code == 1
    assert [change["ref"]["name"] for change in json.loads(out)["changed"]] == ["llama-ft"]
    assert call(capsys, "diff", str(less), CLUSTER, "--policy", POLICY)[0] == 0


@pytest.mark.parametrize(
    ("args", "code", "ref"),
    [
        (["nowhere", CLUSTER], 2, "no-such-path"),
        ([CLUSTER, CLUSTER, "-f", "nowhere.yaml"], 2, "no-such-path"),
        ([CLUSTER, CLUSTER, "-f", f"{CLUSTER}/limitranges.yaml"], 2, "no-workload"),
        ([CLUSTER, CLUSTER, "--policy", FITS], 2, "policy-not-a-policy"),
        ([CLUSTER], 2, "usage"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_error(
    args: list[str], code: int, ref: str, capsys: pytest.CaptureFixture[str]
) -> None:
    got, _, err = call(capsys, "diff", *args)
    assert got == code
    assert f"[{ref}]" in err.splitlines()[0]


def test_a_capsule_is_replayed_with_no_other_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "c.json.zst")
    args = ("explain", "-f", FITS, "--snapshot", CLUSTER, "--policy", POLICY, "-o", "json")
    first = call(capsys, *args, "--capsule", file)
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "explain", "--from-capsule", file, "-o", "json")
    assert (code, out) == first[:2]
    assert err == (f"{file}: recorded by version 0.1.0; version 0.1.0 gives the same verdict\n")


def test_a_capsule_whose_verdict_is_another_today_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kubectl_gpuadmit.snapshots.capsule import seal

    file = tmp_path / "c.json"
    args = ("explain", "-f", FITS, "--snapshot", CLUSTER, "--policy", POLICY)
    call(capsys, *args, "--capsule", str(file))
    content = json.loads(file.read_text())
    content["verdict"]["workloads"][0]["placement"] = "never"
    del content["sha256"]
    file.write_text(json.dumps({**content, "sha256": seal(content), "program": "0.0.9"}))
    code, _, err = call(capsys, "explain", "--from-capsule", str(file))
    assert code == 2  # the hash covers the program's version too
    content["program"] = "0.0.9"
    file.write_text(json.dumps({**content, "sha256": seal(content)}))
    code, _, err = call(capsys, "explain", "--from-capsule", str(file))
    assert code == 0
    assert err == (
        f"warning: {file}: recorded by version 0.0.9; version 0.1.0 gives another verdict:"
        " deployment/summariser was admitted, never, is admitted, fits\n"
    )


def test_a_capsule_is_not_overwritten_and_the_answer_is_not_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.json"
    file.write_text("mine")
    args = ("explain", "-f", FITS, "--snapshot", CLUSTER, "--capsule", str(file))
    code, out, err = call(capsys, *args)
    assert (code, out, file.read_text()) == (2, "", "mine")
    assert "[file-exists]" in err


def test_an_answer_is_shown_even_if_its_capsule_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nowhere" / "c.json"
    args = ("explain", "-f", FITS, "--snapshot", CLUSTER, "--capsule", str(file))
    code, out, err = call(capsys, *args)
    assert code == 3
    assert out.startswith("deployment/summariser")
    assert err.startswith(f"error: {file}: cannot be written: No such file or directory")


@pytest.mark.parametrize(
    "more", [["-f", FITS], ["--snapshot", CLUSTER], ["--policy", POLICY], ["-n", "team-a"]]
)
def test_a_capsule_takes_no_other_input(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, "explain", "--from-capsule", "c.json", *more)
    assert code == 2
    assert "[capsule-alone]" in err


SERVED = """\
apiVersion: v1
kind: Pod
metadata: {name: chat, namespace: team-a}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.11.0
    args: [--model, acme/chat, --max-model-len, "8192"]
    resources: {limits: {nvidia.com/gpu: "1"}}
"""
H100 = """\
apiVersion: v1
kind: Node
metadata:
  name: h100-0
  labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: "81559"}
status: {allocatable: {nvidia.com/gpu: "8", cpu: "32", pods: "110"}}
"""
CATALOGUE = """\
models:
- {name: acme/chat, like: Qwen/Qwen3-8B}
- {name: acme/other, memory: 500GB}
"""


def test_a_capsule_keeps_the_load_and_the_models_of_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pod.yaml").write_text(SERVED)
    (tmp_path / "nodes.yaml").write_text(H100)
    (tmp_path / "models.yaml").write_text(CATALOGUE)
    nodes = str(tmp_path / "nodes.yaml")
    asked = ("explain", "-f", str(tmp_path / "pod.yaml"), "--snapshot", nodes, "-o", "json")
    asked += ("--now", "2026-11-29T12:00:00Z")
    models = ("--models", str(tmp_path / "models.yaml"))
    load = ("--concurrency", "500", "--context-length", "8192")
    file = tmp_path / "c.json"
    first = call(capsys, *asked, *models, *load, "--capsule", str(file))
    (workload,) = json.loads(first[1])["workloads"]
    assert (workload["running"], workload["models"][0]["model"]) == ("exceeds", "acme/chat")
    assert call(capsys, *asked, *models)[1] != first[1], "the load decides"
    assert call(capsys, *asked, *load)[1] != first[1], "the model's entry decides"
    held = json.loads(file.read_text())
    assert held["load"] == {"concurrency": 500, "context": 8192}
    assert [entry["name"] for entry in held["models"]["entries"]] == ["acme/chat"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").unlink()
    code, out, err = call(capsys, "explain", "--from-capsule", str(file), "-o", "json")
    assert (code, out) == first[:2]
    assert err.endswith("gives the same verdict\n")


def test_a_capsule_without_them_is_written_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.json"
    call(capsys, "explain", "-f", FITS, "--snapshot", CLUSTER, "--capsule", str(file))
    assert {"load", "models"}.isdisjoint(json.loads(file.read_text()))


def test_a_capsule_of_a_folder_of_model_files_is_replayed_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Architecture and stored tensors come back as they were read."""
    (tmp_path / "pod.yaml").write_text(SERVED)
    (tmp_path / "nodes.yaml").write_text(H100)
    nodes = str(tmp_path / "nodes.yaml")
    folder = tmp_path / "chat"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "fp8",
            "weight_block_size": [128, 128],
            "activation_scheme": "dynamic",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    asked = ("explain", "-f", str(tmp_path / "pod.yaml"), "--snapshot", nodes, "-o", "json")
    file = tmp_path / "c.json"
    first = call(capsys, *asked, "--models", str(folder), "--capsule", str(file))
    (workload,) = json.loads(first[1])["workloads"]
    assert workload["running"] == "fits"
    code, out, _ = call(capsys, "explain", "--from-capsule", str(file), "-o", "json")
    assert (code, out) == first[:2]
