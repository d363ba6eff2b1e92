"""PodTopologySpread: hard spread constraints, counted over the nodes that a constraint includes.

Source: pkg/scheduler/framework/plugins/podtopologyspread (filtering.go, common.go). Soft
constraints and the scheduler's own defaults (ScheduleAnyway) never refuse a node and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.selectors import Selector, label_selector, with_labels
from kubectl_gpuadmit.placement.filters import node_affinity, shortfall, taint_toleration
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = REASON + " (missing required label)"
REASONS = {
    "placement/spread": "One more pod on the node would make its topology domain fuller than "
    "maxSkew allows. Wait for pods elsewhere, raise maxSkew, or use ScheduleAnyway.",
    "placement/spread-label": "The node lacks the topologyKey label of a hard spread constraint. "
    "Spread over a label that these nodes carry.",
}


class Constraint(Struct, frozen=True):
    """One hard constraint, as the scheduler keeps it."""

    key: str
    skew: int
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


def constraints(pod: Pod) -> tuple[Constraint, ...]:
    """The pod's DoNotSchedule constraints, matchLabelKeys merged into the selectors."""
    found = []
    for c in pod.spec.topologySpreadConstraints or ():
        if c.whenUnsatisfiable != "DoNotSchedule":
            continue
        labels = pod.labels
        same = {key: labels[key] for key in c.matchLabelKeys or () if key in labels}
        found.append(
            Constraint(
                c.topologyKey,
                c.maxSkew,
                with_labels(label_selector(c.labelSelector), same),
                c.minDomains if c.minDomains is not None else 1,
                (c.nodeAffinityPolicy or "Honor") == "Honor",
                (c.nodeTaintsPolicy or "Ignore") == "Honor",
            )
        )
    return tuple(found)


class Spread:
    """Matching pods in each domain of each hard constraint of one pod."""

    def __init__(self, cluster: Cluster, pod: Pod, found: tuple[Constraint, ...]) -> None:
        self.pod = pod
        self.constraints = found
        self._self_match = [int(c.selector.matches(pod.labels)) for c in found]
        self._counts: list[dict[str, int]] = [{} for _ in found]
        self._least: list[int | None] = [None] * len(found)
        self._trial = False
        for info in cluster.nodes.values():
            for i in self._included(info):
                domain = info.labels[found[i].key]
                counts = self._counts[i]
                counts[domain] = counts.get(domain, 0) + self._matching(found[i], info.pods)

    @classmethod
    def of(cls, cluster: Cluster, pod: Pod) -> Spread | None:
        """None for a pod without hard constraints."""
        found = constraints(pod)
        return cls(cluster, pod, found) if found else None

    def _included(self, info: NodeInfo) -> Iterator[int]:
        """Constraints for which this node's pods count: it carries all keys and is eligible."""
        labels = info.labels
        for c in self.constraints:
            if c.key not in labels:
                return
        for i, c in enumerate(self.constraints):
            if c.honor_affinity and not node_affinity.matches(self.pod, info.node):
                continue
            if c.honor_taints and taint_toleration.judge(self.pod, info.node):
                continue
            yield i

    def _matching(self, c: Constraint, pods: tuple[Pod, ...]) -> int:
        """Pods of the namespace that match and do not terminate; an empty selector counts none."""
        if c.selector.everything:
            return 0
        namespace = self.pod.metadata.namespace
        matches = c.selector.matches
        return sum(
            p.metadata.namespace == namespace
            and p.metadata.deletionTimestamp is None
            and matches(p.metadata.labels or {})
            for p in pods
        )

    def _minimum(self, i: int) -> int:
        least = self._least[i]
        if least is None:
            counts = self._counts[i]
            enough = len(counts) >= self.constraints[i].min_domains
            least = self._least[i] = min(counts.values(), default=0) if enough else 0
        return least

    def judge(self, info: NodeInfo) -> tuple[Shortfall, ...]:
        """One shortfall for each constraint that this node would break."""
        found: list[Shortfall] = []
        for i, c in enumerate(self.constraints):
            domain = info.labels.get(c.key)
            if domain is None:
                found.append(
                    shortfall(
                        FILTER,
                        REASON_LABEL,
                        "placement/spread-label",
                        permanent=True,
                        subject=c.key,
                    )
                )
                continue
            there, least = self._counts[i].get(domain, 0), self._minimum(i)
            if there + self._self_match[i] - least > c.skew:
                found.append(
                    shortfall(
                        FILTER,
                        REASON,
                        "placement/spread",
                        self._self_match[i],
                        there,
                        least + c.skew,
                        subject=f"{c.key}={domain}",
                    )
                )
        return tuple(found)

    def moved(self, pod: Pod, info: NodeInfo, by: int) -> None:
        """In a what-if, terminating pods and empty selectors count too (updateWithPod)."""
        for i in self._included(info):
            if self._trial:
                counts_here = (
                    pod.metadata.namespace == self.pod.metadata.namespace
                    and self.constraints[i].selector.matches(pod.metadata.labels or {})
                )
            else:
                counts_here = bool(self._matching(self.constraints[i], (pod,)))
            if counts_here:
                domain = info.labels[self.constraints[i].key]
                counts = self._counts[i]
                counts[domain] = counts.get(domain, 0) + by
                self._least[i] = None

    def fork(self) -> Spread:
        twin = object.__new__(Spread)
        twin.pod = self.pod
        twin.constraints = self.constraints
        twin._self_match = self._self_match
        twin._counts = [dict(counts) for counts in self._counts]
        twin._least = list(self._least)
        twin._trial = True
        return twin
