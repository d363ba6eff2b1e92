"""Devices that stand for cpu, memory or huge pages of their node: what a pod draws by its claims.

A pod's draw counts like overhead: on top of what its containers ask for, except where the pod asks
for that resource itself (``spec.resources``). Where containers are being resized, Kubernetes leaves
it out of what is actuated; here it counts in full.

Sources: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go of
v1.37.2 (gate DRANodeAllocatableResources); k8s.io/component-helpers v0.37.2 resource/helpers.go
(addDRANodeAllocatableClaimResources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.allocator.outcome import Fatal
from kubectl_gpuadmit.devices.model import Allocation, Allotted, Claim, Device
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.quantity import NANO, QuantityError, canonical, parse

Nanos = dict[str, int]
"""Resource -> amount in 10**-9."""


class Draw(Struct):
    """What one claim draws from the node."""

    mapped: Nanos
    per_pod: Nanos
    per_container: Nanos
    containers: int = 0
    """How often the pod's containers name the claim."""

    def total(self) -> Nanos:
        found = dict(self.mapped)
        for name, amount in self.per_pod.items():
            found[name] = found.get(name, 0) + amount
        for name, amount in self.per_container.items():
            found[name] = found.get(name, 0) + amount * self.containers
        return found


def maps(allocation: Allocation, device: Callable[[Allotted], Device | None]) -> bool:
    """Whether a device of the allocation stands for a resource of its node; then no other pod may
    use the claim."""
    for one in allocation.devices:
        found = device(one)
        resources = found.raw.nodeAllocatableResources if found is not None else None
        if any(each.mapping is not None for each in (resources or {}).values()):
            return True
    return False


def of_claim(
    claim: Claim, allocation: Allocation, device: Callable[[Allotted], Device | str]
) -> Draw | None:
    """None where no device of the claim has to do with its node's resources.

    ``device`` gives the device as the node sees it, or why it does not. Raises Fatal.
    """
    found = [(one, device(one)) for one in allocation.devices]
    if not any(isinstance(each, Device) and each.raw.nodeAllocatableResources for _, each in found):
        return None
    draw = Draw({}, {}, {})
    for one, each in found:
        if isinstance(each, str):
            raise Fatal(
                f"claim {claim}, device {one.device.device}, driver {one.device.driver}: {each}"
            )
        for resource, part in (each.raw.nodeAllocatableResources or {}).items():
            mapping = part.mapping
            if mapping is not None and mapping.capacityKey:
                if one.consumed is None:
                    raise Fatal(
                        f"claim {claim}, device {one.device.device}: ConsumedCapacity is nil, but"
                        f" Capacity key '{mapping.capacityKey}' is set in"
                        f" NodeAllocatableResources for resource {resource}"
                    )
                amount = one.consumed.get(mapping.capacityKey)
                if amount is not None:
                    times = _nano(mapping.capacityMultiplier, default=NANO)
                    _add(draw.mapped, resource, -(-amount.nano * times // NANO))
            elif mapping is not None and mapping.deviceMultiplier is not None:
                _add(draw.mapped, resource, _nano(mapping.deviceMultiplier))
            if part.overhead is not None:
                if part.overhead.perPod is not None:
                    _add(draw.per_pod, resource, _nano(part.overhead.perPod))
                if part.overhead.perContainer is not None:
                    _add(draw.per_container, resource, _nano(part.overhead.perContainer))
    return draw


def with_draws(pod: Pod, draws: Iterable[Draw]) -> Pod:
    """The pod with what its claims draw among its overhead."""
    total: Nanos = {}
    for draw in draws:
        for name, amount in draw.total().items():
            _add(total, name, amount)
    return _with(pod, total)


def counted(cluster: Cluster) -> None:
    """Lets what placed pods draw count on their nodes; in place."""
    for pod in [pod for pod in cluster.pods() if pod.status.nodeAllocatableResourceClaimStatuses]:
        if pod.spec.nodeName and not pods.is_terminal(pod):
            draws = map(_of_status, pod.status.nodeAllocatableResourceClaimStatuses or ())
            drawn = with_draws(pod, draws)
            status = structs.replace(drawn.status, nodeAllocatableResourceClaimStatuses=None)
            cluster.apply(structs.replace(drawn, status=status))


def uncovered(pod: Pod, draws: Iterable[Draw]) -> str:
    """Why what the pod asks for itself does not cover its containers and claims, '' if it does."""
    own = pod.spec.resources
    if own is None or not draws:
        return ""
    bare = structs.replace(pod, spec=structs.replace(pod.spec, resources=None, overhead=None))
    wanted = pods.requests(with_draws(bare, draws))
    budget = pods.amounts(own.requests)
    for name in sorted(budget):
        if name in wanted and wanted[name] > budget[name] and _may_be_asked_by_pods(name):
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container"
                " and node-allocatable DRA requests"
            )
    return ""


def _may_be_asked_by_pods(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _with(pod: Pod, total: Nanos) -> Pod:
    own = pod.spec.resources
    asked = (own.requests or {}) if own is not None else {}
    held: dict[str, Any] = dict(pod.spec.overhead or {})
    for name, amount in total.items():
        if amount and not (name in asked and _may_be_asked_by_pods(name)):
            more = _nano(held.get(name, "0"))
            held[name] = canonical(more + amount, "DecimalSI")
    return structs.replace(pod, spec=structs.replace(pod.spec, overhead=held or None))


def _of_status(status: Mapping[str, Any]) -> Draw:
    draw = Draw({}, {}, {}, len(status.get("containers") or ()))
    for one in status.get("mapping") or ():
        _add(draw.mapped, str(one.get("name", "")), _nano(one.get("quantity")))
    for one in status.get("overhead") or ():
        _add(draw.per_pod, str(one.get("name", "")), _nano(one.get("perPod")))
        _add(draw.per_container, str(one.get("name", "")), _nano(one.get("perContainer")))
    return draw


def _add(to: Nanos, name: str, amount: int) -> None:
    to[name] = to.get(name, 0) + amount


def _nano(written: Any, *, default: int = 0) -> int:
    if written is None:
        return default
    try:
        return parse(written).nano
    except QuantityError as problem:
        raise Fatal(str(problem)) from None
