"""Markdown for a pull request's comment or a chat: the same words as the terminal, safe to paste.

Every value from a cluster stands in a code span, where neither markup, HTML nor @names take effect.
"""

from __future__ import annotations

from kubectl_gpuadmit.render import nodes, wording
from kubectl_gpuadmit.render.diff import lines as diff_lines
from kubectl_gpuadmit.render.standing import ORDER, Standing, ranked, standing, word
from kubectl_gpuadmit.render.table import reason, tally
from kubectl_gpuadmit.render.text import places
from kubectl_gpuadmit.render.wording import clean
from kubectl_gpuadmit.verdict import Mutation, Report, Verdict

_SIGNS: dict[Standing, str] = {
    "refused": "✗", "unjudged": "?", "waits": "!", "warned": "!", "clear": "✓",
}  # fmt: skip


def to_markdown(report: Report) -> str:
    """A tally, a table worst first, and a section for each workload that is not simply clear."""
    graded = sorted(
        ((standing(v), v) for v in report.workloads), key=lambda pair: ORDER.index(pair[0])
    )
    out = [f"**GPU admission**: {_plain(' · '.join(tally(report)))}", ""]
    if graded:
        out += ["| | workload | where | verdict | reason |", "|---|---|---|---|---|"]
    for grade, verdict in graded:
        code, detail = reason(verdict, grade)
        why = " ".join([code_span(code, cell=True)] * bool(code) + [_plain(detail)])
        name = code_span(_name(verdict), cell=True)
        at = code_span(verdict.location, cell=True)
        out.append(f"| {_SIGNS[grade]} | {name} | {at} | {word(verdict)} | {why} |")
    for grade, verdict in graded:
        if grade != "clear" or verdict.admission == "mutated":
            out += ["", *_section(grade, verdict)]
    for skipped in report.skipped:
        if skipped.treated == "unreadable":
            out += [
                "",
                f"✗ {code_span(skipped.location)} could not be read: {_plain(skipped.detail)}",
            ]
        elif skipped.treated == "unknown-kind":
            name = code_span(f"{skipped.ref.kind} {skipped.ref.name}")
            out += ["", f"? {name} was not judged: {_plain(skipped.detail)}"]
    policy = f"policy {code_span(report.policy)}" if report.policy else "no policy file"
    topology = f" · topology: {_plain(report.topology)}" if report.topology else ""
    out += ["", f"Rests on {_plain(wording.source(report.source))} · {policy}{topology}", ""]
    return "\n".join(out)


def _name(verdict: Verdict) -> str:
    return f"{verdict.ref.namespace}/{verdict.ref}".lstrip("/")


def _section(grade: Standing, verdict: Verdict) -> list[str]:
    out = [f"### {_SIGNS[grade]} {code_span(_name(verdict))}: {word(verdict)}", ""]
    out.append(
        f"{_plain(wording.asks(verdict))} · admission **{verdict.admission}** · placement "
        f"**{verdict.placement}**"
        + (f" · running **{verdict.running}**" if verdict.running != "not-a-model" else "")
    )
    out.append("")
    for f in ranked(verdict.findings):
        out.append(f"- **{f.level}** {code_span(f.reason)} ({f.fidelity}): {_plain(f.detail)}")
        for what, numbers, _ in wording.evidence_lines(f.evidence):
            out.append(f"  - {code_span(what)} {_plain(numbers)}")
    out += [f"- waits for {_plain(sentence)}" for sentence in verdict.waits_for]
    out += [f"- **unknown** ({u.level}): {_plain(u.missing)}" for u in verdict.unknowns]
    if verdict.places:
        out.append(f"- would run on {_plain(places(verdict.places, limit=6))}")
    if verdict.nodes and verdict.placement != "fits":
        out.append(
            f"- {len(verdict.nodes):,} nodes: {_plain(' · '.join(nodes.folded(verdict.nodes)))}"
        )
    if verdict.decided_by:
        out.append(f"- the last word has {_plain(verdict.decided_by)}")
    for mutation in verdict.mutations:
        out += ["", *_diff(mutation)]
    tried = [r for r in verdict.remedies if r.verified]
    if tried:
        out += ["", "What would make it pass (each tried):", ""]
    for number, remedy in enumerate(tried, 1):
        how = [*wording.changes(remedy.patch), *([remedy.command] if remedy.command else [])]
        spans = ", ".join(code_span(line) for line in how)
        result = remedy.result
        came = f" → {result.admission}, {result.placement}" if result else ""
        out.append(f"{number}. {_plain(remedy.summary)}: {spans}{came}")
    return out


def _diff(mutation: Mutation) -> list[str]:
    verb = "changes" if mutation.level == "deny" else f"would change ({mutation.level})"
    body = [f"{line.sign} {_keep(line.text)}" for line in diff_lines(mutation, width=100)]
    fence = "`" * max(3, 1 + max((_ticks(line) for line in body), default=0))
    by = code_span(mutation.rule) if mutation.rule else "The API server"
    return [f"{by} {verb}:", "", f"{fence}diff", *body, fence]


def _keep(text: str) -> str:
    bare = text.lstrip(" ")
    return " " * (len(text) - len(bare)) + clean(bare)


def _ticks(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest


def code_span(text: str, *, cell: bool = False) -> str:
    """The text as a code span that holds, backticks included; in a table cell pipes are escaped."""
    line = clean(text)
    if len(line) > wording.LONGEST_WORD:
        line = wording.cut(line, wording.LONGEST_WORD)
    fence = "`" * (_ticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    if cell:
        line = line.replace("|", "\\|")
    return f"{fence}{pad}{line}{pad}{fence}"


def _plain(text: str) -> str:
    """A sentence whose markup, HTML and @names are inert, and which ends no table cell."""
    line = clean(text)
    if len(line) > 3 * wording.LONGEST_WORD:
        line = wording.cut(line, 3 * wording.LONGEST_WORD)
    for char in "\\`*_[]<>|#~":
        line = line.replace(char, {"<": "&lt;", ">": "&gt;"}.get(char, "\\" + char))
    return line.replace("@", "@\u200c")
