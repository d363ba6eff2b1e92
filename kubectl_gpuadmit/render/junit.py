"""JUnit XML: a testcase for each workload; refused, not judged and not checked stay three things.

failure = refused; error = could not be judged or read; skipped = a kind that nobody knows.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from kubectl_gpuadmit.render.sarif import place
from kubectl_gpuadmit.render.standing import ranked, standing, word
from kubectl_gpuadmit.render.table import reason
from kubectl_gpuadmit.render.wording import changes, clean, evidence_lines
from kubectl_gpuadmit.verdict import Report, Skipped, Verdict

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """The document as text; characters that XML 1.0 forbids are shown as escapes."""
    cases = [_workload(v) for v in report.workloads]
    cases += [_skipped(s) for s in report.skipped if s.treated in ("unreadable", "unknown-kind")]
    counts = {
        tag: sum(f"<{tag} " in case for case in cases) for tag in ("failure", "error", "skipped")
    }
    totals = (
        f'name="kubectl gpu-admit" tests="{len(cases)}" failures="{counts["failure"]}" '
        f'errors="{counts["error"]}" skipped="{counts["skipped"]}"'
    )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {totals}>",
            f"  <testsuite {totals} timestamp={_attribute(report.as_of)}>",
            *cases,
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _workload(verdict: Verdict) -> str:
    grade = standing(verdict)
    code, detail = reason(verdict, grade)
    message = f"{word(verdict)}: {code} {detail}".replace(":  ", ": ").rstrip(" :")
    where = f"{verdict.ref.namespace}/{verdict.ref}".lstrip("/")
    if grade == "refused":
        inner = _element("failure", message, code or word(verdict), _body(verdict))
    elif grade == "unjudged":
        inner = _element("error", message, "could-not-be-judged", _body(verdict))
    else:
        inner = f"      <system-out>{_text(_body(verdict))}</system-out>"
    return _case(where, verdict.location, inner)


def _skipped(skipped: Skipped) -> str:
    where = f"{skipped.ref.namespace}/{skipped.ref}".strip("/") or skipped.location
    if skipped.treated == "unreadable":
        message = f"{skipped.field}: {skipped.detail}" if skipped.field else skipped.detail
        inner = _element("error", message, skipped.error or "unreadable", skipped.hint)
    else:
        inner = f"      <skipped message={_attribute('not checked: ' + skipped.detail)}/>"
    return _case(where, skipped.location, inner)


def _case(name: str, location: str, inner: str) -> str:
    file, line = place(location)
    at = f" file={_attribute(file)} line={_attribute(str(line))}" if file else ""
    group = _attribute(file or location)
    return f"    <testcase name={_attribute(name)} classname={group}{at}>\n{inner}\n    </testcase>"


def _element(tag: str, message: str, kind: str, body: str) -> str:
    return (
        f"      <{tag} message={_attribute(message)} type={_attribute(kind)}>{_text(body)}</{tag}>"
    )


def _body(verdict: Verdict) -> str:
    lines = [
        f"admission {verdict.admission}, placement {verdict.placement}, running {verdict.running}"
    ]
    for f in ranked(verdict.findings):
        lines.append(f"{f.level} {f.reason} ({f.fidelity}): {clean(f.detail)}")
        lines += [f"  {clean(what)}  {clean(text)}" for what, text, _ in evidence_lines(f.evidence)]
    lines += [f"unknown ({u.level}): {clean(u.missing)}" for u in verdict.unknowns]
    lines += [f"waits for {clean(sentence)}" for sentence in verdict.waits_for]
    for r in verdict.remedies:
        if r.verified:
            how = "; ".join([*changes(r.patch), *([r.command] if r.command else [])])
            lines.append(f"tried, passes: {clean(r.summary)}: {clean(how)}")
    return "\n".join(lines)


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda m: f"\\x{ord(m[0]):02x}", text)


def _text(text: str) -> str:
    return escape(_legal(text))


def _attribute(text: str) -> str:
    return quoteattr(_legal(clean(text)))
