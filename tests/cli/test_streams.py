"""stdout is data, stderr is talk: whatever is provoked, every -o parses."""

from __future__ import annotations

import datetime as dt
import json
import xml.etree.ElementTree as ET

import pytest
import yaml
from golden.verdicts import BAD, CLEAR, QUOTA, REPORTS, STRANGE, report
from msgspec import structs

from kubectl_gpuadmit.cli.answer import Answer, conclude, show
from kubectl_gpuadmit.cli.options import OUTPUTS
from kubectl_gpuadmit.cli.problems import tell
from kubectl_gpuadmit.cli.question import Question
from kubectl_gpuadmit.errors import BadManifest, NothingChecked, Unanswerable
from kubectl_gpuadmit.verdict import Report, Verdict


def question(**changes: object) -> Question:
    base = Question(
        command="check",
        paths=("serving.yaml",),
        snapshot="examples/cluster",
        policy="examples/policy.yaml",
        output="table",
        details=False,
        namespace="default",
        now=dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC),
        remedies=True,
        rule="",
        warn_exit_code=0,
        kubernetes="",
    )
    return structs.replace(base, **changes)


def nowhere(verdict: Verdict, pointer: str) -> None:
    return None


def printed(
    of: Report, output: str, command: str, capfd: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    asked = question(output=output, command=command)
    show(Answer(of, 0.1, nowhere), asked)
    code = conclude(of, asked)
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.parametrize("command", ["explain", "check"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_format_parses_while_warnings_are_provoked(
    output: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    provoking = structs.replace(REPORTS["bad-among-good"], asked=())
    code, out, err = printed(provoking, output, command, capfd)
    assert code == 2
    match output:
        case "json" | "sarif":
            assert json.loads(out)
        case "yaml":
            assert yaml.safe_load(out)["schemaVersion"] == "gpu-admit.io/verdict/v1"
        case "junit":
            assert ET.fromstring(out).tag == "testsuites"
        case "markdown":
            assert out.startswith("**GPU admission**")
        case "table":
            assert "admitted" in out
    lines = err.splitlines()
    assert lines[:2] == [
        "error: bad.yaml:7:3 spec.containers: a tab cannot indent YAML [yaml-syntax]",
        "hint: use blanks",
    ]
    assert lines[-1] == (
        "warning: policy examples/policy.yaml: none of its rules was asked of any workload"
    )
    assert not any(line.startswith(("error:", "warning:", "hint:")) for line in out.splitlines())


def test_a_policy_whose_rules_were_asked_is_not_warned_about(
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked = structs.replace(report(CLEAR), asked=("labels/required",))
    assert printed(asked, "table", "check", capfd)[0::2] == (0, "")


@pytest.mark.parametrize(
    ("skipped", "held"),
    [((), "there is nothing in"), ((QUOTA,), "there is 1 object, which makes no pods, in")],
)
def test_nothing_checked_is_never_a_silent_success(skipped: tuple[object, ...], held: str) -> None:
    with pytest.raises(NothingChecked) as problem:
        conclude(report(skipped=skipped), question())
    assert held in problem.value.message
    assert problem.value.exit_code == 2


def test_an_input_of_unknown_kinds_alone_could_not_be_judged() -> None:
    assert conclude(report(skipped=(STRANGE,)), question()) == 3


def test_an_input_of_unreadable_documents_alone_is_bad_input() -> None:
    assert conclude(report(skipped=(BAD,)), question()) == 2


@pytest.mark.parametrize(
    ("problem", "code", "lines"),
    [
        (
            BadManifest(
                "yaml-tab",
                "a tab",
                file="a.yaml",
                line=3,
                column=1,
                field="spec",
                hint="use blanks",
            ),
            2,
            ["error: a.yaml:3:1 spec: a tab [yaml-tab]", "hint: use blanks"],
        ),
        (
            Unanswerable("forbidden", "pods cannot be listed"),
            3,
            ["error: pods cannot be listed [forbidden]"],
        ),
        (
            KeyError("x\x1b[31m\nnext"),
            3,
            [
                "error: this is a fault of kubectl gpu-admit itself: KeyError: "
                "'x\\x1b[31m\\nnext' [internal-error]",
                "hint: report it with what the same command prints under --debug",
            ],
        ),
        (
            RecursionError("maximum"),
            2,
            [
                "error: the input is nested too deeply [nested-too-deeply]",
                "hint: look for a document that contains itself",
            ],
        ),
    ],
)
def test_an_error_is_one_line_and_a_hint(
    problem: Exception, code: int, lines: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert tell(problem) == code
    out, err = capfd.readouterr()
    assert (out, err.splitlines()) == ("", lines)
