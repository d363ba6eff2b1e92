"""The whole way from files to exit codes: the real reader, engine and renderers, as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from tests.command import COMMAND, ENVIRONMENT, called

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: inf-0}
status: {allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}}
"""
KINDS = [
    "Pod",
    "ResourceQuota",
    "LimitRange",
    "PriorityClass",
    "Namespace",
    "RuntimeClass",
    "ServiceAccount",
]
INDEX = {
    "apiVersion": "gpu-admit.io/v1",
    "kind": "Snapshot",
    "asOf": "2026-03-01T11:55:00Z",
    "kinds": [*KINDS, "PersistentVolume", "PersistentVolumeClaim", "StorageClass"],
}
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
"""


def pod(name: str, gpus: int) -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  containers:
  - name: main
    image: registry.example.com/llm:1
    resources:
      limits: {{nvidia.com/gpu: {gpus}}}
"""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "nodes.yaml").write_text(NODE)
    (tmp_path / "cluster" / "namespaces.yaml").write_text(NAMESPACE)
    (tmp_path / "cluster" / "index.json").write_text(json.dumps(INDEX))
    (tmp_path / "ok.yaml").write_text(pod("ok", 4))
    (tmp_path / "big.yaml").write_text(pod("big", 16))
    (tmp_path / "bad.yaml").write_text("kind: [\n")
    (tmp_path / "config.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    )
    (tmp_path / "strange.yaml").write_text(
        "apiVersion: acme.io/v1\nkind: Trainer\nmetadata: {name: t}\n"
        "spec: {template: {spec: {containers: [{name: c, image: i}]}}}\n"
    )
    (tmp_path / "empty").mkdir()
    return tmp_path


def call(there: Path, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    where = ("--snapshot", "cluster", "--now", "2026-03-01T12:00:00Z")
    return called(*args, *where, given=given.encode(), cwd=there)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["explain", "-f", "ok.yaml"], 0),
        (["explain", "-f", "big.yaml"], 1),
        (["explain", "-f", "bad.yaml"], 2),
        (["explain", "-f", "nowhere.yaml"], 2),
        (["explain", "-f", "empty"], 2),
        (["explain", "-f", "config.yaml"], 2),
        (["explain", "-f", "ok.yaml", "--policy", "nowhere.yaml"], 2),
        (["explain", "-f", "strange.yaml"], 3),
        (["check", "ok.yaml", "big.yaml"], 1),
        (["check", "ok.yaml", "big.yaml", "strange.yaml"], 3),
        (["check", "."], 2),
    ],
)
def test_each_outcome_has_its_exit_code(there: Path, args: list[str], code: int) -> None:
    done = call(there, *args)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code >= 2 and "strange.yaml" not in args:
        assert done.stderr.startswith("error: ")


def test_a_bad_document_stops_nobody_else(there: Path) -> None:
    (there / "mixed.yaml").write_text(f"kind: [\n---\n{pod('ok', 1)}")
    done = call(there, "check", "mixed.yaml", "-o", "json")
    document = json.loads(done.stdout)
    assert [w["ref"]["name"] for w in document["workloads"]] == ["ok"]
    assert [s["treated"] for s in document["skipped"]] == ["unreadable"]
    assert done.returncode == 2


def test_a_workload_is_explained_from_headline_to_sources(there: Path) -> None:
    done = call(there, "explain", "-f", "ok.yaml")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "pod/ok · default · 1 pod × 4 nvidia.com/gpu                             ADMITTED"
    )
    assert lines[-1] == "Rests on  snapshot cluster, 5 min old · no policy file"
    assert done.stderr == ""


def test_standard_input_is_read(there: Path) -> None:
    done = call(there, "explain", "-f", "-", "-o=json", given=pod("piped", 1))
    assert json.loads(done.stdout)["workloads"][0]["ref"]["name"] == "piped"


@pytest.mark.parametrize("output", ["json", "yaml", "sarif", "junit", "markdown", "table"])
def test_every_format_parses_with_errors_beside_it(there: Path, output: str) -> None:
    done = call(there, "check", ".", "-o", output)
    assert done.returncode == 2 and done.stderr.startswith("error: bad.yaml:")
    match output:
        case "json" | "sarif":
            assert json.loads(done.stdout)
        case "yaml":
            assert yaml.safe_load(done.stdout)
        case "junit":
            assert ET.fromstring(done.stdout).tag == "testsuites"
        case _:
            assert "error:" not in done.stdout


