"""Places replicas one after another, and says why the first one that finds no node does not.

Whether a node can take a pod is exact. Which of several nodes it gets is modelled: fewest
untolerated PreferNoSchedule taints, then the highest weight of preferred node affinity, then the
fewest GPUs left over on the node, then the name. The real scheduler weighs more (spreading, images,
balance) and draws lots among equals, so it may choose another feasible node.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.quantity import QuantityError
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.kube.versions import LATEST
from kubectl_gpuadmit.placement import (
    alignment,
    devices,
    explain,
    failing_selector,
    named_node,
    preemption,
    static,
    suggest,
    waiting,
)
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters import (
    allocated_claims,
    extended_resources,
    scheduling_gates,
)
from kubectl_gpuadmit.placement.filters.inter_pod_affinity import merged_label_keys
from kubectl_gpuadmit.placement.message import scheduler_message
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import (
    Evidence,
    Finding,
    Level,
    NodeVerdict,
    Placement,
    Shortfall,
    Unknown,
)

if TYPE_CHECKING:
    from kubectl_gpuadmit.placement.kubelet.verdicts import PodGates

RULE = explain.RULE


class Placed(Struct, frozen=True):
    """Where a workload's pods would go, and what stands in the way of the first that would not."""

    places: tuple[str, ...]
    """The node of each pod that was placed, in order."""
    nodes: tuple[NodeVerdict, ...]
    """All nodes, by name: for the first pod that was not placed, or for the first if all were."""
    cluster: Cluster
    """A fork with the placed pods on it."""
    placement: Placement
    findings: tuple[Finding, ...] = ()
    waits_for: tuple[str, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    decided_by: str = ""
    """The scheduler or queue that has the last word where it is not the default scheduler."""
    asked: int = 0
    """Pods that were to be placed."""
    message: str = ""
    """The scheduler's own sentence for the pod that was not placed, preemption included."""


def node_verdicts(cluster: Cluster, pod: Pod) -> tuple[NodeVerdict, ...]:
    """What every node has against the pod, by name: all filters, all reasons.

    Raises QuantityError where the pod's requests cannot be read.
    """
    return Cycle(cluster, pod).verdicts()


def place(
    cluster: Cluster,
    pod: Pod,
    count: int,
    *,
    now: dt.datetime,
    names: Sequence[str] | None = None,
    decided_by: str = "",
    ttl_annotations: Sequence[str] = (),
    mates: Sequence[tuple[Pod, int]] = (),
    kubernetes: str = LATEST,
    policy: Policy | None = None,
) -> Placed:
    """Places ``count`` pods like ``pod``, stopping at the first that finds no node.

    ``mates`` are other pods of the same workload, with their numbers: they are in ``cluster``
    already and would be there too if everything else ended.
    ``policy`` may declare the kubelets of its pools.
    ``names`` are theirs (default: the pod's name and a number). ``decided_by`` names the queue that
    decides; without it the pod's own schedulerName is looked at. ``cluster`` stays as it is.
    """
    decided_by = decided_by or _other_scheduler(pod)
    pod = merged_label_keys(pod)
    fork = cluster.fork()
    if not cluster.knows("Node"):
        missing = _unknown("Node objects: not in the source", "kubectl get nodes -o yaml")
        return Placed((), (), fork, "unknown", unknowns=(missing,), decided_by=decided_by)
    try:
        cycle = Cycle(fork, pod, kubernetes=kubernetes, now=now)
    except QuantityError as problem:
        missing = _unknown(f"requests of the pod: {problem}")
        return Placed((), (), fork, "unknown", unknowns=(missing,), decided_by=decided_by)
    if pod.spec.nodeName in fork.nodes:
        gates = alignment.gates_for(cluster, pod, policy, now)
        return _past_the_scheduler(cluster, cycle, count, names, gates)
    if pod.spec.nodeName:
        gone = (named_node.no_such_node(pod.spec.nodeName),)
        return Placed((), cycle.verdicts(), fork, "never", gone, asked=count)
    verdicts = cycle.verdicts()
    gates, heard = alignment.gates_for(cluster, pod, policy, now), alignment.Heard()
    places: list[str] = []
    for i in range(count):
        best = alignment.choose(cycle, gates, None if places else heard)
        if best is None:
            verdicts = cycle.verdicts() if places else verdicts
            break
        cycle.assume(bound(pod, pod_name(pod, names, i), best.name))
        places.append(best.name)
    unknowns = (*cycle.unknowns, *_unseen(cluster, cycle))
    if len(places) == count:
        verdicts = alignment.amended(verdicts, heard.refused)
        placed = Placed(tuple(places), verdicts, fork, "fits")
    elif gates is not None and any(v.fits for v in verdicts):
        heard = alignment.Heard()
        alignment.choose(cycle, gates, heard)
        placed = _misaligned(cycle, verdicts, gates, heard, tuple(places), count)
    else:
        placed = _refused(cycle, verdicts, tuple(places), count, now, ttl_annotations, mates)
    if gates is not None:
        unknowns += alignment.unknowns(gates, heard)
    placed = structs.replace(placed, unknowns=unknowns)
    if placed.placement in ("fits", "waits") and any(u.level != "audit" for u in unknowns):
        placed = structs.replace(placed, placement="unknown")
    if decided_by or places:
        # the choice of nodes for the first replicas is ours, and so is what is left for the next
        modelled = tuple(structs.replace(f, fidelity="modelled") for f in placed.findings)
        placed = structs.replace(placed, findings=modelled)
    if placed.placement == "fits" and (risk := alignment.risk(heard)):
        placed = structs.replace(placed, findings=(*placed.findings, risk))
    return structs.replace(_gated(cluster, pod, placed), asked=count, decided_by=decided_by)


def _misaligned(
    cycle: Cycle,
    verdicts: tuple[NodeVerdict, ...],
    gates: PodGates,
    heard: alignment.Heard,
    places: tuple[str, ...],
    count: int,
) -> Placed:
    """The scheduler has a node for the next pod, and no kubelet takes it."""
    return Placed(
        places,
        alignment.amended(verdicts, heard.refused),
        cycle.cluster,
        alignment.placement(heard),
        (alignment.refused(heard, placed=len(places), count=count),),
        alignment.waits_for(cycle, gates, heard),
    )


def _past_the_scheduler(
    cluster: Cluster,
    cycle: Cycle,
    count: int,
    names: Sequence[str] | None,
    gates: PodGates | None,
) -> Placed:
    """The pods name their node: nobody chooses, nobody preempts, and its kubelet decides."""
    node = cycle.pod.spec.nodeName or ""
    before = tuple(v for v in cycle.verdicts() if v.node != node)
    refused: tuple[Shortfall, ...] = ()
    heard = alignment.Heard()
    placed = 0
    while placed < count and not refused:
        refused = named_node.refusals(cycle, cycle.cluster.nodes[node])
        if not refused and gates is not None:
            heard = alignment.heard_of(gates, cycle.cluster.nodes[node])
            refused = tuple(map(alignment.shortfall, heard.refused.values()))
        if not refused:
            cycle.assume(bound(cycle.pod, pod_name(cycle.pod, names, placed), node))
            placed += 1
    info = cycle.cluster.nodes[node]
    found: Iterable[Finding]
    if heard.refused:
        found = (alignment.refused(heard, placed=placed, count=count, named=True),)
    else:
        found = named_node.findings(info, refused, placed=placed, count=count)
    own = NodeVerdict(node, not refused, refused)
    unknowns = _unseen(cluster, cycle)
    if cycle.dra is not None and cycle.dra.to_allocate:
        unknowns += (
            _unknown(
                "devices of the pod's claims: it names its node, so that no scheduler allocates"
                " them, and its kubelet waits until somebody has",
                "remove spec.nodeName, and use nodeSelector kubernetes.io/hostname",
            ),
        )
    if gates is not None:
        unknowns += alignment.unknowns(gates, heard)
    sure: Placement = "unknown" if any(u.level != "audit" for u in unknowns) else "fits"
    return Placed(
        (node,) * placed,
        tuple(sorted((*before, own), key=lambda verdict: verdict.node)),
        cycle.cluster,
        "never" if refused else sure,
        tuple(structs.replace(finding, fidelity="modelled") for finding in found),
        unknowns=unknowns,
        decided_by=f"the kubelet of {node}",
        asked=count,
    )


def _refused(
    cycle: Cycle,
    verdicts: tuple[NodeVerdict, ...],
    places: tuple[str, ...],
    count: int,
    now: dt.datetime,
    ttl_annotations: Sequence[str],
    mates: Sequence[tuple[Pod, int]],
) -> Placed:
    cluster = cycle.cluster
    room = _room(cluster, cycle.pod, count, mates, cycle.kubernetes)
    placement: Placement = "waits" if room >= count else "never"
    tried = preemption.dry_run(cycle, verdicts, now=now)
    found = explain.findings(
        cycle, verdicts, placement=placement, placed=len(places), count=count, room=room
    )
    found = devices.findings(cycle, verdicts, found)
    found = failing_selector.findings(cycle, verdicts, found)
    waits_for: tuple[str, ...] = ()
    updating = cycle.dra.incomplete() if cycle.dra is not None else ()
    if placement == "never" and updating and len(found) == 1:
        placement = "waits"
        found = tuple(structs.replace(f, permanent=False) for f in found)
    if placement == "waits":
        waits_for = (
            *(f"it is tried again once {pool}" for pool in updating[: waiting.SENTENCES]),
            *waiting.for_claims(cycle, verdicts),
        )
        waits_for += waiting.sentences(
            cycle,
            verdicts,
            waiting.releases(cycle, verdicts, now=now, ttl_annotations=ttl_annotations),
            tried.candidate,
            unsure="" if cluster.knows("PodDisruptionBudget") else "PDBs are not in the source",
        )
    return Placed(
        places,
        verdicts,
        cluster,
        placement,
        found,
        waits_for,
        message=scheduler_message(verdicts, cycle.pod, after=tried.message),
    )


def _room(
    cluster: Cluster, pod: Pod, count: int, mates: Sequence[tuple[Pod, int]], kubernetes: str
) -> int:
    """How many of ``count`` pods would find a node if all but their mates ended and nodes were
    well."""
    twin = cluster.fork()
    twin.nodes = dict(static.emptied(cluster))
    allocated_claims.released(twin)
    for number, (mate, of_them) in enumerate(mates):
        _fill(twin, mate, of_them, f"mate{number}", kubernetes)
    return _fill(twin, pod, count, "room", kubernetes)


def _fill(twin: Cluster, pod: Pod, count: int, mark: str, kubernetes: str) -> int:
    """Puts pods on the nodes until one finds none; gives their number."""
    cycle = Cycle(twin, pod, lenient=True, kubernetes=kubernetes)
    for i in range(count):
        best = cycle.best()
        if best is None:
            return i
        cycle.assume(bound(pod, f"{pod_name(pod, None, i)}-{mark}", best.name))
    return count


def _gated(cluster: Cluster, pod: Pod, placed: Placed) -> Placed:
    """A pod with scheduling gates takes no node yet, whatever the nodes say."""
    gates = scheduling_gates.gates(pod)
    if not gates:
        return placed
    finding = Finding(
        reason="placement/gated",
        detail=f"held back by scheduling gates: {', '.join(gates)}",
        evidence=(Evidence("pod", "spec.schedulingGates", len(gates), 0),),
        permanent=False,
        field="/spec/schedulingGates",
        suggest=(suggest.removed("schedulingGates", "no scheduling gates"),),
        rule=RULE,
    )
    return structs.replace(
        placed,
        places=(),
        cluster=cluster.fork(),
        placement="waits" if placed.placement == "fits" else placed.placement,
        findings=(finding, *placed.findings),
        waits_for=(
            f"it is tried once its scheduling gates are removed: {', '.join(gates)}",
            *placed.waits_for,
        ),
        message=scheduling_gates.MESSAGE,
    )


def _unseen(cluster: Cluster, cycle: Cycle) -> tuple[Unknown, ...]:
    """Kinds that were not exported and that could change the answer."""
    found = []
    if not cluster.knows("Pod"):
        found.append(
            _unknown(
                "Pod objects: not in the source, what runs on the nodes is not known",
                "kubectl get pods -A -o yaml",
            )
        )
    if extended_resources.supplies(cluster, cycle.kubernetes) and not cluster.knows("DeviceClass"):
        for name, _ in cycle.asked:
            if is_extended(name) and not any(
                info.allocatable.get(name) for info in cluster.nodes.values()
            ):
                found.append(
                    _unknown(
                        f"DeviceClass objects: not in the source, one could supply {name}",
                        "kubectl get deviceclasses -o yaml",
                        level="audit",
                    )
                )
    return tuple(found)


def _other_scheduler(pod: Pod) -> str:
    name = pod.spec.schedulerName
    return f"scheduler {name}" if name and name != "default-scheduler" else ""


def pod_name(pod: Pod, names: Sequence[str] | None, i: int) -> str:
    """Name of the i-th pod: the given one, else the pod's own with a number."""
    if names is not None and i < len(names):
        return names[i]
    base = pod.name or (pod.metadata.generateName or "pod").rstrip("-")
    return f"{base}-{i}"


def bound(pod: Pod, name: str, node: str) -> Pod:
    """The pod under this name, on this node."""
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, name=name),
        spec=structs.replace(pod.spec, nodeName=node),
    )


def _unknown(missing: str, hint: str = "", *, level: Level = "warn") -> Unknown:
    return Unknown(rule=RULE, missing=missing, level=level, hint=hint, stage="placement")
