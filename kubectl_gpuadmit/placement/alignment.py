"""The scheduler's choice held against the kubelets that would have to take the pod.

The scheduler does not know NUMA. Of the nodes that it may choose, some kubelets may refuse the pod:
then it is Failed for good, its controller makes another, and the scheduler, to whom the node looks
as free as before, may send that one there again. Nobody waits in such a case, so what says that
something must end first says also what happens until then.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.kubelet import FILTER, TOPOLOGY, UNEXPECTED
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import (
    Evidence,
    Fidelity,
    Finding,
    NodeVerdict,
    Placement,
    Shortfall,
    Unknown,
)

if TYPE_CHECKING:
    from kubectl_gpuadmit.placement.kubelet.verdicts import Judged, PodGates

RULE = "placement"
_SPEAKERS = ("KubeletConfiguration", "GpuTopology", "NodeResourceTopology")
"""Kinds whose objects may say what a kubelet is told."""

REASONS = {
    "placement/numa-refused": "The scheduler finds a node, and the kubelet of every such node would"
    " refuse the pod: its devices, CPUs and memory cannot be had on the NUMA nodes that the"
    " kubelet's topology policy demands. The pod fails for good and its controller makes another,"
    " without end. Ask for what one NUMA node can give, choose other nodes or another policy.",
    "placement/numa-risk": "Some of the nodes that the scheduler may choose have a kubelet that"
    " would refuse the pod (topology policy), and the scheduler does not know which. Keep the pod"
    " off them by node affinity, or expect Failed pods until one lands elsewhere.",
}

NAMED = 4
"""Nodes that a sentence names."""
_SENTENCES = 3
_LOOKED_AT = 8
"""Nodes of which it is tried whose end would open them."""


class Heard(Struct):
    """What the kubelets of the nodes that the scheduler may choose say to one pod."""

    refused: dict[str, Any] = {}
    """Node -> ``Judged``."""
    unsure: dict[str, Any] = {}
    silent: int = 0
    passed: int = 0

    @property
    def nodes(self) -> int:
        return len(self.refused) + len(self.unsure) + self.silent + self.passed


def gates_for(
    cluster: Cluster, pod: Pod, policy: Policy | None, now: dt.datetime
) -> PodGates | None:
    """None where no kubelet is known to have a say in it: most clusters say nothing of theirs."""
    declared = policy is not None and any(pool.kubelet is not None for pool in policy.pools)
    spoken = any(next(iter(cluster.every(kind)), None) is not None for kind in _SPEAKERS)
    if not declared and not spoken and not refusals(cluster):
        return None
    from kubectl_gpuadmit.placement.kubelet.verdicts import Kubelets  # costs start-up time

    return Kubelets(cluster, policy, now).for_pod(pod)


def refusals(cluster: Cluster) -> dict[str, int]:
    """Node -> Failed pods that its kubelet has refused for NUMA: it has a policy that refuses.

    A what-if neither adds nor takes away such pods, so the answer is kept with the cluster.
    """
    key = "alignment/refusals"
    found: dict[str, int] | None = cluster.static_memo.get(key)
    if found is None:
        found = cluster.static_memo[key] = {}
        for pod in cluster.pods():
            status = pod.status
            if status.phase == "Failed" and (status.reason or "").replace(" ", "") == TOPOLOGY:
                node = pod.spec.nodeName or ""
                found[node] = found.get(node, 0) + 1
    return found


def choose(cycle: Cycle, gates: PodGates | None, heard: Heard | None) -> NodeInfo | None:
    """The node that the model chooses next: the first whose kubelet does not refuse.

    ``heard`` takes note of what all kubelets of feasible nodes say, and wants them all to be asked.
    """
    if gates is None:
        return cycle.best()
    best: NodeInfo | None = None
    doubtful: NodeInfo | None = None
    for info in cycle.feasible():
        judged = gates.judge(info)
        if heard is not None:
            _note(heard, info.name, judged)
        if judged.says in ("passes", "silent"):
            best = best or info
            if heard is None:
                break
        elif judged.says == "unsure":
            doubtful = doubtful or info
    return best or doubtful


def heard_of(gates: PodGates, info: NodeInfo) -> Heard:
    """What one kubelet says, for a pod that nobody but it has a choice about."""
    heard = Heard()
    _note(heard, info.name, gates.judge(info))
    return heard


def _note(heard: Heard, node: str, judged: Judged) -> None:
    match judged.says:
        case "refuses":
            heard.refused[node] = judged
        case "unsure":
            heard.unsure[node] = judged
        case "silent":
            heard.silent += 1
        case _:
            heard.passed += 1


def amended(
    verdicts: tuple[NodeVerdict, ...], refused: dict[str, Judged]
) -> tuple[NodeVerdict, ...]:
    """Nodes that the scheduler would take and whose kubelet would not, with the kubelet's word."""
    if not refused:
        return verdicts
    return tuple(
        NodeVerdict(v.node, False, (shortfall(refused[v.node]),))
        if v.fits and v.node in refused
        else v
        for v in verdicts
    )


