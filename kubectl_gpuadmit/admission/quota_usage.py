"""What one new object would charge to a ResourceQuota, and which quotas concern it.

Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core (pods.go, services.go,
persistent_volume_claims.go, resource_claims.go), k8s.io/apiserver v0.37.2
pkg/quota/v1/generic/evaluator.go, pkg/apis/core/v1/helper/qos/qos.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kubectl_gpuadmit.admission import resource_lists
from kubectl_gpuadmit.admission.refusal import stored_name
from kubectl_gpuadmit.admission.resource_lists import ResourceList
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.dra import MAX_RESULTS, DeviceRequest, ExactRequest, ResourceClaim
from kubectl_gpuadmit.kube.objects import (
    Container,
    Generic,
    KubeObject,
    PersistentVolumeClaim,
    Pod,
    PodAffinity,
    ResourceQuotaSpec,
    ResourceRequirements,
    ScopedSelectorRequirement,
)
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, REQUESTS, is_extended, is_hugepages

ONE = Quantity(1_000_000_000)
ALL_DEVICES = MAX_RESULTS
"""A request for all devices is charged as the most that a claim may hold."""

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"


class Charge(Struct, frozen=True):
    """One object (or each of several equal ones) as quota admission sees it."""

    resource: str
    """``pods``, ``deployments.apps``."""
    name: str
    usage: ResourceList
    counts: Callable[[str], bool]
    """Whether a quota key is counted for this kind of object."""
    in_scope: Callable[[ScopedSelectorRequirement], bool]
    unspecified: Callable[[frozenset[str]], dict[str, list[str]]]
    """Of the keys given, those that some container fails to name -> names of the containers."""


def scopes(spec: ResourceQuotaSpec) -> tuple[ScopedSelectorRequirement, ...]:
    """spec.scopes and spec.scopeSelector as one list."""
    plain = tuple(ScopedSelectorRequirement(s, "Exists") for s in spec.scopes or ())
    selector = spec.scopeSelector
    return plain + ((selector.matchExpressions or ()) if selector is not None else ())


def concerns(spec: ResourceQuotaSpec, hard: Iterable[str], charge: Charge) -> bool:
    """At least one key is counted for the object, and it is in every scope."""
    return any(map(charge.counts, hard)) and all(map(charge.in_scope, scopes(spec)))


def _no_scope(_: ScopedSelectorRequirement) -> bool:
    return False


def _all_specified(_: frozenset[str]) -> dict[str, list[str]]:
    return {}


# -- pods ------------------------------------------------------------------------------------------


def of_pod(pod: Pod) -> Charge:
    """A pod: its object count and, unless it has ended, all that it requests and is limited to.

    Pods that outlived their deletion grace are counted here (the API server stops at that moment).
    """
    usage: ResourceList = {"count/pods": ONE}
    if not is_terminal(pod):
        usage["pods"] = ONE
        usage.update(
            _compute(resource_lists.of_pod(pod, "requests"), resource_lists.of_pod(pod, "limits"))
        )
    return Charge(
        resource="pods",
        name=stored_name(pod),
        usage=usage,
        counts=quota_keys.of_pods,
        in_scope=lambda scope: pod_in_scope(pod, scope),
        unspecified=lambda keys: unspecified(pod, keys),
    )


def _compute(requests: ResourceList, limits: ResourceList) -> ResourceList:
    usage: ResourceList = {}
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in requests:
            usage[name] = usage[REQUESTS + name] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_hugepages(name):
            usage[name] = usage[REQUESTS + name] = amount
        elif is_extended(name) or name.startswith(DEVICE_CLASS):
            usage[REQUESTS + name] = amount
    return usage


def unspecified(pod: Pod, keys: frozenset[str]) -> dict[str, list[str]]:
    """cpu and memory keys oblige every container to name the resource, unless the pod does."""
    wanted = keys & quota_keys.MUST_SPECIFY
    if not wanted or resource_lists.pod_level_set(pod):
        return {}
    missing: dict[str, set[str]] = {}
    for container in (*(pod.spec.containers or ()), *(pod.spec.initContainers or ())):
        for key in wanted - _specified(container):
            missing.setdefault(key, set()).add(container.name)
    return {key: sorted(names) for key, names in sorted(missing.items())}


def _specified(container: Container) -> frozenset[str]:
    own = container.resources or ResourceRequirements()
    asked = own.requests or {}
    found = {f"limits.{name}" for name in own.limits or ()}
    return frozenset(found.union(asked, (REQUESTS + name for name in asked)))


def pod_in_scope(pod: Pod, scope: ScopedSelectorRequirement) -> bool:
    spec = pod.spec
    match scope.scopeName:
        case "Terminating":
            return _terminating(pod)
        case "NotTerminating":
            return not _terminating(pod)
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "PriorityClass":
            return _matches(scope, (spec.priorityClassName,) if spec.priorityClassName else ())
        case "CrossNamespacePodAffinity":
            affinity = spec.affinity
            return affinity is not None and (
                _crosses(affinity.podAffinity) or _crosses(affinity.podAntiAffinity)
            )
    return False


def _terminating(pod: Pod) -> bool:
    seconds = pod.spec.activeDeadlineSeconds
    return seconds is not None and seconds >= 0


def _matches(scope: ScopedSelectorRequirement, names: tuple[str, ...]) -> bool:
    """Like a label selector on a label that has one of the names as value, or is absent."""
    values = scope.values or ()
    match scope.operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case "NotIn":
            return not names or any(name not in values for name in names)
    return False


def _crosses(affinity: PodAffinity | None) -> bool:
    if affinity is None:
        return False
    preferred = affinity.preferredDuringSchedulingIgnoredDuringExecution or ()
    terms = (
        *(affinity.requiredDuringSchedulingIgnoredDuringExecution or ()),
        *(choice.podAffinityTerm for choice in preferred),
    )
    return any(term.namespaces or term.namespaceSelector is not None for term in terms)


def is_best_effort(pod: Pod) -> bool:
    """QoS class BestEffort: no cpu and no memory requested or limited anywhere."""
    own = pod.spec.resources
    if own is not None and resource_lists.pod_level_set(pod):
        return _idle(own)
    every = (*(pod.spec.initContainers or ()), *(pod.spec.containers or ()))
    return all(container.resources is None or _idle(container.resources) for container in every)


def _idle(own: ResourceRequirements) -> bool:
    return all(
        not amounts or not resource_lists.read_one(amounts.get(name, 0)).nano
        for name in ("cpu", "memory")
        for amounts in (own.requests, own.limits)
    )


# -- other objects ---------------------------------------------------------------------------------


def of_volume_claim(claim: PersistentVolumeClaim) -> Charge:
    """A PersistentVolumeClaim: itself and its storage, also per storage class."""
    usage: ResourceList = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
    asked = claim.spec.resources
    storage = resource_lists.read(asked.requests if asked else None).get("storage")
    if storage is not None:
        storage = Quantity(storage.value() * 1_000_000_000, storage.format)
        usage["requests.storage"] = storage
    storage_class = claim.annotations.get(BETA_STORAGE_CLASS) or claim.spec.storageClassName
    if storage_class:
        prefix = storage_class + quota_keys.PER_STORAGE_CLASS
        usage[prefix + "persistentvolumeclaims"] = ONE
        if storage is not None:
            usage[prefix + "requests.storage"] = storage
    attributes = claim.spec.volumeAttributesClassName
    names = (attributes,) if attributes else ()
    return Charge(
        resource="persistentvolumeclaims",
        name=stored_name(claim),
        usage=usage,
        counts=quota_keys.of_volume_claims,
        in_scope=lambda s: s.scopeName == "VolumeAttributesClass" and _matches(s, names),
        unspecified=_all_specified,
    )


def of_service(service: Generic) -> Charge:
    """A Service: itself, load balancers, node ports."""
    spec = service.document.get("spec") or {}
    ports = spec.get("ports") or []
    node_ports = 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        node_ports = len(ports)
        if spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
    return Charge(
        resource="services",
        name=stored_name(service),
        usage={
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": _whole(spec.get("type") == "LoadBalancer"),
            "services.nodeports": _whole(node_ports),
        },
        counts=quota_keys.of_services,
        in_scope=_no_scope,
        unspecified=_all_specified,
    )


def _whole(number: int) -> Quantity:
    return Quantity(number * 1_000_000_000)


def of_resource_claim(claim: ResourceClaim, extended: dict[str, str]) -> Charge:
    """A ResourceClaim: itself and its devices per class, in the worst case.

    ``extended``: DeviceClass name -> spec.extendedResourceName ('' if none). What the pod of an
    extended-resource claim has already been charged is not taken off again.
    """
    devices: dict[str, int] = {}
    for request in claim.spec.devices.requests or ():
        for name, number in _devices(request).items():
            devices[name] = devices.get(name, 0) + number
    usage: ResourceList = {quota_keys.CLAIM_COUNT: ONE}
    for name, number in devices.items():
        amount = _whole(number)
        usage[name + quota_keys.CLAIMS_PER_CLASS] = amount
        if name and number > 0:
            usage[quota_keys.CLASS_REQUESTS + name] = amount
            if extended.get(name):
                usage[REQUESTS + extended[name]] = amount
    return Charge(
        resource="resourceclaims.resource.k8s.io",
        name=stored_name(claim),
        usage=usage,
        counts=lambda key: quota_keys.of_resource_claims(key, extended),
        in_scope=_no_scope,
        unspecified=_all_specified,
    )


def _devices(request: DeviceRequest) -> dict[str, int]:
    """Devices per class of one request: v1 and v1beta2 nest ``exactly``, v1beta1 does not."""
    if request.firstAvailable:
        most: dict[str, int] = {}
        for choice in request.firstAvailable:
            name, number = _wanted(choice)
            if number > most.get(name, 0):
                most[name] = number
        return most
    exactly = request.exactly or (request if request.deviceClassName else None)
    return dict([_wanted(exactly)]) if exactly else {}


def _wanted(request: ExactRequest) -> tuple[str, int]:
    """An absent mode means ExactCount, an absent count one device."""
    match request.allocationMode or "ExactCount":
        case "ExactCount":
            return request.deviceClassName, request.count or 1
        case "All":
            return request.deviceClassName, ALL_DEVICES
    return request.deviceClassName, 0


def of_object(resource: str, name: str = "") -> Charge:
    """An object of any other kind, or one whose content is not known: it counts as one."""
    usage: ResourceList = {f"count/{resource}": ONE}
    if resource in quota_keys.LEGACY_COUNTS or resource in ("services", "persistentvolumeclaims"):
        usage[resource] = ONE
    return Charge(
        resource=resource,
        name=name or "Unknown",
        usage=usage,
        counts=lambda key: key in usage,
        in_scope=_no_scope,
        unspecified=_all_specified,
    )


def of(obj: KubeObject, extended: dict[str, str]) -> Charge:
    """The charge of any namespaced object."""
    match obj:
        case Pod():
            return of_pod(obj)
        case PersistentVolumeClaim():
            return of_volume_claim(obj)
        case Generic() if obj.kind == "Service":
            return of_service(obj)
        case ResourceClaim():
            return of_resource_claim(obj, extended)
    return of_object(resource_of(obj), stored_name(obj))


def resource_of(obj: KubeObject) -> str:
    """``deployments.apps`` of a Deployment: the API's plural of its kind, and its group if any."""
    kind = obj.kind.lower()
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        plural = kind[:-1] + "ies"
    elif kind.endswith(("s", "x", "ch", "sh")):
        plural = kind + "es"
    else:
        plural = kind + "s"
    group, slash, _ = obj.apiVersion.rpartition("/")
    return f"{plural}.{group}" if slash else plural
