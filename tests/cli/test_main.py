"""The command line as a person types it: help, wrong options, what needs a live cluster, pipes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from kubectl_gpuadmit import __version__
from kubectl_gpuadmit.cli.app import run
from kubectl_gpuadmit.cli.main import main

COMMANDS = (
    "",
    "explain",
    "check",
    "snapshot",
    "diff",
    "isolate",
    "policy",
    "policy lint",
    "policy init",
    "policy schema",
    "policy ledger",
    "agent",
    "why",
    "version",
)
ENVIRONMENT = {
    **os.environ,
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}


def call(*args: str, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubectl_gpuadmit.cli.main", *args]
    environment = {**ENVIRONMENT, **more.pop("env", {})}  # type: ignore[dict-item]
    return subprocess.run(
        command, env=environment, text=True, capture_output=True, timeout=60, check=False, **more
    )  # type: ignore[call-overload, no-any-return]


def test_the_shipped_help_is_what_typer_prints(
    update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pages = {}
    for command in COMMANDS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run([*command.split(), "--help"]) == 0
        pages[command] = out.getvalue()
    file = resources.files("kubectl_gpuadmit.cli").joinpath("help.json")
    if update_golden:
        Path(str(file)).write_text(json.dumps(pages, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert json.loads(file.read_text("utf-8")) == pages, "--update-golden writes it anew"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_the_command_as_kubectl_users_type_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: kubectl gpu-admit {command}".rstrip())


def test_help_and_version_import_nothing_heavy() -> None:
    script = (
        "import sys; from kubectl_gpuadmit.cli.main import main; "
        "main(sys.argv[1:]); print(sorted(sys.modules), file=sys.stderr)"
    )
    for args in (["--help"], ["explain", "--help"], ["version"], []):
        done = subprocess.run(
            [sys.executable, "-c", script, *args],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = done.stderr
        for heavy in (
            "typer",
            "click",
            "rich",
            "yaml",
            "msgspec",
            "kubernetes",
            "jsonpatch",
            "asyncio",
        ):
            assert f"'{heavy}'" not in loaded, (args, heavy)


def test_explaining_imports_no_client_of_the_outside() -> None:
    script = "import sys, kubectl_gpuadmit.cli.app; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    for heavy in ("kubernetes", "slack_sdk", "pynvml", "rich", "yaml", "jsonpatch", "asyncio"):
        assert f"'{heavy}'" not in done.stdout, heavy


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["version"]), main(["--version"])) == (0, 0)
    assert capsys.readouterr().out == f"{__version__}\n{__version__}\n"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["explain", "--nonsense"], 2, "error: No such option: --nonsense"),
        (["explain", "-f"], 2, "error: Option '-f' requires an argument"),
        (["nonsense"], 2, "error: No such command 'nonsense'"),
        (["check", "a.yaml", "-o", "xml"], 2, "error: Invalid value for '-o'"),
        (
            ["check", "a.yaml", "--warn-exit-code", "x"],
            2,
            "error: Invalid value for '--warn-exit-code'",
        ),
        (["explain", "--snapshot", "s"], 2, "error: nothing to check was named [nothing-named]"),
        (["check", "--snapshot", "s"], 2, "error: nothing to check was named [nothing-named]"),
        (
            ["check", "a", "--snapshot", "s", "--now", "noon"],
            2,
            "error: --now: 'noon' is no RFC 3339 time",
        ),
        (
            ["check", "a", "--snapshot", "s", "--kubernetes-version", "2.0"],
            2,
            "error: --kubernetes-version: '2.0' is no version whose rules are known",
        ),
        (
            ["explain", "deploy/x", "--snapshot", "s"],
            3,
            "error: explain deploy/x is about a live cluster",
        ),
        *(
            (
                ["check", "a", "--snapshot", "s", *flag.split("=")],
                2,
                f"error: {name} is about a live",
            )
            for flag, name in (
                ("--context=c", "--context"),
                ("--kubeconfig=c", "--kubeconfig"),
                ("-A", "--all-namespaces"),
                ("-l=a", "--selector"),
                ("--cluster=c", "--cluster"),
                ("--user=u", "--user"),
                ("--request-timeout=1s", "--request-timeout"),
                ("--server", "--server"),
                ("--watch", "--watch"),
            )
        ),
        (
            ["check", "a", "--snapshot", "s", "--as-group", "g"],
            2,
            "error: --as-group is of the user that --as names",
        ),
        (["explain", "deploy/x", "-f", "a"], 2, "error: live objects and -f are two questions"),
        (["explain", "-f", "a", "-l", "a=b"], 2, "error: -l chooses among live objects"),
        (["explain", "deploy/x", "-A"], 2, "error: -A chooses among live objects"),
        (["explain", "deploy", "x", "-A"], 2, "error: -A and names exclude each other"),
        (["explain", "deploy/x", "--timeout", "1m"], 2, "error: --timeout ends --watch"),
        (
            ["explain", "deploy/x", "--watch", "--timeout", "soon"],
            2,
            "error: --timeout: 'soon' is no length of time",
        ),
        (["explain", "deploy/x", "--kubeconfig", "/no/such"], 2, "error: /no/such: no such file"),
        (["explain", "-f", "/no/such.yaml", "--kubeconfig", "/no/such"], 2, "error: /no/such: no"),
    ],
)
def test_a_wrong_call_is_one_error_and_one_hint(
    args: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == code
    out, err = capsys.readouterr()
    first, *rest = err.splitlines()
    assert out == ""
    assert first.startswith(said)
    assert len(rest) == 1 and rest[0].startswith("hint: ")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    for args in (["--help"], ["policy", "--help"], ["explain", "-f", "x", "--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "kubectl_gpuadmit.cli.main", *args],
            env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, "")


def test_closed_standard_streams_are_no_traceback() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m kubectl_gpuadmit.cli.main explain -f x >&-'],
        env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (2, 3)  # no such file, or no cluster
    assert "Traceback" not in done.stderr


def test_shells_complete_the_command_on_path_and_never_kubectl_itself() -> None:
    done = call(
        "--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    )
    assert done.returncode == 0
    assert "kubectl-gpu_admit" in done.stdout
    assert " kubectl gpu-admit" not in done.stdout
