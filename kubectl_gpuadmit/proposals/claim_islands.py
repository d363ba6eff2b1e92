"""Proposes what a claim has to say so that the devices that the scheduler chooses are joined.

A constraint on an attribute whose equal values are of one NVLink island comes first: it holds on
every node that is built so. Where no attribute tells islands apart, the UUIDs of a free island do,
for a single pod. Both are tried by the allocator before they are printed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from kubectl_gpuadmit import asking, occupants
from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.gpus import is_gpu, is_whole
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Device
from kubectl_gpuadmit.devices.pod_claims import PodClaim, of_pod
from kubectl_gpuadmit.policy import landing
from kubectl_gpuadmit.policy.landing import Allotment
from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.proposals.claims import Op, changed, command, listed
from kubectl_gpuadmit.rule import Ask

if TYPE_CHECKING:
    from kubectl_gpuadmit.topology.model import NodeMap

REASON = "topology/claim-splits"
_RULE = "topology/island-integrity"
_FIRST = ("resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode")
"""Standard attributes: every driver means the same by them."""
_ATTRIBUTES = 3
"""Attributes that are tried."""
_NODES = 8
"""Nodes whose devices are looked at."""
ByNode = dict[str, list[Device]]


def claims_kept_whole(case: Case) -> Iterator[Proposal]:
    """For claims whose devices lie in several islands while one that is free is enough."""
    if not any(f.reason == REASON and f.level == "deny" for f in case.verdict.findings):
        return
    cluster = case.before.cluster.fork()
    for pod in occupants.replaced_by(case.workload, case.before.cluster):
        cluster.remove("Pod", pod.namespace, pod.name)
    by_count = bool(case.terms.policy.settings(_RULE).get("by_count", True))
    for group in case.workload.groups:
        if not group.count or not group.pod.spec.resourceClaims:
            continue
        pod = chain.mutate(group.pod, cluster, kubernetes=case.terms.kubernetes).pod
        ask = asking.about(case.workload, group, pod, case.terms, ())
        said, _ = landing.tensor_parallel(ask, cluster)
        places, _ = landing.allotments(ask, cluster)
        for entry in of_pod(pod, ask.namespace, cluster):
            if _asks_for_several(entry):
                yield from _for_claim(ask, cluster, entry, places, said, by_count=by_count)


def _asks_for_several(entry: PodClaim) -> bool:
    requests = entry.claim.requests if entry.claim is not None else ()
    counts = [
        max((want.count if want.mode == "ExactCount" else 2) for want in request.wants)
        for request in requests
        if request.wants
    ]
    return sum(counts) > 1


def _for_claim(
    ask: Ask,
    cluster: Cluster,
    entry: PodClaim,
    places: Sequence[Allotment],
    said: int,
    *,
    by_count: bool,
) -> Iterator[Proposal]:
    obj = cluster.get(entry.kind, ask.namespace, entry.object) if entry.kind else None
    root, requests = listed(obj)
    if not root or entry.claim is None or entry.claim.allocation is not None:
        return
    home = ask.namespace
    where = f"{entry.kind} {entry.object}"

    def proposal(summary: str, cost: int, op: Op) -> Proposal:
        return Proposal(
            summary=f"in {where}: {summary}",
            topic=f"islands of {where}",
            cost=cost,
            command=command(entry, home, (op,)),
            change=changed(entry, home, (op,)),
        )

    judged = [one for one in places if not one.unknown and not one.parts][:_NODES]
    devices = _by_node(cluster, {one.name for one in judged})
    for name in _attributes(devices, judged, said, by_count=by_count)[:_ATTRIBUTES]:
        constraint = {"matchAttribute": name}
        there = entry.claim.constraints
        path = f"{root}/constraints/-" if there else f"{root}/constraints"
        op: Op = {"op": "add", "path": path, "value": constraint if there else [constraint]}
        short = name.rpartition("/")[2]
        yield proposal(f"matchAttribute {name}: all devices of one {short}", 12, op)
    if ask.group.count == 1 and len(requests) == 1 and requests[0].exactly is not None:
        at = f"{root}/requests/0/exactly/selectors"
        for one in judged:
            if text := _of_one_island(devices, one, said, by_count=by_count):
                selector = {"cel": {"expression": text}}
                more = bool(requests[0].exactly.selectors)
                op = {"op": "add", "path": f"{at}/-" if more else at}
                op["value"] = selector if more else [selector]
                yield proposal(f"only the GPUs of a free NVLink island of {one.name}", 48, op)
                return


def _size(one: Allotment, said: int, *, by_count: bool) -> int:
    count = len(one.sets[0])
    return min(said or (count if by_count else 0), count)


def _attributes(
    devices: ByNode, places: Sequence[Allotment], said: int, *, by_count: bool
) -> list[str]:
    """Attributes by which GPUs with one value are joined, on some node that has one free: the
    standard ones first."""
    found: dict[str, None] = {}
    for one in places:
        assert one.landing.map is not None and one.landing.now is not None
        size = _size(one, said, by_count=by_count)
        free = set(one.landing.now.free)
        indexed = _indexed(devices, one.landing.map)
        for name in sorted({name for device in indexed.values() for name in device.attributes}):
            values: dict[object, list[int]] = {}
            for index, device in indexed.items():
                value = device.attributes.get(name)
                if isinstance(value, str | int):
                    values.setdefault((type(value), value), []).append(index)
            joined = [_is_joined(one.landing.map, gpus) for gpus in values.values()]
            enough = any(len(free.intersection(gpus)) >= size for gpus in values.values())
            if size > 1 and enough and all(joined):
                found[name] = None
    return sorted(found, key=lambda name: (name not in _FIRST, name))


def _by_node(cluster: Cluster, names: Collection[str]) -> ByNode:
    from kubectl_gpuadmit.topology.claimed import node_of

    found: ByNode = {}
    for device in Inventory.of(cluster).devices.values():
        if is_gpu(device) and is_whole(device) and (node := node_of(device)) in names:
            found.setdefault(node, []).append(device)
    return found


def _indexed(devices: ByNode, found: NodeMap) -> dict[int, Device]:
    """GPU of the map -> its device in the slices of that node."""
    from kubectl_gpuadmit.topology.claimed import gpu_index

    there = ((gpu_index(found, device), device) for device in devices.get(found.node, ()))
    return {index: device for index, device in there if index is not None}


def _is_joined(found: NodeMap, gpus: Sequence[int]) -> bool:
    from kubectl_gpuadmit.topology import placements

    return len(gpus) < 2 or bool(placements.groups(found, gpus, len(gpus)))


def _of_one_island(devices: ByNode, one: Allotment, said: int, *, by_count: bool) -> str:
    """A selector of the best free GPUs of the node, '' where they are not joined or unnamed."""
    from kubectl_gpuadmit.topology import placements

    found, now = one.landing.map, one.landing.now
    assert found is not None and now is not None
    count = len(one.sets[0])
    size = _size(one, said, by_count=by_count)
    chosen = placements.best_set(found, now.free, count) or ()
    if size < 2 or (placements.groups(found, chosen, size) or 0) < count // size:
        return ""
    there = [one for index, one in _indexed(devices, found).items() if index in chosen]
    names = [(one.driver, one.attributes.get(f"{one.driver}/uuid")) for one in there]
    drivers = {driver for driver, _ in names}
    uuids = [uuid for _, uuid in names if isinstance(uuid, str) and uuid.isprintable()]
    if len(uuids) != count or len(drivers) != 1 or any('"' in u or "\\" in u for u in uuids):
        return ""
    listing = ", ".join(f'"{uuid}"' for uuid in uuids)
    return f'device.attributes["{drivers.pop()}"].uuid in [{listing}]'
