"""Structs of Dynamic Resource Allocation's objects: what any served version may hold, as written.

One struct per kind holds the fields of resource.k8s.io v1, v1beta2 and v1beta1 side by side, so
that one decoder reads all three; ``devices.normal`` turns them into one form. v1beta1 differs in
two places: a device's content lies under ``basic``, and a request has no ``exactly`` around it.

Sources: k8s.io/api v0.37.2 resource/{v1,v1beta2,v1beta1,v1alpha3}/types.go; the fields
``deviceClassName`` and ``selectors`` of a DeviceTaintRule from v0.34 (removed in 1.35).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, field

from kubectl_gpuadmit.kube.objects import (
    KubeObject,
    NodeSelector,
    ObjectMeta,
    PodCondition,
    QuantityText,
)

DRA_GROUP = "resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation, ``"true"`` on the claim that the scheduler makes for extended resources."""
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim made from a template: the name in the pod's ``spec.resourceClaims``."""
MAX_CONSUMERS = 256
"""ResourceClaimReservedForMaxSize: so many pods at most use one claim at a time."""
MAX_RESULTS = 32
"""AllocationResultsMaxSize: so many devices at most are allocated to one claim."""


class DeviceAttribute(Struct, frozen=True, gc=False):
    """One of these is set. ``string`` and ``version`` are both texts and never equal."""

    string: str | None = None
    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    version: str | None = None
    strings: tuple[str, ...] | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRange(Struct, frozen=True, gc=False):
    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class RequestPolicy(Struct, frozen=True, gc=False):
    default: QuantityText | None = None
    validValues: tuple[QuantityText, ...] | None = None
    validRange: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True, gc=False):
    value: QuantityText = 0
    requestPolicy: RequestPolicy | None = None


class Counter(Struct, frozen=True, gc=False):
    value: QuantityText = 0


class CounterSet(Struct, frozen=True, gc=False):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Struct, frozen=True, gc=False):
    counterSet: str = ""
    counters: dict[str, Counter] | None = None
    compatibilityGroups: tuple[str, ...] | None = None


class DeviceTaint(Struct, frozen=True, gc=False):
    key: str = ""
    value: str | None = None
    effect: str = ""
    timeAdded: str | None = None


class BasicDevice(Struct, frozen=True, gc=False):
    """What a device has: in v1 and v1beta2 next to its name, in v1beta1 under ``basic``."""

    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumesCounters: tuple[CounterConsumption, ...] | None = None
    nodeName: str | None = None
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    bindsToNode: bool | None = None
    bindingConditions: tuple[str, ...] | None = None
    bindingFailureConditions: tuple[str, ...] | None = None
    allowMultipleAllocations: bool | None = None
    nodeAllocatableResources: dict[str, Any] | None = None


class SliceDevice(BasicDevice, frozen=True, gc=False):
    name: str = ""
    basic: BasicDevice | None = None


class ResourcePool(Struct, frozen=True, gc=False):
    name: str = ""
    generation: int = 0
    resourceSliceCount: int = 0


class SliceHead(Struct, frozen=True, gc=False):
    """All of a slice's spec but its devices and counters."""

    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    nodeName: str | None = None
    nodeSelector: NodeSelector | None = None
    allNodes: bool | None = None
    perDeviceNodeSelection: bool | None = None


class ResourceSliceSpec(SliceHead, frozen=True, gc=False):
    devices: Sequence[SliceDevice] | None = None
    """Maybe kept as ``listed.Listed``, which makes them when they are looked at."""
    sharedCounters: tuple[CounterSet, ...] | None = None


