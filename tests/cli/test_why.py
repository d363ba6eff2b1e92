"""``why`` as a person calls it: where the text comes from, what is printed, the exit codes."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kubectl_gpuadmit.diagnosis.reading import read
from kubectl_gpuadmit.render import why as rendered
from tests.command import called

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    resources.files("kubectl_gpuadmit").joinpath("schema/why-v1.json").read_text("utf-8")
)
QUOTA = (
    'pods "llm-0" is forbidden: exceeded quota: gpus, requested: cpu=8,requests.nvidia.com/gpu=4,'
    " used: cpu=8,requests.nvidia.com/gpu=30, limited: cpu=64,requests.nvidia.com/gpu=32"
)


def call(*args: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    return called("why", *args, given=given)


def test_one_message_in_whole() -> None:
    done = call(QUOTA)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "quota: 1 yours to solve\n"
        "\n"
        "  ✗ yours to solve  ResourceQuota gpus: requests.nvidia.com/gpu asked 4 · used\n"
        "                    30 · limit 32, 2 left\n"
        "                    quota/exceeded\n"
        "\n"
        "Next  kubectl describe resourcequota gpus\n"
    )


@pytest.mark.parametrize("args", [["--message", QUOTA], ["-m", QUOTA], ["-"], [], QUOTA.split()])
def test_the_text_may_come_from_anywhere(args: list[str]) -> None:
    assert call(*args, given=QUOTA.encode()).stdout == call(QUOTA).stdout


def test_json_in_whole() -> None:
    done = call("-o", "json", QUOTA)
    assert json.loads(done.stdout) == {
        "schemaVersion": "gpu-admit.io/why/v1",
        "causes": [
            {
                "reason": "quota/exceeded",
                "detail": "ResourceQuota gpus: requests.nvidia.com/gpu"
                " asked 4 · used 30 · limit 32, 2 left",
                "evidence": [
                    {
                        "subject": "ResourceQuota gpus",
                        "what": f"requests.nvidia.com/gpu {what}",
                        "observed": observed,
                        "wanted": None,
                        "source": "the message",
                        "bound": "",
                    }
                    for what, observed in (("asked", "4"), ("used", "30"), ("limit", "32"))
                ],
                "who": "user",
                "next": "kubectl describe resourcequota gpus",
            }
        ],
        "notUnderstood": [],
    }
    assert yaml.safe_load(call("-o", "yaml", QUOTA).stdout) == json.loads(done.stdout)


def test_what_is_not_understood_is_said_so_beside_what_is() -> None:
    done = call("0/3 nodes are available: 1 the moon is in the way, 2 Insufficient nvidia.com/gpu.")
    assert done.returncode == 3
    assert done.stdout == (
        "scheduler: 1 waits\n"
        "\n"
        "  ! waits           2 of 3 nodes: too little free nvidia.com/gpu\n"
        "                    placement/insufficient\n"
        "\n"
        "Next  kubectl gpu-admit explain pod/NAME\n"
        "\n"
        "Not understood\n"
        "  ? 1 the moon is in the way\n"
    )
    assert done.stderr == (
        "error: part of the text is no message that is known here [not-understood]\n"
        "hint: kubectl gpu-admit explain -f FILE judges the objects themselves\n"
    )


def test_nothing_understood_is_exit_code_3() -> None:
    done = call("the moon is in the way")
    assert done.returncode == 3
    assert done.stdout.startswith("not understood: no message in it is known here\n")
    assert "[not-understood]" in done.stderr


@pytest.mark.parametrize("given", [b"", b" \n\t\n"])
def test_an_empty_text_is_bad_input(given: bytes) -> None:
    done = call(given=given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: there is no text to read [empty-message]\n"
        "hint: kubectl describe pod NAME | kubectl gpu-admit why\n"
    )


def test_binary_input_is_not_understood() -> None:
    assert call(given=bytes(range(256))).returncode == 3


def test_a_whole_describe_output() -> None:
    text = """\
Name:             llm-0
Namespace:        serving
Status:           Pending
Conditions:
  Type           Status
  PodScheduled   False
Node-Selectors:   gpu-partition=inf
Tolerations:      node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
Events:
  Type     Reason             Age                From                Message
  ----     ------             ----               ----                -------
  Normal   Scheduled          2m                 default-scheduler   Successfully assigned a/b to c
  Warning  FailedScheduling   3s (x3 over 3m)    default-scheduler   0/3 nodes are available: 1
                                                                     node(s) had untolerated
                                                                     taint(s), 2 Insufficient cpu.
  Normal   NotTriggerScaleUp  2s                 cluster-autoscaler  pod didn't trigger scale-up: 1
                                                                     max node group size reached
"""
    diagnosis = read(text)
    assert [cause.reason for cause in diagnosis.causes] == [
        "placement/taint",
        "placement/insufficient",
        "why/scale-maximum",
    ]
    assert diagnosis.not_understood == ()


TEXTS: list[str] = [
    row["text"]
    for table in sorted((ROOT / "tests" / "diagnosis").glob("*.yaml"))
    for row in yaml.safe_load(table.read_text("utf-8"))
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_diagnosis_holds_the_schema_and_fits_the_width(text: str) -> None:
    diagnosis = read(text)
    made: Any = json.loads(rendered.to_json(diagnosis))
    assert [*Draft202012Validator(SCHEMA).iter_errors(made)] == []
    for width in (40, 80, 120):
        lines = rendered.why(diagnosis, width=width).plain.splitlines()
        assert [line for line in lines if len(line) > width] == []
    assert rendered.why(diagnosis, ascii=True).plain.isascii()


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=200))
def test_any_text_goes_through_every_form(text: str) -> None:
    diagnosis = read(text)
    made = json.loads(rendered.to_json(diagnosis))
    assert [*Draft202012Validator(SCHEMA).iter_errors(made)] == []
    assert yaml.safe_load(rendered.to_yaml(diagnosis)) == made
    plain = rendered.why(diagnosis).plain
    assert "\x1b" not in plain
