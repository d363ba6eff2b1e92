"""``explain`` for a person: verdict, then why, then what to do, then on what this rests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubectl_gpuadmit.render import diff, nodes, served, wording
from kubectl_gpuadmit.render.page import BOLD, DIM, GREEN, RED, YELLOW, Page
from kubectl_gpuadmit.render.standing import gravest, ranked, stage, standing, word
from kubectl_gpuadmit.render.wording import cells, plural
from kubectl_gpuadmit.verdict import Finding, Mutation, PodPlace, Remedy, Report, Verdict

if TYPE_CHECKING:
    from rich.text import Text

Position = Callable[[Verdict, str], "tuple[int, int] | None"]
"""(verdict, RFC 6901 pointer into its manifest) -> (line, column) in its file, None if unknown."""

_SHOUT = {"refused": RED, "unjudged": YELLOW, "waits": YELLOW, "warned": GREEN, "clear": GREEN}


def explain(
    report: Report,
    *,
    width: int = 80,
    details: bool = False,
    ascii: bool = False,
    position: Position | None = None,
) -> Text:
    """Every workload in full. ``details`` unfolds nodes, places and sources."""
    page = Page(width, ascii=ascii)
    for verdict in report.workloads:
        page.blank()
        workload(page, verdict, details=details, position=position)
    page.blank()
    rests_on(page, report)
    others(page, report)
    return page.text


def workload(
    page: Page, verdict: Verdict, *, details: bool = False, position: Position | None = None
) -> None:
    """One workload's block."""
    _headline(page, verdict)
    page.blank()
    _admission(page, verdict)
    _placement(page, verdict, details=details)
    _running(page, verdict, details=details)
    _why(page, verdict, details=details, position=position)
    _remedies(page, verdict.remedies, details=details)
    _nodes(page, verdict, details=details)
    _unknown(page, verdict)


def _headline(page: Page, verdict: Verdict) -> None:
    shout = word(verdict).upper()
    style = YELLOW if shout == "UNKNOWN" else _SHOUT[standing(verdict)]
    rest = f" · {verdict.ref.namespace}" if verdict.ref.namespace else ""
    rest += f" · {wording.asks(verdict)}"
    room = page.width - cells(page.clean(shout)) - 2
    if cells(page.clean(f"{verdict.ref}{rest}")) > room:
        rest = rest.replace(wording.asks(verdict), wording.totals(verdict))
    name = page.cut(str(verdict.ref), max(room - cells(page.clean(rest)), 24))
    page.line((name, BOLD), (rest, ""), right=(shout, f"bold {style}"))


def _status(page: Page, name: str, mark: str, answer: str, detail: str) -> None:
    head = [(f"  {name:<12}", ""), page.mark(mark), (f"{answer:<9}" if detail else answer, "")]
    page.block(head, detail, indent=25)


def _admission(page: Page, verdict: Verdict) -> None:
    mark = {"admitted": "ok", "mutated": "change", "denied": "no", "unknown": "unknown"}
    reasons: list[str] = []
    for finding in ranked(verdict.findings):
        if finding.level == "deny" and stage(finding) in ("admission", "running"):
            reasons += [] if finding.reason in reasons else [finding.reason]
    applied = [m for m in verdict.mutations if m.level == "deny"]
    if verdict.admission == "denied" and reasons:
        detail = "by " + ", ".join(reasons)
    elif verdict.admission == "unknown":
        detail = _missing(verdict, "admission")
    else:
        detail = "by " + ", ".join(dict.fromkeys(map(_by, applied))) if applied else ""
    _status(page, "admission", mark[verdict.admission], verdict.admission, detail)
    for mutation in applied:
        if len(applied) > 1 or verdict.admission != "mutated":
            page.line((f"      {_by(mutation)}", DIM))
        _diff(page, mutation)


def _by(mutation: Mutation) -> str:
    return f"rule {mutation.rule}" if mutation.rule else mutation.summary or "the API server"


