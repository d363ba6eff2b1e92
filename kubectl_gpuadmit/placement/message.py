"""The scheduler's own sentence for a pod that it cannot place, from the nodes' verdicts.

Source: pkg/scheduler/framework/types.go (FitError.Error) and schedule_one.go (findNodesThatFitPod):
the first filter that refuses a node speaks for it. Useful beside FailedScheduling events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.filters import RANK, node_affinity, pod_claims
from kubectl_gpuadmit.verdict import NodeVerdict, Shortfall

PREFILTER_CODES = frozenset(
    {
        "placement/node-affinity-conflict",
        "placement/volume-missing",
        "placement/volume-unusable",
        "placement/volume-unbound",
        "placement/volume-not-found",
        "placement/pod-affinity-unreadable",
    }
    | pod_claims.CODES
)
"""Refused before any node is looked at: the message then names the reason, not the nodes."""

_ONE_REASON = frozenset(
    {
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeZone",
    }
)
"""Filters that return at their first complaint; the others list all."""


def first_refusal(shortfalls: Sequence[Shortfall]) -> tuple[str, tuple[str, ...], bool]:
    """(filter, its reasons once each, UnschedulableAndUnresolvable) of the first that refuses.

    ``shortfalls`` are one node's, in filter order; ('', (), False) for a node that fits.
    """
    if len(shortfalls) == 1:
        only = shortfalls[0]
        if only.code not in PREFILTER_CODES:
            return only.filter, (only.reason,), only.permanent
        return "", (), False
    at_nodes = [s for s in shortfalls if s.code not in PREFILTER_CODES]
    if not at_nodes:
        return "", (), False
    name = at_nodes[0].filter
    own = [s for s in at_nodes if s.filter == name]
    if name in _ONE_REASON:
        own = own[:1]
    return name, tuple(dict.fromkeys(s.reason for s in own)), any(s.permanent for s in own)


def scheduler_message(nodes: Sequence[NodeVerdict], pod: Pod, *, after: str = "") -> str:
    """``0/N nodes are available: …`` as the scheduler prints it for these verdicts.

    ``after`` is what PostFilter adds, e.g. ``Preemption.message``. '' where a node fits. A pod that
    PreFilter refuses gets ``not found`` for it: dynamicresources.go's PostFilter comes before
    preemption and misses the state that its own PreFilter would have left (1.34 and later).
    """
    if any(n.fits for n in nodes):
        return ""
    if not nodes:
        return "no nodes available to schedule pods"
    head = f"0/{len(nodes)} nodes are available:"
    tail = f" {after}" if after else ""
    unprepared = " not found" if after else ""
    rejected = [s for s in nodes[0].shortfalls if s.code in PREFILTER_CODES]
    if rejected:
        first = min(rejected, key=lambda s: RANK[s.filter])
        if first.filter == pod_claims.FILTER:
            return f"{head} {first.reason}.{tail}"
        return f"{head} {first.reason}.{unprepared}"
    named, plugins = _restricted(pod)
    if named is not None and not named:
        listed = " ".join(plugins)
        return f"{head} node(s) didn't satisfy plugin(s) [{listed}] simultaneously.{unprepared}"
    counts: Counter[str] = Counter()
    for node in nodes:
        if named is not None and node.node not in named:
            counts[f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"] += 1
        else:
            counts.update(first_refusal(node.shortfalls)[1])
    texts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"{head} {', '.join(texts)}.{tail}"


def _restricted(pod: Pod) -> tuple[frozenset[str] | None, list[str]]:
    """Nodes that PreFilter leaves (None: all), and the plugins that narrow them, by name."""
    names: frozenset[str] | None = None
    plugins: list[str] = []
    by_field = node_affinity.named_nodes(pod)
    if by_field is not None:
        names = by_field
        plugins.append("NodeAffinity")
    if pod.spec.nodeName:
        own = frozenset((pod.spec.nodeName,))
        names = own if names is None else names & own
        plugins.append("NodeName")
    return names, plugins
