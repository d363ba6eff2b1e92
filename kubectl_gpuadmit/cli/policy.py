"""``kubectl gpu-admit policy``: lint a policy file, start one, print its schema."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.cli.problems import say, tell
from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_CLEAR

policy = typer.Typer(rich_markup_mode=None, help="Lint a policy file, start one, print its schema.")


@policy.command()
def lint(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Policy files.")],
    snapshot: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="Also hold the policy against the nodes of this snapshot."
        ),
    ] = "",
) -> int:
    """Check policy files.

    Every problem is told with its line and, where it can be guessed, with what was meant.
    """
    import datetime as dt

    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.cli.answer import policy_file
    from kubectl_gpuadmit.cli.catalogue import catalogue
    from kubectl_gpuadmit.policy.lint import lint as problems_of

    assert rules.__doc__, "importing the package registers every rule"
    cluster = None
    if snapshot:
        from kubectl_gpuadmit.adapters.snapshot import load_snapshot

        cluster = load_snapshot(snapshot).cluster
    now = dt.datetime.now(dt.UTC)
    code = EXIT_CLEAR
    for file in files:
        raw, name = policy_file(file)
        problems = problems_of(raw, name, now=now, cluster=cluster, catalogue=catalogue())
        for problem in problems:
            if problem.severity == "error":
                code = tell(problem.as_error())
            else:
                say(f"warning: {problem.as_error()}")
                if problem.hint:
                    say(f"hint: {problem.hint}")
        if not any(problem.severity == "error" for problem in problems):
            output.write_data(f"{file}: a sound policy, {len(problems)} warnings\n")
    return EXIT_BAD_INPUT if code else EXIT_CLEAR


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

    from kubectl_gpuadmit import rules
    from kubectl_gpuadmit.cli.catalogue import catalogue
    from kubectl_gpuadmit.policy.schema import policy_schema
    from kubectl_gpuadmit.rule import REGISTRY

    assert rules.__doc__, "importing the package registers every rule"
    made = json.encode(policy_schema(REGISTRY, catalogue()))
    output.write_data(json.format(made, indent=2).decode() + "\n")
    return EXIT_CLEAR
