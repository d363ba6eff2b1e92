"""``check`` for a person: one line a workload, worst first, then the tally."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_gpuadmit.render import nodes
from kubectl_gpuadmit.render.page import DIM, GREEN, RED, YELLOW, Page
from kubectl_gpuadmit.render.standing import ORDER, Standing, gravest, ranked, standing, word
from kubectl_gpuadmit.render.text import others, rests_on
from kubectl_gpuadmit.render.wording import SHORT_KINDS, cells, cut_head, gpus, plural
from kubectl_gpuadmit.verdict import Report, Verdict

if TYPE_CHECKING:
    from rich.text import Text

_MARKS: dict[Standing, str] = {
    "refused": "no", "unjudged": "unknown", "waits": "warn", "warned": "warn", "clear": "ok",
}  # fmt: skip


def check(
    report: Report,
    *,
    width: int = 80,
    details: bool = False,
    ascii: bool = False,
    seconds: float | None = None,
) -> Text:
    """The whole report; what is not clear says why. ``details`` gives the clear ones a line too;
    ``seconds`` is how long it took, printed with the tally."""
    page = Page(width, ascii=ascii)
    graded = sorted(
        ((standing(v), v) for v in report.workloads), key=lambda pair: ORDER.index(pair[0])
    )
    rows = [(s, v) for s, v in graded if s != "clear" or details]
    names = [page.clean(name(v)) for _, v in rows]
    at = [page.clean(v.location) for _, v in rows]
    # Whole where a row holds them beside mark (3) and word (11); a reason without room goes below.
    room = page.width - 3 - 11 - 2
    wide_at = min(
        max(map(cells, at), default=0), max(room // 2, room - max(map(cells, names), default=0))
    )
    wide_name = min(max(map(cells, names), default=0), room - wide_at)
    for grade, verdict in rows:
        _row(page, grade, verdict, wide_name=wide_name, wide_at=wide_at)
    clear = sum(1 for s, _ in graded if s == "clear")
    if clear and not details:
        more = " more" if rows else ""
        page.line(page.mark("ok"), (f"{clear:,}{more} admitted and placed", ""))
    page.units([], tally(report, seconds=seconds), indent=0, style="bold")
    if any(s.treated != "not-a-workload" for s in report.skipped) or rows or details:
        page.blank()
        rests_on(page, report)
        others(page, report)
    return page.text


def name(verdict: Verdict) -> str:
    """``deploy/llama-70b``, with the namespace where it is not the default one."""
    kind = SHORT_KINDS.get(verdict.ref.kind, verdict.ref.kind.lower())
    space = verdict.ref.namespace
    return f"{kind}/{verdict.ref.name}" + (f" ({space})" if space not in ("", "default") else "")


def _row(page: Page, grade: Standing, verdict: Verdict, *, wide_name: int, wide_at: int) -> None:
    style = {"refused": RED, "clear": GREEN}.get(grade, YELLOW)
    said = (
        "warning"
        if grade == "warned" and word(verdict) in ("admitted", "mutated")
        else word(verdict)
    )
    title = page.cut(name(verdict), wide_name)
    place = cut_head(page.clean(verdict.location), wide_at, ascii=page.ascii)
    head = [
        page.mark(_MARKS[grade]),
        (title + " " * (wide_name - cells(title) + 1), ""),
        (place + " " * (wide_at - cells(place) + 1), DIM),
        (f"{said:<11}", style),
    ]
    code, detail = reason(verdict, grade)
    used = cells(head[0][0]) + wide_name + 1 + wide_at + 1 + 11
    one_line = f"{code} {detail}".strip()
    if used + cells(page.clean(one_line)) <= page.width:
        page.line(*head, (one_line, ""))
        return
    if used + cells(page.clean(code)) <= page.width:
        page.line(*head, (code, ""))
        one_line = detail
    else:
        page.line(*head)
    if one_line:
        page.block([], one_line, indent=4, style=DIM)


def reason(verdict: Verdict, grade: Standing) -> tuple[str, str]:
    """(code, sentence) of the first thing to look at."""
    levels = ("deny",) if grade == "refused" else ("deny", "warn")
    found = [f for f in ranked(verdict.findings) if f.level in levels]
    for code in verdict.blockers:
        found.sort(key=lambda f, code=code: f.reason != code)  # type: ignore[misc]
        break
    if grade == "unjudged":
        missing = next(u for u in verdict.unknowns if u.level == "deny")
        return missing.rule, missing.missing
    if grade == "waits" and verdict.waits_for:
        return "", verdict.waits_for[0]
    if grade == "clear":
        return "", ""
    if found:
        return found[0].reason, found[0].detail
    for unknown in gravest(verdict.unknowns):
        return unknown.rule, unknown.missing
    return "", nodes.best(verdict.nodes)


def tally(report: Report, *, seconds: float | None = None) -> list[str]:
    """The parts of ``20 workloads, 61 pods, 148 nvidia.com/gpu asked · 2 refused · 0.8 s``."""
    total: dict[str, int] = {}
    for verdict in report.workloads:
        for resource, number in (*verdict.gpus.items(), *verdict.devices.items()):
            total[resource] = total.get(resource, 0) + number
    pods = sum(v.pods for v in report.workloads)
    grades = [standing(v) for v in report.workloads]
    unread = sum(1 for s in report.skipped if s.treated == "unreadable")
    strange = sum(1 for s in report.skipped if s.treated == "unknown-kind")
    counts = [
        (grades.count("refused"), "refused", "refused"),
        (grades.count("unjudged"), "could not be judged", "could not be judged"),
        (grades.count("waits"), "waits", "wait"),
        (grades.count("warned"), "warning", "warnings"),
        (unread, "unreadable", "unreadable"),
        (strange, "of unknown kind", "of unknown kind"),
    ]
    parts = [f"{plural(len(grades), 'workload')}, {plural(pods, 'pod')}, {gpus(total)} asked"]
    parts += [plural(n, one, several) for n, one, several in counts if n]
    if len(parts) == 1:
        parts.append("all clear" if grades else "nothing was checked")
    if seconds is not None:
        parts.append(f"{seconds:.1f} s")
    return parts
