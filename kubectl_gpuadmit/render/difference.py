"""``diff`` for a person and as ``gpu-admit.io/diff/v1``; says what was found and judges nothing.

The JSON shape is documented in schema/diff-v1.json; fields may be added, none is renamed or
removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kubectl_gpuadmit.render.data import finding, reference
from kubectl_gpuadmit.render.encoding import as_json
from kubectl_gpuadmit.render.standing import ranked, standing, word
from kubectl_gpuadmit.render.wording import asks, flow, plural, pointer
from kubectl_gpuadmit.snapshots.difference import Change, Difference, Flip
from kubectl_gpuadmit.snapshots.fields import FieldChange
from kubectl_gpuadmit.verdict import Finding, Ref, Verdict

if TYPE_CHECKING:
    from rich.text import Text

    from kubectl_gpuadmit.render.page import Page

SCHEMA_VERSION = "gpu-admit.io/diff/v1"
_MARK = {"refused": "no", "unjudged": "unknown", "waits": "warn", "warned": "ok", "clear": "ok"}
_CAUSES = 6
_FIELDS = 3


def text(found: Difference, *, width: int = 80, ascii: bool = False) -> Text:
    """Each workload whose verdict changed, then what else is new, then what was compared."""
    from kubectl_gpuadmit.render.page import Page

    page = Page(width, ascii=ascii)
    for flip in found.flips:
        _flip(page, flip)
        page.blank()
    for verdict in found.appeared:
        page.line((f"{_name(verdict.ref)}", "bold"), (" · new", ""), right=(word(verdict), ""))
    for ref in found.gone:
        page.line((_name(ref), "bold"), right=("gone", ""))
    for skipped in found.skipped:
        if skipped.treated == "unknown-kind":
            page.line((f"{_name(skipped.ref)}", "bold"), right=("not judged", ""))
    page.blank()
    page.block([], tally(found), indent=0)
    moments = f"{found.before.name} of {found.before_as_of} → {found.after.name} of"
    page.block([("Rests on  ", "dim")], f"{moments} {found.after_as_of}", indent=10, style="dim")
    return page.text


def tally(found: Difference) -> str:
    """``18 workloads compared · 9 objects differ · 1 verdict changed, 1 for the worse``."""
    worse = sum(flip.worse for flip in found.flips)
    changed = (
        f"{plural(len(found.flips), 'verdict')} changed" if found.flips else "no verdict changed"
    )
    parts = [
        f"{plural(found.compared, 'workload')} compared",
        plural(found.changes, "object differs", "objects differ"),
        changed + (f", {worse:,} no longer admitted and placed" if worse else ""),
    ]
    return " · ".join(parts)


def _name(ref: Ref) -> str:
    return f"{ref}" + (f" · {ref.namespace}" if ref.namespace else "")


def _flip(page: Page, flip: Flip) -> None:
    page.line(
        (str(flip.after.ref), "bold"),
        (f" · {flip.after.ref.namespace} · {asks(flip.after)}", ""),
        right=(f"{word(flip.before)} → {word(flip.after)}".upper(), "bold"),
    )
    page.blank()
    for name, verdict in (("was", flip.before), ("is", flip.after)):
        page.line(
            (f"  {name:<12}", ""), page.mark(_MARK[standing(verdict)]), (_answer(verdict), "")
        )
    for sign, findings in (("+", flip.appeared), ("-", flip.gone)):
        for one in ranked(findings):
            _finding(page, sign, one)
    for unknown in flip.unknown:
        page.block([("  ? ", "yellow")], unknown.missing, indent=4)
    _because(page, flip)


def _answer(verdict: Verdict) -> str:
    blockers = f"   by {', '.join(verdict.blockers)}" if verdict.blockers else ""
    return f"{verdict.admission}, {verdict.placement}{blockers}"


def _finding(page: Page, sign: str, one: Finding) -> None:
    level = "" if one.level == "deny" else f" ({one.level})"
    style = "green" if sign == "-" else "red" if one.level == "deny" else ""
    page.line((f"  {sign} ", style), (one.reason + level, ""))
    page.block([("      ", "")], one.detail, indent=6)


def _because(page: Page, flip: Flip) -> None:
    if not flip.causes:
        page.block([("  because     ", "")], "no single change was found that does it", indent=14)
        return
    head = "  because     "
    for cause in flip.causes[:_CAUSES]:
        page.block([(head, "")], sentence(cause), indent=14)
        for one in cause.fields[:_FIELDS]:
            page.block([(" " * 16, "")], _field(one), indent=18)
        if len(cause.fields) > _FIELDS:
            page.line((" " * 16, ""), (f"and {len(cause.fields) - _FIELDS:,} more fields", "dim"))
        head = "  and         "
    if len(flip.causes) > _CAUSES:
        page.line((head, ""), (f"{len(flip.causes) - _CAUSES:,} more changes", ""))
    if not flip.minimal:
        page.block(
            [(" " * 14, "")], "fewer may do: the search was cut short", indent=14, style="dim"
        )


def sentence(change: Change) -> str:
    """``ResourceQuota team-a/gpus changed``."""
    match change.what:
        case "policy":
            return f"the policy changed: {change.detail}"
        case "time":
            return f"time passed: {change.detail}"
        case "exported":
            return f"the snapshots know other kinds: {change.detail}"
        case "workload":
            return f"the workload itself changed: {change.detail}"
        case _:
            return f"{_object(change.ref)} was {change.what}"


def _object(ref: Ref | None) -> str:
    if ref is None:
        return "an object"
    return f"{ref.kind} " + (f"{ref.namespace}/" if ref.namespace else "") + ref.name


def _field(change: FieldChange) -> str:
    def shown(value: Any) -> str:
        return "absent" if value is None else flow(value)

    return f"{pointer(change.field)}: {shown(change.before)} → {shown(change.after)}"


# -- JSON ------------------------------------------------------------------------------------------


def to_json(found: Difference) -> str:
    """Indented JSON with a newline at the end."""
    return as_json(msgspec.to_builtins(document(found)))


def document(found: Difference) -> dict[str, Any]:
    """The difference as plain data in the documented order."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "before": {"name": found.before.name, "asOf": found.before_as_of},
        "after": {"name": found.after.name, "asOf": found.after_as_of},
        "compared": found.compared,
        "objectsChanged": found.changes,
        "changed": [_flip_data(flip) for flip in found.flips],
        "appeared": [{"ref": reference(v.ref), **_verdict(v)} for v in found.appeared],
        "gone": [reference(ref) for ref in found.gone],
        "notJudged": [
            {"ref": reference(s.ref), "location": s.location, "treated": s.treated}
            for s in found.skipped
            if s.treated in ("unknown-kind", "unreadable")
        ],
    }


def _flip_data(flip: Flip) -> dict[str, Any]:
    return {
        "ref": reference(flip.after.ref),
        "worse": flip.worse,
        "before": _verdict(flip.before),
        "after": _verdict(flip.after),
        "appeared": [finding(one) for one in flip.appeared],
        "disappeared": [finding(one) for one in flip.gone],
        "causes": [_cause(change) for change in flip.causes],
        "minimal": flip.minimal,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "admission": verdict.admission,
        "placement": verdict.placement,
        "running": verdict.running,
        "blockers": list(verdict.blockers),
    }


def _cause(change: Change) -> dict[str, Any]:
    return {
        "what": change.what,
        "object": reference(change.ref) if change.ref else None,
        "detail": sentence(change),
        "fields": [
            {"field": one.field, "before": one.before, "after": one.after} for one in change.fields
        ],
    }
