"""What a pod asks for, computed as Kubernetes does: requests, limits, host ports, priority, phase.

Source: k8s.io/component-helpers v0.37.2 resource/helpers.go (PodRequests, PodLimits) with the
options that the scheduler of Kubernetes 1.37 passes (pkg/scheduler/framework/types.go
CalculateResource): pod-level resources and in-place resizing of containers and pods are on. Amounts
that DRA maps into node allocatable (DRANodeAllocatableResources, alpha, off) are not read.

The dicts that are returned are shared between pods with equal resources: never change one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Container, ContainerStatus, Pod, Resources

_Side = Literal["requests", "limits"]
_Nanos = dict[str, int]

_POD_LEVEL = ("cpu", "memory")
_EMPTY: dict[str, int] = {}
_NOTHING: Resources = {}

_simple: dict[object, dict[str, int]] = {}
"""Requests of plain pods by the value of their containers' requests; see ``requests``."""
_SIMPLE_LIMIT = 1 << 14

HostPort = tuple[str, str, int]
"""(IP, protocol, port); an absent IP reads as ``0.0.0.0``, an absent protocol as ``TCP``."""


def requests(pod: Pod) -> dict[str, int]:
    """Resource -> amount in the scheduler's unit: millicores for cpu, else units rounded up.

    For a pod that is bound to a node, what the kubelet has allocated and actuated counts too (the
    largest of the three, or only those two where a resize is infeasible). A limit without a request
    counts as the request, as the API server stores it. Raises QuantityError.
    """
    spec = pod.spec
    containers = spec.containers
    if (
        containers is None
        or spec.initContainers
        or spec.overhead is not None
        or spec.resources is not None
    ):
        return _requests(pod)
    status = pod.status
    key: object
    if len(containers) == 1:
        resources = containers[0].resources
        wanted = (resources.requests if resources is not None else None) or _NOTHING
        ceiling = resources.limits if resources is not None else None
        if ceiling is not None and not ceiling.keys() <= wanted.keys():
            return _requests(pod)
        if spec.nodeName:
            if status.resources is not None:
                return _requests(pod)
            statuses = status.containerStatuses
            if (
                status.conditions
                and (not statuses or statuses[0].allocatedResources is None)
                and resize_is_infeasible(pod)
            ):
                return _requests(pod)
            if statuses:
                first = statuses[0]
                actuated = first.resources
                if (
                    len(statuses) != 1
                    or first.name != containers[0].name
                    or (first.allocatedResources is not None and first.allocatedResources != wanted)
                    or (
                        actuated is not None
                        and actuated.requests is not None
                        and actuated.requests != wanted
                    )
                ):
                    return _requests(pod)
        key = (*wanted, *wanted.values())
    else:
        if spec.nodeName and (
            status.resources is not None
            or not _settled(containers, status.containerStatuses)
            or (status.conditions and resize_is_infeasible(pod))
        ):
            return _requests(pod)
        key = tuple(
            (tuple((c.resources.requests or {}).items()), tuple((c.resources.limits or {}).items()))
            for c in containers
            if c.resources is not None
        )
    found = _simple.get(key)
    if found is None:
        if len(_simple) >= _SIMPLE_LIMIT:
            _simple.clear()
        found = _simple[key] = _requests(pod)
    return found


