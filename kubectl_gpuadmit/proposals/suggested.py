"""Takes over what rules, admission checks and filters suggest beside their findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve, steps
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
            patch = for_manifest(case.document.data, remedy.patch)
            if patch and not _is_amount(finding, remedy):
                yield Proposal(
                    summary=remedy.summary,
                    topic=f"{finding.reason} {finding.field}".rstrip(),
                    cost=remedy.cost,
                    patch=patch,
                )


def for_manifest(
    manifest: dict[str, Any], ops: tuple[dict[str, Any], ...]
) -> tuple[dict[str, Any], ...]:
    """The operations as the user's manifest can take them.

    They were made for the pod as the API server completes it: with tolerations that it adds itself,
    and requests that it takes from the limits. What the manifest does not have needs no change, and
    a list that it does not have is begun.
    """
    kept: list[dict[str, Any]] = []
    begun: dict[str, list[Any]] = {}
    left_out: set[str] = set()
    for op in ops:
        path = str(op["path"])
        parent, _, last = path.rpartition("/")
        if op["op"] in ("remove", "replace"):
            if _present(manifest, path):
                kept.append(op)
            else:
                left_out.add(parent)
        elif parent in begun:
            begun[parent].append(op["value"])
        elif resolve(manifest, parent) is not None or op["op"] != "add":
            kept.append(op)
        elif last == "-":
            begun[parent] = [op["value"]]
            kept.append({"op": "add", "path": parent, "value": begun[parent]})
        elif parent not in left_out:
            kept.append({"op": "add", "path": parent, "value": {steps(path)[-1]: op["value"]}})
    return tuple(kept)


def _present(manifest: dict[str, Any], path: str) -> bool:
    parent, _, _ = path.rpartition("/")
    below, last = resolve(manifest, parent), steps(path)[-1]
    if isinstance(below, list):
        return last.isdecimal() and int(last) < len(below)
    return isinstance(below, dict) and last in below


def _is_amount(finding: Finding, remedy: Remedy) -> bool:
    """Less of a resource is proposed by ``amounts``, together with the engine's own flags."""
    return finding.reason.startswith("placement/") and all(
        op["op"] == "replace" and "/resources/" in str(op["path"]) for op in remedy.patch
    )
