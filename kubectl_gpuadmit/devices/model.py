"""One form for DRA's objects, whatever version they came in; says nothing about who may use what.

Names are fully qualified: an attribute ``memory`` of the driver ``gpu.nvidia.com`` is
``gpu.nvidia.com/memory`` here. What a driver or user wrote stays reachable as ``raw``.

Sources: k8s.io/api v0.37.2 resource/v1/types.go (meaning of the fields);
k8s.io/dynamic-resource-allocation v0.37.2 structured/internal (who reads them how).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, structs

from kubectl_gpuadmit.devices.values import Capacity, Value, capacity_of, qualified, value_of
from kubectl_gpuadmit.kube import dra, listed
from kubectl_gpuadmit.kube.objects import NodeSelector
from kubectl_gpuadmit.kube.quantity import Quantity


class Taint(Struct, frozen=True):
    key: str
    value: str
    effect: str
    time_added: str = ""
    rule: str = ""
    """Name of the DeviceTaintRule that put it there, '' for the driver itself."""


class Toleration(Struct, frozen=True):
    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None


class DeviceId(NamedTuple):
    """Identifies a device in the cluster: ``driver/pool/device``."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class Device(Struct, gc=False, eq=False):
    """One device of a slice, with the taints of the rules that mean it. Compare by identity.

    Nothing of it is changed; what is read of it is worked out once. The garbage collector does not
    look at devices: a large cluster has hundreds of thousands, and they stay until the end.
    """

    slice: Slice
    name: str
    raw: dra.BasicDevice
    taints: tuple[Taint, ...] = ()
    _attributes: dict[str, Value] | None = None
    _capacity: dict[str, Capacity] | None = None
    _written: dict[str, Capacity] | None = None

    @property
    def driver(self) -> str:
        return self.slice.driver

    @property
    def pool(self) -> str:
        return self.slice.pool

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.slice.driver, self.slice.pool, self.name)

    @property
    def attributes(self) -> dict[str, Value]:
        """Fully qualified name -> value."""
        if self._attributes is None:
            self._attributes = {
                name: value_of(attribute)
                for name, attribute in qualified(self.driver, self.raw.attributes)
            }
        return self._attributes

    @property
    def capacity(self) -> dict[str, Capacity]:
        """Fully qualified name -> capacity. Raises QuantityError."""
        if self._capacity is None:
            self._capacity = dict(qualified(self.driver, self.capacity_as_written))
        return self._capacity

    @property
    def capacity_as_written(self) -> dict[str, Capacity]:
        """By the driver's own names, by which requests for an amount go. Raises QuantityError."""
        if self._written is None:
            self._written = {
                name: capacity_of(capacity) for name, capacity in (self.raw.capacity or {}).items()
            }
        return self._written

    @property
    def consumes(self) -> tuple[dra.CounterConsumption, ...]:
        return self.raw.consumesCounters or ()

    @property
    def shareable(self) -> bool:
        """``allowMultipleAllocations``: several claims may hold a share of it at a time."""
        return bool(self.raw.allowMultipleAllocations)

    @property
    def binding_conditions(self) -> tuple[str, ...]:
        """What the driver has to report before the pod is bound: a device yet to be attached."""
        return self.raw.bindingConditions or ()

    def __repr__(self) -> str:
        return f"Device({self.id})"


class Slice:
    """A ResourceSlice. Compare by identity."""

    __slots__ = (
        "_devices",
        "_made",
        "all_nodes",
        "counter_sets",
        "driver",
        "generation",
        "name",
        "node_name",
        "node_selector",
        "per_device",
        "pool",
        "raw",
        "rules",
        "skips",
        "slice_count",
        "template",
    )

    def __init__(
        self,
        raw: dra.ResourceSlice,
        made: Callable[[Slice], tuple[Device, ...]] = lambda slice: (),
        rules: tuple[TaintRule, ...] = (),
    ) -> None:
        spec = raw.spec
        self.raw = raw
        self.name = raw.name
        self.driver = spec.driver
        self.pool = spec.pool.name
        self.generation = spec.pool.generation
        self.slice_count = spec.pool.resourceSliceCount
        """Of how many slices this generation of the pool consists."""
        self.node_name = spec.nodeName or ""
        self.node_selector: NodeSelector | None = spec.nodeSelector
        self.all_nodes = bool(spec.allNodes)
        self.per_device = bool(spec.perDeviceNodeSelection)
        self.counter_sets: tuple[dra.CounterSet, ...] = spec.sharedCounters or ()
        self.skips: tuple[str, ...] = spec.skipNodeOperations or ()
        self.rules = rules
        """DeviceTaintRules that may mean devices of its pool."""
        self.template = listed.template_of(spec.devices)
        """What its devices have in common with those of other slices."""
        self._made = made
        self._devices: tuple[Device, ...] | None = None

    @property
    def kind(self) -> bytes:
        """What its spec says beside devices and counters, without the names of pool and node."""
        spec = self.raw.spec
        bare = structs.replace(
            spec,
            pool=dra.ResourcePool(),
            nodeName=None,
            nodeSelector=None,
            devices=None,
            sharedCounters=None,
        )
        return msgspec.json.encode((bare, bool(spec.nodeName)))

    @property
    def devices(self) -> tuple[Device, ...]:
        """Made when first looked at: in a large cluster few slices are, and the rest is like them.
        ``template`` says how many there are, and what they are but for their own texts."""
        if self._devices is None:
            self._devices = self._made(self)
        return self._devices

    def __repr__(self) -> str:
        return f"Slice({self.name})"


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class Pool(Struct, frozen=True):
    """A driver's pool as a whole: its newest generation, and what is wrong with it.

    The scheduler looks at a pool node by node (``allocator.pools``); this is the view of a person.
    """

    id: PoolId
    generation: int
    slices: tuple[Slice, ...]
    """Of the newest generation, by name."""
    expected: int
    """How many slices this generation consists of (resourceSliceCount)."""
    outdated: tuple[Slice, ...] = ()
    invalid: str = ""
    """Why no device of it is allocated (``duplicate device name gpu-0``), '' for nothing."""

    @property
    def complete(self) -> bool:
        """Of an incomplete pool nothing is allocated (1.35 and later)."""
        return len(self.slices) == self.expected

    @property
    def usable(self) -> bool:
        return self.complete and not self.invalid

    @property
    def size(self) -> int:
        """How many devices it has."""
        return sum(len(slice.template.devices) for slice in self.slices)

    @property
    def devices(self) -> tuple[Device, ...]:
        """In the order in which the scheduler tries them."""
        return tuple(device for slice in self.slices for device in slice.devices)


