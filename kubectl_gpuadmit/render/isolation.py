"""An isolation plan for a person, and as the objects that it consists of; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.devices.isolation import Plan
from kubectl_gpuadmit.render import objects

if TYPE_CHECKING:
    from rich.text import Text

_MARKS = {"hardware": "ok", "device": "ok", "soft": "warn", "none": "warn"}
_STRENGTHS = {
    "device": "isolated: a device alone",
    "hardware": "isolated in hardware",
    "soft": "SOFTLY ISOLATED",
    "none": "NOT ISOLATED",
}


def to_json(plan: Plan) -> str:
    """A List of the objects, as kubectl apply takes it."""
    return objects.as_json(plan.objects)


def to_yaml(plan: Plan) -> str:
    """The objects as YAML documents, as kubectl apply takes them."""
    return objects.as_yaml(plan.objects)


def text(
    plan: Plan,
    title: str,
    effects: Mapping[tuple[str, str], str],
    *,
    removed: Sequence[tuple[str, str]] = (),
    applied: bool,
    width: int = 80,
    ascii: bool = False,
) -> Text:
    """What the tenant gets, the objects with what became of each, and what to know.

    ``effects``: (kind, name) -> ``created`` and the like, empty where nothing was applied.
    """
    from kubectl_gpuadmit.render.page import BOLD, DIM, Page

    page = Page(width, ascii=ascii)
    page.block([], title, indent=2, style=BOLD)
    page.blank()
    head = [("  ", ""), page.mark(_MARKS[plan.strength])]
    page.block(head, f"{_STRENGTHS[plan.strength]}: {plan.meaning}", indent=4)
    page.blank()
    page.line(("Objects" if applied else "Objects, of which none has been made", BOLD))
    rows = [(str(one["kind"]), str(one["metadata"]["name"]), _says(one)) for one in plan.objects]
    for kind, name, says in rows:
        effect = effects.get((kind, name), "")
        mark = page.mark("ok" if effect else "note")
        page.line(("  ", ""), mark, (f"{kind}/{name}", ""), (f"  {effect}", DIM))
        for sentence in says:
            page.block([("      ", "")], sentence, indent=6, style=DIM)
    for kind, name in removed:
        page.line(("  ", ""), page.mark("no"), (f"{kind}/{name}", ""), ("  deleted", DIM))
    if plan.notes:
        page.blank()
        page.line(("To know", BOLD))
        for note in plan.notes:
            page.block([("  ", ""), page.mark("warn")], note, indent=4)
    if not applied:
        page.blank()
        page.block([("Next  ", BOLD)], "-o yaml prints the objects · --apply makes them", indent=6)
    return page.text


def _says(document: Mapping[str, Any]) -> list[str]:
    """What of an object a person wants to read before it is made."""
    metadata = document["metadata"]
    match document["kind"]:
        case "DeviceClass":
            owner = " · goes with the namespace" if "ownerReferences" in metadata else ""
            selector = document["spec"]["selectors"][0]["cel"]["expression"]
            return [f"{selector}{owner}"]
        case "ResourceQuota":
            return [f"{key}: {value}" for key, value in document["spec"]["hard"].items()]
        case "Namespace":
            both = {**metadata["labels"], **metadata["annotations"]}
            return [f"{key}: {value}" for key, value in both.items()]
        case kind:
            spec = document["spec"]["spec"] if kind.endswith("Template") else document["spec"]
            request = spec["devices"]["requests"][0]
            asks = request.get("exactly", request)
            config = spec["devices"].get("config", ())
            sharing = [c["opaque"]["parameters"]["sharing"]["strategy"] for c in config]
            shared = f" · {', '.join(sharing)}" if sharing else ""
            return [f"{asks['count']} of class {asks['deviceClassName']}{shared}"]


def removal(
    namespace: str, gone: Sequence[tuple[str, str, str]], *, width: int = 80, ascii: bool = False
) -> Text:
    """What was taken away: (kind, name, effect)."""
    from kubectl_gpuadmit.render.page import BOLD, DIM, Page

    page = Page(width, ascii=ascii)
    taken = [one for one in gone if one[2] not in ("absent", "unchanged")]
    head = "is not isolated any more" if taken else "was not isolated"
    page.block([], f"{namespace} {head}", indent=2, style=BOLD)
    for kind, name, effect in gone:
        mark = page.mark("ok" if (kind, name, effect) in taken else "note")
        page.line(("  ", ""), mark, (f"{kind}/{name}", ""), (f"  {effect}", DIM))
    return page.text
