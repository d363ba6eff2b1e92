"""What kubectl finds on PATH: the plugin, its completion, and what they say when not set up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KUBECTL = shutil.which("kubectl")
with_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of plugins/ beside a .venv whose command is this very program."""
    shutil.copytree(ROOT / "plugins", tmp_path / "plugins")
    command = tmp_path / ".venv" / "bin" / "kubectl-gpu_admit"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\n'
        f'exec "{sys.executable}" -m kubectl_gpuadmit.cli.main "$@"\n'
    )
    command.chmod(0o755)
    return tmp_path


def call(*command: str, path: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": "/nonexistent", **more}
    return subprocess.run(
        command, env=environment, text=True, capture_output=True, timeout=60, check=False
    )


def beside(clone: Path) -> str:
    return f"{clone / 'plugins'}{os.pathsep}{os.environ['PATH']}"


@with_kubectl
def test_kubectl_runs_the_plugin_and_names_it_as_typed(clone: Path) -> None:
    done = call("kubectl", "gpu-admit", "explain", "--help", path=beside(clone))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: kubectl gpu-admit explain")


@with_kubectl
def test_kubectl_hands_on_arguments_and_exit_codes(clone: Path) -> None:
    done = call("kubectl", "gpu-admit", "check", "a b.yaml", "--snapshot", "s", path=beside(clone))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: a b.yaml: no such file")


@with_kubectl
def test_kubectl_lists_the_plugin_without_complaint(clone: Path) -> None:
    done = call(
        "kubectl", "plugin", "list", "--name-only", path=f"{clone / 'plugins'}:/usr/bin:/bin"
    )
    assert "kubectl-gpu_admit" in done.stdout.split()
    assert "gpu_admit" not in done.stderr


@with_kubectl
def test_kubectl_completes_the_plugin(clone: Path) -> None:
    done = call("kubectl", "__complete", "gpu-admit", "ex", path=beside(clone))
    assert done.stdout.splitlines()[-1] == ":4"
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[:-1]] == ["explain"]


@pytest.mark.parametrize(
    ("words", "candidates", "directive"),
    [
        (["ch"], ["check"], ":4"),
        (["s"], ["snapshot"], ":4"),
        (["policy", ""], ["lint", "init", "schema", "vap", "ledger"], ":4"),
        (["explain", "-o", ""], ["table", "json", "yaml", "sarif", "junit", "markdown"], ":4"),
        (["explain", "--no"], ["--nodes", "--now", "--no-remedies"], ":4"),
        (["explain", "--rule", "quota/"], ["quota/dead-key", "quota/unused-key"], ":4"),
        (["explain", "-f", ""], [], ":0"),
        (["check", "--snapshot", "ex"], [], ":0"),
        (["check", "mani"], [], ":0"),
        (["nonsense", "x"], [], ":4"),
    ],
)
def test_candidates_come_with_the_directive_that_kubectl_reads(
    clone: Path, words: list[str], candidates: list[str], directive: str
) -> None:
    done = call(
        str(clone / "plugins" / "kubectl_complete-gpu_admit"), *words, path=os.environ["PATH"]
    )
    *lines, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr, last) == (0, "", directive)
    assert [line.split("\t")[0] for line in lines] == candidates


def test_a_link_to_the_plugin_finds_the_clone(clone: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "kubectl-gpu_admit"
    link.parent.mkdir()
    link.symlink_to(clone / "plugins" / "kubectl-gpu_admit")
    done = call(str(link), "version", path="/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_installed_command_serves_where_there_is_no_venv(clone: Path, tmp_path: Path) -> None:
    installed = tmp_path / "bin"
    installed.mkdir()
    shutil.move(clone / ".venv" / "bin" / "kubectl-gpu_admit", installed)
    plugin = str(clone / "plugins" / "kubectl-gpu_admit")
    done = call(plugin, "version", path=f"{clone / 'plugins'}:{installed}:/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_clone_that_is_not_set_up_says_what_to_type(clone: Path) -> None:
    shutil.rmtree(clone / ".venv")
    plugins = clone / "plugins"
    done = call(str(plugins / "kubectl-gpu_admit"), "version", path=f"{plugins}:/usr/bin:/bin")
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"error: kubectl gpu-admit is not set up: there is no {clone}/.venv, "
        "and no other kubectl-gpu_admit on PATH [not-set-up]",
        f"hint: make -C {clone} setup",
    ]
    silent = call(str(plugins / "kubectl_complete-gpu_admit"), "", path="/usr/bin:/bin")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, ":0\n", "")
