"""NodeResourcesFit: what the pod requests must be left on the node, for every resource.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest). Resources that the
scheduler does not count (a bare ``gpu``: no domain, not native) are not counted here either.
"""

from __future__ import annotations

from functools import lru_cache

from kubectl_gpuadmit.cluster import NodeInfo
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.placement.filters import shortfall
from kubectl_gpuadmit.verdict import Shortfall

FILTER = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
REASONS = {
    "placement/insufficient": "Too little of a resource is left on the node, or the node never "
    "had that much. Ask for less, use larger nodes, or wait until pods end.",
    "placement/too-many-pods": "The node runs as many pods as it may (allocatable pods). Wait "
    "until pods end or raise the kubelet's maxPods.",
}

Asked = tuple[tuple[str, int], ...]
"""(resource, amount > 0) in the order in which the scheduler checks them."""

_FIRST = ("cpu", "memory", "ephemeral-storage")


def asked(pod: Pod) -> Asked:
    """What of the pod's requests the scheduler checks."""
    wanted = pods.requests(pod)
    first = [(name, wanted[name]) for name in _FIRST if wanted.get(name, 0) > 0]
    others = sorted(
        (name, amount)
        for name, amount in wanted.items()
        if amount > 0 and name not in _FIRST and is_scalar(name)
    )
    return (*first, *others)


@lru_cache(maxsize=1 << 12)
def is_scalar(name: str) -> bool:
    """IsScalarResourceName: extended, hugepages, prefixed native or attachable volumes."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
    )


def judge(
    wanted: Asked, info: NodeInfo, delegated: frozenset[str] = frozenset()
) -> tuple[Shortfall, ...]:
    """One shortfall for each resource of which too little is left.

    ``delegated``: extended resources that a DeviceClass supplies; a node that advertises none of
    them is then DynamicResources' to judge.
    """
    allocatable = info.allocatable
    used = info.used
    found: list[Shortfall] | None = None
    room = allocatable.get("pods", 0)
    if len(info.pods) + 1 > room:
        found = [
            shortfall(
                FILTER,
                TOO_MANY_PODS,
                "placement/too-many-pods",
                1,
                len(info.pods),
                room,
                subject="pods",
            )
        ]
    for name, amount in wanted:
        capacity = allocatable.get(name, 0)
        if amount > capacity - used.get(name, 0):
            if name in delegated and capacity <= 0:
                continue
            found = found or []
            found.append(
                shortfall(
                    FILTER,
                    f"Insufficient {name}",
                    "placement/insufficient",
                    amount,
                    used.get(name, 0),
                    capacity,
                    permanent=amount > capacity,
                    subject=name,
                )
            )
    return tuple(found) if found else ()
