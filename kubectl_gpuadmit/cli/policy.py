"""``kubectl gpu-admit policy``: lint a policy file, start one, print its schema."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.cli.problems import say, tell
from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_CLEAR

policy = typer.Typer(rich_markup_mode=None, help="Lint a policy file, start one, print its schema.")

Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Policy files.")]
Snapshot = Annotated[
    str, typer.Option("--snapshot", metavar="PATH", help="Hold it against this cluster, too.")
]


@policy.command()
def lint(files: Files, snapshot: Snapshot = "") -> int:
    """Check policy files.

    Every problem is told with its line and, where it can be guessed, with what was meant.
    """
    from kubectl_gpuadmit.adapters.snapshot import load_snapshot
    from kubectl_gpuadmit.cli.answer import policy_file
    from kubectl_gpuadmit.cli.catalogue import found_by_judging
    from kubectl_gpuadmit.policy.lint import lint as problems_of
    from kubectl_gpuadmit.render.wording import plural

    cluster = load_snapshot(snapshot).cluster if snapshot else None
    code = EXIT_CLEAR
    for file in files:
        found = problems_of(
            *policy_file(file),
            now=dt.datetime.now(dt.UTC),
            cluster=cluster,
            catalogue=found_by_judging,
        )
        errors = [problem for problem in found if problem.severity == "error"]
        for problem in found:
            if problem in errors:
                tell(problem.as_error())
            else:
                say(f"warning: {problem.as_error()}")
                if problem.hint:
                    say(f"hint: {problem.hint}")
        code = EXIT_BAD_INPUT if errors else code
        counts = f"{plural(len(errors), 'error')}, {plural(len(found) - len(errors), 'warning')}"
        output.write_data(f"{file}: {counts if found else 'a sound policy'}\n")
    return code


@policy.command()
def init() -> int:
    """Print a commented policy to start from."""
    from kubectl_gpuadmit.policy.starter import STARTER

    output.write_data(STARTER)
    return EXIT_CLEAR


@policy.command()
def schema() -> int:
    """Print the JSON Schema of policy files."""
    from msgspec import json

    from kubectl_gpuadmit.cli.catalogue import found_by_judging
    from kubectl_gpuadmit.policy.schema import policy_schema
    from kubectl_gpuadmit.rule import REGISTRY

    made = json.encode(policy_schema(REGISTRY, found_by_judging()))
    output.write_data(json.format(made, indent=2).decode() + "\n")
    return EXIT_CLEAR
