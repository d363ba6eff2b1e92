"""The maturity ledger for a person, and as ``gpu-admit.io/ledger/v1``; decides nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.devices.gates import KUBERNETES, Component
from kubectl_gpuadmit.devices.maturity import Row, State, Versions, spell
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.render.encoding import as_json

if TYPE_CHECKING:
    from rich.text import Text

SCHEMA_VERSION = "gpu-admit.io/ledger/v1"

_MARKS: dict[State, str] = {
    "allowed": "ok",
    "unresolved": "unknown",
    "expired": "no",
    "off": "note",
    "settled": "note",
    "absent": "note",
}
_COUNTED: dict[State, str] = {
    "unresolved": "unresolved",
    "expired": "expired",
    "allowed": "allowed",
    "off": "alpha and off",
    "settled": "need no decision",
    "absent": "not in this release",
}
_TITLES: dict[Component, str] = {
    "kubernetes": "Kubernetes",
    "nvidia-dra-driver": "NVIDIA DRA driver",
}


def document(rows: Sequence[Row], versions: Versions) -> dict[str, Any]:
    """The ledger as plain dicts and lists in the documented order."""
    components: tuple[Component, ...] = ("kubernetes", "nvidia-dra-driver")
    return {
        "schemaVersion": SCHEMA_VERSION,
        "versions": {
            component: {
                "release": spell(versions.of(component)),
                "assumed": versions.given(component) is None,
            }
            for component in components
        },
        "features": [_feature(row) for row in rows],
        "unresolved": [
            {"feature": row.gate.name, "component": row.gate.component, "empty": list(row.empty)}
            for row in rows
            if row.empty
        ],
    }


def _feature(row: Row) -> dict[str, Any]:
    entry = row.entry
    return {
        "feature": row.gate.name,
        "component": row.gate.component,
        "what": row.gate.what,
        "release": spell(row.release),
        "stage": row.stage,
        "since": spell(row.step.since) if row.step else None,
        "default": row.step.on if row.step else None,
        "locked": row.step.locked if row.step else None,
        "needs": [*row.gate.needs, *row.gate.beside],
        "excludes": list(row.gate.excludes),
        "source": row.gate.source,
        "state": row.state,
        "decision": None
        if entry is None
        else {
            "owner": entry.owner,
            "expires": times.stamp(entry.expires) if entry.expires else "",
            "reason": entry.reason,
            "testCluster": entry.testCluster,
        },
        "empty": list(row.empty),
        "conflicts": list(row.conflicts),
    }


def to_json(rows: Sequence[Row], versions: Versions) -> str:
    """Indented JSON with a newline at the end."""
    return as_json(document(rows, versions))


def text(rows: Sequence[Row], versions: Versions, *, width: int = 80, ascii: bool = False) -> Text:
    """The tally, each component's features, then what is open: decisions, conflicts."""
    from kubectl_gpuadmit.render.page import BOLD, DIM, Page

    page = Page(width, ascii=ascii)
    states = [row.state for row in rows]
    counts = [f"{states.count(s)} {words}" for s, words in _COUNTED.items() if s in states]
    page.units([], counts, indent=2, style=BOLD)
    there = [row for row in rows if row.step or row.entry]
    wide = max((len(row.gate.name) for row in there), default=0)
    for component in dict.fromkeys(row.gate.component for row in rows):
        page.blank()
        title = f"{_TITLES[component]} {spell(versions.of(component))}"
        if versions.given(component) is None:
            title += ", assumed: the policy names none under ledger.versions"
        if component != KUBERNETES and versions.without_driver:
            title = f"{_TITLES[component]}: not in this GPU Operator"
        page.block([], title, indent=2, style=BOLD)
        for row in (r for r in there if r.gate.component == component):
            head = [
                ("  ", ""),
                page.mark(_MARKS[row.state]),
                (f"{page.clean(row.gate.name):<{wide}}  ", ""),
                (f"{_stage(row):<11}", DIM),
            ]
            page.block(head, _decision(row), indent=wide + 17)
        gone = [r.gate.name for r in rows if r not in there and r.gate.component == component]
        if gone:
            page.units([("  ", ""), page.mark("note"), ("not there: ", DIM)], gone, indent=15)
    _open(page, rows)
    return page.text


def _stage(row: Row) -> str:
    if row.step is None:
        return "not there"
    default = "locked" if row.step.locked else "on" if row.step.on else "off"
    return f"{row.step.stage} {default}"


def _decision(row: Row) -> str:
    entry = row.entry
    until = times.stamp(entry.expires).removesuffix("T23:59:59Z") if entry and entry.expires else ""
    match row.state:
        case "allowed":
            return f"until {until}"
        case "expired":
            return f"expired {until}"
        case "unresolved":
            return "unresolved"
        case "off":
            return "refused"
        case _:
            return ""


def _open(page: Any, rows: Sequence[Row]) -> None:
    from kubectl_gpuadmit.render.page import BOLD

    allowed = [row for row in rows if row.state == "allowed" and row.entry]
    if allowed:
        page.blank()
        page.line(("Allowed", BOLD))
        for row in allowed:
            assert row.entry is not None
            said = f"{row.entry.owner}, tried on {row.entry.testCluster}: {row.entry.reason}"
            page.block([("  ", ""), page.mark("ok"), (f"{row.gate.name}: ", "")], said, indent=4)
    unresolved = [row for row in rows if row.empty]
    if unresolved:
        page.blank()
        page.line(("Unresolved", BOLD))
        for row in unresolved:
            head = [("  ", ""), page.mark("unknown"), (f"{row.gate.name}: ", "")]
            page.block(head, f"{', '.join(row.empty)} not filled in", indent=4)
    conflicts = [(row, text) for row in rows for text in row.conflicts]
    if conflicts:
        page.blank()
        page.line(("Conflicts", BOLD))
        for row, sentence in conflicts:
            head = [("  ", ""), page.mark("no"), (f"{row.gate.name} ", "")]
            page.block(head, sentence, indent=4)