def limits(pod: Pod) -> dict[str, int]:
    """Resource -> limit in the scheduler's unit; overhead is added to limits that are not zero."""
    total = _aggregate(pod, "limits")
    spec, status = pod.spec, pod.status
    if spec.resources is not None and _pod_level(spec.resources.limits, spec.resources.requests):
        level = _nanos(spec.resources.limits)
        if spec.nodeName and status.resources is not None:
            level = _largest(
                {} if resize_is_infeasible(pod) else level, _nanos(status.resources.limits)
            )
        total.update({name: n for name, n in level.items() if _is_pod_level(name)})
    for name, amount in _nanos(spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return _units(total)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars, as GetHostPorts (pkg/scheduler/util/utils.go)."""
    spec = pod.spec
    found: list[HostPort] = []
    sidecars = (c for c in spec.initContainers or () if is_sidecar(c))
    for container in (*sidecars, *(spec.containers or ())):
        for port in container.ports or ():
            if port.hostPort and port.hostPort > 0:
                found.append((port.hostIP or "0.0.0.0", port.protocol or "TCP", port.hostPort))
    return tuple(found)


def is_sidecar(container: Container) -> bool:
    """An init container that keeps running (restartPolicy Always)."""
    return container.restartPolicy == "Always"


def is_terminal(pod: Pod) -> bool:
    """Succeeded or Failed: holds no resources and no node."""
    return pod.status.phase in ("Succeeded", "Failed")


def priority(pod: Pod) -> int:
    """spec.priority, 0 where unset (corev1helpers.PodPriority)."""
    return pod.spec.priority or 0


def resize_is_infeasible(pod: Pod) -> bool:
    """The kubelet has refused the resize that spec asks for: spec no longer counts."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


_amounts: dict[object, dict[str, int]] = {}


def amounts(resources: Resources | None) -> dict[str, int]:
    """A resource list in the scheduler's unit, memoised by value (nodes of a pool share one)."""
    if not resources:
        return _EMPTY
    key = (*resources, *resources.values())
    found = _amounts.get(key)
    if found is None:
        if len(_amounts) >= _SIMPLE_LIMIT:
            _amounts.clear()
        found = _amounts[key] = _units(_nanos(resources))
    return found


def _settled(
    containers: tuple[Container, ...], statuses: tuple[ContainerStatus, ...] | None
) -> bool:
    """True where the kubelet has allocated and actuated exactly what spec requests."""
    by_name: dict[str, ContainerStatus] | None = None
    if not statuses:
        return True
    for position, container in enumerate(containers):
        status = statuses[position] if position < len(statuses) else None
        if status is None or status.name != container.name:
            if by_name is None:
                by_name = {s.name: s for s in reversed(statuses)}
            status = by_name.get(container.name)
            if status is None:
                continue
        allocated = status.allocatedResources
        actuated = status.resources
        if allocated is None and actuated is None:
            continue
        wanted = _declared(container, "requests")
        if allocated is not None and allocated != wanted:
            return False
        if actuated is not None and actuated.requests is not None and actuated.requests != wanted:
            return False
    return True


def _requests(pod: Pod) -> dict[str, int]:
    total = _aggregate(pod, "requests")
    spec, status = pod.spec, pod.status
    if spec.resources is not None and _pod_level(spec.resources.requests):
        level = _nanos(spec.resources.requests)
        if spec.nodeName and status.resources is not None:
            level = _largest(
                {} if resize_is_infeasible(pod) else level,
                _nanos(status.resources.requests),
                _nanos(status.allocatedResources),
            )
        total.update({name: n for name, n in level.items() if _is_pod_level(name)})
    for name, amount in _nanos(spec.overhead).items():
        total[name] = total.get(name, 0) + amount
    return _units(total)


def _aggregate(pod: Pod, side: _Side) -> _Nanos:
    """AggregateContainerRequests and AggregateContainerLimits."""
    declared = _over_containers(pod, side, "spec")
    if not pod.spec.nodeName:
        return declared
    status = pod.status
    level = status.resources
    if side == "requests":
        if (
            level is not None
            and level.requests is not None
            and status.allocatedResources is not None
        ):
            known = [_nanos(status.allocatedResources), _nanos(level.requests)]
        else:
            known = [
                _over_containers(pod, side, "allocated"),
                _over_containers(pod, side, "actuated"),
            ]
    elif level is not None and level.limits is not None:
        known = [_nanos(level.limits)]
    else:
        known = [_over_containers(pod, side, "actuated")]
    if resize_is_infeasible(pod):
        return _largest(*known)
    return _largest(declared, *known)


def _over_containers(pod: Pod, side: _Side, source: str) -> _Nanos:
    """Sum over containers and sidecars, raised to the largest init step.

    An init step counts the sidecars started before it; a sidecar counts itself and those before it.
    """
    infeasible = source != "spec" and resize_is_infeasible(pod)
    total: _Nanos = {}
    for container in pod.spec.containers or ():
        add(total, _of_container(pod, container, side, source, infeasible=infeasible))
    sidecars: _Nanos = {}
    largest_step: _Nanos = {}
    for container in pod.spec.initContainers or ():
        own = _of_container(pod, container, side, source, infeasible=infeasible)
        if is_sidecar(container):
            add(total, own)
            add(sidecars, own)
            step = sidecars
        else:
            step = dict(own)
            add(step, sidecars)
        largest_step = _largest(largest_step, step)
    return _largest(total, largest_step)


def _of_container(
    pod: Pod, container: Container, side: _Side, source: str, *, infeasible: bool
) -> _Nanos:
    declared = _declared(container, side)
    if source == "spec":
        return _nanos(declared)
    status = _status_of(pod, container.name)
    if status is not None:
        actuated = getattr(status.resources, side, None)
        if source == "actuated" and actuated is not None:
            return _nanos(actuated)
        if side == "requests" and status.allocatedResources is not None:
            return _nanos(status.allocatedResources)
    return {} if infeasible else _nanos(declared)


def _declared(container: Container, side: _Side) -> Resources:
    """The container's own amounts, as the API server stores them: limits are requests' defaults."""
    resources = container.resources
    if resources is None:
        return _NOTHING
    if side == "limits" or not resources.limits:
        return (resources.limits if side == "limits" else resources.requests) or _NOTHING
    return {**resources.limits, **(resources.requests or {})}


def _status_of(pod: Pod, name: str) -> ContainerStatus | None:
    for status in pod.status.containerStatuses or ():
        if status.name == name:
            return status
    for status in pod.status.initContainerStatuses or ():
        if status.name == name:
            return status
    return None


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _pod_level(*lists: Resources | None) -> bool:
    return any(_is_pod_level(name) for resources in lists for name in resources or ())


def _nanos(resources: Resources | None) -> _Nanos:
    if not resources:
        return {}
    return {name: quantity.parse(text).nano for name, text in resources.items()}


def _units(nanos: Mapping[str, int]) -> dict[str, int]:
    """Sums are exact; only the end result is rounded, as Quantity.Add followed by Value()."""
    return {
        name: -(-n // (quantity.MILLI if name == "cpu" else quantity.NANO))
        for name, n in nanos.items()
    }


def add(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Adds ``more`` to ``total``, which it changes."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _largest(*lists: _Nanos) -> _Nanos:
    result: _Nanos = {}
    for amounts_ in lists:
        for name, amount in amounts_.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result
