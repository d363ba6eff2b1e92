"""What a real MLflow server says of registered models, through our own adapter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.mlflow import Asked, ask
from kubectl_gpuadmit.cli.main import main
from kubectl_gpuadmit.sizing.registry import Entry

from .conftest import Server


@pytest.fixture(scope="module")
def registry(mlflow: Server) -> Server:
    mlflow.register("support-bot", {"team": "support"}, {"vram_gb": "30"}, {"vram_gb": "60"})
    mlflow.post("registered-models/alias", name="support-bot", alias="prod", version="1")
    mlflow.register("summariser", {"gpu-admit.io/like": "Qwen/Qwen3-8B"}, {})
    mlflow.register("bare", {"gpu-admit.io/memory": "20GB"})
    mlflow.register("silent", {"owner": "nobody"}, {})
    return mlflow


def test_the_newest_version_counts_where_none_is_named(registry: Server) -> None:
    assert ask(registry.url, ["support-bot"]) == Asked(
        (Entry(name="support-bot", source="MLflow support-bot version 2", memory_gib=60.0),)
    )


def test_versions_aliases_and_uris_lead_to_their_own_tags(registry: Server) -> None:
    names = [
        "support-bot@prod",
        "support-bot:2",
        "models:/support-bot/1",
        "models:/support-bot@prod",
    ]
    assert [(e.name, e.source, e.memory_gib) for e in ask(registry.url, names).entries] == [
        ("support-bot@prod", "MLflow support-bot alias prod (version 1)", 30.0),
        ("support-bot:2", "MLflow support-bot version 2", 60.0),
        ("models:/support-bot/1", "MLflow support-bot version 1", 30.0),
        ("models:/support-bot@prod", "MLflow support-bot alias prod (version 1)", 30.0),
    ]


def test_tags_of_the_model_hold_where_its_version_says_nothing(registry: Server) -> None:
    assert ask(registry.url, ["acme/summariser", "bare"]).entries == (
        Entry(name="acme/summariser", source="MLflow summariser version 1", like="Qwen/Qwen3-8B"),
        Entry(name="bare", source="MLflow bare", memory_gib=20.0),
    )


def test_what_is_not_there_or_says_nothing_is_told_and_is_no_fault(registry: Server) -> None:
    assert ask(
        registry.url, ["nobody/knows-it", "silent", "support-bot@none", "support-bot:9"]
    ) == Asked(
        notes=(
            "MLflow has silent, and no tag gpu-admit.io/memory or gpu-admit.io/like on it",
            "MLflow has support-bot, and no alias none",
            "MLflow has support-bot, and no version 9",
        )
    )


def manifest(model: str) -> str:
    container = {
        "name": "server",
        "image": "registry.example.com/bot:1",
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bot", "annotations": {"gpu-admit.io/model": model}},
        "spec": {"containers": [container]},
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a10", "labels": {"nvidia.com/gpu.product": "NVIDIA-A10"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "2", "cpu": "8", "memory": "64Gi", "pods": "10"}
        },
    }
    return "\n---\n".join(json.dumps(item) for item in (node, pod))


def policy(url: str, *, if_missing: str = "warn") -> str:
    rule = {"model/memory-fit": {"level": "deny", "ifMissing": if_missing}}
    return json.dumps(
        {
            "apiVersion": "gpu-admit.io/v1",
            "kind": "AdmissionPolicy",
            "models": {"mlflow": url},
            "rules": rule,
        }
    )


def check(
    folder: Path, model: str, url: str, capsys: pytest.CaptureFixture[str], **more: str
) -> tuple[int, dict[str, object]]:
    (folder / "snapshot").mkdir(exist_ok=True)
    node, pod = manifest(model).split("\n---\n")
    (folder / "snapshot" / "node.json").write_text(node)
    (folder / "pod.json").write_text(pod)
    (folder / "policy.json").write_text(policy(url, **more))
    code = main(
        [
            *("check", str(folder / "pod.json"), "--snapshot", str(folder / "snapshot")),
            *("--policy", str(folder / "policy.json"), "-o", "json", "--no-remedies"),
        ]
    )
    found: dict[str, object] = json.loads(capsys.readouterr().out)["workloads"][0]
    return code, found


def test_a_pod_whose_registered_model_needs_60_gb_is_refused_one_a10(
    registry: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = check(tmp_path, "support-bot", registry.url, capsys)
    assert (code, found["running"]) == (1, "exceeds")
    findings = [f for f in found["findings"] if f["rule"] == "model/memory-fit"]  # type: ignore[attr-defined]
    assert [f["detail"] for f in findings] == [
        "support-bot needs 60 GiB of GPU memory; requested 1 × NVIDIA-A10 (22.5 GiB)"
    ]
    code, found = check(tmp_path, "bare", registry.url, capsys)
    assert (code, found["running"]) == (0, "fits")


def test_a_registry_that_cannot_be_reached_counts_as_the_policy_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:9"
    code, found = check(tmp_path, "support-bot", url, capsys)
    assert (code, found["running"]) == (0, "unknown")
    assert [u["missing"] for u in found["unknowns"] if u["rule"] == "model/memory-fit"] == [  # type: ignore[attr-defined]
        "model support-bot: not known to the catalogue; "
        "MLflow at http://127.0.0.1:9: connection refused"
    ]
    code, _ = check(tmp_path, "support-bot", url, capsys, if_missing="deny")
    assert code == 3
