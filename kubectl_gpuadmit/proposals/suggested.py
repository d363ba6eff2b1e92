"""Takes over what rules, admission checks and filters suggest beside their findings."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.verdict import Finding, Remedy


def from_findings(case: Case) -> Iterator[Proposal]:
    """Suggested patches (already rooted in the manifest) of whatever refuses or delays.

    A suggestion that is only a command changes the cluster in a way that cannot be tried from here,
    and is therefore not taken over.
    """
    for finding in case.verdict.findings:
        if finding.level != "deny" and finding.permanent:
            continue
        for remedy in finding.suggest:
            if remedy.patch and not _is_amount(finding, remedy):
                yield Proposal(
                    summary=remedy.summary,
                    topic=f"{finding.reason} {finding.field}",
                    cost=remedy.cost,
                    patch=remedy.patch,
                )


def _is_amount(finding: Finding, remedy: Remedy) -> bool:
    """Less of a resource is proposed by ``amounts``, together with the engine's own flags."""
    return finding.reason.startswith("placement/") and any(
        "/resources/" in str(op["path"]) for op in remedy.patch
    )
