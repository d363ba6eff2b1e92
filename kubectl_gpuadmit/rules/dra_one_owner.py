"""Rule dra/one-owner."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import owners
from kubectl_gpuadmit.devices.owners import BothModes
from kubectl_gpuadmit.kube.dra import ResourceClaim
from kubectl_gpuadmit.policy.usage import admitted_nodes, uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

_SHOWN = 8
"""Nodes that are named with their numbers; the others are counted."""


@rule(
    "dra/one-owner",
    reasons={
        "dra/two-owners": "The device plugin and a DRA driver both hand out the GPUs of a node, so"
        " that two pods may get the same one. Run one of them on the node: take the device plugin"
        " off (node label or selector of its DaemonSet), or the driver.",
        "dra/published-twice": "One GPU stands in the slices of two drivers or pools, so that two"
        " claims may get it. Remove the driver that should not publish it.",
        "dra/held-twice": "One GPU is held by a pod through the device plugin and by another"
        " through its claim at the same time. Drain the node and run one of the two there.",
    },
    reads={"GpuTopology", "Node", "ResourceClaim", "ResourceSlice"},
    level="warn",
)
def dra_one_owner(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Each GPU has one party that hands it out: device plugin, time-slicing or a DRA driver.

    A node counts as doubly owned where its kubelet advertises GPUs of a device plugin
    (``status.allocatable``) and a DRA driver of the same vendor publishes devices for it. Where GPU
    Feature Discovery says how many GPUs the node has and both numbers together are no more, they
    can be different ones, and nothing is said. GPUs that two drivers publish are joined by UUID and
    PCI address, and so are those that the agent's map shows in a pod's hands through the device
    plugin and that a claim has as well. Only nodes that the pod could land on count.
    """
    if not ask.first_group or not uses_gpus(ask.pod, ask.policy.gpu_patterns):
        return
    if not cluster.knows("ResourceSlice"):
        if ask.pod.spec.resourceClaims:
            yield Unknown(
                rule="dra/one-owner",
                missing="what DRA drivers publish: ResourceSlice objects are not in the source",
                hint="kubectl get resourceslices -o json",
            )
        return
    both = owners.in_both_modes(cluster)
    twice = owners.published_twice(cluster)
    held = owners.held_twice(cluster, _plugged(ask, cluster))
    if not both and not twice and not held:
        return
    mine = {info.name for info in admitted_nodes(cluster, ask.pod)}
    if here := [one for one in both if one.node in mine]:
        yield _both(ask, here)
    for pair in [pair for pair in held if pair.node in mine][:_SHOWN]:
        yield Finding(
            reason="dra/held-twice",
            detail=f"{pair.key} on {pair.node} is held by pod {pair.pod} through the device plugin"
            f" and by claim {pair.claim}",
            evidence=(
                Evidence(
                    f"Node {pair.node}", pair.key, 2, 1, "GpuTopology, ResourceClaims", "most"
                ),
            ),
        )
    for one in twice[:_SHOWN]:
        yield Finding(
            reason="dra/published-twice",
            detail=f"{one.key} is published as {' and as '.join(one.devices)}",
            evidence=(Evidence(one.key, "devices", len(one.devices), 1, "ResourceSlices", "most"),),
        )


def _plugged(ask: Ask, cluster: Cluster) -> dict[str, list[tuple[str, str, str]]]:
    """Node -> (UUID, PCI address, pod) of what containers have from the device plugin, on nodes of
    which claims have devices, as the agents report it."""
    from kubectl_gpuadmit.topology import maps

    if not cluster.knows(maps.KIND):
        return {}
    pools = {
        result.pool
        for claim in cluster.every("ResourceClaim")
        if isinstance(claim, ResourceClaim) and claim.status.allocation is not None
        for result in claim.status.allocation.devices.results or ()
    }
    found: dict[str, list[tuple[str, str, str]]] = {}
    for known in maps.node_maps(cluster, sorted(pools & cluster.nodes.keys()), ask.now):
        gpus = {gpu.index: gpu for gpu in known.gpus}
        for holder in known.holders or ():
            gpu = gpus.get(holder.gpu)
            if holder.via == "device-plugin" and gpu is not None:
                who = f"{holder.namespace}/{holder.pod}"
                entry = (gpu.uuid or "", gpu.pci_bus_id or "", who)
                found.setdefault(known.node, []).append(entry)
    return found


def _both(ask: Ask, nodes: list[BothModes]) -> Finding:
    first = nodes[0]
    names = ", ".join(one.node for one in nodes[:3])
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    shared = f" ({first.replicas} places a GPU)" if first.replicas > 1 else ""
    verb = "hands" if len(nodes) == 1 else "hand"
    return Finding(
        reason="dra/two-owners",
        detail=f"{names}{more} {verb} out GPUs twice: {first.advertised} {first.resource}{shared}"
        f" by the device plugin, {first.published} by {first.driver}"
        + (f", of {first.physical} that are there" if first.physical else ""),
        evidence=tuple(
            Evidence(
                f"Node {one.node}",
                f"{one.resource} beside {one.published} devices of {one.driver}",
                one.advertised,
                0,
                "status.allocatable, ResourceSlices",
                "most",
            )
            for one in nodes[:_SHOWN]
        ),
    )
