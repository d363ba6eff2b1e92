"""Which kinds have a struct: of ``objects``, of ``dra``. All others are ``Generic``."""

from __future__ import annotations

from kubectl_gpuadmit.kube.dra import (
    DRA_GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
)
from kubectl_gpuadmit.kube.gpu_topology import GROUP
from kubectl_gpuadmit.kube.objects import (
    ConfigMap,
    CSINode,
    Event,
    GpuTopology,
    KubeObject,
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    RuntimeClass,
    ServiceAccount,
    StorageClass,
)

KNOWN_KINDS: dict[str, type[KubeObject]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (
        Pod,
        Node,
        Namespace,
        ResourceQuota,
        LimitRange,
        PriorityClass,
        PodDisruptionBudget,
        PersistentVolumeClaim,
        PersistentVolume,
        StorageClass,
        CSINode,
        RuntimeClass,
        ServiceAccount,
        ConfigMap,
        Event,
        GpuTopology,
        ResourceSlice,
        DeviceClass,
        ResourceClaim,
        ResourceClaimTemplate,
        DeviceTaintRule,
        ResourcePoolStatusRequest,
    )
}
"""Kind -> struct. A kind that is missing here decodes to ``Generic``."""

GROUPS: dict[str, str] = {
    **dict.fromkeys(KNOWN_KINDS, ""),
    "DeviceClass": DRA_GROUP,
    "DeviceTaintRule": DRA_GROUP,
    "ResourceClaim": DRA_GROUP,
    "ResourceClaimTemplate": DRA_GROUP,
    "ResourcePoolStatusRequest": DRA_GROUP,
    "ResourceSlice": DRA_GROUP,
    "PriorityClass": "scheduling.k8s.io",
    "PodDisruptionBudget": "policy",
    "StorageClass": "storage.k8s.io",
    "CSINode": "storage.k8s.io",
    "RuntimeClass": "node.k8s.io",
    "GpuTopology": GROUP,
}
"""Kind that has a struct -> the API group whose objects it fits."""
