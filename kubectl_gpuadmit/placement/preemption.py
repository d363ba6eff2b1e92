"""Who would be preempted for a pod: DefaultPreemption's dry run over the nodes that it may help.

Sources: pkg/scheduler/framework/preemption (preemption.go, util.go) and plugins/defaultpreemption.
Modelled where the scheduler draws lots: it starts at a random node and may stop at 100 candidates
(or a tenth of the nodes); here the nodes are tried in name order. Pod groups are not preempted
whole (GenericWorkload is off in 1.37).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import Pod, PodDisruptionBudget
from kubectl_gpuadmit.kube.pods import priority
from kubectl_gpuadmit.kube.selectors import label_selector
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.message import first_refusal
from kubectl_gpuadmit.verdict import NodeVerdict

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."

_LEAST_CANDIDATES = 100
_OFFSET = 2**31
"""MaxInt32 + 1, added to each victim's priority so that more victims never weigh less."""


class Candidate(Struct, frozen=True):
    """A node, and the pods that would have to go, most important first."""

    node: str
    victims: tuple[Pod, ...]
    violations: int = 0
    """Victims whose eviction a PodDisruptionBudget does not allow."""


class Preemption(Struct, frozen=True):
    """What preemption would do now."""

    candidate: Candidate | None
    """The one that the scheduler's order of preference picks."""
    candidates: tuple[Candidate, ...]
    message: str
    """What the scheduler adds to its own sentence: ``preemption: …``."""


def dry_run(cycle: Cycle, verdicts: Sequence[NodeVerdict], *, now: dt.datetime) -> Preemption:
    """Tries preemption for the cycle's pod, which does not fit on any of ``verdicts``' nodes."""
    pod = cycle.pod
    if pod.spec.preemptionPolicy == "Never":
        return Preemption(None, (), f"preemption: {NEVER}")
    budgets = [
        b for b in cycle.cluster.every("PodDisruptionBudget") if isinstance(b, PodDisruptionBudget)
    ]
    potential = [
        v.node
        for v in verdicts
        if not v.fits and not cycle.rejections and not first_refusal(v.shortfalls)[2]
    ]
    enough = min(len(potential), max(_LEAST_CANDIDATES, len(potential) // 10))
    stamp = _stamp(now)
    found: list[Candidate] = []
    refusals: Counter[str] = Counter()
    for name in potential:
        result = _on_node(cycle, name, budgets, stamp)
        if isinstance(result, Candidate):
            found.append(result)
            if len(found) >= enough and any(c.violations == 0 for c in found):
                break
        else:
            refusals.update(result)
    if not found:
        refusals[NOT_HELPFUL] += len(verdicts) - len(potential)
        texts = sorted(f"{count} {reason}" for reason, count in refusals.items() if count)
        return Preemption(
            None,
            (),
            f"preemption: 0/{len(verdicts)} nodes are available: {', '.join(texts)}.",
        )
    best = _pick(found, stamp)
    return Preemption(
        best,
        tuple(found),
        f"preemption: found a potential placement for pod on node {best.node}, "
        f"preempting {len(best.victims)} victims",
    )


def _on_node(
    cycle: Cycle, name: str, budgets: list[PodDisruptionBudget], stamp: str
) -> Candidate | tuple[str, ...]:
    """SelectVictimsOnNode: a candidate, or the reasons why this node cannot be one."""
    info = cycle.cluster.nodes[name]
    own = priority(cycle.pod)
    possible = [p for p in info.pods if (p.spec.priority or 0) < own]
    if not possible:
        return (NO_VICTIMS,)
    trial = cycle.what_if(info)
    trial.remove(tuple(possible))
    if refused := trial.shortfalls():
        return first_refusal(refused)[1]
    possible.sort(key=lambda p: _importance(p, stamp))
    violating, others = split_by_budget(possible, budgets)
    victims: list[Pod] = []
    violations = 0
    for group, counts in ((violating, True), (others, False)):
        for pod in group:
            trial.put_back(pod)
            if trial.shortfalls():
                trial.remove((pod,))
                victims.append(pod)
                violations += counts
    if not victims:
        return ()  # the board said no, the what-if says yes: never offer this as a candidate
    victims.sort(key=lambda p: _importance(p, stamp))
    return Candidate(name, tuple(victims), violations)


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """FilterVictimsWithPDBViolation: (evictions that a budget forbids, the others), in order."""
    left = [b.status.disruptionsAllowed or 0 for b in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        violates = False
        for i, budget in enumerate(budgets):
            if not pod.labels or budget.namespace != pod.namespace:
                continue
            selector = label_selector(budget.spec.selector)
            if selector.everything or not selector.matches(pod.labels):
                continue
            if pod.name in (budget.status.disruptedPods or {}):
                continue
            left[i] -= 1
            if left[i] < 0:
                violates = True
                break
        (violating if violates else others).append(pod)
    return violating, others


def _importance(pod: Pod, stamp: str) -> tuple[int, str, str, str]:
    """Sort key: most important first (priority, then the longest running)."""
    return -priority(pod), pod.status.startTime or stamp, pod.namespace, pod.name


def _pick(found: list[Candidate], stamp: str) -> Candidate:
    """pickOneNodeForPreemption; its last tie is decided by the node's name."""

    def badness(candidate: Candidate) -> tuple[int, int, int, int]:
        victims = candidate.victims
        return (
            candidate.violations,
            priority(victims[0]),
            sum(priority(v) + _OFFSET for v in victims),
            len(victims),
        )

    def latest_start(candidate: Candidate) -> str:
        highest = priority(candidate.victims[0])
        return min(v.status.startTime or stamp for v in candidate.victims if priority(v) == highest)

    least = min(badness(c) for c in found)
    best = [c for c in found if badness(c) == least]
    latest = max(latest_start(c) for c in best)
    return min((c for c in best if latest_start(c) == latest), key=lambda c: c.node)


def _stamp(now: dt.datetime) -> str:
    """``now`` as the API writes times, so that texts compare as times do."""
    return now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
