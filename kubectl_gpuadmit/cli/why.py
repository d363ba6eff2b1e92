"""``kubectl gpu-admit why``: takes a pasted message from the call or stdin and prints what it
means."""

from __future__ import annotations

import enum
import sys
from typing import Annotated

import typer

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.cli.problems import tell
from kubectl_gpuadmit.errors import EXIT_CLEAR, NothingChecked, Unanswerable


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    table = "table"
    json = "json"
    yaml = "yaml"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MESSAGE", help="The text; - or nothing reads stdin.", show_default=False
    ),
]
Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="The same.")]
Written = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of a fault of this program.")
]


def why(
    words: Words = None,
    message: Message = "",
    form: Written = Output.table,
    debug: Debug = False,
) -> int:
    """Read an event or error text: its cause, whose move it is, what to type next.

    Takes what kubectl, an event or a log prints, cut or wrapped, several messages at once.
    """
    from kubectl_gpuadmit.diagnosis.reading import read
    from kubectl_gpuadmit.render import why as rendered

    text = _text(words or [], message)
    if not text.strip():
        raise NothingChecked(
            "empty-message",
            "there is no text to read",
            hint="kubectl describe pod NAME | kubectl gpu-admit why",
        )
    diagnosis = read(text)
    match form:
        case Output.json:
            output.write_data(rendered.to_json(diagnosis))
        case Output.yaml:
            output.write_data(rendered.to_yaml(diagnosis))
        case _:
            page = rendered.why(diagnosis, width=output.width(), ascii=output.in_ascii())
            output.write_text(page)
    if not diagnosis.not_understood:
        return EXIT_CLEAR
    what = "part of the text" if diagnosis.causes else "the text"
    return tell(
        Unanswerable(
            "not-understood",
            f"{what} is no message that is known here",
            hint="kubectl gpu-admit explain -f FILE judges the objects themselves",
        )
    )


def _text(words: list[str], message: str) -> str:
    if message:
        words = [message, *words]
    if words and words != ["-"]:
        return " ".join(words)
    if sys.stdin is None or (sys.stdin.isatty() and not words):
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")
