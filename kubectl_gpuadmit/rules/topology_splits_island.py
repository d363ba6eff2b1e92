"""Rule topology/splits-island."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import Policy, landing
from kubectl_gpuadmit.policy.landing import Allotment, Landing
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "topology/splits-island",
    reasons={
        "topology/splits-island": "A training pod could take free GPUs of an NVLink island that "
        "inference holds: what is left of the island is no whole one for inference to grow into, "
        "and both share its links. Use the training nodes, or wait until inference has left."
    },
    reads={
        *("Node", "Pod", "GpuTopology", "ResourceSlice"),
        *("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
    },
)
def topology_splits_island(
    ask: Ask,
    cluster: Cluster,
    *,
    training: tuple[str, ...] = ("training",),
    inference: tuple[str, ...] = ("inference",),
    max_age: dt.timedelta = landing.MAX_AGE,
) -> Iterator[Found]:
    """Training never takes GPUs out of an NVLink island that inference holds.

    ``training`` and ``inference`` are names of the policy's classes. An island is held by inference
    where a pod of such a class holds one of its GPUs; a pod of a training class must not be able to
    land on a node with free GPUs in such an island. Nothing stops the device plugin from choosing
    just these, so a free island beside it is no excuse. Single GPUs without NVLink are no island.
    Without a map of its links, or with one older than ``maxAge``, a node on which inference runs is
    *unknown*.
    """
    policy = ask.policy
    if policy.workload_class(ask.pod, ask.workload.ref.kind) not in training:
        return
    allotments, missing = landing.allotments(ask, cluster, max_age=max_age)
    bad: list[tuple[Landing, Evidence]] = []
    good: list[Landing] = []
    unknown = [missing] if missing else []
    plugged = landing.landings(ask, cluster, max_age=max_age) if landing.whole_gpus(ask) else []
    places: list[tuple[Landing, Allotment | None]] = [(one, None) for one in plugged]
    places += [(each.landing, each) for each in allotments]
    for one, allotted in places:
        found = _split(one, allotted, policy, inference)
        if isinstance(found, Evidence):
            bad.append((one, found))
        elif found:
            unknown.append(found)
        else:
            good.append(one)
    if bad:
        where = landing.listed(one.name for one, _ in bad)
        yield Finding(
            reason="topology/splits-island",
            detail=f"the pod may land on {where}, in an NVLink island that inference holds",
            evidence=tuple(evidence for _, evidence in bad[:4]),
            permanent=False,
            field=ask.field("/spec"),
            suggest=landing.elsewhere(ask, good),
        )
    elif unknown:
        yield Unknown(
            rule="topology/splits-island",
            missing=landing.listed(unknown, 1),
            hint="" if missing else "kubectl gpu-admit agent",
        )


def _split(
    one: Landing, allotted: Allotment | None, policy: Policy, inference: tuple[str, ...]
) -> Evidence | str:
    """What the pod would split, what is missing to tell, or '' for nothing. ``allotted``: the
    devices that it would get; None where any free ones may be."""
    from kubectl_gpuadmit.topology import islands

    held, loose = landing.held_by(one, policy, inference)
    if not held and not loose:
        return ""
    if why := allotted.unknown if allotted is not None else one.unknown:
        return why
    assert one.map is not None and one.now is not None
    found = islands.islands(one.map)
    if found is None:
        return f"NVLink of node {one.name}: not told by {one.rests_on}"
    joined = [island.gpus for island in found if len(island.gpus) > 1]
    if loose and len(joined) > 1:
        return f"which GPUs {loose} holds on node {one.name}: not told by {one.rests_on}"
    for gpus in joined:
        theirs = [held[index] for index in gpus if index in held]
        if not theirs and not loose:
            continue
        if allotted is None:
            taken = max(sum(index in one.now.free for index in gpus) - one.now.loose, 0)
            what = f"free GPUs beside inference on {one.name}"
            would = any(index in one.now.free for index in gpus)
        else:
            chosen = {index for each in allotted.sets for index in each}
            taken = len(chosen.intersection(gpus))
            what = "GPUs beside inference that the scheduler would choose"
            would = taken > 0
        if would:
            names = ", ".join(dict.fromkeys(theirs)) or loose
            source = f"{one.rests_on}: {names}"
            return Evidence(f"Node {one.name}", what, taken, 0, source, "most")
    return ""
