"""Candidates for kubectl's own completion, in the form that kubectl reads; knows none itself."""

from __future__ import annotations

import contextlib
import io
import os
import shlex

DEFAULT, NO_FILES = 0, 4
"""Cobra's directives: file names are good candidates too, or they are not."""

PATHS = (
    "-f",
    "--filename",
    "--snapshot",
    "--policy",
    "--policy-b",
    "--kubeconfig",
    "--capsule",
    "--from-capsule",
)


def complete(args: list[str]) -> int:
    """Prints ``candidate<TAB>help`` lines for the last argument, then the directive line ``:N``."""
    before, word = (args[:-1], args[-1]) if args else ([], "")
    for line in candidates(before, word):
        print(line)
    takes_path = bool(before) and (before[-1] in PATHS or _positional_paths(before, word))
    print(f":{DEFAULT if takes_path else NO_FILES}")
    return 0


def candidates(before: list[str], word: str) -> list[str]:
    """What typer knows to continue the words ``before`` with, ``word`` being begun; for ``--rule``
    the rules."""
    if before[-1:] == ["--rule"]:
        return _rules(word)
    from kubectl_gpuadmit.cli.app import COMMAND, run

    asked = {
        "_KUBECTL_GPU_ADMIT_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": shlex.join([COMMAND, *before])
        + " "
        + (shlex.quote(word) if word else ""),
    }
    os.environ.update(asked)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            run([])
    finally:
        for name in asked:
            os.environ.pop(name, None)
    return [line for line in out.getvalue().splitlines() if line.strip()]


def _rules(word: str) -> list[str]:
    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.rule import REGISTRY

    assert rules.__all__, "importing the package registers every rule"
    return [name for name in sorted(REGISTRY) if name.startswith(word)]


def _positional_paths(before: list[str], word: str) -> bool:
    return (
        before[0] in ("check", "diff") or before[:2] == ["policy", "lint"]
        if not word.startswith("-")
        else False
    )
