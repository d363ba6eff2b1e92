"""Says in a report what could not be read and which right would change that; judges nothing.

An engine that misses a kind says so in its own words, for snapshots. Where the kind was refused,
the remedy is another one: an RBAC rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.verdict import Report, Unknown, Verdict

RULE = "live/forbidden"

_ALSO_CALLED = {
    "Namespace": ("namespaces are",),
    "RuntimeClass": ("runtime classes",),
    "PriorityClass": ("priority classes",),
    "ServiceAccount": ("accounts are",),
    "Pod": ("Pod objects", "running pods"),
}
_GIVEN_UP = re.compile(r": (?:[\w ]+ are )?not in the (?:source|snapshot)|: no \w+ objects given")
_GRAVEST = ("deny", "warn", "audit", "off")


class Absence(Struct, frozen=True):
    """Kinds of one API group that could not be read."""

    kinds: tuple[str, ...]
    why: str
    """``user "dev" may not list pods in all namespaces``."""
    hint: str
    """The RBAC rule to add."""
    stage: Literal["admission", "placement"] = "admission"


def narrowed(report: Report, absences: Iterable[Absence]) -> Report:
    """The report with every absence named: in the unknowns that stem from it, else together in one
    of its own at level audit."""
    listed = list(absences)
    if not listed:
        return report
    return structs.replace(
        report, workloads=tuple(_narrowed(verdict, listed) for verdict in report.workloads)
    )


def _narrowed(verdict: Verdict, absences: list[Absence]) -> Verdict:
    unknowns = list(verdict.unknowns)
    silent: list[Absence] = []
    for absence in absences:
        mine = [i for i, unknown in enumerate(unknowns) if _stems_from(unknown, absence)]
        for i in mine:
            missing = _GIVEN_UP.sub(f": {absence.why}", unknowns[i].missing, count=1)
            unknowns[i] = structs.replace(unknowns[i], missing=missing, hint=absence.hint)
        silent += [] if mine else [absence]
    if silent:
        unknowns.append(
            Unknown(
                rule=RULE,
                missing="also not looked at: " + _joined([one.why for one in silent], " list "),
                level="audit",
                hint=_joined([one.hint for one in silent], ": "),
                stage="admission",
            )
        )
    return structs.replace(verdict, unknowns=_once(unknowns))


def _joined(sentences: list[str], at: str) -> str:
    """Sentences in a row, what they have in common up to ``at`` said once."""
    heads: dict[str, list[str]] = {}
    for sentence in sentences:
        head, _, rest = sentence.partition(at)
        heads.setdefault(head, []).append(rest)
    return "; ".join(f"{head}{at}{'; '.join(rests)}" for head, rests in heads.items())


def _once(unknowns: list[Unknown]) -> tuple[Unknown, ...]:
    """Each sentence once, at its gravest level: several rules miss the same kind."""
    kept: dict[tuple[str, str], Unknown] = {}
    for unknown in unknowns:
        key = (unknown.missing, unknown.hint)
        before = kept.get(key)
        if before is None or _GRAVEST.index(unknown.level) < _GRAVEST.index(before.level):
            kept[key] = unknown
    return tuple(kept.values())


def _stems_from(unknown: Unknown, absence: Absence) -> bool:
    if not _GIVEN_UP.search(unknown.missing):
        return False
    return any(
        re.search(rf"\b{kind}\b", unknown.missing)
        or any(name in unknown.missing for name in _ALSO_CALLED.get(kind, ()))
        for kind in absence.kinds
    )
