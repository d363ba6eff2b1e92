"""``topo`` as a whole command: its forms, its refusals, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_gpuadmit.cli.main import main

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples" / "cluster")
DEVICES = str(ROOT / "examples" / "devices")
POLICY = str(ROOT / "examples" / "policy.yaml")
SCHEMA = json.loads(
    resources.files("kubectl_gpuadmit").joinpath("schema/topology-v1.json").read_text()
)
MATRIX = """\
        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity
GPU0     X      NV4     PIX     0-15            0
GPU1    NV4      X      SYS     16-31           1
mlx5_0  PIX     SYS      X
"""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["topo", *words])
    out, err = capsys.readouterr()
    return code, out, err


def as_data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = run(capsys, *words, "-o", "json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    return document


def test_the_example_clusters_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_data(capsys, "--snapshot", CLUSTER, "--policy", POLICY)
    assert document["source"] == {"kind": "snapshot", "name": f"snapshot {CLUSTER}"}
    assert {pool["name"] for pool in document["pools"]} >= {"inference", "training"}
    assert all(node["total"] > 0 for node in document["nodes"])
    published = as_data(capsys, "--snapshot", DEVICES)
    assert {"slices"} <= {node["source"] for node in published["nodes"]}


def test_one_node_is_its_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    node = as_data(capsys, "--snapshot", CLUSTER)["nodes"][0]["name"]
    code, out, _ = run(capsys, node, "--snapshot", CLUSTER)
    assert code == 0
    assert out.startswith(node)
    code, out, _ = run(capsys, node, "--snapshot", CLUSTER, "-o", "svg")
    assert (code, out.startswith("<svg ")) == (0, True)


def test_a_pool_is_a_name_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_data(capsys, "training", "--snapshot", CLUSTER, "--policy", POLICY)
    assert {node["pool"] for node in found["nodes"]} == {"training"}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("no-such", "--snapshot", CLUSTER), "no-such-node"),
        (("-o", "svg", "--snapshot", CLUSTER), "one-node"),
        (("pod/no-such", "--snapshot", CLUSTER), "no-such-pod"),
        (("--from-smi", str(ROOT / "README.md")), "not-a-matrix"),
    ],
)
def test_what_cannot_be_shown_is_one_error(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], error: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert f"[{error}]" in err
    assert "Traceback" not in err


def test_a_pasted_matrix_is_read_with_its_network_cards(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pasted = tmp_path / "topo.txt"
    pasted.write_text(MATRIX)
    code, out, _ = run(capsys, "--from-smi", str(pasted))
    assert code == 0
    assert out.splitlines() == [
        "pasted  2 × GPU · NVLink, 1 island of 2 · 2 NUMA nodes",
        "  nvidia-smi topo -m",
        "      0   1    NUMA",
        "┌  0  ·   NV4     0",
        "│  1  NV4 ·       1",
        "  NIC mlx5_0        GPU 0 (PIX)",
        "",
    ]
    found = as_data(capsys, "--from-smi", str(pasted))
    assert found["nodes"][0]["links"] == [
        {"a": 0, "b": 1, "type": "NV4", "lanes": 4, "lanesTotal": None}
    ]


def test_the_way_of_a_pod_and_its_claims(capsys: pytest.CaptureFixture[str]) -> None:
    lineage = as_data(capsys, "pod/sweep-0", "--snapshot", CLUSTER, "--policy", POLICY)["lineage"]
    assert [one["pod"] for one in lineage] == ["sweep-0"]
    assert sum(device["count"] for device in lineage[0]["devices"]) == 2
    assert as_data(capsys, "--claims", "--snapshot", CLUSTER)["claims"] == []


def test_nothing_differs_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_data(capsys, "--diff", CLUSTER, "--snapshot", CLUSTER)
    assert (found["worse"], found["changes"], found["newAlerts"]) == (False, [], [])


def test_watching_shows_it_again_and_again() -> None:
    words = ["topo", "--snapshot", CLUSTER, "--watch", "--interval", "1"]
    call = f"import sys; from kubectl_gpuadmit.cli.main import main; sys.exit(main({words!r}))"
    seen = 0
    with subprocess.Popen(
        [sys.executable, "-c", call], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as watching:
        assert watching.stdout is not None
        for line in watching.stdout:
            seen += line.startswith("POOL")
            if seen == 2:
                break
        watching.kill()
    assert seen == 2


def test_the_page_is_written_whole(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--snapshot", CLUSTER, "--policy", POLICY, "-o", "html")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert out.endswith("</html>\n")
