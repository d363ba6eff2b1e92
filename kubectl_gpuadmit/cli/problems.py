"""Says on stderr what went wrong: one line of what and where, one of what to do. Mends nothing."""

from __future__ import annotations

import sys

from kubectl_gpuadmit.errors import EXIT_BAD_INPUT, EXIT_UNANSWERED, GpuAdmitError
from kubectl_gpuadmit.render.wording import clean, pointer
from kubectl_gpuadmit.verdict import Skipped


def say(text: str) -> None:
    """One line of talk; never on stdout, which is data."""
    encoding = sys.stderr.encoding or "utf-8"
    shown = clean(text, ascii=not _writes(encoding))
    print(shown.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


def _writes(encoding: str) -> bool:
    try:
        "·→…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def tell(problem: Exception) -> int:
    """Prints the problem and returns the exit code that it means."""
    match problem:
        case GpuAdmitError():
            _say_error(problem.where, problem.field, problem.message, problem.ref)
            hint, code = problem.hint, problem.exit_code
        case _ if hasattr(problem, "format_message"):  # typer's own: a wrong option or argument
            say(f"error: {problem.format_message()} [usage]")
            context = getattr(problem, "ctx", None)
            command = context.command_path if context is not None else "kubectl gpu-admit"
            hint, code = f"{command} --help", EXIT_BAD_INPUT
        case MemoryError():
            say("error: the input needs more memory than there is [out-of-memory]")
            hint, code = "judge fewer files at a time", EXIT_UNANSWERED
        case RecursionError():
            say("error: the input is nested too deeply [nested-too-deeply]")
            hint, code = "look for a document that contains itself", EXIT_BAD_INPUT
        case _:
            what = f"{type(problem).__name__}: {problem}".rstrip(": ")
            say(f"error: this is a fault of kubectl gpu-admit itself: {what} [internal-error]")
            hint, code = (
                "report it with what the same command prints under --debug",
                EXIT_UNANSWERED,
            )
    if hint:
        say(f"hint: {hint}")
    return code


def tell_unreadable(skipped: Skipped) -> None:
    """A document that could not be read, in the form of every other error."""
    where = f"{skipped.location} {skipped.field}".strip()
    _say_error(where, skipped.field, skipped.detail, skipped.error)
    if skipped.hint:
        say(f"hint: {skipped.hint}")


def _say_error(where: str, field: str, message: str, ref: str) -> None:
    """``error: file:line:column field: message [ref]``, a pointer spelt as kubectl spells it."""
    if field.startswith("/"):
        where = where.removesuffix(field) + (pointer(field) or "document")
    say(
        f"error: {where.strip()}: {message} [{ref}]"
        if where.strip()
        else f"error: {message} [{ref}]"
    )
