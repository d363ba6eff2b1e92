"""Why there is too little of one resource: not advertised, never enough, scattered, or in use.

Numbers are those of one node. It does not say which nodes the pod may use; that is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_gpuadmit.devices import gpus
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, is_extended
from kubectl_gpuadmit.placement import suggest
from kubectl_gpuadmit.placement.amounts import amount
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters.extended_resources import supplies
from kubectl_gpuadmit.verdict import Evidence, Finding, NodeVerdict

RULE = "placement"
_CLASSES = 3
"""Device classes that are told and tried."""
REASONS = {
    "placement/no-such-resource": "No node advertises the resource. Correct its name, or install "
    "the device plugin that advertises it.",
    "placement/no-node-large-enough": "The pod asks for more than any node that it may use has, "
    "even empty. Ask for less per pod, or add larger nodes.",
    "placement/fragmented": "Enough is free in the cluster, but not on one node. Ask for less per "
    "pod, or move small pods together.",
}


def by_claims(cycle: Cycle, name: str) -> tuple[str, ...]:
    """DeviceClasses that could serve whole GPUs which no node advertises, as DRA can since
    Kubernetes 1.36: under the class's own resource name, or once the class names the resource."""
    cluster = cycle.cluster
    vendor, _, what = name.partition("/")
    if what != "gpu" or not supplies(cluster, cycle.kubernetes) or not cluster.knows("DeviceClass"):
        return ()
    if not any(cluster.every("ResourceSlice")):
        return ()
    classes = sorted(Inventory.of(cluster).classes.items())
    return tuple(n for n, class_ in classes if gpus.is_for_gpus_of(class_, vendor))[:_CLASSES]


def finding(
    cycle: Cycle, name: str, lacking: Sequence[NodeVerdict], nearest: NodeVerdict
) -> Finding:
    """``lacking`` are the nodes with too little of resource ``name``; ``nearest`` lacks least."""
    everywhere = cycle.cluster.nodes
    asked = dict(cycle.asked)[name]
    capacity = max(info.allocatable.get(name, 0) for info in everywhere.values())
    usable = [everywhere[v.node] for v in lacking]
    largest = max(usable, key=lambda info: info.allocatable.get(name, 0))
    evidence = _deficit(cycle, nearest)
    if is_extended(name) and capacity <= 0:
        advertised = {
            other
            for info in everywhere.values()
            for other, n in info.allocatable.items()
            if n > 0 and is_extended(other)
        }
        meant = suggest.near(name, advertised)
        hint = f" (did you mean {meant}?)" if meant else ""
        served = by_claims(cycle, name) if not meant else ()
        if served:
            hint = f"; GPUs of this cluster are had by claims (DeviceClass {', '.join(served)})"
        return Finding(
            reason="placement/no-such-resource",
            detail=f"no node advertises {name}{hint}",
            evidence=(
                Evidence(
                    f"{len(everywhere)} nodes",
                    name,
                    0,
                    asked,
                    "status.allocatable",
                    bound="least",
                ),
            ),
            suggest=tuple(
                one
                for other in ((meant,) if meant else (DEVICE_CLASS + c for c in served))
                for one in suggest.other_resource(cycle.pod, name, other)
            ),
            rule=RULE,
        )
    has = largest.allocatable.get(name, 0)
    if asked > has:
        which = "the largest node" if has == capacity else "the largest node that it may use"
        return Finding(
            reason="placement/no-node-large-enough",
            detail=f"asks {amount(name, asked)} {name}, {which} has {amount(name, has)}"
            if has
            else f"asks {amount(name, asked)} {name}, no node that it may use has any",
            evidence=evidence,
            suggest=suggest.fewer(cycle.pod, name, asked, has) if is_extended(name) else (),
            rule=RULE,
        )
    free = [_free(verdict, name) for verdict in lacking]
    total, most = sum(free), max(free)
    best = everywhere[nearest.node]
    fewer = suggest.fewer(cycle.pod, name, asked, most) if is_extended(name) else ()
    if total >= asked and len(usable) > 1:
        return Finding(
            reason="placement/fragmented",
            detail=f"asks {amount(name, asked)} {name} on one node: {amount(name, total)} are "
            f"free, at most {amount(name, most)} on one node",
            evidence=(
                Evidence(f"{len(usable)} nodes", f"{name} free in total", total, None),
                *evidence,
            ),
            permanent=False,
            suggest=fewer,
            rule=RULE,
        )
    return Finding(
        reason="placement/insufficient",
        detail=f"needs {amount(name, asked)} {name}, {best.name} has "
        f"{amount(name, _free(nearest, name))} free "
        f"of {amount(name, best.allocatable.get(name, 0))}{_kept(cycle, best.name)}",
        evidence=evidence,
        permanent=False,
        suggest=fewer,
        rule=RULE,
    )


def _free(verdict: NodeVerdict, name: str) -> int:
    """What the filter found free there: less than the node has where pods are promised a place."""
    short = next(s for s in verdict.shortfalls if s.requested is not None and s.subject == name)
    return max(0, (short.capacity or 0) - (short.used or 0))


def _kept(cycle: Cycle, node: str) -> str:
    """`` (the rest is kept for …)``: pods that preempted others there and have not moved in yet."""
    promised = [f"{pod.namespace}/{pod.name}" for pod in cycle.nominated(node)]
    if not promised:
        return ""
    more = f" and {len(promised) - 1} more" if len(promised) > 1 else ""
    return f", room there is kept for {promised[0]}{more}"


def _deficit(cycle: Cycle, verdict: NodeVerdict) -> tuple[Evidence, ...]:
    """Everything that is lacking on one node, as free against asked."""
    info = cycle.cluster.nodes[verdict.node]
    return tuple(
        Evidence(
            subject=f"Node {info.name}",
            what=s.subject,
            observed=amount(s.subject, (s.capacity or 0) - (s.used or 0)),
            wanted=amount(s.subject, s.requested or 0),
            source=f"allocatable {amount(s.subject, s.capacity or 0)}, "
            f"{amount(s.subject, s.used or 0)} requested by {_pods(len(info.pods))}"
            f"{_kept(cycle, info.name)}",
            bound="least",
        )
        for s in verdict.shortfalls
        if s.filter == "NodeResourcesFit"
    )


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
