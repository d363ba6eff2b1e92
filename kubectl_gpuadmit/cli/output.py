"""Writes to stdout: knows the terminal's width, colours and encoding, not what is written."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from kubectl_gpuadmit.errors import Unanswerable

if TYPE_CHECKING:
    from rich.text import Text


def width() -> int:
    """Columns of the terminal; ``COLUMNS`` or 80 where there is none."""
    if (given := os.environ.get("COLUMNS", "")).isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def in_ascii() -> bool:
    """True where stdout cannot take the marks."""
    try:
        "✓✗·×→…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def coloured() -> bool:
    """On a terminal, unless NO_COLOR or TERM=dumb says otherwise."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def write_data(text: str) -> None:
    """Text in a format of its own: always UTF-8, byte for byte."""
    _write(text.encode("utf-8"))


def write_text(text: Text) -> None:
    """Text for a person, in the terminal's encoding, with colour where it can be seen."""
    shown = _with_colour(text) if coloured() else text.plain
    _write(shown.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def _with_colour(text: Text) -> str:
    import io

    from rich.console import Console

    out = io.StringIO()
    Console(file=out, force_terminal=True, width=max(width(), 40), legacy_windows=False).print(
        text, soft_wrap=True
    )
    return out.getvalue()


def _write(raw: bytes) -> None:
    """All of it, or quietly nothing more once the reader has left (``| head``)."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _no_more()
    except OSError as problem:
        _no_more()
        raise Unanswerable(
            "cannot-write",
            f"stdout cannot be written: {problem.strerror}",
            hint="what was written is not whole",
        ) from None


def _no_more() -> None:
    """So that Python does not try the rest again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
