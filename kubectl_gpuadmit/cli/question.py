"""What a call asks, as one value made from its options; opens nothing and answers nothing."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct

from kubectl_gpuadmit.cli.options import LIVE, OPTIONS
from kubectl_gpuadmit.errors import BadInput, Unanswerable

SUPPORTED = range(30, 38)
"""Minor versions of Kubernetes whose rules are known."""

EXPORT = (
    "for now use --snapshot PATH, made by: kubectl get nodes,pods,namespaces,resourcequotas,"
    "limitranges,priorityclasses,persistentvolumes,persistentvolumeclaims,poddisruptionbudgets "
    "-A -o json > cluster.json"
)


class Question(Struct, frozen=True, kw_only=True):
    """One call of ``explain`` or ``check``, checked as far as its options go."""

    command: str
    paths: tuple[str, ...]
    snapshot: str
    policy: str
    output: str
    details: bool
    namespace: str
    now: dt.datetime | None
    remedies: bool
    rule: str
    capsule: str = ""
    """File that is to hold what the answer read, '' for none."""
    from_capsule: str = ""
    """File that holds the whole question, '' where the other fields do."""
    warn_exit_code: int
    kubernetes: str
    """``1.N``, '' for the newest that is known."""


def asked(command: str, values: Mapping[str, Any]) -> Question:
    """Makes the question of a command from its options' values.

    Raises BadInput for a value that means nothing, Unanswerable for what needs a live cluster.
    """
    if values.get("names"):
        needs_live(f"explain {' '.join(values['names'])} is about a live cluster")
    for option in OPTIONS:
        if option.name in LIVE and values[option.name]:
            needs_live(f"{option.flags[-1]} is about a live cluster")
    paths = (*values.get("paths", ()), *values["files"])
    if values["from_capsule"]:
        _alone(values, paths)
    elif paths and not values["rule"] and not values["snapshot"]:
        needs_live("without --snapshot the facts would be those of a live cluster")
    kubernetes = values["kubernetes_version"]
    return Question(
        command=command,
        paths=paths,
        snapshot=values["snapshot"],
        policy=values["policy"],
        output=values["output"],
        details=values["details"],
        namespace=values["namespace"] or "default",
        now=instant(values["now"]) if values["now"] else None,
        remedies=not values["no_remedies"],
        rule=values["rule"],
        capsule=values["capsule"],
        from_capsule=values["from_capsule"],
        warn_exit_code=values["warn_exit_code"],
        kubernetes=version(kubernetes) if kubernetes else "",
    )


def _alone(values: Mapping[str, Any], paths: tuple[str, ...]) -> None:
    """A capsule holds all of the question: nothing else may be asked besides."""
    besides = (
        "snapshot",
        "policy",
        "namespace",
        "now",
        "no_remedies",
        "kubernetes_version",
        "rule",
    )
    flags = {option.name: option.flags[-1] for option in OPTIONS}
    given = [flags[name] for name in (*besides, "capsule") if values[name]]
    given += [f"the file {paths[0]}"] if paths else []
    if given:
        raise BadInput(
            "capsule-alone",
            f"a capsule holds the whole question; {given[0]} would make it another",
            field="--from-capsule",
            hint="leave it out; to ask another question, use -f FILE --snapshot PATH",
        )


def needs_live(what: str) -> NoReturn:
    """Raises Unanswerable: ``what`` says what would have to read a live cluster."""
    raise Unanswerable("needs-live-cluster", f"{what}, which this version cannot read", hint=EXPORT)


def instant(text: str) -> dt.datetime:
    """The value of ``--now``. Raises BadInput."""
    try:
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise BadInput(
            "bad-time",
            f"{text!r} is no RFC 3339 time with a zone",
            field="--now",
            hint="for example 2026-11-29T14:00:00Z",
        )
    return at


def version(text: str) -> str:
    """``v1.34.2`` -> ``1.34``. Raises BadInput."""
    match = re.fullmatch(r"v?1\.(\d{1,3})(?:[.+-].*)?", text)
    if match is None or int(match[1]) not in SUPPORTED:
        raise BadInput(
            "unknown-kubernetes-version",
            f"{text!r} is no version whose rules are known",
            field="--kubernetes-version",
            hint=f"1.{SUPPORTED[0]} to 1.{SUPPORTED[-1]}",
        )
    return f"1.{match[1]}"
