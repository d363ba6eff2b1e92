"""Every rule that ships, one file each. Importing this package fills ``rule.REGISTRY``.

A rule that is not listed here does not exist: nothing is found by looking through folders.
"""

from __future__ import annotations

from kubectl_gpuadmit.rules import (
    capacity_burst,
    capacity_free_floor,
    capacity_route,
    capacity_utilisation,
    ephemeral_gpus,
    ephemeral_overrun,
    ephemeral_ttl,
    labels_class,
    labels_required,
    partition_confine,
    partition_priority,
    partition_route,
    quota_dead_key,
    quota_unused_key,
    static_deny,
    static_mutate,
    static_taints,
)

__all__ = [
    "capacity_burst",
    "capacity_free_floor",
    "capacity_route",
    "capacity_utilisation",
    "ephemeral_gpus",
    "ephemeral_overrun",
    "ephemeral_ttl",
    "labels_class",
    "labels_required",
    "partition_confine",
    "partition_priority",
    "partition_route",
    "quota_dead_key",
    "quota_unused_key",
    "static_deny",
    "static_mutate",
    "static_taints",
]
