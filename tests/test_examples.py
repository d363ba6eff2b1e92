"""Each example gives what was reasoned beforehand from its objects (examples/expected.yaml)."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate import PROGRAM

ROOT = Path(__file__).parent.parent
EXPECTED: dict[str, Any] = yaml.safe_load((ROOT / "tests/examples/expected.yaml").read_text())


@cache
def explained(name: str) -> tuple[dict[str, Any], int]:
    command = [sys.executable, "-c", PROGRAM, "explain", "-f", f"examples/workloads/{name}"]
    command += ["--snapshot", "examples/cluster", "--policy", "examples/policy.yaml", "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report, done.returncode


def ref(item: dict[str, Any]) -> str:
    return f"{item['ref']['kind'].lower()}/{item['ref']['name']}"


def has(codes: list[str], wanted: str) -> bool:
    return any(code == wanted or code.startswith(wanted + "/") for code in codes)


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What of one workload is not as expected; a family name stands for each of its codes."""
    reasons = [finding["reason"] for finding in found["findings"]]
    gpus = wanted.get("gpus", found["gpus"])
    checks: dict[str, tuple[object, object]] = {
        key: (found[key], wanted[key])
        for key in ("admission", "placement", "running", "pods")
        if key in wanted
    }
    checks["gpus"] = (found["gpus"], {"nvidia.com/gpu": gpus} if isinstance(gpus, int) else gpus)
    for code in wanted.get("blockers", []):
        checks[f"blocker {code}"] = (has(found["blockers"], code), True)
    for code in wanted.get("findings", []):
        checks[f"finding {code}"] = (has(reasons, code), True)
    if wanted["admission"] in ("admitted", "mutated"):
        refusals = [c for c in found["blockers"] if not c.startswith("placement/")]
        checks["refusals"] = (refusals, [])
    if "waits" in wanted:
        checks["waits for"] = (wanted["waits"] in " ".join(found["waitsFor"]), True)
    if "decided_by" in wanted:
        checks["decided by"] = (wanted["decided_by"] in found["decidedBy"], True)
    return [f"{key}: {is_}, not {not_}" for key, (is_, not_) in checks.items() if is_ != not_]


@pytest.mark.parametrize("name", EXPECTED)
def test_example_gives_the_expected_verdicts(name: str) -> None:
    report, code = explained(name)
    expected = EXPECTED[name]
    wrong = {
        ref(found): different
        for found in report["workloads"]
        if (different := differences(found, expected["workloads"].get(ref(found), {})))
    }
    assert wrong == {}
    assert [ref(found) for found in report["workloads"]] == list(expected["workloads"])
    skipped = [{"ref": ref(s), "treated": s["treated"]} for s in report["skipped"]]
    assert [s for s in skipped if s["treated"] == "unknown-kind"] == expected.get("skipped", [])
    lines = [
        int(s["location"].split(":")[1]) for s in report["skipped"] if s["treated"] == "unreadable"
    ]
    assert lines == expected.get("unreadable", [])
    assert code == expected["exit"]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_remedy_that_is_printed_was_tried(name: str) -> None:
    report, _ = explained(name)
    untried = [
        (ref(found), remedy["summary"])
        for found in report["workloads"]
        for remedy in found["remedies"]
        if not remedy["verified"]
    ]
    assert untried == []


def test_every_example_has_an_expectation() -> None:
    assert set(EXPECTED) == {path.name for path in (ROOT / "examples/workloads").iterdir()}


def test_the_whole_folder_is_judged_in_one_run() -> None:
    command = [sys.executable, "-c", PROGRAM, "check", "examples/workloads"]
    command += ["--snapshot", "examples/cluster", "--policy", "examples/policy.yaml", "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    judged = [ref(found) for found in report["workloads"]]
    assert sorted(judged) == sorted(name for e in EXPECTED.values() for name in e["workloads"])
    assert done.returncode == 2
