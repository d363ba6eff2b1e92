"""Asks every speaker about every statement, and says which messages none of them knew."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis import (
    admission,
    api,
    autoscalers,
    dra,
    drain,
    kubelet,
    queues,
    quota,
    scheduler,
    webhooks,
)
from kubectl_gpuadmit.diagnosis.cause import Cause, Diagnosis, Heard, Speaker
from kubectl_gpuadmit.diagnosis.pasted import LONGEST, Statement, statements
from kubectl_gpuadmit.verdict import Evidence

SPEAKERS: tuple[Speaker, ...] = (
    webhooks.hear,
    autoscalers.hear,
    quota.hear,
    drain.hear,
    dra.hear,
    kubelet.hear,
    queues.hear,
    scheduler.hear,
    admission.hear,
    api.hear,
)
"""Who carries another's words goes before them: of two readings of one place the first counts."""

_MESSAGE = re.compile(
    r"Warning[A-Z][a-z]+[A-Z]?|.*?Warning(?:Failed|Unexpected|OutOf|Evicted|Topology|Not)|Error|error:"
    r"|Message:|message:|Internalerror|[EF]\d{4}\d\d:|\d+/\d+nodesareavailable|pods\"|.*isforbidden"
    r"|.*isinvalid"
)
"""A statement of this beginning is a message that should have been understood; others are
context."""

_ROW = re.compile(
    r"^(?:(?:<unknown>|\d+[smhdy]\S*(?: \(x\d+ over \S+\))?) )?(?:Normal|Warning) [A-Z]\w+"
    r"(?: <unknown>| \d+[smhdy]\S*(?: \(x\d+ over \S+\))?)?(?: [a-z][-\w/.]*(?:, \S+)?)?\s*$"
)
"""Columns of an event without its message."""

_CARRIER = re.compile(
    r"OutOf|Topology ?Affinity|UnexpectedAdmission|unable to drain node|There are pending|BackOff"
    r"|BackoffLimitExceeded|Error from server \(\w+\): error when creating \S+$"
)
"""What only says that something failed, beside a text that says why."""

_STATUS_CODES = {
    "why/node-full": ("why/plugin-not-registered", "why/node-full"),
    "why/allocate-failed": (
        "why/allocate-failed",
        "why/gpu-lost",
        "why/devices-unavailable",
        "why/devices-unhealthy",
        "why/plugin-not-registered",
        "why/allocate-race",
    ),
    "why/numa-alignment": ("why/numa-alignment",),
}
"""A status word says less than any of these messages."""


def read(text: str) -> Diagnosis:
    """Every cause that a pasted text tells. Never raises: what is not known is
    ``not_understood``."""
    causes: list[Cause] = []
    unknown: list[str] = []
    spoken = list(statements(text))
    known: dict[str, list[Heard]] = {}
    for statement in spoken:
        if statement.text not in known:
            known[statement.text] = _without_echoes(_hear(statement))
        heard = known[statement.text]
        causes += [part.cause for part in heard if part.cause]
        lost = [part for part in heard if part.cause is None]
        unknown += [statement.said(part.start, part.end) for part in lost]
        if not heard and _is_message(statement):
            unknown.append(statement.said(0, len(statement.bare)))
    for statement in spoken:
        for part in kubelet.hear_status(statement):
            if part.cause and not any(
                cause.reason in _STATUS_CODES[part.cause.reason]
                and cause.detail != part.cause.detail
                for cause in causes
            ):
                causes.append(part.cause)
    if not causes and not unknown:
        unknown = [s.said(0, len(s.bare)) for s in spoken if s.bare]
    if causes:
        unknown = [text for text in unknown if not _CARRIER.search(text)]
    if len(text) > LONGEST and not text.lstrip().startswith(("{", "[")):
        unknown.append(f"what comes after the first {LONGEST:,} characters was not read")
    return Diagnosis(tuple(_once(causes)), tuple(dict.fromkeys(unknown)))


def _hear(statement: Statement) -> list[Heard]:
    taken: list[Heard] = []
    for speaker in SPEAKERS:
        mine = [
            part
            for part in speaker(statement)
            if not any(part.start < other.end and other.start < part.end for other in taken)
        ]
        taken += mine
    return sorted(taken, key=lambda part: part.start)


def _without_echoes(heard: list[Heard]) -> list[Heard]:
    """Without what is no news beside a reason: that a plugin failed, that preemption would not
    help."""
    told = [part for part in heard if part.cause and not _echo(part.cause)]
    return [part for part in heard if not (told and part.cause and _echo(part.cause))]


def _echo(cause: Cause) -> bool:
    return cause.reason in ("why/scheduler-error", "why/throttled") or (
        cause.reason == "why/no-preemption" and cause.who == "user"
    )


def _is_message(statement: Statement) -> bool:
    line = " ".join(statement.text.split())
    return _MESSAGE.match(statement.bare) is not None and not _ROW.match(line)


def _once(causes: list[Cause]) -> Iterator[Cause]:
    """Each cause once, with how often it was said: hundreds of Failed pods are one cause."""
    times: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], Cause] = {}
    for cause in causes:
        key = (cause.reason, cause.detail)
        first.setdefault(key, cause)
        times[key] = times.get(key, 0) + 1
    for key, cause in first.items():
        if times[key] > 1:
            said = Evidence("the text", "times said", times[key], None, "")
            cause = Cause(
                cause.reason, cause.detail, cause.who, cause.next,
                (*cause.evidence, said), cause.speaker,
            )  # fmt: skip
        yield cause