def _diff(page: Page, mutation: Mutation) -> None:
    style = {"+": GREEN, "-": RED, " ": DIM}
    for line in diff.lines(mutation, width=page.width - 8):
        bare = line.text.strip()
        deep = "  " + line.text[: len(line.text) - len(line.text.lstrip(" "))]
        head = [("    ", ""), (f"{line.sign} ", style[line.sign]), (deep, "")]
        page.block(head, bare, indent=6 + len(deep), style=style[line.sign])


def _missing(verdict: Verdict, part: str) -> str:
    """The gravest fact that this part of the answer lacks."""
    return next((u.missing for u in gravest(verdict.unknowns) if u.stage == part), "")


_NAMED = {
    "placement/kubelet-refuses": "the node that it names would refuse it",
    "placement/no-such-node": "the node that it names does not exist",
}


def _placement(page: Page, verdict: Verdict, *, details: bool) -> None:
    mark = {"fits": "ok", "waits": "warn", "never": "no", "unknown": "unknown"}
    on = places(verdict.places, limit=None if details else 6)
    some = f"{plural(len(verdict.places), 'pod')} of {verdict.pods:,}: {on}" if on else ""
    match verdict.placement:
        case "fits":
            detail = on if len(verdict.places) == verdict.pods else some
        case "waits" if verdict.waits_for:
            detail = verdict.waits_for[0]
        case "unknown":
            detail = _missing(verdict, "placement")
        case "never" if verdict.nodes and not any(n.fits for n in verdict.nodes):
            count = len(verdict.nodes)
            detail = f"none of {count:,} nodes could, even empty"
            if count == 1:
                permanent = any(s.permanent for s in verdict.nodes[0].shortfalls)
                even = ", even empty" if permanent else ""
                detail = f"{page.cut(verdict.nodes[0].node, 40)} cannot take it{even}"
            if any(f.reason == "placement/too-many-replicas" for f in verdict.findings):
                detail = "not all of them, even if nothing else ran"
            for finding in verdict.findings:
                detail = _NAMED.get(finding.reason, detail)
        case _:
            detail = nodes.best(verdict.nodes)
    _status(page, "placement", mark[verdict.placement], verdict.placement, detail)
    others = verdict.waits_for[1:] if verdict.placement == "waits" else ()
    for sentence in others if details else others[:2]:
        page.block([], f"or {sentence}", indent=25)
    if len(others) > 2 and not details:
        page.block([], f"or {len(others) - 2} more ways (-v)", indent=25, style=DIM)
    if some and verdict.placement != "fits":
        page.block([], some, indent=25)
    if verdict.decided_by:
        page.block([], f"the last word has {verdict.decided_by} (modelled)", indent=25, style=DIM)


def places(placed: tuple[PodPlace, ...], *, limit: int | None) -> str:
    """``inf-0 (4 pods), inf-1``; beyond ``limit`` nodes the rest is counted."""
    counts: dict[str, int] = {}
    for place in placed:
        counts[place.node] = counts.get(place.node, 0) + 1
    names = [f"{node} ({n:,} pods)" if n > 1 else node for node, n in counts.items()]
    if limit is not None and len(names) > limit:
        more = plural(len(names) - limit, "node")
        names = [*names[:limit], f"{more} more (--nodes)"]
    return ", ".join(names)


def _running(page: Page, verdict: Verdict, *, details: bool) -> None:
    if verdict.running == "not-a-model":
        if details and (why := next((m for one in verdict.models for m in one.missing), "")):
            _status(page, "running", "note", "no model", why)
        return
    mark = {"fits": "ok", "exceeds": "no", "unknown": "unknown"}[verdict.running]
    first = next((m for m in verdict.models if m.running == verdict.running), None)
    detail = served.memory(first) if first is not None else ""
    if verdict.running == "unknown":
        detail = _missing(verdict, "running") or served.missing(verdict.models) or detail
        detail = detail or "nothing says which model it serves"
    _status(page, "running", mark, verdict.running, detail)
    for model in verdict.models:
        if model.engine:
            for line in served.lines(model, several=len(verdict.models) > 1, details=details):
                page.block([], line, indent=25, style=DIM)


