"""Sums and maxima of resource lists with the API's own precision and number format.

``kube.pods`` answers in the scheduler's units; quota and limit ranges compare exact quantities and
print them in the format in which somebody wrote them, so both value and format are carried here.

Source: k8s.io/component-helpers v0.37.2 resource/helpers.go (PodRequests, PodLimits and what they
call), k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go (SetDefaults_ResourceList),
k8s.io/apimachinery v0.37.2 pkg/api/resource/quantity.go (Add).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import (
    Container,
    ContainerStatus,
    Pod,
    QuantityText,
    ResourceRequirements,
    Resources,
)
from kubectl_gpuadmit.kube.pods import is_sidecar, resize_is_infeasible
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.kube.resource_names import is_pod_level

ResourceList = dict[str, Quantity]
Side = Literal["requests", "limits"]

ZERO = Quantity(0)
_MILLI = 10**6


@lru_cache(maxsize=1 << 14, typed=True)
def read_one(text: QuantityText) -> Quantity:
    """One quantity as the API stores it in a resource list: rounded up to a thousandth."""
    read = quantity.parse(text)
    rest = read.nano % _MILLI
    if not rest:
        return read
    up = read.nano - rest + _MILLI if read.nano > 0 else read.nano - rest
    return Quantity(up, read.format)


def read(resources: Resources | None) -> ResourceList:
    """Raises QuantityError where a value is none."""
    return {name: read_one(text) for name, text in resources.items()} if resources else {}


def written(resources: Mapping[str, Quantity]) -> Resources:
    return {name: str(amount) for name, amount in resources.items()}


def plus(one: Quantity, other: Quantity) -> Quantity:
    """The sum keeps the first format, unless the first is zero."""
    return Quantity(one.nano + other.nano, one.format if one.nano else other.format)


def times(one: Quantity, count: int) -> Quantity:
    return Quantity(one.nano * count, one.format)


def add(into: ResourceList, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        have = into.get(name)
        into[name] = amount if have is None else plus(have, amount)


def raise_to(into: ResourceList, other: Mapping[str, Quantity]) -> None:
    """Each entry becomes the greater one; equal values keep the first format."""
    for name, amount in other.items():
        have = into.get(name)
        if have is None or amount.nano > have.nano:
            into[name] = amount


def side(requirements: ResourceRequirements | None, which: Side) -> Resources | None:
    if requirements is None:
        return None
    return requirements.requests if which == "requests" else requirements.limits


def _aggregate(
    containers: Iterable[ResourceList], inits: Iterable[tuple[ResourceList, bool]]
) -> ResourceList:
    """Running containers and sidecars together, or the hungriest init step if that is more."""
    total: ResourceList = {}
    for amounts in containers:
        add(total, amounts)
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for amounts, sidecar in inits:
        if sidecar:
            add(total, amounts)
            add(sidecars, amounts)
            step: ResourceList = sidecars
        else:
            step = dict(amounts)
            add(step, sidecars)
        raise_to(peak, step)
    raise_to(total, peak)
    return total


def of_containers(pod: Pod, which: Side) -> ResourceList:
    """AggregateContainerRequests or -Limits over the spec alone."""
    spec = pod.spec
    return _aggregate(
        (read(side(c.resources, which)) for c in spec.containers or ()),
        ((read(side(c.resources, which)), is_sidecar(c)) for c in spec.initContainers or ()),
    )


def _resizing(pod: Pod) -> dict[str, ContainerStatus]:
    """Statuses by container, the first of each name."""
    status = pod.status
    found: dict[str, ContainerStatus] = {}
    for one in (*(status.containerStatuses or ()), *(status.initContainerStatuses or ())):
        found.setdefault(one.name, one)
    return found


def with_status(pod: Pod, which: Side) -> ResourceList:
    """The same for a pod that is resized in place: the most of asked, allocated and in force.

    Where a resize is infeasible, what the spec asks is left out.
    """
    spec = of_containers(pod, which)
    statuses, infeasible = _resizing(pod), resize_is_infeasible(pod)
    if not statuses and not infeasible:
        return spec

    def allocated(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        if status is not None and status.allocatedResources is not None:
            return read(status.allocatedResources)
        return {} if infeasible else read(side(container.resources, which))

    def in_force(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        running = side(status.resources, which) if status is not None else None
        if running is not None:
            return read(running)
        if which == "requests":
            return allocated(container)
        return {} if infeasible else read(side(container.resources, which))

    views = [in_force] if which == "limits" else [in_force, allocated]
    total: ResourceList = {} if infeasible else spec
    for view in views:
        raise_to(
            total,
            _aggregate(
                (view(c) for c in pod.spec.containers or ()),
                ((view(c), is_sidecar(c)) for c in pod.spec.initContainers or ()),
            ),
        )
    return total


def pod_level_set(pod: Pod) -> bool:
    """Whether spec.resources names a resource that pod-level resources support."""
    own = pod.spec.resources
    return own is not None and any(
        is_pod_level(n) for n in (*(own.requests or ()), *(own.limits or ()))
    )


def of_pod(pod: Pod, which: Side) -> ResourceList:
    """PodRequests or PodLimits as quota counts them: pod-level resources and overhead included."""
    total = with_status(pod, which)
    own = pod.spec.resources
    if own is not None:
        for name, amount in read(side(own, which)).items():
            if is_pod_level(name):
                total[name] = amount
    if pod.spec.overhead:
        for name, amount in read(pod.spec.overhead).items():
            have = total.get(name)
            if which == "requests":
                total[name] = amount if have is None else plus(have, amount)
            elif have is not None and have.nano:
                total[name] = plus(have, amount)
    return total
