"""The tree of commands as typer sees it; each command has a file of its own."""

from __future__ import annotations

import os

import typer

from kubectl_gpuadmit import __version__
from kubectl_gpuadmit.cli.check import check
from kubectl_gpuadmit.cli.explain import explain
from kubectl_gpuadmit.cli.main import PROGRAM
from kubectl_gpuadmit.cli.policy import policy
from kubectl_gpuadmit.cli.problems import tell

COMMAND = "kubectl-gpu_admit"
"""The name on PATH, which shells complete; kubectl completes its own through the plugin."""

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="May this GPU workload in, would it then run, and what smallest change would make it so?",
    epilog="Exit codes: 0 clear, 1 refused, 2 unreadable or nothing checked, 3 not judged.",
)
app.command()(explain)
app.command()(check)
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
