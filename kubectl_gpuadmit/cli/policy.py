"""``kubectl gpu-admit policy``: lint a policy file, start one, print its schema or its ledger."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Annotated

import typer

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.cli.problems import say, tell
from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_CLEAR

policy = typer.Typer(rich_markup_mode=None, help="Lint a policy file, start one, print its schema.")


class Output(enum.StrEnum):
    """What is written to stdout."""

    table = "table"
    json = "json"


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


class ObjectForm(enum.StrEnum):
    """How Kubernetes objects are written."""

    yaml = "yaml"
    json = "json"


PolicyFile = Annotated[str, typer.Argument(metavar="FILE", help="Policy file.")]
ObjectOutput = Annotated[
    ObjectForm, typer.Option("-o", "--output", help="Form of the objects on stdout.")
]


@policy.command()
def vap(file: PolicyFile, form: ObjectOutput = ObjectForm.yaml) -> int:
    """Print the policy as Kubernetes' own admission policies.

    ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings, for
    kubectl apply. Rules that CEL cannot say are listed with the reason on stderr and left out.
    """
    from kubectl_gpuadmit.cli.answer import load_policy, policy_file
    from kubectl_gpuadmit.policy.vap import compile_policy
    from kubectl_gpuadmit.render.objects import as_json, as_yaml

    compiled = compile_policy(load_policy(policy_file(file)))
    write = as_json if form == ObjectForm.json else as_yaml
    output.write_data(write(compiled.objects))
    for one in compiled.notes:
        say(f"note: {one.rule}: {one.reason}")
    for one in compiled.left_out:
        say(f"left out: {one.rule}: {one.reason}")
    return EXIT_CLEAR


Ledger = Annotated[str, typer.Argument(metavar="[FILE]", help="Policy file.", show_default=False)]
KubernetesVersion = Annotated[
    str,
    typer.Option(
        "--kubernetes-version", metavar="1.N", help="Stages of this version, not the policy's."
    ),
]
DriverVersion = Annotated[
    str,
    typer.Option("--driver-version", metavar="0.N", help="Stages of this NVIDIA DRA driver."),
]
Now = Annotated[
    str, typer.Option("--now", metavar="TIME", help="Decisions as of this RFC 3339 time.")
]
Form = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]


@policy.command()
def ledger(
    file: Ledger = "",
    kubernetes_version: KubernetesVersion = "",
    driver_version: DriverVersion = "",
    now: Now = "",
    form: Form = Output.table,
) -> int:
    """Print the maturity ledger.

    Every device feature with its stage and default in the release that runs, and what the policy's
    ledger has decided of it. A field that nobody filled in is an unresolved decision.
    """
    from msgspec import structs

    from kubectl_gpuadmit.cli.answer import load_policy, policy_file
    from kubectl_gpuadmit.cli.question import instant, version
    from kubectl_gpuadmit.devices import maturity
    from kubectl_gpuadmit.errors import BadInput
    from kubectl_gpuadmit.render import ledger as rendered

    decided = load_policy(policy_file(file) if file else None).ledger
    versions = decided.versions
    if kubernetes_version:
        given = maturity.release(version(kubernetes_version))
        versions = structs.replace(versions, kubernetes=given)
    if driver_version:
        try:
            versions = structs.replace(versions, driver=maturity.driver_release(driver_version))
        except ValueError as problem:
            raise BadInput(
                "usage", str(problem), field="--driver-version", hint="give it as in 0.5"
            ) from None
    as_of = instant(now) if now else dt.datetime.now(dt.UTC)
    rows = maturity.rows(structs.replace(decided, versions=versions), now=as_of)
    if form is Output.json:
        output.write_data(rendered.to_json(rows, versions))
    else:
        output.write_text(
            rendered.text(rows, versions, width=output.width(), ascii=output.in_ascii())
        )
    return EXIT_CLEAR
