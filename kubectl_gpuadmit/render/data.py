"""The machine-readable forms, ``gpu-admit.io/verdict/v1`` as JSON and YAML; adds no words.

The shape is documented in schema/verdict-v1.json; fields may be added, none is renamed or removed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_gpuadmit.render.encoding import indented
from kubectl_gpuadmit.render.wording import encodable, unsafe
from kubectl_gpuadmit.verdict import (
    Finding,
    Mutation,
    Ref,
    Remedy,
    Report,
    Skipped,
    Unknown,
    Verdict,
)

SCHEMA_VERSION = "gpu-admit.io/verdict/v1"


def document(report: Report) -> dict[str, Any]:
    """The report as plain dicts and lists in the documented order."""
    plain: dict[str, Any] = msgspec.to_builtins(_document(report))
    return plain


def _document(report: Report) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "asOf": report.as_of,
        "source": report.source,
        "policy": report.policy,
        **({"topology": report.topology} if report.topology else {}),
        "remediesNotSearched": report.unsearched,
        "workloads": [_workload(verdict) for verdict in report.workloads],
        "skipped": [_skipped(skipped) for skipped in report.skipped],
    }


def to_json(report: Report) -> str:
    """Indented JSON with a newline at the end."""
    try:
        raw = msgspec.json.encode(_document(report))
    except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError):
        raw = msgspec.json.encode(encodable(document(report)))
    return indented(raw)


def to_yaml(report: Report) -> str:
    """The same document as YAML."""
    text = _yaml(encodable(document(report)), allow_unicode=True)
    return _yaml(encodable(document(report)), allow_unicode=False) if unsafe(text) else text


def _yaml(value: Any, *, allow_unicode: bool) -> str:
    import yaml

    text: str = yaml.dump(
        value,
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=allow_unicode,
        width=100,
    )
    return text


def reference(ref: Ref) -> dict[str, str]:
    """How every JSON form names an object."""
    return {
        "apiVersion": ref.apiVersion,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
    }


def _workload(verdict: Verdict) -> dict[str, Any]:
    return {
        "ref": reference(verdict.ref),
        "location": verdict.location,
        "pods": verdict.pods,
        "gpus": dict(sorted(verdict.gpus.items())),
        "devices": dict(sorted(verdict.devices.items())),
        "groups": [
            {"role": g.role, "pods": g.pods, "gpus": dict(sorted(g.gpus.items()))}
            for g in verdict.groups
        ],
        "admission": verdict.admission,
        "placement": verdict.placement,
        "running": verdict.running,
        "models": [msgspec.to_builtins(model) for model in verdict.models],
        "blockers": list(verdict.blockers),
        "findings": [finding(f) for f in verdict.findings],
        "unknowns": [_unknown(u) for u in verdict.unknowns],
        "patch": list(verdict.patch),
        "objectPatch": list(verdict.object_patch),
        "mutations": [_mutation(m) for m in verdict.mutations],
        "events": [msgspec.to_builtins(event) for event in verdict.events],
        "nodes": verdict.nodes,
        "places": verdict.places,
        "waitsFor": list(verdict.waits_for),
        "decidedBy": verdict.decided_by,
        "remedies": [_remedy(r) for r in verdict.remedies],
    }


def finding(f: Finding) -> dict[str, Any]:
    """How every JSON form tells a finding."""
    return {
        "rule": f.rule,
        "reason": f.reason,
        "level": f.level,
        "fidelity": f.fidelity,
        "permanent": f.permanent,
        "detail": f.detail,
        "field": f.field,
        "evidence": [msgspec.to_builtins(e) for e in f.evidence],
    }


def _unknown(u: Unknown) -> dict[str, Any]:
    return {
        "rule": u.rule,
        "missing": u.missing,
        "level": u.level,
        "stage": u.stage,
        "hint": u.hint,
    }


def _mutation(m: Mutation) -> dict[str, Any]:
    return {
        "rule": m.rule,
        "level": m.level,
        "summary": m.summary,
        "at": m.at,
        "of": m.of,
        "ops": list(m.ops),
    }


def _remedy(r: Remedy) -> dict[str, Any]:
    out: dict[str, Any] = {"summary": r.summary}
    if r.patch or not r.command:
        out["patch"] = list(r.patch)
    if r.command:
        out["command"] = r.command
    out["verified"] = r.verified
    if r.result is not None:
        out["result"] = {
            "admission": r.result.admission,
            "placement": r.result.placement,
            "running": r.result.running,
        }
    return out


def _skipped(s: Skipped) -> dict[str, Any]:
    return {
        "ref": reference(s.ref),
        "location": s.location,
        "treated": s.treated,
        "detail": s.detail,
        "field": s.field,
        "error": s.error,
        "hint": s.hint,
    }