def test_sarif_points_at_lines_of_the_file(there: Path) -> None:
    run = json.loads(call(there, "check", "big.yaml", "-o", "sarif").stdout)["runs"][0]
    places = [
        r["locations"][0]["physicalLocation"] for r in run["results"] if r["level"] == "error"
    ]
    assert places
    assert {p["artifactLocation"]["uri"] for p in places} == {"big.yaml"}
    assert all(1 <= p["region"]["startLine"] <= 10 for p in places)


def test_the_same_call_prints_the_same_bytes(there: Path) -> None:
    once, again = (call(there, "check", ".", "-o", "json").stdout for _ in range(2))
    assert once == again


def test_a_reader_that_leaves_early_changes_no_exit_code(there: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "check", "big.yaml", "--snapshot", "cluster"]
    done = subprocess.run(
        command,
        cwd=there,
        env=ENVIRONMENT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    "words",
    [["check", "ok.yaml", "--snapshot", "cluster"], ["--help"], ["version"], ["policy", "init"]],
    ids=" ".join,
)
def test_a_full_disk_is_one_error(there: Path, words: list[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as stream:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=there,
            env=ENVIRONMENT,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == (
        "error: stdout cannot be written: No space left on device [cannot-write]"
    )
    assert "Traceback" not in done.stderr


def test_ctrl_c_is_one_line_and_code_130(there: Path) -> None:
    os.mkfifo(there / "slow.yaml")
    command = [*COMMAND, "explain", "-f", "slow.yaml", "--snapshot", "cluster"]
    process = subprocess.Popen(
        command,
        cwd=there,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with (there / "slow.yaml").open("w"):  # opens once the command reads from it
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "stopped: nothing was written\n")


def test_a_terminal_without_unicode_gets_ascii(there: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "check", "ok.yaml", "big.yaml", "strange.yaml", "--snapshot", "cluster"]
    done = subprocess.run(command, cwd=there, env=environment, capture_output=True, check=False)
    assert done.stdout.isascii() and done.stderr.isascii()
    assert done.stdout.startswith(b"no pod/big")


def test_a_policy_without_rules_is_said_to_have_asked_none(there: Path) -> None:
    (there / "policy.yaml").write_text(
        "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\nmetadata: {name: p}\n"
    )
    done = call(there, "check", "ok.yaml", "--policy", "policy.yaml")
    assert done.stderr == (
        "warning: policy policy.yaml: none of its rules was asked of any workload\n"
    )
    assert done.returncode == 0


def test_every_rule_and_reason_has_a_page(there: Path) -> None:
    from kubectl_gpuadmit.cli.catalogue import catalogue
    from kubectl_gpuadmit.render.rulepage import rule_page
    from kubectl_gpuadmit.rule import REGISTRY

    codes = catalogue()
    assert REGISTRY and codes
    for name in {**REGISTRY, **codes}:
        page = rule_page(name, rules=REGISTRY, catalogue=codes).plain
        assert page.startswith(name)
        assert all(len(line) <= 80 for line in page.splitlines()), name


def test_policy_init_is_sound_and_the_schema_is_json(there: Path) -> None:
    started = subprocess.run(
        [*COMMAND, "policy", "init"], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    (there / "policy.yaml").write_text(started.stdout)
    linted = subprocess.run(
        [*COMMAND, "policy", "lint", "policy.yaml"],
        cwd=there, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (linted.returncode, linted.stderr) == (0, "")
    assert linted.stdout == "policy.yaml: a sound policy\n"
    schema = subprocess.run(
        [*COMMAND, "policy", "schema"], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert json.loads(schema.stdout)["type"] == "object"


def test_a_policy_with_a_slip_is_told_with_its_line(there: Path) -> None:
    (there / "policy.yaml").write_text(
        "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\nmetadata: {name: p}\nruels: {}\n"
    )
    for args in (
        ["policy", "lint", "policy.yaml"],
        ["check", "ok.yaml", "--snapshot", "cluster", "--policy", "policy.yaml"],
    ):
        done = subprocess.run(
            [*COMMAND, *args],
            cwd=there,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("error: policy.yaml:4:1 ruels: ")
        assert "rules" in done.stderr.splitlines()[1]