def shortfall(judged: Judged) -> Shortfall:
    """The kubelet's refusal among what else a node has against the pod."""
    reason = judged.outcome.reason if judged.outcome else TOPOLOGY
    return Shortfall(
        filter=FILTER,
        reason=f"its kubelet would refuse it ({reason})",
        code="placement/numa-refused",
        permanent=judged.never,
        subject=_free(judged),
    )


def _free(judged: Judged) -> str:
    """``free by NUMA node: nvidia.com/gpu 2 + 2, cpu 30 + 12``."""
    parts = [
        f"{name} {' + '.join(str(count) for _, count in counts)}" for name, counts in judged.free
    ]
    return f"free by NUMA node: {', '.join(parts)}" if parts else ""


# -- sentences -------------------------------------------------------------------------------------


def risk(heard: Heard) -> Finding | None:
    """For a pod that fits: which nodes would refuse it all the same."""
    if not heard.refused:
        return None
    names = list(heard.refused)
    return Finding(
        reason="placement/numa-risk",
        detail=f"the scheduler may choose {_listed(names)}, {_whose(names)} kubelet would refuse"
        f" it: {_why(heard.refused[names[0]])}; a pod sent there stays Failed, and the next may"
        " follow it",
        evidence=(
            Evidence(
                f"{heard.nodes} nodes the scheduler may choose",
                "whose kubelet would refuse it",
                len(names),
                0,
                _source(heard.refused.values()),
                bound="most",
            ),
            *_evidence(names[0], heard.refused[names[0]]),
        ),
        permanent=False,
        field="/spec/affinity",
        rule=RULE,
        level="warn",
        fidelity=_fidelity(heard.refused.values()),
    )


def refused(heard: Heard, *, placed: int, count: int, named: bool = False) -> Finding:
    """For a pod that finds nodes, and no kubelet that takes it; ``named``: it names its node."""
    names = sorted(
        heard.refused,
        key=lambda name: (heard.refused[name].never, _lack(heard.refused[name]), name),
    )
    nearest = heard.refused[names[0]]
    which = f"pod {placed + 1} of {count}: " if count > 1 else ""
    never = all(judged.never for judged in heard.refused.values())
    even = ", even with nothing else on it" if never else ""
    sends = "spec.nodeName names" if named else "the scheduler would send it to"
    return Finding(
        reason="placement/numa-refused",
        detail=f"{which}{sends} {_listed(names)}, {_whose(names)} kubelet"
        f" would refuse it{even}: {_why(nearest)}; every pod that is sent there stays Failed",
        evidence=_evidence(names[0], nearest),
        permanent=never,
        field="/spec/nodeName" if named else "/spec/containers",
        rule=RULE,
        fidelity=_fidelity(heard.refused.values()),
    )


def placement(heard: Heard) -> Placement:
    """``never`` where no kubelet would take it even with nothing else on its node."""
    return "never" if all(judged.never for judged in heard.refused.values()) else "waits"


