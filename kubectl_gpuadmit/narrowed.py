"""Says in a report what could not be read and which right would change that; judges nothing.

An engine that misses a kind says so in its own words, for snapshots. Where the kind was refused, the
remedy is another one: an RBAC rule.
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
_GIVEN_UP = re.compile(r"(?:: (?:\w+ )?(?:are )?|: no \w+ objects )(?:not in the (?:source|snapshot)|given)")


class Absence(Struct, frozen=True):
    """Kinds of one API group that could not be read."""

    kinds: tuple[str, ...]
    why: str
    """``user "dev" may not list them in all namespaces``."""
    hint: str
    """The RBAC rule to add."""
    stage: Literal["admission", "placement"] = "admission"


def narrowed(report: Report, absences: Iterable[Absence]) -> Report:
    """The report with every absence named: in the unknowns that stem from it, else as one of its own
    at level audit."""
    listed = list(absences)
    if not listed:
        return report
    return structs.replace(
        report, workloads=tuple(_narrowed(verdict, listed) for verdict in report.workloads)
    )


def _narrowed(verdict: Verdict, absences: list[Absence]) -> Verdict:
    unknowns = list(verdict.unknowns)
    for absence in absences:
        mine = [i for i, unknown in enumerate(unknowns) if _stems_from(unknown, absence)]
        for i in mine:
            missing = _GIVEN_UP.sub(f": {absence.why}", unknowns[i].missing, count=1)
            unknowns[i] = structs.replace(unknowns[i], missing=missing, hint=absence.hint)
        if not mine:
            kinds = ", ".join(absence.kinds)
            unknowns.append(
                Unknown(
                    rule=RULE,
                    missing=f"{kinds} objects: {absence.why}",
                    level="audit",
                    hint=absence.hint,
                    stage=absence.stage,
                )
            )
    return structs.replace(verdict, unknowns=tuple(unknowns))


def _stems_from(unknown: Unknown, absence: Absence) -> bool:
    if not _GIVEN_UP.search(unknown.missing):
        return False
    return any(
        re.search(rf"\b{kind}\b", unknown.missing)
        or any(name in unknown.missing for name in _ALSO_CALLED.get(kind, ()))
        for kind in absence.kinds
    )