def _why(page: Page, verdict: Verdict, *, details: bool, position: Position | None) -> None:
    proposed = [m for m in verdict.mutations if m.level in ("warn", "audit")]
    said = [
        f
        for f in ranked(verdict.findings)
        if details or f.level != "audit" or stage(f) != "placement"  # the Nodes line says those
    ]
    if not said and not proposed:
        return
    page.blank()
    page.line(("Why", BOLD))
    for finding in said:
        where = position(verdict, finding.field) if position and finding.field else None
        file = verdict.location.rpartition(":")[0] or verdict.location
        at = f"{file}:{where[0]} {wording.pointer(finding.field)}" if where else ""
        _finding(page, finding, at=at or wording.pointer(finding.field), details=details)
    for mutation in proposed:
        head = f"rule {mutation.rule} would change this"
        page.line(("  ", ""), page.mark("note"), (head, ""), right=(mutation.level, DIM))
        _diff(page, mutation)


def finding_mark(finding: Finding) -> str:
    """✗ for what refuses, ! for what waits or warns, · for what is only recorded."""
    if finding.level == "deny":
        return "no" if finding.permanent or stage(finding) == "admission" else "warn"
    return "warn" if finding.level == "warn" else "note"


def _finding(page: Page, finding: Finding, *, at: str, details: bool) -> None:
    subject = finding.evidence[0].subject if finding.evidence else ""
    if not subject and finding.rule != finding.reason:
        subject = f"rule {finding.rule}" if finding.rule else ""
    right = finding.fidelity if finding.level == "deny" else f"{finding.level} · {finding.fidelity}"
    head = (f"{finding.reason:<23} {subject}", "")
    page.line(("  ", ""), page.mark(finding_mark(finding)), head, right=(right, DIM))
    page.block([], finding.detail, indent=6)
    # How many nodes a filter refuses (of which there should be 0) stands in the sentence above, and
    # what the API server would say in its own words is for -v.
    counts = stage(finding) == "placement" and not details
    facts = [
        e
        for e in finding.evidence
        if details or not ((counts and e.wanted == 0) or e.what == "message")
    ]
    rows = wording.evidence_lines(facts)
    wide = min(max((cells(page.clean(what)) for what, _, _ in rows), default=0), 40)
    for what, numbers, source in rows:
        what = page.cut(what, 40)
        page.block([(f"      {what}", DIM)], numbers, indent=9 + wide)
        if source and details:
            page.block([], f"from {source}", indent=9 + wide, style=DIM)
    if at:
        page.block([], f"at {at}", indent=6, style=DIM)
    if details and finding.rule and finding.rule != finding.reason:
        page.block([], f"rule {finding.rule}", indent=6, style=DIM)


def _remedies(page: Page, remedies: tuple[Remedy, ...], *, details: bool) -> None:
    tried = [r for r in remedies if r.verified]
    if not tried:
        return
    good = all(
        r.result is None
        or (r.result.admission in ("admitted", "mutated") and r.result.placement == "fits")
        for r in tried
    )
    fits = all(r.result is not None and r.result.running == "fits" for r in tried)
    what = "admitted, placed, and the model fits" if fits else "admitted and placed"
    page.blank()
    page.line(
        ("What would make it pass ", BOLD),
        (
            f"(each tried: {what})" if good else "(each tried, with what came of it)",
            DIM,
        ),
    )
    for number, remedy in enumerate(tried, 1):
        ops = [page.cut(op, 4 * (page.width - 7)) for op in wording.changes(remedy.patch)]
        limit = len(ops) if details else 3
        more = f"{len(ops) - limit} more changes (-o json)" if len(ops) > limit else ""
        how = [
            *ops[:limit],
            *([more] if more else []),
            *([remedy.command] if remedy.command else []),
        ]
        if not good and remedy.result is not None:
            how.append(f"then {remedy.result.admission}, {remedy.result.placement}")
        summary = page.clean(remedy.summary)
        head = f"  {number}  {summary}"
        if how and cells(head) <= 44 and cells(page.clean(how[0])) <= page.width - 47:
            page.line((f"{head:<46} ", ""), (how[0], ""))
            how = how[1:]
        else:
            page.block([(f"  {number}  ", "")], summary, indent=5)
        for line in how:
            page.block([], line, indent=7)


