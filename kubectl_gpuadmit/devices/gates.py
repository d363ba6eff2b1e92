"""Feature gates of DRA as data: which stage and default each has from which release.

Two components count their releases apart: Kubernetes by its minor versions, NVIDIA's DRA driver by
its own (0.5). An entry holds from ``since`` until the next one.

Sources
- Kubernetes: pkg/features/kube_features.go of v1.37.2, which keeps the history of every gate.
- NVIDIA: pkg/featuregates/featuregates.go of kubernetes-sigs/dra-driver-nvidia-gpu (defaults, which
  gate excludes which, the SemVer of the former calendar releases); ConsumableShares beside MPS: the
  comment there. Which driver an Operator carries: the release notes of GPU Operator 26.3 and 26.7.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Component = Literal["kubernetes", "nvidia-dra-driver"]
Stage = Literal["alpha", "beta", "ga"]
Release = tuple[int, int]

KUBERNETES: Component = "kubernetes"
NVIDIA: Component = "nvidia-dra-driver"

KUBERNETES_SOURCE = "kubernetes v1.37.2 pkg/features/kube_features.go"
NVIDIA_SOURCE = "kubernetes-sigs/dra-driver-nvidia-gpu pkg/featuregates/featuregates.go"


class Step(Struct, frozen=True):
    """From this release on."""

    since: Release
    stage: Stage
    on: bool
    """The default."""
    locked: bool = False
    """The default cannot be changed."""


class Gate(Struct, frozen=True):
    """One feature gate."""

    name: str
    component: Component
    steps: tuple[Step, ...]
    """Oldest first."""
    what: str
    """What it lets a claim, class or driver do, in a few words."""
    needs: tuple[str, ...] = ()
    """Kubernetes gates that must be on as well."""
    beside: tuple[str, ...] = ()
    """Gates of the driver's own that must be on as well."""
    excludes: tuple[str, ...] = ()
    """Gates of the same component that cannot be on beside it."""

    @property
    def source(self) -> str:
        return KUBERNETES_SOURCE if self.component == KUBERNETES else NVIDIA_SOURCE


def _kubernetes(name: str, what: str, *steps: Step, needs: tuple[str, ...] = ()) -> Gate:
    return Gate(name, KUBERNETES, steps, what, needs=needs)


def _nvidia(
    name: str,
    what: str,
    step: Step,
    *,
    needs: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    excludes: tuple[str, ...] = (),
) -> Gate:
    return Gate(name, NVIDIA, (step,), what, needs=needs, beside=beside, excludes=excludes)


def _alpha(major: int, minor: int) -> Step:
    return Step((major, minor), "alpha", on=False)


def _beta(minor: int, *, on: bool = True) -> Step:
    return Step((1, minor), "beta", on=on)


def _ga(minor: int, *, locked: bool = False) -> Step:
    return Step((1, minor), "ga", on=True, locked=locked)


_DRA = ("DynamicResourceAllocation",)

