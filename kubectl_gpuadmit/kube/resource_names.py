"""Which class a resource name belongs to: native, extended, huge page; may overcommit or not.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/helper/helpers.go and
pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

from functools import lru_cache

from kubectl_gpuadmit.kube import names

HUGEPAGES = "hugepages-"
REQUESTS = "requests."
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Implicit extended resource of a DeviceClass: this prefix and the class's name."""

CONTAINER_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
STANDARD = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_WHOLE = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def is_native(name: str) -> bool:
    """Without a domain, or in a domain that contains ``kubernetes.io/``."""
    return "/" not in name or "kubernetes.io/" in name


def is_hugepages(name: str) -> bool:
    return name.startswith(HUGEPAGES)


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A device or other resource that a node advertises, e.g. ``nvidia.com/gpu``."""
    if is_native(name) or name.startswith(REQUESTS):
        return False
    return not names.label_key(REQUESTS + name)


def may_overcommit(name: str) -> bool:
    """False where requests and limits must be equal."""
    return is_native(name) and not is_hugepages(name)


def whole_numbers_only(name: str) -> bool:
    return name in _WHOLE or is_extended(name)


def is_pod_level(name: str) -> bool:
    """May stand in pod-level ``spec.resources``."""
    return name in ("cpu", "memory") or is_hugepages(name)


def is_standard(name: str) -> bool:
    """A name without a domain that the API knows anywhere (containers, quotas or limit ranges)."""
    return name in STANDARD or name.startswith((HUGEPAGES, REQUESTS + HUGEPAGES))
