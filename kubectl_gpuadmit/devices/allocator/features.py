"""Which of DRA's features the scheduler of a cluster has, and which of its allocators they choose.

Sources: pkg/scheduler/framework/plugins/dynamicresources (AllocatorFeatures) and
k8s.io/dynamic-resource-allocation v0.37.2 structured/allocator.go, which takes the first allocator
that supports all that is on: stable, incubating or experimental. Stages and defaults of the gates:
``devices.gates``. Which gates an administrator has switched is not known from a cluster's objects:
the policy says it (``Cluster.gates``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.devices import maturity
from kubectl_gpuadmit.kube.gates import DEFAULT, Gates
from kubectl_gpuadmit.kube.versions import LATEST, version

Kind = Literal["stable", "incubating", "experimental"]


class Features(Struct, frozen=True):
    """Defaults are those of 1.37."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    fractional_range: bool = False
    """Portions of a capacity below one whole unit. On by default in 1.37 only where the scheduler
    runs with --min-compatibility-version=1.37, which is not its default."""
    extended_resources: bool = True
    list_attributes: bool = False
    """matchAttribute and distinctAttribute compare lists, element by element."""
    derived_attributes: bool = False
    compatibility_groups: bool = False
    optional_node_operations: bool = False
    node_allocatable: bool = False
    """Devices that stand for cpu or memory of their node count against what it has."""
    workload_claims: bool = False
    """A claim may belong to a PodGroup."""

    allocator: Kind = "incubating"
    unfollowed: str = ""
    """Why it is not known here what this scheduler does with claims, '' where it is."""

    # What the allocator does in this version.
    orders_pools: bool = True
    """Pools and slices are tried by name; else in no fixed order."""
    counters_everywhere: bool = False
    """Slices with shared counters are looked at from every node: a pool that is incomplete or
    contradicts itself is in the way of nodes that it is not for."""
    distinct_attribute: bool = True
    """False: the allocator does not know distinctAttribute, which is a constraint of no kind."""
    refuses_amounts: bool = True
    """Where shares are off, a request for an amount is an error; else it counts for nothing."""
    shows_sharing: bool = True
    """Selectors are told device.allowMultipleAllocations as the driver wrote it."""
    binds_to_node: bool = True
    """bindsToNode confines an allocation to its node."""
    fails_on_amounts: bool = True
    """Since 1.37 an amount that cannot be rounded ends the attempt; before, the device is left
    out."""
    all_means_all: bool = True
    """Since 1.37 mode All fails where a device that matches has too little left; before, such
    devices are left out."""
    skips_incomplete_pools: bool = True
    """Since 1.35: before, a request for a number of devices could take them from such a pool."""
    skips_invalid_pools: bool = True
    """Since 1.35: before, a search that came to such a pool ended the attempt with an error."""
    leaves_counter_slices_out: bool = True
    """Since 1.35 slices with shared counters are left out where partitions are off; before, they
    counted for their pool's completeness."""
    keeps_alternative: bool = True
    """Since 1.36: before, a search that had given one of "all" devices for an alternative went on
    with the first alternative of that request."""
    bare_shares_count: bool = True
    """Since 1.37 a share that takes no amount marks its device as in use, too."""
    skips_declared: bool = True
    """Since 1.37 a claim whose devices skip node operations is held to nodes that declare it,
    whatever the gate."""
    knows_groups: bool = True
    """Since 1.37 slices with compatibilityGroups are left out where that feature is off."""
    distinct_compares: bool = True
    """Since 1.35: before, distinctAttribute only asked for the attribute to be there, for it
    compared where values are kept instead of the values."""
    distinct_among_all: bool = True
    """Since 1.37: before, of several devices of one request only the last one counted for the next
    (distinctAttribute)."""
    explains_keys: bool = True
    """Since 1.36 the error ``no such key`` of a selector has a hint."""
    names_subrequests: bool = True
    """Since 1.36 the error about amounts names the alternative instead of its request."""
    names_device: bool = True
    """The error of a selector names the device on which it failed."""


@lru_cache
def of(kubernetes: str = LATEST, gates: Gates = DEFAULT) -> Features:
    """What a version (``1.36``) has by default, and with these gates switched."""
    release = version(kubernetes)

    def on(name: str) -> bool:
        return maturity.enabled(name, release, gates)

    sharing = on("DRAConsumableCapacity")
    fractional = sharing and on("DRAFractionalCapacityRange")
    statuses = on("DRAResourceClaimDeviceStatus")
    binding = on("DRADeviceBindingConditions") and statuses
    partitions = on("DRAPartitionableDevices")
    lists = on("DRAListTypeAttributes")
    derived = on("DRADerivedAttributes")
    groups = on("DRADeviceCompatibilityGroups")
    operations = on("DRAOptionalNodeOperations")
    kind: Kind
    if release < (1, 35):
        kind = "experimental" if sharing or binding or statuses else "incubating"
    elif release < (1, 36):
        kind = "experimental" if sharing or binding else "incubating"
    elif lists or derived or groups or operations:
        kind = "experimental"
    else:
        kind = "incubating" if sharing or binding or fractional else "stable"
    least = kind == ("incubating" if release < (1, 36) else "stable")
    found = Features(
        admin_access=on("DRAAdminAccess"),
        prioritized_list=on("DRAPrioritizedList"),
        partitionable_devices=partitions,
        device_taints=on("DRADeviceTaints"),
        device_taint_rules=on("DRADeviceTaints") and on("DRADeviceTaintRules"),
        binding_conditions=binding,
        consumable_capacity=sharing,
        fractional_range=fractional,
        extended_resources=on("DRAExtendedResource"),
        list_attributes=lists,
        derived_attributes=derived,
        compatibility_groups=groups,
        optional_node_operations=operations,
        node_allocatable=on("DRANodeAllocatableResources"),
        workload_claims=on("DRAWorkloadResourceClaims"),
        allocator=kind,
        orders_pools=release >= (1, 36) and kind != "stable",
        counters_everywhere=partitions
        and release >= (1, 35)
        and (kind == "stable" or release < (1, 37)),
        distinct_attribute=not least,
        refuses_amounts=not least,
        shows_sharing=not least,
        binds_to_node=not least,
        fails_on_amounts=release >= (1, 37),
        all_means_all=release >= (1, 37),
        skips_incomplete_pools=release >= (1, 35),
        skips_invalid_pools=release >= (1, 35),
        leaves_counter_slices_out=release >= (1, 35),
        keeps_alternative=release >= (1, 36),
        bare_shares_count=release >= (1, 37),
        skips_declared=release >= (1, 37),
        knows_groups=release >= (1, 37),
        distinct_compares=release >= (1, 35),
        distinct_among_all=release >= (1, 37),
        explains_keys=release >= (1, 36),
        names_subrequests=release >= (1, 36),
        names_device=release >= (1, 37),
    )
    return structs.replace(found, unfollowed=_unfollowed(found, release, gates, on))


def _unfollowed(
    found: Features, release: tuple[int, int], gates: Gates, on: Callable[[str], bool]
) -> str:
    if not on("DynamicResourceAllocation"):
        return "DynamicResourceAllocation is off, and what becomes of claims then is not followed"
    if gates and release < (1, 36) and found != of(f"{release[0]}.{release[1]}"):
        return (
            f"feature gates are switched, and on Kubernetes {release[0]}.{release[1]} only the"
            " defaults are followed"
        )
    if found.node_allocatable and release < (1, 37):
        return "DRANodeAllocatableResources is on, and only that of Kubernetes 1.37 is followed"
    return ""
