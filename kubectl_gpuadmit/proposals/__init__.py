"""Changes worth trying for a refused or waiting workload. They propose; ``remedies`` tries them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.judge import State, Terms
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.verdict import Verdict


class Proposal(Struct, frozen=True):
    """One change. ``topic`` is the question that it answers: two answers never go together."""

    summary: str
    topic: str
    cost: int
    """0 a typo in the manifest … 40 less of what was asked … 70 others' pods … 90 the quota."""
    patch: tuple[dict[str, Any], ...] = ()
    """RFC 6902 against the user's manifest."""
    command: str = ""
    less: bool = False
    """Asks for less: once one is enough, a dearer one of the same topic gives up more than that."""
    change: Callable[[State], State] | None = None
    """The same in a what-if: is given a fork that it may change, returns the state to judge in."""
    again: Callable[[Case], Iterator[Proposal]] | None = None
    """Where the change depends on how much the workload asks: what to ask once that is less."""


class Case(Struct, frozen=True):
    """What a generator of proposals looks at."""

    document: Document
    workload: Workload
    verdict: Verdict
    before: State
    terms: Terms


Generator = Callable[[Case], Iterator[Proposal]]


def for_verdict(case: Case) -> Iterator[Proposal]:
    """All proposals; of fewer and fewer pods or GPUs the most first."""
    from kubectl_gpuadmit.proposals import (
        alignment,
        amounts,
        claim_islands,
        claims,
        cluster_changes,
        islands,
        models,
        moves,
        pools,
        selectors,
        suggested,
    )

    for generator in (
        suggested.from_findings,
        selectors.corrected,
        claims.claims_changed,
        claim_islands.claims_kept_whole,
        models.model_fits,
        amounts.fewer_pods,
        amounts.fewer_gpus,
        pools.other_pool,
        cluster_changes.quota_raised,
        cluster_changes.namespace_created,
        cluster_changes.class_serves_resource,
        cluster_changes.node_uncordoned,
        cluster_changes.pod_security_lowered,
        moves.pods_moved,
        islands.island_freed,
        alignment.aligned,
    ):
        yield from generator(case)
