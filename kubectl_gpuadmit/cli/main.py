"""Entry point: what every call has in common, and the answers that must not wait for imports.

Rules of this module
1. Nothing heavy is imported before it is needed: ``--help`` and ``version`` answer from a file.
2. Every way out is an exit code of docs/errors.md and at most two lines on stderr; a traceback is
   shown under ``--debug`` alone.
"""

from __future__ import annotations

import os
import sys

PROGRAM = "kubectl gpu-admit"
STOPPED_BY_KEY = 130


def main(argv: list[str] | None = None) -> int:
    """Runs one command line and returns its exit code; the console script exits with it."""
    args = sys.argv[1:] if argv is None else argv
    for name in ("stdout", "stderr"):  # None where the caller closed it (``>&-``)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
    debug = "--debug" in (args[: args.index("--")] if "--" in args else args)
    try:
        return _quick(args) if _is_quick(args) else _full(args)
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


def _is_quick(args: list[str]) -> bool:
    completing = any(name.startswith("_KUBECTL_GPU_ADMIT") for name in os.environ)
    return not completing and (
        not args or args[-1] in ("--help", "-h", "--version") or args == ["version"]
    )


def _quick(args: list[str]) -> int:
    """Help from the shipped copy of what typer prints; the whole program where there is none."""
    if args in (["--version"], ["version"]):
        from kubectl_gpuadmit import __version__

        print(__version__)
        return 0
    import json
    import pkgutil

    pages = json.loads(pkgutil.get_data(__package__, "help.json") or "{}")
    page = pages.get(" ".join(args[:-1])) if _columns() >= 80 else None
    if page is None:
        return _full(args if args else ["--help"])
    sys.stdout.write(page)
    sys.stdout.flush()
    return 0


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _full(args: list[str]) -> int:
    if args[:1] == ["__complete"]:
        from kubectl_gpuadmit.cli.completion import complete

        return complete(args[1:])
    from kubectl_gpuadmit.cli.app import run

    return run(args)


def _reader_left() -> int:
    """Whoever read our output has closed it (``| head``): no complaint, and none from Python."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
