"""Which of DRA's features the scheduler of a Kubernetes version has by default.

Source: pkg/features/kube_features.go of v1.37.2, which keeps every gate's history, and
pkg/scheduler/framework/plugins/dynamicresources (AllocatorFeatures). Gates that an administrator
has changed are not known from a cluster's objects.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from kubectl_gpuadmit.kube.versions import LATEST, version


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
    skips_incomplete_pools: bool = True
    """Since 1.35: before, a request for a number of devices could take them from such a pool."""
    skips_invalid_pools: bool = True
    """Since 1.35: before, a search that came to such a pool ended the attempt with an error."""
    leaves_counter_slices_out: bool = True
    """Since 1.35 slices with shared counters are left out where partitions are off; before, they
    counted for their pool's completeness."""
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
def of(kubernetes: str = LATEST) -> Features:
    """The defaults of a version, ``1.36``."""
    release = version(kubernetes)
    beta = release >= (1, 36)
    return Features(
        admin_access=release >= (1, 34),
        prioritized_list=release >= (1, 34),
        partitionable_devices=beta,
        device_taints=beta,
        device_taint_rules=release >= (1, 37),
        binding_conditions=beta,
        consumable_capacity=beta,
        fractional_range=release >= (1, 38),
        extended_resources=beta,
        skips_incomplete_pools=release >= (1, 35),
        skips_invalid_pools=release >= (1, 35),
        leaves_counter_slices_out=release >= (1, 35),
        distinct_among_all=release >= (1, 37),
        explains_keys=beta,
        names_subrequests=beta,
        names_device=release >= (1, 37),
    )