class ResourceSlice(KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourceSlice"):
    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class UnreadSpec(SliceHead, frozen=True, gc=False):
    devices: Raw = Raw(b"null")
    sharedCounters: Raw = Raw(b"null")


class UnreadSlice(KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourceSlice"):
    """A ResourceSlice on its way in: its devices and counters are still JSON."""

    spec: UnreadSpec = field(default_factory=UnreadSpec)


class CelSelector(Struct, frozen=True, gc=False):
    expression: str = ""


class DeviceSelector(Struct, frozen=True, gc=False):
    """``cel`` None: a kind of selector that is not known here."""

    cel: CelSelector | None = None


class OpaqueConfiguration(Struct, frozen=True, gc=False):
    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(Struct, frozen=True, gc=False):
    """Also of a claim (with ``requests``) and of an allocation (with ``source``)."""

    opaque: OpaqueConfiguration | None = None
    requests: tuple[str, ...] | None = None
    source: str | None = None


class DeviceClassSpec(Struct, frozen=True, gc=False):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None
    extendedResourceName: str | None = None


class DeviceClass(KubeObject, frozen=True, gc=False, kw_only=True, tag="DeviceClass"):
    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class DeviceToleration(Struct, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    tolerationSeconds: int | None = None


class CapacityRequirements(Struct, frozen=True, gc=False):
    requests: dict[str, QuantityText] | None = None


class ExactRequest(Struct, frozen=True, gc=False):
    """What is asked for: of ``exactly``, of a subrequest, and in v1beta1 of the request itself."""

    deviceClassName: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocationMode: str | None = None
    count: int | None = None
    adminAccess: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None
    derivedAttributes: tuple[dict[str, Any], ...] | None = None


class SubRequest(ExactRequest, frozen=True, gc=False):
    name: str = ""


class DeviceRequest(ExactRequest, frozen=True, gc=False):
    name: str = ""
    exactly: ExactRequest | None = None
    firstAvailable: tuple[SubRequest, ...] | None = None


class DeviceConstraint(Struct, frozen=True, gc=False):
    requests: tuple[str, ...] | None = None
    matchAttribute: str | None = None
    distinctAttribute: str | None = None


class DeviceClaim(Struct, frozen=True, gc=False):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None


class ResourceClaimSpec(Struct, frozen=True, gc=False):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


class AllocatedDevice(Struct, frozen=True, gc=False):
    """DeviceRequestAllocationResult."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    adminAccess: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    bindingConditions: tuple[str, ...] | None = None
    bindingFailureConditions: tuple[str, ...] | None = None
    shareID: str | None = None
    consumedCapacity: dict[str, QuantityText] | None = None


class AllocatedDevices(Struct, frozen=True, gc=False):
    results: tuple[AllocatedDevice, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None


class AllocationResult(Struct, frozen=True, gc=False):
    devices: AllocatedDevices = field(default_factory=AllocatedDevices)
    nodeSelector: NodeSelector | None = None
    allocationTimestamp: str | None = None


class ConsumerReference(Struct, frozen=True, gc=False):
    apiGroup: str | None = None
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Struct, frozen=True, gc=False):
    """What a driver says about an allocated device; its ``data`` is not read."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    shareID: str | None = None
    conditions: tuple[PodCondition, ...] | None = None


class ResourceClaimStatus(Struct, frozen=True, gc=False):
    allocation: AllocationResult | None = None
    reservedFor: tuple[ConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None
    deallocationRequested: bool | None = None


class ResourceClaim(KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourceClaim"):
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(
    KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourceClaimTemplate"
):
    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


class DeviceTaintSelector(Struct, frozen=True, gc=False):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    deviceClassName: str | None = None
    selectors: tuple[DeviceSelector, ...] | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, gc=False):
    deviceSelector: DeviceTaintSelector | None = None
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRuleStatus(Struct, frozen=True, gc=False):
    conditions: tuple[PodCondition, ...] | None = None


class DeviceTaintRule(KubeObject, frozen=True, gc=False, kw_only=True, tag="DeviceTaintRule"):
    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = field(default_factory=DeviceTaintRuleStatus)


class PoolStatusSpec(Struct, frozen=True, gc=False):
    driver: str = ""
    poolName: str | None = None
    limit: int | None = None


class PoolStatus(Struct, frozen=True, gc=False):
    driver: str = ""
    poolName: str = ""
    generation: int = 0
    resourceSliceCount: int | None = None
    totalDevices: int | None = None
    allocatedDevices: int | None = None
    availableDevices: int | None = None
    unavailableDevices: int | None = None
    nodeName: str | None = None
    validationError: str | None = None


class PoolStatusStatus(Struct, frozen=True, gc=False):
    poolCount: int | None = None
    pools: tuple[PoolStatus, ...] | None = None
    conditions: tuple[PodCondition, ...] | None = None


class ResourcePoolStatusRequest(
    KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourcePoolStatusRequest"
):
    """What the resource pool status controller of 1.36+ (alpha) counted, when it was asked."""

    spec: PoolStatusSpec = field(default_factory=PoolStatusSpec)
    status: PoolStatusStatus | None = None
