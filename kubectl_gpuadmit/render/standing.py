"""How a verdict stands in one word: for exit codes, tallies and order in every renderer."""

from __future__ import annotations

from typing import Literal

from kubectl_gpuadmit.verdict import Finding, Unknown, Verdict

Standing = Literal["refused", "unjudged", "waits", "warned", "clear"]

ORDER: tuple[Standing, ...] = ("refused", "unjudged", "waits", "warned", "clear")
"""Worst first, as ``check`` lists them."""


def exceeds_at_deny(verdict: Verdict) -> bool:
    """The model does not fit and the policy refuses that."""
    return verdict.running == "exceeds" and any(
        f.level == "deny" and stage(f) == "running" for f in verdict.findings
    )


def refused(verdict: Verdict) -> bool:
    """Denied, never fits, or exceeds memory at deny level."""
    return verdict.admission == "denied" or verdict.placement == "never" or exceeds_at_deny(verdict)


def unjudged(verdict: Verdict) -> bool:
    """A fact was missing that the policy refuses to go without."""
    return any(u.level == "deny" for u in verdict.unknowns)


def standing(verdict: Verdict) -> Standing:
    """The gravest that is true of a workload; of a refusal and an open question, the refusal."""
    if refused(verdict):
        return "refused"
    if unjudged(verdict):
        return "unjudged"
    if verdict.placement == "waits":
        return "waits"
    if (
        "unknown" in (verdict.admission, verdict.placement)
        or verdict.running == "exceeds"
        or any(f.level in ("deny", "warn") for f in verdict.findings)
        or any(u.level == "warn" for u in verdict.unknowns)
        or any(m.level == "warn" for m in verdict.mutations)
    ):
        return "warned"
    return "clear"


def word(verdict: Verdict) -> str:
    """What a person reads for it: ``denied``, ``never fits``, ``waits`` …"""
    if verdict.admission == "denied":
        return "denied"
    if verdict.placement == "never":
        return "never fits"
    if exceeds_at_deny(verdict):
        return "too big"
    if "unknown" in (verdict.admission, verdict.placement) or unjudged(verdict):
        return "unknown"
    if verdict.placement == "waits":
        return "waits"
    return verdict.admission


def stage(finding: Finding) -> Literal["admission", "placement", "running"]:
    """Which of the three answers a finding belongs to, by the family of its reason."""
    family = finding.reason.split("/", 1)[0]
    if family in ("placement", "preemption", "kubelet"):
        return "placement"
    return "running" if family == "model" else "admission"


_RANK = {"deny": 0, "warn": 1, "audit": 2, "off": 3}


def ranked(findings: tuple[Finding, ...]) -> list[Finding]:
    """Refusals first, of those the permanent ones, then warnings, then what is only audited."""
    return sorted(findings, key=lambda f: (_RANK[f.level], not f.permanent))


def gravest(unknowns: tuple[Unknown, ...]) -> list[Unknown]:
    """What the answer cannot do without first."""
    return sorted(unknowns, key=lambda u: _RANK[u.level])
