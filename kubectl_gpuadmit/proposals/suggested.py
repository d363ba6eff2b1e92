"""Takes over what rules, admission checks and filters suggest beside their findings."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.proposals import Case, Proposal


def from_findings(case: Case) -> Iterator[Proposal]:
    """Suggested patches (already rooted in the manifest) of whatever refuses or delays.

    A suggestion that is only a command changes the cluster in a way that cannot be tried from here, and
    is therefore not taken over. One that changes amounts is left to ``amounts``, which changes the
    engine's flags along with them.
    """
    for finding in case.verdict.findings:
        if finding.level != "deny" and finding.permanent:
            continue
        for remedy in finding.suggest:
            if remedy.patch and not any("/resources/" in str(op["path"]) for op in remedy.patch):
                yield Proposal(
                    summary=remedy.summary,
                    topic=finding.reason,
                    cost=remedy.cost,
                    patch=remedy.patch,
                )