GATES: tuple[Gate, ...] = (
    _kubernetes(
        "DynamicResourceAllocation",
        "claims, classes and slices at all",
        _alpha(1, 26),
        _beta(32, on=False),
        _ga(34),
        _ga(35, locked=True),
    ),
    _kubernetes(
        "DRAAdminAccess",
        "adminAccess: devices that others use, for monitoring",
        _alpha(1, 32),
        _beta(34),
        _ga(36, locked=True),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAPrioritizedList",
        "firstAvailable: alternatives in order",
        _alpha(1, 33),
        _beta(34),
        _ga(36),
        _ga(37, locked=True),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAResourceClaimDeviceStatus",
        "status.devices of a claim",
        _alpha(1, 32),
        _beta(33),
        _ga(37, locked=True),
    ),
    _kubernetes(
        "DRAPartitionableDevices",
        "sharedCounters: partitions made on demand",
        _alpha(1, 33),
        _beta(36),
        needs=_DRA,
    ),
    _kubernetes(
        "DRADeviceTaints",
        "taints of devices, tolerations of requests",
        _alpha(1, 33),
        _beta(36),
        _ga(37),
        needs=_DRA,
    ),
    _kubernetes(
        "DRADeviceTaintRules",
        "DeviceTaintRule: taints by an administrator",
        _alpha(1, 35),
        _beta(36, on=False),
        _ga(37),
        needs=("DRADeviceTaints",),
    ),
    _kubernetes(
        "DRAConsumableCapacity",
        "capacity requests, distinctAttribute: a device for several claims",
        _alpha(1, 34),
        _beta(36),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAFractionalCapacityRange",
        "steps of a capacity below one unit",
        _beta(37, on=False),  # on only where --min-compatibility-version is 1.37, too
        _beta(38),
        needs=("DRAConsumableCapacity",),
    ),
    _kubernetes(
        "DRADeviceBindingConditions",
        "bindingConditions: a pod waits for its device to be attached",
        _alpha(1, 34),
        _beta(36),
        needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    ),
    _kubernetes(
        "DRAExtendedResource",
        "extended resources that a DeviceClass supplies",
        _alpha(1, 34),
        _beta(36),
        _ga(37, locked=True),
        needs=_DRA,
    ),
    _kubernetes(
        "DRASchedulerFilterTimeout",
        "ten seconds a node for the allocator",
        _beta(34),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAResourceClaimGranularStatusAuthorization",
        "finer rights on a claim's status",
        _beta(36),
        needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    ),
    _kubernetes(
        "DRAResourcePoolStatus",
        "ResourcePoolStatusRequest",
        _alpha(1, 36),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAListTypeAttributes",
        "attributes with lists, .includes() in selectors",
        _alpha(1, 36),
        needs=_DRA,
    ),
    _kubernetes(
        "DRANodeAllocatableResources",
        "cpu and memory of a node through DRA",
        _alpha(1, 36),
        needs=_DRA,
    ),
    _kubernetes(
        "DRAWorkloadResourceClaims",
        "claims of a PodGroup",
        _alpha(1, 36),
        _beta(37, on=False),
        needs=("DynamicResourceAllocation", "GenericWorkload"),
    ),
    _kubernetes(
        "DRADerivedAttributes",
        "attributes worked out from others",
        _alpha(1, 37),
        needs=_DRA,
    ),
    _kubernetes(
        "DRADeviceCompatibilityGroups",
        "which partitions of a device may stand together",
        _alpha(1, 37),
        needs=("DynamicResourceAllocation", "DRAPartitionableDevices"),
    ),
    _kubernetes(
        "DRAOptionalNodeOperations",
        "skipNodeOperations",
        _alpha(1, 37),
        needs=("DynamicResourceAllocation", "NodeDeclaredFeatures"),
    ),
    _kubernetes(
        "DRAPartitionableDevicesType",
        "partitionTypeAttribute in the status of a pool",
        _alpha(1, 37),
        needs=("DynamicResourceAllocation", "DRAPartitionableDevices", "DRAResourcePoolStatus"),
    ),
    _kubernetes(
        "GenericWorkload",
        "groups of pods that are scheduled together",
        _alpha(1, 35),
        _beta(37, on=False),
    ),
    _kubernetes(
        "NodeDeclaredFeatures",
        "features that a node says it has",
        _alpha(1, 35),
        _beta(36),
        _ga(37, locked=True),
    ),
    _kubernetes(
        "ResourceHealthStatus",
        "health of a device in the pod's status",
        _alpha(1, 31),
        _beta(36),
        needs=_DRA,
    ),
    _nvidia(
        "TimeSlicingSettings",
        "sharing.strategy TimeSlicing with an interval of one's own",
        _alpha(0, 2),
    ),
    _nvidia(
        "MPSSupport",
        "sharing.strategy MPS",
        _alpha(0, 2),
        excludes=("DynamicMIG", "ConsumableShares"),
    ),
    _nvidia(
        "IMEXDaemonsWithDNSNames",
        "ComputeDomain daemons by name instead of address",
        Step((0, 2), "beta", on=True),
    ),
    _nvidia(
        "PassthroughSupport",
        "GPUs for virtual machines (vfio)",
        _alpha(0, 3),
        excludes=("DynamicMIG", "NVMLDeviceHealthCheck"),
    ),
    _nvidia(
        "DynamicMIG",
        "MIG devices made when a claim is allocated",
        _alpha(0, 3),
        needs=("DRAPartitionableDevices",),
        excludes=("MPSSupport", "PassthroughSupport"),
    ),
    _nvidia(
        "NVMLDeviceHealthCheck",
        "taints for sick GPUs (gpu.nvidia.com/xid, gpu-lost)",
        _alpha(0, 3),
        needs=("DRADeviceTaints",),
        excludes=("PassthroughSupport",),
    ),
    _nvidia(
        "ComputeDomainCliques",
        "ComputeDomainClique objects",
        Step((0, 3), "beta", on=True),
        beside=("IMEXDaemonsWithDNSNames",),
    ),
    _nvidia(
        "CrashOnNVLinkFabricErrors",
        "the plugin stops where the NVLink fabric is broken",
        Step((0, 3), "beta", on=True),
    ),
    _nvidia(
        "DeviceMetadata",
        "files with the device's data in the container",
        _alpha(0, 4),
        beside=("PassthroughSupport",),
    ),
    _nvidia(
        "DRAListTypeAttributes",
        "attributes with lists in NVIDIA's slices",
        _alpha(0, 4),
        needs=("DRAListTypeAttributes",),
    ),
    _nvidia(
        "ConsumableShares",
        "one GPU or MIG device for several claims",
        _alpha(0, 5),
        needs=("DRAConsumableCapacity",),
        excludes=("MPSSupport",),
    ),
    _nvidia(
        "FabricManagerPartitioning",
        "NVSwitch partitions, attributes partitionN",
        _alpha(0, 5),
    ),
    _nvidia(
        "HostManagedIMEXDaemon",
        "an IMEX daemon that the host runs",
        _alpha(0, 5),
    ),
    _nvidia(
        "NodeLocalFabricIPC",
        "an IMEX channel on a node without a clique",
        _alpha(0, 6),
    ),
)
"""By component, then as the components list them."""

OPERATOR_DRIVER: dict[Release, Release | None] = {
    (26, 3): None,
    (26, 7): (0, 5),
}
"""GPU Operator -> the DRA driver that it carries, None for none. 26.7 has it as a technology
preview behind a GPUCluster object, which excludes a ClusterPolicy."""

NEWEST: dict[Component, Release] = {KUBERNETES: (1, 37), NVIDIA: (0, 5)}
"""The newest release of each; what comes later in the table is announced."""

CALENDAR_DRIVER: dict[Release, Release] = {
    (25, 3): (0, 1),
    (25, 8): (0, 2),
    (25, 12): (0, 3),
    (26, 4): (0, 4),
}
"""NVIDIA's driver counted by year and month before it counted by itself."""
