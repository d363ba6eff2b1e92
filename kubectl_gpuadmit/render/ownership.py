"""The claim ownership map for a person, and as plain data; adds no reading of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.devices.ownership import ALARMING, Ownership, State
from kubectl_gpuadmit.render.encoding import as_json

if TYPE_CHECKING:
    from rich.text import Text

SCHEMA_VERSION = "gpu-admit.io/topology/v1"

_MARKS: dict[State, str] = {
    "waiting": "note",
    "in-use": "ok",
    "ending": "note",
    "leaked": "no",
    "deallocating": "warn",
    "deleting": "warn",
    "stuck": "no",
}
_SHOWN = 4


def document(owned: Sequence[Ownership]) -> list[dict[str, Any]]:
    """One entry a claim, in the documented order of keys."""
    return [
        {
            "claim": one.claim,
            "state": one.state,
            "madeFor": one.made_for,
            "shared": one.shared,
            "users": list(one.users),
            "gone": list(one.gone),
            "keptBy": one.kept_by,
            "finalizers": list(one.finalizers),
            "since": one.since,
            "devices": [
                {
                    "device": held.device,
                    "request": held.request,
                    "uuid": held.uuid,
                    "parentUUID": held.parent,
                    "share": held.share,
                    "adminAccess": held.admin_access,
                    "published": held.published,
                }
                for held in one.devices
            ],
        }
        for one in owned
    ]


def to_json(owned: Sequence[Ownership]) -> str:
    """Indented JSON with a newline at the end."""
    return as_json({"schemaVersion": SCHEMA_VERSION, "claims": document(owned)})


def text(owned: Sequence[Ownership], *, width: int = 80, ascii: bool = False) -> Text:
    """The tally, then each claim with its devices and who keeps it."""
    from kubectl_gpuadmit.render.page import BOLD, DIM, RED, Page

    page = Page(width, ascii=ascii)
    states = Counter(one.state for one in owned)
    counts = [f"{states[state]:,} {state}" for state in _MARKS if states[state]]
    devices = sum(len(one.devices) for one in owned)
    tally = [f"{len(owned):,} claims with {devices:,} devices", *counts]
    page.units([], tally if owned else ["no claims"], indent=2, style=BOLD)
    for one in owned:
        page.blank()
        alarming = one.state in ALARMING
        mark = page.mark(_MARKS[one.state])
        kind = " · shared" if one.shared else ""
        said = f"{one.state}{kind}"
        page.line(mark, (one.claim, ""), right=(said, RED if alarming else DIM))
        for held in one.devices[:_SHOWN]:
            unique = f" {held.uuid}" if held.uuid else ""
            note = "" if held.published else ", no longer published"
            note += ", admin access" if held.admin_access else ""
            page.block([("    ", "")], f"{held.device}{unique}{note}", indent=4, style=DIM)
        if len(one.devices) > _SHOWN:
            more = len(one.devices) - _SHOWN
            page.line(("    ", ""), (f"and {more} more devices", DIM))
        page.block([("    ", "")], one.kept_by, indent=4)
    return page.text
