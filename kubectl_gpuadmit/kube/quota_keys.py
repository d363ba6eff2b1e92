"""Which keys of ResourceQuota.spec.hard are counted, and by whom; every other key enforces nothing.

Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core (MatchingResources of each evaluator)
and k8s.io/apiserver v0.37.2 pkg/quota/v1/generic/evaluator.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, HUGEPAGES, REQUESTS, is_native

Counter = Literal["pods", "services", "persistentvolumeclaims", "resourceclaims", "objects"]

CLAIMS_PER_CLASS = ".deviceclass.resource.k8s.io/devices"
CLASS_REQUESTS = REQUESTS + DEVICE_CLASS
CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"
PER_STORAGE_CLASS = ".storageclass.storage.k8s.io/"

_POD_KEYS = frozenset(
    {
        "count/pods",
        "pods",
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
)
_SERVICE_KEYS = frozenset(
    {"count/services", "services", "services.nodeports", "services.loadbalancers"}
)
_VOLUME_KEYS = frozenset({"persistentvolumeclaims", "requests.storage"})
LEGACY_COUNTS = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""Resources of the core group whose bare name is counted like ``count/NAME``."""

MUST_SPECIFY = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""Keys that oblige every container to name the resource."""


def of_pods(key: str) -> bool:
    """Counted when a pod is created."""
    if key in _POD_KEYS or key.startswith((HUGEPAGES, REQUESTS + HUGEPAGES)):
        return True
    return key.startswith(REQUESTS) and (not is_native(key) or key.startswith(CLASS_REQUESTS))


def of_services(key: str) -> bool:
    return key in _SERVICE_KEYS


def of_volume_claims(key: str) -> bool:
    return (
        key == "count/persistentvolumeclaims"
        or key in _VOLUME_KEYS
        or key.endswith(tuple(PER_STORAGE_CLASS + name for name in _VOLUME_KEYS))
    )


def of_resource_claims(key: str, extended: dict[str, str]) -> bool:
    """``extended``: DeviceClass name -> its spec.extendedResourceName ('' if none)."""
    if key == CLAIM_COUNT or key.endswith(CLAIMS_PER_CLASS):
        return True
    if key.startswith(CLASS_REQUESTS) and extended.get(key[len(CLASS_REQUESTS) :]):
        return True
    if of_pods(key) and key.startswith(REQUESTS):
        resource = key[len(REQUESTS) :]
        if resource.startswith(DEVICE_CLASS):
            return resource[len(DEVICE_CLASS) :] in extended
        return not is_native(key) and resource in extended.values()
    return False


def of_objects(key: str, resource: str) -> bool:
    """Counted when an object of ``resource`` (``configmaps``, ``deployments.apps``) is created."""
    return key == f"count/{resource}" or (resource in LEGACY_COUNTS and key == resource)


def counter(key: str) -> Counter | None:
    """Who counts the key, None where nobody ever does: accepted, and never enforced.

    For ``count/…`` the answer is given as if the resource existed.
    """
    if of_pods(key):
        return "pods"
    if of_services(key):
        return "services"
    if of_volume_claims(key):
        return "persistentvolumeclaims"
    if key == CLAIM_COUNT or key.endswith(CLAIMS_PER_CLASS):
        return "resourceclaims"
    if key.startswith("count/") or key in LEGACY_COUNTS:
        return "objects"
    return None


def patch_command(namespace: str, name: str, hard: Mapping[str, str | None]) -> str:
    """The kubectl command that sets keys of a quota's spec.hard and removes those that are None."""
    patch = json.dumps({"spec": {"hard": dict(hard)}}, separators=(",", ":"))
    return f"kubectl -n {namespace} patch resourcequota {name} --type=merge -p '{patch}'"