class Configuration(Struct, frozen=True):
    """Opaque parameters for a driver."""

    driver: str
    parameters: Any = None
    requests: tuple[str, ...] = ()
    """Names of requests, ``request/subrequest`` too; empty for all."""
    source: str = ""
    """In an allocation: ``FromClass`` or ``FromClaim``."""


class Class(Struct, frozen=True):
    """A DeviceClass."""

    name: str
    selectors: tuple[str | None, ...] = ()
    """CEL expressions; None for a selector of a kind that is not known here."""
    config: tuple[Configuration, ...] = ()
    extended_resource: str = ""
    created: str = ""


Mode = Literal["ExactCount", "All"] | str


class Want(Struct, frozen=True):
    """What one request, or one of its alternatives, asks for."""

    name: str
    device_class: str
    selectors: tuple[str | None, ...] = ()
    mode: Mode = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: dict[str, Quantity] | None = None
    """By the name as written; None where the request has no ``capacity``."""
    derived: tuple[tuple[str, str], ...] = ()
    """derivedAttributes: (attribute, CEL expression)."""


class Request(Struct, frozen=True):
    """A request of a claim: exactly one thing, or the first of several that can be had."""

    name: str
    exactly: Want | None = None
    first_available: tuple[Want, ...] = ()

    @property
    def wants(self) -> tuple[Want, ...]:
        """All alternatives, in the order in which they are tried."""
        return self.first_available or ((self.exactly,) if self.exactly is not None else ())

    def full_name(self, want: Want) -> str:
        """As results and constraints name it: ``gpu`` or ``gpu/big``."""
        return f"{self.name}/{want.name}" if self.first_available else self.name


class Constraint(Struct, frozen=True):
    """``match``: all devices have one value of it; ``distinct``: no two the same."""

    match: str = ""
    distinct: str = ""
    requests: tuple[str, ...] = ()
    """Names of requests that it is about, ``request/subrequest`` too; empty for all."""


class Allotted(Struct, frozen=True):
    """One device (or a share of one) that a claim has."""

    request: str
    device: DeviceId
    admin_access: bool = False
    share: str = ""
    """The share's id where the device is shared."""
    consumed: dict[str, Quantity] | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    """skipNodeOperations: what the kubelet need not ask of the driver."""


class Allocation(Struct, frozen=True):
    devices: tuple[Allotted, ...] = ()
    node_selector: NodeSelector | None = None
    """Nodes from which the devices can be reached; None for all."""
    timestamp: str = ""
    config: tuple[Configuration, ...] = ()


class Claim(Struct, frozen=True):
    """A ResourceClaim, or what a ResourceClaimTemplate would make (then without name and uid)."""

    namespace: str
    name: str
    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Configuration, ...] = ()
    allocation: Allocation | None = None
    raw: dra.ResourceClaim | None = None

    @property
    def uid(self) -> str:
        return (self.raw.metadata.uid or "") if self.raw is not None else ""

    @property
    def reserved_for(self) -> tuple[dra.ConsumerReference, ...]:
        return (self.raw.status.reservedFor or ()) if self.raw is not None else ()

    def __str__(self) -> str:
        """As the scheduler names it: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class TaintRule(Struct, frozen=True):
    """A DeviceTaintRule. Without ``selects`` it means no device; an empty one means all."""

    name: str
    taint: Taint
    selects: bool = False
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class: str | None = None
    """Kubernetes 1.33 and 1.34 only."""
    selectors: tuple[str | None, ...] = ()
    """Kubernetes 1.33 and 1.34 only."""

    def concerns(self, driver: str, pool: str) -> bool:
        """Whether driver and pool fit, as far as the rule speaks of them."""
        return self.selects and self.driver in (None, driver) and self.pool in (None, pool)

    def names(self, id: DeviceId) -> bool:
        """Whether driver, pool and device fit, as far as the rule speaks of them."""
        return self.concerns(id.driver, id.pool) and self.device in (None, id.device)