def _nodes(page: Page, verdict: Verdict, *, details: bool) -> None:
    if not verdict.nodes:
        return
    page.blank()
    first, *more = nodes.folded(verdict.nodes) or ["none"]
    page.units([("Nodes   ", BOLD)], [f"{len(verdict.nodes):,}: {first}", *more], indent=10)
    if not details:
        return
    wide = min(max(cells(page.clean(n.node)) for n in verdict.nodes), 28)
    for node in verdict.nodes:
        name = page.cut(node.node, wide)
        head = [("  ", ""), page.mark("ok" if node.fits else "no"), (name, "")]
        page.block(head, nodes.line(node), indent=wide + 6)


def _unknown(page: Page, verdict: Verdict) -> None:
    if not verdict.unknowns:
        return
    page.blank()
    page.line(("Unknown", BOLD))
    said: set[tuple[str, str, str]] = set()
    for unknown in gravest(verdict.unknowns):
        key = (unknown.missing, unknown.hint, unknown.level)
        if key in said:
            continue  # another rule needs the same
        said.add(key)
        level = " (refused without it)" if unknown.level == "deny" else ""
        page.block([("  ", ""), page.mark("unknown")], unknown.missing + level, indent=4)
        if unknown.hint:
            page.block([], unknown.hint, indent=6, style=DIM)


def rests_on(page: Page, report: Report) -> None:
    """Source, age and policy, always."""
    policy = f"policy {report.policy}" if report.policy else "no policy file"
    page.block(
        [("Rests on  ", BOLD)], f"{wording.source(report.source)} · {policy}", indent=10, style=DIM
    )  # fmt: skip
    if report.topology:
        page.block([("Topology  ", BOLD)], report.topology, indent=10, style=DIM)
    if report.unsearched:
        which = "last one" if report.unsearched == 1 else f"last {report.unsearched:,}"
        said = f"of what is refused or waits, the {which} got no search for remedies: explain it"
        page.block([("Remedies  ", BOLD)], said, indent=10, style=DIM)


def others(page: Page, report: Report) -> None:
    """What else the input held: counted as applied, or not judged and why."""
    applied = [s for s in report.skipped if s.treated == "applied"]
    if applied:
        names = ", ".join(f"{s.ref} ({s.detail})" if s.detail else str(s.ref) for s in applied[:4])
        more = f" and {len(applied) - 4:,} more" if len(applied) > 4 else ""
        page.block(
            [("Applied   ", BOLD)], f"first, from the input: {names}{more}", indent=10, style=DIM
        )
    plain = sum(1 for s in report.skipped if s.treated == "not-a-workload")
    if plain:
        makes = "makes" if plain == 1 else "make"
        sentence = f"{plural(plain, 'object')} that {makes} no pods"
        page.block([("Left out  ", BOLD)], sentence, indent=10, style=DIM)
    for skipped in report.skipped:
        if skipped.treated == "unknown-kind":
            kind = f"{skipped.ref.apiVersion} {skipped.ref.kind}".strip()
            text = f"{skipped.location}: {kind} {skipped.ref.name} was not judged: {skipped.detail}"
            page.block([page.mark("unknown")], text, indent=2)
            if skipped.hint:
                page.block([], skipped.hint, indent=4, style=DIM)
        elif skipped.treated == "unreadable":
            page.block([page.mark("no")], f"{skipped.location}: could not be read", indent=2)
