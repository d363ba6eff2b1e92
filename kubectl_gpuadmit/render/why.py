"""A diagnosis for a person, and as ``gpu-admit.io/why/v1``; adds no reading of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kubectl_gpuadmit.diagnosis.cause import Cause, Diagnosis
from kubectl_gpuadmit.render.encoding import as_json, as_yaml

if TYPE_CHECKING:
    from rich.text import Text

SCHEMA_VERSION = "gpu-admit.io/why/v1"

MOVES = {
    "user": ("no", "yours to solve"),
    "platform": ("no", "the platform's"),
    "fault": ("no", "a fault"),
    "wait": ("warn", "waits"),
}
"""Whose move -> the mark's name and the words for it."""

_COUNTED = {
    "user": "yours to solve",
    "platform": "the platform's",
    "fault": "a fault",
    "wait": "waits",
}
_COLUMN = 20
_SHOWN = 400
"""Characters of a message that was not understood: enough to find it again."""


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain dicts and lists in the documented order."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "notUnderstood": list(diagnosis.not_understood),
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "reason": cause.reason,
        "detail": cause.detail,
        "evidence": msgspec.to_builtins(cause.evidence),
        "who": cause.who,
        "next": cause.next,
    }


def to_json(diagnosis: Diagnosis) -> str:
    """Indented JSON with a newline at the end."""
    return as_json(document(diagnosis))


def to_yaml(diagnosis: Diagnosis) -> str:
    """The same document as YAML, in ASCII where a value could move the cursor."""
    return as_yaml(document(diagnosis))


def why(diagnosis: Diagnosis, *, width: int = 80, ascii: bool = False) -> Text:
    """The answer, each cause with whose move it is, what to type, and what was not understood."""
    from rich.text import Text

    from kubectl_gpuadmit.render.page import BOLD, DIM, Page

    page = Page(width, ascii=ascii)
    page.block([], headline(diagnosis), indent=0, style=BOLD)
    page.blank()
    for cause in diagnosis.causes:
        mark, words = MOVES[cause.who]
        page.block([("  ", ""), page.mark(mark), (words, "")], cause.detail, indent=_COLUMN)
        page.block([], cause.reason, indent=_COLUMN, style=DIM)
    if diagnosis.causes:
        page.blank()
    head = "Next"
    for step in dict.fromkeys(cause.next for cause in diagnosis.causes):
        page.block([(head, BOLD)], step, indent=6)
        head = ""
    if diagnosis.not_understood:
        page.blank()
        page.line(("Not understood", BOLD))
        for message in diagnosis.not_understood:
            cut = f"{message[:_SHOWN]}..." if len(message) > _SHOWN else message
            page.block([("  ", ""), page.mark("unknown")], cut, indent=4)
    return Text.assemble(page.text, end="")


def headline(diagnosis: Diagnosis) -> str:
    """``scheduler: 1 yours to solve, 2 wait``; the first line alone is an answer."""
    if not diagnosis.causes:
        return "not understood: no message in it is known here"
    speakers = dict.fromkeys(cause.speaker for cause in diagnosis.causes)
    who = [cause.who for cause in diagnosis.causes]
    counts = [
        f"{who.count(move)} {words if who.count(move) == 1 or move != 'wait' else 'wait'}"
        for move, words in _COUNTED.items()
        if move in who
    ]
    return f"{', '.join(speakers)}: {', '.join(counts)}"
