"""Searches for the smallest change that admits and places a workload, trying each on the engine.

A candidate is a change of the user's manifest (RFC 6902), or of the cluster together with the
command that would make it. Candidates are tried alone, then in pairs, then in threes, cheapest
first; what is printed was judged again from the changed manifest on, in the very state that the
workload met, and came out admitted and placed. Nothing else is ever suggested.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, structs
from msgspec.json import encode

from kubectl_gpuadmit import proposals
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.errors import GpuAdmitError
from kubectl_gpuadmit.judge import State, judge
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.proposals.decoding import fields_corrected
from kubectl_gpuadmit.verdict import Outcome, Remedy, Skipped, Verdict

ENOUGH = 3
"""Remedies to show: more are read by nobody at 2:47."""


LOOKS = 1_000
"""Changes of a model's start that are looked at, whether any devices would be enough: that is cheap
beside a try, which places the pods too."""


class Budget(Struct):
    """How often the engine may still be re-run; shared by all workloads of a run.

    A run costs about as much as the cluster has nodes, so large clusters get fewer tries.
    """

    per_workload: int
    left: int

    @classmethod
    def for_cluster(cls, cluster: Cluster) -> Budget:
        per_workload = max(16, min(80, 40_000 // max(1, len(cluster.nodes))))
        return cls(per_workload=per_workload, left=per_workload * 6)


def wanted(verdict: Verdict) -> bool:
    """True where a change could help: refused, or with no node now."""
    return (
        verdict.admission == "denied" or verdict.placement in ("never", "waits") or too_big(verdict)
    )


def too_big(verdict: Verdict) -> bool:
    """The model does not fit, and somebody wants to know."""
    return verdict.running == "exceeds" and any(
        f.reason.startswith("model/") and f.level in ("warn", "deny") for f in verdict.findings
    )


def search(
    case: Case,
    namespace: str,
    budget: Budget,
) -> tuple[Remedy, ...]:
    """Up to ENOUGH verified remedies, the smallest first.

    Tried in ``case.before``, the state that the workload met. Changes that contain a remedy
    already found, or give up more than it does, are not tried: they would be larger.
    """
    if budget.left <= 0:
        return ()
    correction = fields_corrected(case)
    if correction is not None:
        return _after(correction, case, namespace, budget)
    candidates = _distinct(case, proposals.for_verdict(case))
    found: list[tuple[list[Proposal], Remedy]] = []
    tries = min(budget.per_workload, budget.left)
    looks = LOOKS
    for chosen in _combinations(candidates):
        if tries == 0 or looks == 0 or len(found) == ENOUGH:
            break
        parts = [candidates[index] for index in chosen]
        if not _compatible(parts) or any(_is_larger(parts, done) for done, _ in found):
            continue
        if too_big(case.verdict):
            looks -= 1
            if _runs_nowhere(case, parts, namespace):
                continue
        tries -= 1
        budget.left -= 1
        renewed = _renewed(case, parts, namespace)
        outcome = _try(case, renewed, namespace) if renewed else None
        if outcome is not None:
            found.append((parts, _remedy(renewed, outcome)))
    return tuple(remedy for _, remedy in found)


def _after(correction: Proposal, case: Case, namespace: str, budget: Budget) -> tuple[Remedy, ...]:
    """The correction of a misread object, alone if that is enough, else with what would then help:
    the object says something else once all of it is read."""
    budget.left -= 1
    changed = _expanded(case, [correction], namespace, case.before)
    data = _changed(case, [correction])
    if changed is None or data is None:
        return ()
    verdict, _ = judge(changed, case.before, case.terms)
    document = structs.replace(case.document, data=data)
    corrected = structs.replace(case, document=document, workload=changed, verdict=verdict)
    if fields_corrected(corrected) is not None:
        return ()
    if not wanted(verdict):
        return (_remedy([correction], verdict.outcome),)
    return tuple(
        structs.replace(
            remedy,
            summary=f"{correction.summary}; {remedy.summary}",
            patch=(*correction.patch, *remedy.patch),
            cost=correction.cost + remedy.cost,
        )
        for remedy in search(corrected, namespace, budget)
    )


def _renewed(case: Case, parts: list[Proposal], namespace: str) -> list[Proposal]:
    """The parts, those that depend on what the workload asks (a quota) made for the changed one;
    none where the changed one does not need them."""
    if not any(part.patch for part in parts) or not any(part.again for part in parts):
        return parts
    changed = _expanded(case, parts, namespace, case.before)
    if changed is None:
        return parts
    asked = structs.replace(case, workload=changed)
    renewed = [next(part.again(asked), None) if part.again else part for part in parts]
    return [part for part in renewed if part] if None not in renewed else []


def _is_larger(parts: list[Proposal], done: list[Proposal]) -> bool:
    """True where ``parts`` hold everything that was enough, or more of the same sacrifice."""
    return all(
        any(
            part is enough
            or (enough.less and part.topic == enough.topic and part.cost >= enough.cost)
            for part in parts
        )
        for enough in done
    )


def _try(case: Case, parts: list[Proposal], namespace: str) -> Outcome | None:
    """The outcome of the changed manifest in the changed cluster if it is admitted and placed."""
    state = case.before
    for part in parts:
        if part.change is not None:
            state = part.change(state.fork() if state is case.before else state)
    changed = _expanded(case, parts, namespace, state)
    if changed is None:
        return None
    verdict, _ = judge(changed, state, case.terms)
    # Where facts are missing the change may help all the same: the outcome says what is unknown.
    if verdict.admission == "denied" or verdict.placement != "fits":
        return None
    if verdict.running == "exceeds" or (too_big(case.verdict) and verdict.running != "fits"):
        return None  # a smaller group of GPUs may admit and place what cannot run
    return verdict.outcome


def _runs_nowhere(case: Case, parts: list[Proposal], namespace: str) -> bool:
    """True where the changed pods would still serve a model that no devices are enough for."""
    if not any(part.patch for part in parts):
        return True  # the cluster's other changes give no GPU more memory
    changed = _expanded(case, parts, namespace, case.before)
    if changed is None:
        return True
    policy, cluster = case.terms.policy, case.before.cluster
    return not all(
        serving.pod_fit(
            changed,
            group,
            group.pod,
            cluster,
            policy,
            now=case.terms.now,
            kubernetes=case.terms.kubernetes,
        ).runs_somewhere
        for group in changed.groups
        if group.count and serving.may_serve(group.pod, policy)
    )


def _expanded(case: Case, parts: list[Proposal], namespace: str, state: State) -> Workload | None:
    """What the changed manifest makes; None where it makes no pod or cannot be read."""
    data = _changed(case, parts)
    if data is None:
        return None
    try:
        changed = expand(
            structs.replace(case.document, data=data),
            declared=case.terms.policy.declared_kinds,
            namespace=namespace,
            cluster=state.cluster,
        )
    except GpuAdmitError:
        return None
    if isinstance(changed, Skipped) or not any(group.count for group in changed.groups):
        return None
    return changed


def _remedy(parts: list[Proposal], outcome: Outcome) -> Remedy:
    return Remedy(
        summary="; ".join(part.summary for part in parts),
        patch=tuple(op for part in parts for op in part.patch),
        command=" && ".join(part.command for part in parts if part.command),
        cost=sum(part.cost for part in parts),
        verified=True,
        result=outcome,
    )


def _combinations(candidates: list[Proposal]) -> Iterator[tuple[int, ...]]:
    """Indexes of one, two or three candidates, by total cost, then by number, then in order."""
    heap: list[tuple[int, int, tuple[int, ...]]] = []
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(len(candidates)), size):
            cost = sum(candidates[index].cost for index in chosen) + 10 * (size - 1)
            heap.append((cost, size, chosen))
    heapq.heapify(heap)
    while heap:
        yield heapq.heappop(heap)[2]


def _compatible(parts: list[Proposal]) -> bool:
    """No two answers to the same question, no two changes of the same place; words that are put
    into a list push those behind them on."""
    topics = [part.topic for part in parts]
    paths = [
        str(op["path"])
        for part in parts
        for op in part.patch
        if not (op["op"] == "add" and str(op["path"]).rpartition("/")[2].isdecimal())
    ]
    return len(set(topics)) == len(topics) and len(set(paths)) == len(paths)


def _distinct(case: Case, proposed: Iterable[Proposal]) -> list[Proposal]:
    """Each change once, by what it makes of the manifest, cheapest first, else as proposed.

    At most 18: three of 18 are 987 combinations, more than any budget.
    """
    seen: dict[bytes, Proposal] = {}
    for one in sorted(proposed, key=lambda p: p.cost):
        changed = _changed(case, [one])
        if changed is not None:
            seen.setdefault(encode((changed, one.command)), one)
    return list(seen.values())[:18]


def _changed(case: Case, parts: list[Proposal]) -> dict[str, Any] | None:
    """The user's manifest with these patches; None where they do not apply."""
    import jsonpatch

    ops = [op for part in parts for op in part.patch]
    if not ops:
        return case.document.data
    try:
        data: dict[str, Any] = jsonpatch.apply_patch(case.document.data, ops, in_place=False)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        return None
    return data
