"""Entry point: what every call has in common, and the ways around slow imports.

Rules of this module
1. Nothing heavy is imported before it is needed: ``--help`` and ``version`` answer from a file.
2. Every way out is an exit code of docs/errors.md and at most two lines on stderr; a traceback is
   shown under ``--debug`` alone.
"""

from __future__ import annotations

import gc
import os
import sys

PROGRAM = "kubectl gpu-admit"
STOPPED_BY_KEY = 130
_BETWEEN_COLLECTIONS = 50_000
"""New objects between two looks for cycles: Python's 700 cost a tenth of a small question."""


def main(argv: list[str] | None = None) -> int:
    """Runs one command line and returns its exit code; the console script exits with it."""
    args = sys.argv[1:] if argv is None else argv
    for name in ("stdout", "stderr"):  # None where the caller closed it (``>&-``)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    debug = "--debug" in (args[: args.index("--")] if "--" in args else args)
    try:
        return _shipped(args) if _is_shipped(args) else _full(args)
    except KeyboardInterrupt:
        print("stopped: nothing was written", file=sys.stderr)
        return STOPPED_BY_KEY
    except BrokenPipeError:
        return _reader_left()
    except Exception as problem:
        if debug:
            raise
        from kubectl_gpuadmit.cli.problems import tell

        return tell(problem)


def _is_shipped(args: list[str]) -> bool:
    return not _completing() and (
        not args or args[-1] in ("--help", "-h", "--version") or args == ["version"]
    )


def _completing() -> bool:
    return any(name.startswith("_KUBECTL_GPU_ADMIT") for name in os.environ)


def _shipped(args: list[str]) -> int:
    """Help from the shipped copy of what typer prints; the whole program where there is none."""
    from kubectl_gpuadmit.cli.output import write_data

    if args in (["--version"], ["version"]):
        from kubectl_gpuadmit import __version__

        write_data(f"{__version__}\n")
        return 0
    import json
    import pkgutil

    pages = json.loads(pkgutil.get_data(__package__, "help.json") or "{}")
    page = pages.get(" ".join(args[:-1])) if _columns() >= 80 else None
    if page is None:
        return _full(args if args else ["--help"])
    write_data(page)
    return 0


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _full(args: list[str]) -> int:
    args = [_as_kubectl_takes_it(arg) for arg in args]
    if args[0] == "__complete":
        from kubectl_gpuadmit.cli.completion import complete

        return complete(args[1:])
    if args[0] in ("explain", "check") and not _completing():
        from kubectl_gpuadmit.cli import check, explain, quick

        module, command = {
            "explain": (explain, explain.explain),
            "check": (check, check.check),
        }[args[0]]
        values = quick.parse(args[1:], module.ARGUMENT)
        if values is not None:
            return command(values)
    from kubectl_gpuadmit.cli.app import run

    return run(args)


def _as_kubectl_takes_it(arg: str) -> str:
    """``-o=json`` means ``-ojson`` to kubectl, and "=json" to typer."""
    short = len(arg) > 2 and arg[0] == "-" and arg[1].isalpha() and arg[2] == "="
    return arg[:2] + arg[3:] if short else arg


def _reader_left() -> int:
    """Whoever read our output has closed it (``| head``): no complaint, and none from Python."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 0


def program() -> None:
    """The console script: a process that answers once and ends."""
    gc.set_threshold(_BETWEEN_COLLECTIONS, 20, 20)
    code = main()
    from kubectl_gpuadmit.cli.ending import leave

    leave(code)


if __name__ == "__main__":
    program()
