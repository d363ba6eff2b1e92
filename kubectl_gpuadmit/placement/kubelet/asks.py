"""What a pod asks of a kubelet's resource managers: devices, whole CPUs, pinned memory.

Source: pkg/apis/core/v1/helper/qos/qos.go and, in pkg/kubelet/cm, qos/helpers.go,
cpumanager/policy_static.go (guaranteedCPUs, podGuaranteedCPUs), memorymanager/policy_static.go
(getContainerRequestedResources, getPodRequestedResources) and devicemanager/topology_hints.go
(getPodDeviceRequest) of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import (
    Container,
    Pod,
    PodSpec,
    QuantityText,
    ResourceRequirements,
)
from kubectl_gpuadmit.kube.pods import is_sidecar

Kind = Literal["init", "sidecar", "app"]
Amounts = dict[str, int]

_COMPUTE = ("cpu", "memory")


class Fractional(Exception):
    """A request for memory that is no whole number of bytes: the memory manager refuses it."""


class ContainerAsk(Struct, frozen=True):
    name: str
    kind: Kind
    limits: Mapping[str, int]
    """Whole units of every resource but cpu, memory and huge pages."""
    whole_cpus: int
    """CPUs requested, 0 where that is no whole number; exclusive only in a Guaranteed pod."""
    memory: Mapping[str, int]
    """Memory and huge pages requested, in bytes."""
    guaranteed: bool
    """Own requests equal own limits, for CPU and memory, and are not zero."""
    fractional: bool = False


class PodAsk(Struct, frozen=True):
    """A pod as the managers see it. Containers in the order in which they are asked about."""

    uid: str
    containers: tuple[ContainerAsk, ...]
    guaranteed: bool
    pod_level: Mapping[str, int] | None = None
    """Nanos of the pod's own requests where it declares pod-level resources, else None."""

    def exclusive_cpus(self, container: ContainerAsk, *, pod_level: bool) -> int:
        """CPUs that the container gets for itself under the static policy."""
        if not self.guaranteed or (
            pod_level and self.pod_level is not None and not container.guaranteed
        ):
            return 0
        return container.whole_cpus

    def pod_cpus(self, *, pod_level: bool) -> int:
        """CPUs that the pod as a whole gets for itself."""
        if pod_level and self.pod_level is not None:
            nanos = self.pod_level.get("cpu", 0) if self.guaranteed else 0
            return nanos // quantity.NANO if nanos % quantity.NANO == 0 else 0
        return self._summed(
            lambda c: {"cpu": self.exclusive_cpus(c, pod_level=pod_level)} if c.whole_cpus else {}
        ).get("cpu", 0)

    def pinned(self, container: ContainerAsk, *, pod_level: bool) -> Mapping[str, int]:
        """Memory that the container gets pinned under the Static policy. Raises Fractional."""
        if pod_level and self.pod_level is not None and not container.guaranteed:
            return {}
        if container.fractional:
            raise Fractional
        return container.memory

    def pod_pinned(self, *, pod_level: bool) -> Mapping[str, int]:
        """Memory that the pod as a whole gets pinned: of resources that an app container names."""
        if pod_level and self.pod_level is not None:
            found = {n: v for n, v in self.pod_level.items() if _is_memory(n) and v > 0}
            if any(nanos % quantity.NANO for nanos in found.values()):
                raise Fractional
            return {name: nanos // quantity.NANO for name, nanos in found.items()}
        total = self._summed(lambda c: self.pinned(c, pod_level=pod_level))
        named = {name for c in self.containers if c.kind == "app" for name in c.memory}
        return {name: amount for name, amount in total.items() if name in named}

    def pod_devices(self) -> Amounts:
        """Devices over all containers: init steps reuse what is not kept by sidecars."""
        return self._summed(lambda c: c.limits)

    def _summed(self, amounts: Callable[[ContainerAsk], Mapping[str, int]]) -> Amounts:
        """App containers and sidecars together, raised to the largest init step."""
        running: Amounts = {}
        sidecars: Amounts = {}
        largest: Amounts = {}
        for container in self.containers:
            for name, amount in amounts(container).items():
                if container.kind == "init":
                    step = sidecars.get(name, 0) + amount
                    largest[name] = max(largest.get(name, 0), step)
                else:
                    running[name] = running.get(name, 0) + amount
                if container.kind == "sidecar":
                    sidecars[name] = sidecars.get(name, 0) + amount
        return {
            name: max(running.get(name, 0), largest.get(name, 0)) for name in {**running, **largest}
        }


def of(pod: Pod) -> PodAsk:
    """What the stored pod asks; a limit without a request counts as the request.

    Raises QuantityError.
    """
    spec = pod.spec
    level = spec.resources if _is_pod_level(spec.resources) else None
    return PodAsk(
        uid=pod.metadata.uid or f"{pod.namespace}/{pod.name}",
        containers=tuple(
            [
                _container(c, "sidecar" if is_sidecar(c) else "init")
                for c in spec.initContainers or ()
            ]
            + [_container(c, "app") for c in spec.containers or ()]
        ),
        guaranteed=is_guaranteed(spec),
        pod_level=_requests(level) if level is not None else None,
    )


def is_guaranteed(spec: PodSpec) -> bool:
    """Whether the pod's QoS class is Guaranteed (ComputePodQOS). Raises QuantityError."""
    if _is_pod_level(spec.resources):
        return spec.resources is not None and _equal(spec.resources)
    containers = (*(spec.initContainers or ()), *(spec.containers or ()))
    return bool(containers) and all(
        c.resources is not None and _equal(c.resources) for c in containers
    )


def _equal(resources: ResourceRequirements) -> bool:
    limits, requests = _nanos(resources.limits), _requests(resources)
    return all(limits.get(name, 0) and limits.get(name) == requests.get(name) for name in _COMPUTE)


def _container(container: Container, kind: Kind) -> ContainerAsk:
    resources = container.resources or ResourceRequirements()
    limits, requests = _nanos(resources.limits), _requests(resources)
    cpu = requests.get("cpu", 0)
    memory = {name: nanos for name, nanos in requests.items() if _is_memory(name)}
    return ContainerAsk(
        name=container.name,
        kind=kind,
        limits={
            name: -(-nanos // quantity.NANO)
            for name, nanos in limits.items()
            if name != "cpu" and not _is_memory(name)
        },
        whole_cpus=cpu // quantity.NANO if cpu % quantity.NANO == 0 else 0,
        memory={name: nanos // quantity.NANO for name, nanos in memory.items()},
        guaranteed=_equal(resources),
        fractional=any(nanos % quantity.NANO for nanos in memory.values()),
    )


def _is_memory(name: str) -> bool:
    return name == "memory" or name.startswith("hugepages-")


def _is_pod_level(resources: ResourceRequirements | None) -> bool:
    if resources is None:
        return False
    named: Iterable[str] = (*(resources.requests or ()), *(resources.limits or ()))
    return any(name in _COMPUTE or name.startswith("hugepages-") for name in named)


def _requests(resources: ResourceRequirements) -> Amounts:
    return {**_nanos(resources.limits), **_nanos(resources.requests)}


def _nanos(resources: Mapping[str, QuantityText] | None) -> Amounts:
    return {name: quantity.parse(text).nano for name, text in (resources or {}).items()}
