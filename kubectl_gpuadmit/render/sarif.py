"""SARIF 2.1.0 for code scanning: a result for each finding, at the field that it is about.

What could not be read or judged is a tool notification, never a result.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kubectl_gpuadmit.render.encoding import indented
from kubectl_gpuadmit.render.standing import ranked, refused
from kubectl_gpuadmit.render.text import Position
from kubectl_gpuadmit.render.wording import clean, evidence_lines
from kubectl_gpuadmit.verdict import Finding, Report, Verdict

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
_LEVELS = {"deny": "error", "warn": "warning", "audit": "note", "off": "none"}
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def to_sarif(
    report: Report,
    *,
    version: str,
    catalogue: Mapping[str, str],
    position: Position | None = None,
) -> str:
    """The log as JSON text. ``catalogue``: reason code -> what it means and what to do."""
    results: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for verdict in report.workloads:
        for finding in _findings(verdict):
            if finding.level != "off":
                results.append(_result(verdict, finding, position, seen))
    codes = sorted({r["ruleId"] for r in results})
    for result in results:
        result["ruleIndex"] = codes.index(result["ruleId"])
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kubectl-gpu-admit",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(code, catalogue) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {
                    "%SRCROOT%": {"description": {"text": "The directory that the command ran in."}}
                },
                "invocations": [_invocation(report)],
                "results": results,
            }
        ],
    }
    return indented(msgspec.json.encode(log))


def _findings(verdict: Verdict) -> list[Finding]:
    """What was found; a refusal that nobody explained still gets its result."""
    found = ranked(verdict.findings)
    if refused(verdict) and not any(f.level == "deny" for f in found):
        reason = verdict.blockers[0] if verdict.blockers else f"placement/{verdict.placement}"
        if verdict.admission == "denied":
            reason = verdict.blockers[0] if verdict.blockers else "admission/denied"
        detail = f"admission {verdict.admission}, placement {verdict.placement}"
        found = [Finding(reason=reason, detail=detail), *found]
    return found


def _result(
    verdict: Verdict, finding: Finding, position: Position | None, seen: dict[str, int]
) -> dict[str, Any]:
    numbers = "; ".join(f"{what} {text}" for what, text, _ in evidence_lines(finding.evidence))
    message = f"{verdict.ref}: {finding.detail}" + (f" ({numbers})" if numbers else "")
    key = "|".join(
        (finding.reason, finding.rule, verdict.ref.kind, verdict.ref.namespace, verdict.ref.name,
         finding.field, *(e.subject for e in finding.evidence[:1]))
    )  # fmt: skip
    seen[key] = seen.get(key, 0) + 1
    printed = hashlib.sha256(f"{key}|{seen[key]}".encode("utf-8", "replace")).hexdigest()[:32]
    return {
        "ruleId": clean(finding.reason),
        "level": _LEVELS[finding.level],
        "message": {"text": clean(message)},
        "locations": [_location(verdict, finding, position)],
        "partialFingerprints": {"gpuAdmit/v1": printed},
        "properties": {
            "rule": clean(finding.rule),
            "fidelity": finding.fidelity,
            "permanent": finding.permanent,
            "admission": verdict.admission,
            "placement": verdict.placement,
        },
    }


def _location(verdict: Verdict, finding: Finding, position: Position | None) -> dict[str, Any]:
    out: dict[str, Any] = {}
    file, line = place(verdict.location)
    if file:
        found = position(verdict, finding.field) if position else None
        region = {"startLine": found[0], "startColumn": found[1]} if found else {"startLine": line}
        out["physicalLocation"] = {"artifactLocation": artifact(file), "region": region}
    space = f"{verdict.ref.namespace}/" if verdict.ref.namespace else ""
    out["logicalLocations"] = [
        {
            "name": clean(verdict.ref.name),
            "fullyQualifiedName": clean(f"{space}{verdict.ref.kind}/{verdict.ref.name}"),
            "kind": "resource",
        }
    ]
    return out


def place(location: str) -> tuple[str, int]:
    """(file, line) of ``file:line`` or ``file:line:column``; ('', 0) for a live object."""
    match = re.fullmatch(r"(.+?):([1-9]\d*)(?::\d+)?", location, re.DOTALL)
    return (match[1], int(match[2])) if match else ("", 0)


def artifact(file: str) -> dict[str, Any]:
    """An artifactLocation: relative to where the command ran, or a file URI."""
    path = file.replace("\\", "/").encode("utf-8", "replace")
    if file.startswith(("/", "\\")):
        return {"uri": "file://" + _quoted(path)}
    if re.match(r"[A-Za-z]:[\\/]", file):
        return {"uri": "file:///" + _quoted(path, also=b":")}
    while path.startswith(b"./"):
        path = path[2:]
    return {"uri": _quoted(path), "uriBaseId": "%SRCROOT%"}


def _quoted(path: bytes, *, also: bytes = b"") -> str:
    """Percent-encoded but for RFC 3986's unreserved characters, the slash, and ``also``."""
    return "".join(chr(b) if b in _PLAIN or b in also else f"%{b:02X}" for b in path)


def _rule(code: str, catalogue: Mapping[str, str]) -> dict[str, Any]:
    meaning = clean(catalogue.get(code, code))
    first = re.split(r"(?<=[.;])\s", meaning, maxsplit=1)[0]
    return {
        "id": code,
        "name": "".join(word.title() for word in re.split(r"[^A-Za-z0-9]+", code)),
        "shortDescription": {"text": first},
        "fullDescription": {"text": meaning},
        "help": {
            "text": f"{meaning}\nkubectl gpu-admit explain --rule {code}",
            "markdown": f"{meaning}\n\n`kubectl gpu-admit explain --rule {code}`",
        },
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["kubernetes", "gpu", code.split("/", 1)[0]]},
    }


def _invocation(report: Report) -> dict[str, Any]:
    notes: list[dict[str, Any]] = []
    for skipped in report.skipped:
        if skipped.treated not in ("unreadable", "unknown-kind"):
            continue
        read = skipped.treated == "unknown-kind"
        what = f"{skipped.ref.kind} {skipped.ref.name} was not judged: " if read else ""
        field = f"{skipped.field}: " if skipped.field else ""
        notes.append(_note(what + field + skipped.detail, skipped.location, error=not read))
    for verdict in report.workloads:
        for unknown in verdict.unknowns:
            text = f"{verdict.ref}: unknown: {unknown.missing}"
            notes.append(_note(text, verdict.location, error=unknown.level == "deny"))
    return {
        "executionSuccessful": not any(n["level"] == "error" for n in notes),
        "toolExecutionNotifications": notes,
    }


def _note(text: str, location: str, *, error: bool) -> dict[str, Any]:
    note: dict[str, Any] = {
        "level": "error" if error else "warning",
        "message": {"text": clean(text)},
    }
    file, line = place(location)
    if file:
        physical = {"artifactLocation": artifact(file), "region": {"startLine": line}}
        note["locations"] = [{"physicalLocation": physical}]
    return note
