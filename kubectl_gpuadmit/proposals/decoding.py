"""Proposes the field that was meant for one that Kubernetes lacks, and a value that fits."""

from __future__ import annotations

from kubectl_gpuadmit.admission import decoding
from kubectl_gpuadmit.proposals import Case, Proposal


def fields_corrected(case: Case) -> Proposal | None:
    """All fields at once: as long as one is unknown, the object is refused.

    None where the verdict is not about that. Every other proposal has to be made for the corrected
    object: what was written in a field that nobody reads is not part of the question yet.
    """
    codes = {one.reason for one in case.verdict.findings if one.level == "deny"}
    if not codes & {decoding.UNKNOWN_FIELD, decoding.FIELD_TYPE}:
        return None
    made = decoding.corrected(case.document.data, kubernetes=case.terms.kubernetes)
    if made is None:
        return None
    summary, cost, patch = made
    return Proposal(summary=summary, topic=decoding.UNKNOWN_FIELD, cost=cost, patch=tuple(patch))
