"""Served models in whole answers: remedies that hold, options of the call, what is not loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from kubectl_gpuadmit.cli.main import main

ROOT = Path(__file__).parents[2]
SNAPSHOT = ("--snapshot", str(ROOT / "examples/cluster"))
POLICY = ("--policy", str(ROOT / "examples/policy.yaml"))


def explained(
    capsys: pytest.CaptureFixture[str], *words: str, policy: tuple[str, ...] = POLICY
) -> tuple[int, dict[str, Any]]:
    code = main(["explain", *words, *SNAPSHOT, *policy, "-o", "json"])
    out, err = capsys.readouterr()
    assert out, err
    return code, json.loads(out)["workloads"][-1]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("model-60gb-on-a10", "nodes with NVIDIA-H100-80GB-HBM3 (4)"),
        ("model-kv-burst", "--max-model-len 16,384"),
    ],
)
def test_each_remedy_makes_the_model_fit_when_it_is_applied(
    name: str, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / f"examples/workloads/{name}.yaml"
    code, found = explained(capsys, "-f", str(file))
    assert (code, found["running"]) == (1, "exceeds")
    summaries = [remedy["summary"] for remedy in found["remedies"]]
    assert summaries[0] == first
    assert len(summaries) == 3
    *others, manifest = yaml.safe_load_all(file.read_text("utf-8"))
    for remedy in found["remedies"]:
        assert remedy["result"]["running"] == "fits"
        changed = jsonpatch.apply_patch(manifest, remedy["patch"])
        again = tmp_path / "changed.yaml"
        again.write_text(yaml.safe_dump_all([*others, changed]), "utf-8")
        code, verdict = explained(capsys, "-f", str(again), "--no-remedies")
        outcome = (code, verdict["admission"], verdict["placement"], verdict["running"])
        assert outcome == (0, "admitted", "fits", "fits"), remedy["summary"]


def manifest(*args: str, image: str = "vllm/vllm-openai:v0.11.0", **pod: Any) -> str:
    container = {
        "name": "vllm",
        "image": image,
        "args": list(args),
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    spec = {
        "nodeSelector": {"gpu-partition": "inf"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [container],
        **pod,
    }
    data = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    return json.dumps(data)


def test_the_load_that_a_call_names_is_held_against_the_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(manifest("Qwen/Qwen3-32B", "--max-model-len", "8192"))
    none: tuple[str, ...] = ()
    assert explained(capsys, "-f", str(file), policy=none)[1]["running"] == "fits"
    load = ("--concurrency", "32", "--context-length", "8192", "--no-remedies")
    code, found = explained(capsys, "-f", str(file), *load, policy=none)
    assert (code, found["running"]) == (0, "exceeds")
    (finding,) = [f for f in found["findings"] if f["rule"] == "model/memory-fit"]
    assert (finding["reason"], finding["level"]) == ("model/kv-cache", "warn")
    assert "32 requests of 8,192 tokens need 64.0 GiB of cache a GPU" in finding["detail"]


def test_a_number_for_context_is_a_length_and_a_word_a_kubeconfigs_context(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(manifest("Qwen/Qwen3-32B", "--max-model-len", "8192"))
    load = ("--concurrency", "32", "--context", "8192", "--no-remedies")
    assert explained(capsys, "-f", str(file), *load, policy=())[1]["running"] == "exceeds"
    assert main(["explain", "-f", str(file), *SNAPSHOT, "--context", "prod"]) == 2
    assert "is about a live cluster" in capsys.readouterr().err
    assert main(["explain", "-f", str(file), *SNAPSHOT, "--concurrency", "many"]) == 2
    assert "'many' is no whole number above 0" in capsys.readouterr().err


def test_models_of_ones_own_are_read_from_what_the_call_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, models = tmp_path / "pod.json", tmp_path / "models.yaml"
    file.write_text(manifest("acme/box"))
    models.write_text("models:\n- {name: acme/box, memory: 90GB}\n")
    assert explained(capsys, "-f", str(file), policy=())[1]["running"] == "unknown"
    _, found = explained(
        capsys, "-f", str(file), "--models", str(models), "--no-remedies", policy=()
    )
    assert found["running"] == "exceeds"
    (finding,) = [f for f in found["findings"] if f["rule"] == "model/memory-fit"]
    assert finding["detail"] == (
        "acme/box needs 90 GiB of GPU memory; requested 1 × NVIDIA-H100-80GB-HBM3 (79.6 GiB)"
    )


def test_an_unknown_model_at_deny_level_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, policy = tmp_path / "pod.json", tmp_path / "policy.yaml"
    file.write_text(manifest("nobody/knows"))
    policy.write_text(
        "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
        "rules: {model/memory-fit: {level: deny, ifMissing: deny}}\n"
    )
    code, found = explained(capsys, "-f", str(file), policy=("--policy", str(policy)))
    assert (code, found["running"]) == (3, "unknown")


LOADED = """
import sys
from kubectl_gpuadmit.cli.main import main
code = main(sys.argv[1:])
print(sorted(n for n in sys.modules if n.startswith("kubectl_gpuadmit.sizing")), file=sys.stderr)
sys.exit(code)
"""


def loaded(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip().splitlines()[-1]


def test_nothing_of_sizing_is_loaded_for_help_or_a_pod_without_gpus(tmp_path: Path) -> None:
    assert loaded("--help") == "[]"
    file = tmp_path / "pod.json"
    data = json.loads(manifest("x"))
    del data["spec"]["containers"][0]["resources"]
    file.write_text(json.dumps(data))
    assert loaded("explain", "-f", str(file), *SNAPSHOT) == "[]"


def test_the_envelope_and_the_catalogue_are_loaded_for_a_known_model_alone(tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    file.write_text(manifest("--benchmark", image="registry.example.com/cuda:12"))
    found = loaded("explain", "-f", str(file), *SNAPSHOT)
    assert "sizing.recognise" in found
    assert "sizing.envelope" not in found
    assert "sizing.catalogue" not in found