def waits_for(cycle: Cycle, gates: PodGates, heard: Heard) -> tuple[str, ...]:
    """Whose end would let it in."""
    names = [name for name in sorted(heard.refused) if not heard.refused[name].never][:_LOOKED_AT]
    lines: list[str] = []
    for name in names:
        pod = gates.opened_by(cycle.cluster.nodes[name])
        if pod is not None and len(lines) < _SENTENCES - 1:
            lines.append(f"the kubelet of {name} takes it once {_name(cycle, pod)} ends")
    if not lines and names:
        lines.append(f"enough free together on NUMA nodes of {_listed(names)}")
    return tuple(lines)


def unknowns(gates: PodGates, heard: Heard) -> tuple[Unknown, ...]:
    """What is not known of kubelets and may decide.

    Where nobody speaks of a node's policy, a pod of several devices gets a remark and no more: most
    kubelets have none.
    """
    found: list[Unknown] = []
    if heard.unsure:
        name, judged = next(iter(sorted(heard.unsure.items())))
        what = judged.missing.what if judged.missing else "its NUMA nodes"
        others = f" and {len(heard.unsure) - 1} more nodes" if len(heard.unsure) > 1 else ""
        decides = not heard.passed and not heard.silent
        found.append(
            Unknown(
                rule=RULE,
                missing=f"whether the kubelet of {name}{others} ({judged.policy}, by"
                f" {judged.source}) refuses it: {what}",
                level="warn" if decides else "audit",
                hint=judged.missing.hint if judged.missing else "",
                stage="placement",
            )
        )
    told = heard.passed or heard.refused
    if heard.silent and gates.several and told:
        found.append(
            Unknown(
                rule=RULE,
                missing=f"the topology policy of {heard.silent} more kubelets"
                if heard.silent > 1
                else "the topology policy of one more kubelet",
                level="audit",
                hint="declare it: pools.NAME.kubelet in the policy file, or run kubectl gpu-admit"
                " agent",
                stage="placement",
            )
        )
    return tuple(found)


def _why(judged: Judged) -> str:
    """The policy, what it wants together, and what is free where."""
    single = judged.policy == "single-numa-node"
    where = "on one NUMA node" if single else "on as few NUMA nodes as the empty machine allows"
    outcome = judged.outcome
    wanted = " and ".join(f"{count} {name}" for name, count in judged.wanted)
    container = f" (container {outcome.container})" if outcome and outcome.container else ""
    text = f"{judged.policy} wants {wanted}{container} {where}"
    if outcome is not None and outcome.reason not in (TOPOLOGY, ""):
        words = outcome.message.removeprefix("Allocate failed due to ")
        text = (
            words.removesuffix(", which is unexpected") if outcome.reason == UNEXPECTED else words
        )
    free = _free(judged)
    return f"{text}; {free}" if free else text


def _evidence(node: str, judged: Judged) -> tuple[Evidence, ...]:
    wanted = dict(judged.wanted)
    found = [
        Evidence(
            f"Node {node}",
            f"{name} free on NUMA node {zone}",
            count,
            wanted.get(name),
            judged.source,
            bound="least",
        )
        for name, counts in judged.free
        for zone, count in counts
    ]
    found.append(
        Evidence(
            f"Node {node}",
            "topology policy and scope",
            f"{judged.policy}, {judged.scope}",
            None,
            judged.source,
        )
    )
    return tuple(found)


def _lack(judged: Judged) -> int:
    """How much the NUMA node that has most lacks of all resources together."""
    wanted = dict(judged.wanted)
    return sum(
        max(wanted.get(name, 0) - max((count for _, count in counts), default=0), 0)
        for name, counts in judged.free
    )


def _fidelity(judged: Iterable[Judged]) -> Fidelity:
    return "modelled" if any(one.modelled for one in judged) else "exact"


def _source(judged: Iterable[Judged]) -> str:
    return ", ".join(sorted({one.source for one in judged}))


def _listed(names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(names[:-1]) + (f" or {names[-1]}" if len(names) > 1 else names[0])
    return f"{', '.join(names[: NAMED - 1])} or {len(names) - NAMED + 1} more nodes"


def _whose(names: Sequence[str]) -> str:
    return "whose" if len(names) == 1 else "each of whose"


def _name(cycle: Cycle, pod: Pod) -> str:
    return pod.name if pod.namespace == cycle.pod.namespace else f"{pod.namespace}/{pod.name}"
