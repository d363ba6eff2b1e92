"""The tree of commands as typer sees it; each command has a file of its own."""

from __future__ import annotations

import enum
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from kubectl_gpuadmit import __version__
from kubectl_gpuadmit.cli import check, explain
from kubectl_gpuadmit.cli.agent import agent
from kubectl_gpuadmit.cli.diff import diff
from kubectl_gpuadmit.cli.fit import fit
from kubectl_gpuadmit.cli.isolate import isolate
from kubectl_gpuadmit.cli.main import PROGRAM
from kubectl_gpuadmit.cli.options import OPTIONS, OUTPUTS, Argument, Option
from kubectl_gpuadmit.cli.policy import policy
from kubectl_gpuadmit.cli.problems import tell
from kubectl_gpuadmit.cli.snapshot import snapshot
from kubectl_gpuadmit.cli.topo import topo
from kubectl_gpuadmit.cli.why import why

COMMAND = "kubectl-gpu_admit"
"""The name on PATH, which shells complete; kubectl completes its own through the plugin."""

Output = enum.StrEnum("Output", {name: name for name in OUTPUTS})  # type: ignore[misc]
TYPES = {"text": str, "flag": bool, "number": int, "output": Output, "texts": list[str] | None}


def as_typer_sees_it(
    command: Callable[[Mapping[str, Any]], int], argument: Argument
) -> Callable[..., int]:
    """The command with a parameter for each option of the table and for its argument."""

    def run(**given: Any) -> int:
        values = {o.name: given[o.name] for o in OPTIONS}
        several = [o.name for o in OPTIONS if o.kind == "texts"]
        for name in (*several, argument.name):
            values[name] = tuple(given[name] or ())
        return command({**values, "output": str(values["output"])})

    positional = typer.Argument(metavar=argument.metavar, help=argument.help, show_default=False)
    parameters = [_parameter(argument.name, list[str] | None, positional, None)]
    parameters += [_parameter(o.name, TYPES[o.kind], _option(o), _default(o)) for o in OPTIONS]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameter(name: str, kind: Any, info: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, info],
    )


def _option(option: Option) -> Any:
    limits: dict[str, Any] = {"min": 0, "max": 125} if option.kind == "number" else {}
    return typer.Option(
        *option.flags,
        metavar=option.metavar or None,
        help=option.help,
        hidden=option.hidden,
        **limits,
    )


def _default(option: Option) -> Any:
    match option.kind:
        case "output":
            return Output(OUTPUTS[0])
        case "texts":
            return None
        case _:
            return option.default


app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="May this GPU workload in, would it then run, and what smallest change would make it so?",
    epilog="Exit codes: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 not judged.",
)
app.command()(as_typer_sees_it(explain.explain, explain.ARGUMENT))
app.command()(as_typer_sees_it(check.check, check.ARGUMENT))
app.command()(why)
app.command()(snapshot)
app.command()(diff)
app.command()(topo)
app.command()(isolate)
app.command()(agent)
app.command()(fit)
app.add_typer(policy, name="policy")


@app.command()
def version() -> int:
    """Print the version."""
    print(__version__)
    return 0


def run(args: list[str]) -> int:
    """Runs one command line. Wrong options are told like every other error."""
    completing = "_KUBECTL_GPU_ADMIT_COMPLETE" in os.environ
    shells = completing or any(arg.endswith("-completion") for arg in args)
    try:
        code = app(args, prog_name=COMMAND if shells else PROGRAM, standalone_mode=False)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, OSError):  # typer's answer to a reader that has left
            raise BrokenPipeError from None
        raise
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as problem:
        if not hasattr(problem, "format_message"):
            raise
        return tell(problem)
    return code if isinstance(code, int) else 0
