"""What a text was found to say: values only, and the table rows that find it; reads no text itself.

Rules of this module
1. Patterns are verbose regular expressions over a statement *without white space*: blanks in a
pattern
   are for the reader. A text may so be wrapped anywhere.
2. ``{name}`` in a detail or next step is the pattern's group of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.diagnosis.pasted import Statement
from kubectl_gpuadmit.verdict import Evidence

Who = Literal["user", "platform", "wait", "fault"]
"""Whose move it is: the owner of the workload, who runs the cluster, nobody (time alone may clear
it),
or nobody by design: something is broken."""


class Cause(Struct, frozen=True):
    """One reason why. ``next`` is a command, or a sentence where no command would help."""

    reason: str
    """Stable code: the engine's where it is the same thing, else ``why/…``."""
    detail: str
    who: Who
    next: str
    evidence: tuple[Evidence, ...] = ()
    speaker: str = ""
    """Who said it: ``scheduler``, ``quota`` …"""


class Diagnosis(Struct, frozen=True):
    """Every cause in the order of the text, each once, and the messages that nobody understood."""

    causes: tuple[Cause, ...] = ()
    not_understood: tuple[str, ...] = ()


class Heard(Struct, frozen=True):
    """A part of a statement, ``[start, end)`` of its bare text. Without a cause it is part of a
    message
    that is known as such and whose meaning is not."""

    start: int
    end: int
    cause: Cause | None = None


Speaker = Callable[[Statement], Iterator[Heard]]

NAME = r"(?-i:[a-z0-9][-a-z0-9.]{0,252})"
RESOURCE = r"(?-i:[a-z0-9][-a-z0-9._/]{0,316})"
QUANTITY = r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?-i:[numkKMGTPE]i?)?"
_LAZY_NAME = r"(?-i:[a-z0-9][-a-z0-9.]{0,252}?)"
_LAZY_RESOURCE = r"(?-i:[a-z0-9][-a-z0-9._/]{0,316}?)"

_MACRO = re.compile(r"(?<!\(\?P)<(\w+)(:(?:NAME|RESOURCE|QUANTITY|COUNT|WORD))?>")
_KINDS = {
    "NAME": _LAZY_NAME,
    "RESOURCE": _LAZY_RESOURCE,
    "QUANTITY": QUANTITY,
    "COUNT": "[0-9]+",
    "WORD": r"[A-Za-z0-9][-A-Za-z0-9_./:=]{0,316}?",
}


def pattern(text: str) -> re.Pattern[str]:
    """Compiles a pattern over bare text. ``<pod>`` and ``<pod:NAME>`` stand for a named group: a
    lower-case name (as short as fits), RESOURCE, QUANTITY, COUNT or WORD. Names are no longer than
    the API
    lets them be, so that no text makes a pattern slow."""

    def group(macro: re.Match[str]) -> str:
        kind = _KINDS[(macro[2] or ":NAME")[1:]]
        return f"(?P<{macro[1]}>{kind})"

    made = _MACRO.sub(group, text.replace("#", r"\#"))
    return re.compile(made, re.VERBOSE | re.IGNORECASE | re.DOTALL)


_TOKENS = frozenset(
    {"account", "budget", "claim", "class", "device", "driver", "flavor", "group", "namespace",
     "node", "pod", "pool", "queue", "quota", "resource", "template", "webhook"}
)  # fmt: skip
"""Groups that are one word, whatever the pattern took behind it."""
_SAFE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]*")


class _Arguments(dict[str, str]):
    """What a command is filled in with; what the text does not tell stays to be filled in."""

    def __missing__(self, name: str) -> str:
        return "NAME" if name == "pod" else name.upper()


class Hit:
    """One match, asked by group name."""

    def __init__(self, statement: Statement, match: re.Match[str]) -> None:
        self.statement = statement
        self.match = match

    def __getitem__(self, name: str) -> str:
        """The token, without what the pattern took beyond its end; '' if the group is not there."""
        if name not in self.match.re.groupindex or self.match[name] is None:
            return ""
        return self.statement.token(*self.match.span(name))

    def said(self, name: str) -> str:
        """The words of a group as they were written, on one line; '' if it is not there."""
        if name not in self.match.re.groupindex or self.match[name] is None:
            return ""
        return self.statement.said(*self.match.span(name))

    def words(self) -> dict[str, str]:
        """Every group for a detail, as it was written."""
        return {
            name: self[name] if name in _TOKENS else self.said(name)
            for name in self.match.re.groupindex
        }

    def arguments(self) -> dict[str, str]:
        """Every group for a command: what is no plain name is left to be filled in."""
        found = {name: self[name] for name in self.match.re.groupindex}
        return _Arguments({name: text for name, text in found.items() if _SAFE.fullmatch(text)})


Counted = Callable[[Hit], tuple[Evidence, ...]]


class Phrase(Struct, frozen=True):
    """One row of a table: a text and how it reads."""

    pattern: re.Pattern[str]
    read: Callable[[Hit], Cause | None]

    @classmethod
    def of(
        cls,
        text: str,
        reason: str,
        who: Who,
        detail: str,
        next: str,
        *,
        evidence: Counted = lambda _: (),
    ) -> Phrase:
        def read(hit: Hit) -> Cause:
            return Cause(
                reason,
                _tidy(detail.format(**hit.words())),
                who,
                next.format_map(hit.arguments()),
                evidence(hit),
            )

        return cls(pattern(text), read)


def _tidy(detail: str) -> str:
    """Without the traces of groups that were not there."""
    return re.sub(r" (?=[,;:])|\(\s*\)", "", " ".join(detail.split())).rstrip(" :;,.")


def table(speaker: str, phrases: Iterable[Phrase]) -> Speaker:
    """A speaker that hears each phrase wherever it stands; earlier rows go first."""
    rows = tuple(phrases)

    def hear(statement: Statement) -> Iterator[Heard]:
        taken: list[tuple[int, int]] = []
        for row in rows:
            for match in row.pattern.finditer(statement.bare):
                start, end = match.span()
                if any(start < other_end and other < end for other, other_end in taken):
                    continue
                cause = row.read(Hit(statement, match))
                if cause is not None:
                    taken.append((start, end))
                    yield Heard(start, end, spoken(cause, speaker))

    return hear


def spoken(cause: Cause, speaker: str) -> Cause:
    return Cause(cause.reason, cause.detail, cause.who, cause.next, cause.evidence, speaker)
