"""What changed between two overviews, for a terminal and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.overview.difference import Change, Difference
from kubectl_gpuadmit.render.topology.data import SCHEMA_VERSION, alert_json
from kubectl_gpuadmit.render.wording import plural

if TYPE_CHECKING:
    from rich.text import Text


def text(found: Difference, *, width: int = 80, ascii: bool = False) -> Text:
    """New alerts, ended ones, then the changes by node."""
    from kubectl_gpuadmit.render.page import Page

    page = Page(width, ascii=ascii)
    for mark, word, alerts in (
        ("no", "new", found.new_alerts),
        ("ok", "over", found.ended_alerts),
    ):
        for alert in alerts:
            what = alert.what + (f" · {alert.effect}" if alert.effect else "")
            page.block([page.mark(mark), (f"{word:<5} {alert.node}  ", "bold")], what, indent=8)
    node = ""
    for change in found.changes:
        if change.node != node:
            page.line((change.node, "bold"))
            node = change.node
        subject = change.what if change.gpu is None else f"GPU {change.gpu} {change.what}"
        style = "red" if change.worse else ""
        page.block(
            [(f"  {subject:<18} ", "")], f"{change.before} → {change.after}", indent=21, style=style
        )
    if not (found.changes or found.new_alerts or found.ended_alerts):
        page.line(("nothing differs", "bold"))
    page.blank()
    moments = [one.as_of.strftime("%Y-%m-%d %H:%M:%S UTC") for one in (found.before, found.after)]
    page.block(
        [("Rests on  ", "dim")],
        f"{found.before.source} of {moments[0]} → {found.after.source} of {moments[1]} · "
        + plural(len(found.changes), "change"),
        indent=10,
        style="dim",
    )
    return page.text


def to_json(found: Difference) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "before": {"name": found.before.source, "asOf": found.before.as_of.isoformat()},
        "after": {"name": found.after.source, "asOf": found.after.as_of.isoformat()},
        "worse": found.worse,
        "newAlerts": [alert_json(alert) for alert in found.new_alerts],
        "endedAlerts": [alert_json(alert) for alert in found.ended_alerts],
        "changes": [_change(change) for change in found.changes],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "node": change.node,
        "gpu": change.gpu,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "worse": change.worse,
    }
