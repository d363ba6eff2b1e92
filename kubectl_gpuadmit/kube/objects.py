"""Structs of the API fields that the engine reads, and the one decoder that fills them.

Unknown fields are ignored, absent ones take the API's zero value; ``null`` reads as absent where
the API server treats it so. Structs are frozen and untracked by the garbage collector
(``gc=False``): a snapshot of 50,000 pods is decoded in one pass. Nothing here defaults or validates
as the API server does; that is ``admission``.

Field names are the JSON names of Kubernetes 1.37 (k8s.io/api v0.37.2).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kubectl_gpuadmit.kube.gpu_topology import GpuTopologySpec

QuantityText = str | int | float
"""A quantity as written: the API accepts JSON strings and numbers."""

Resources = dict[str, QuantityText]


class OwnerReference(Struct, frozen=True, gc=False):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False):
    name: str | None = None
    generateName: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    deletionGracePeriodSeconds: int | None = None
    finalizers: tuple[str, ...] | None = None
    ownerReferences: tuple[OwnerReference, ...] | None = None


class LabelSelectorRequirement(Struct, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(Struct, frozen=True, gc=False):
    """None (absent) matches nothing in most places, an empty one everything: the caller knows."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorTerm(Struct, frozen=True, gc=False):
    matchExpressions: tuple[LabelSelectorRequirement, ...] | None = None
    matchFields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(Struct, frozen=True, gc=False):
    nodeSelectorTerms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Struct, frozen=True, gc=False):
    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct, frozen=True, gc=False):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None
    preferredDuringSchedulingIgnoredDuringExecution: tuple[PreferredSchedulingTerm, ...] | None = (
        None
    )


class PodAffinityTerm(Struct, frozen=True, gc=False):
    topologyKey: str = ""
    labelSelector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespaceSelector: LabelSelector | None = None
    matchLabelKeys: tuple[str, ...] | None = None
    mismatchLabelKeys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, gc=False):
    weight: int = 0
    podAffinityTerm: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(Struct, frozen=True, gc=False):
    """Also podAntiAffinity: the two have the same shape."""

    requiredDuringSchedulingIgnoredDuringExecution: tuple[PodAffinityTerm, ...] | None = None
    preferredDuringSchedulingIgnoredDuringExecution: tuple[WeightedPodAffinityTerm, ...] | None = (
        None
    )


class Affinity(Struct, frozen=True, gc=False):
    nodeAffinity: NodeAffinity | None = None
    podAffinity: PodAffinity | None = None
    podAntiAffinity: PodAffinity | None = None


class Toleration(Struct, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    tolerationSeconds: int | None = None


class Taint(Struct, frozen=True, gc=False):
    key: str
    effect: str = ""
    value: str | None = None
    timeAdded: str | None = None


class TopologySpreadConstraint(Struct, frozen=True, gc=False):
    maxSkew: int = 1
    topologyKey: str = ""
    whenUnsatisfiable: str = "DoNotSchedule"
    labelSelector: LabelSelector | None = None
    minDomains: int | None = None
    nodeAffinityPolicy: str | None = None
    nodeTaintsPolicy: str | None = None
    matchLabelKeys: tuple[str, ...] | None = None


class ResourceClaimRef(Struct, frozen=True, gc=False):
    name: str = ""
    request: str | None = None


class ResourceRequirements(Struct, frozen=True, gc=False):
    limits: Resources | None = None
    requests: Resources | None = None
    claims: tuple[ResourceClaimRef, ...] | None = None


class ContainerPort(Struct, frozen=True, gc=False):
    containerPort: int = 0
    hostPort: int | None = None
    hostIP: str | None = None
    protocol: str | None = None
    name: str | None = None


class EnvVar(Struct, frozen=True, gc=False):
    name: str = ""
    value: str | None = None
    valueFrom: dict[str, Any] | None = None


class SecurityContext(Struct, frozen=True, gc=False):
    privileged: bool | None = None


class VolumeMount(Struct, frozen=True, gc=False):
    name: str = ""
    mountPath: str = ""
    subPath: str | None = None
    readOnly: bool | None = None


class Container(Struct, frozen=True, gc=False):
    name: str = ""
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restartPolicy: str | None = None
    securityContext: SecurityContext | None = None
    volumeMounts: tuple[VolumeMount, ...] | None = None


class PersistentVolumeClaimSource(Struct, frozen=True, gc=False):
    claimName: str = ""
    readOnly: bool | None = None


class HostPathSource(Struct, frozen=True, gc=False):
    path: str = ""
    type: str | None = None


class EmptyDirSource(Struct, frozen=True, gc=False):
    medium: str | None = None
    sizeLimit: QuantityText | None = None


class NamedSource(Struct, frozen=True, gc=False):
    """A ConfigMap volume (``name``) or Secret volume (``secretName``)."""

    name: str | None = None
    secretName: str | None = None


class Volume(Struct, frozen=True, gc=False):
    name: str = ""
    persistentVolumeClaim: PersistentVolumeClaimSource | None = None
    hostPath: HostPathSource | None = None
    emptyDir: EmptyDirSource | None = None
    ephemeral: dict[str, Any] | None = None
    configMap: NamedSource | None = None
    secret: NamedSource | None = None
    csi: dict[str, Any] | None = None
    gcePersistentDisk: dict[str, Any] | None = None
    awsElasticBlockStore: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None


class PodSchedulingGate(Struct, frozen=True, gc=False):
    name: str = ""


class PodResourceClaim(Struct, frozen=True, gc=False):
    name: str = ""
    resourceClaimName: str | None = None
    resourceClaimTemplateName: str | None = None


class PodSchedulingGroup(Struct, frozen=True, gc=False):
    podGroupName: str | None = None


class PodSpec(Struct, frozen=True, gc=False):
    containers: tuple[Container, ...] | None = None
    initContainers: tuple[Container, ...] | None = None
    nodeName: str | None = None
    nodeSelector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topologySpreadConstraints: tuple[TopologySpreadConstraint, ...] | None = None
    schedulerName: str | None = None
    schedulingGates: tuple[PodSchedulingGate, ...] | None = None
    schedulingGroup: PodSchedulingGroup | None = None
    """Of GenericWorkload: the group of pods that are scheduled together."""
    priority: int | None = None
    priorityClassName: str | None = None
    preemptionPolicy: str | None = None
    overhead: Resources | None = None
    resources: ResourceRequirements | None = None
    resourceClaims: tuple[PodResourceClaim, ...] | None = None
    runtimeClassName: str | None = None
    serviceAccountName: str | None = None
    activeDeadlineSeconds: int | None = None
    restartPolicy: str | None = None
    terminationGracePeriodSeconds: int | None = None
    hostNetwork: bool | None = None
    hostPID: bool | None = None
    hostIPC: bool | None = None
    volumes: tuple[Volume, ...] | None = None


class PodCondition(Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    lastTransitionTime: str | None = None


class ContainerStatus(Struct, frozen=True, gc=False):
    """``allocatedResources`` and ``resources`` count for pods resized in place (1.33+)."""

    name: str = ""
    ready: bool | None = None
    restartCount: int | None = None
    allocatedResources: Resources | None = None
    resources: ResourceRequirements | None = None
    allocatedResourcesStatus: tuple[dict[str, Any], ...] | None = None


class PodStatus(Struct, frozen=True, gc=False):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    startTime: str | None = None
    nominatedNodeName: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    containerStatuses: tuple[ContainerStatus, ...] | None = None
    initContainerStatuses: tuple[ContainerStatus, ...] | None = None
    resize: str | None = None
    allocatedResources: Resources | None = None
    resources: ResourceRequirements | None = None
    resourceClaimStatuses: tuple[dict[str, Any], ...] | None = None
    extendedResourceClaimStatus: dict[str, Any] | None = None
    nodeAllocatableResourceClaimStatuses: tuple[dict[str, Any], ...] | None = None


class KubeObject(Struct, frozen=True, gc=False, kw_only=True, tag_field="kind"):
    """Base of all top-level kinds: ``kind`` is the msgspec tag."""

    apiVersion: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or ""

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}


class Pod(KubeObject, frozen=True, gc=False, kw_only=True, tag="Pod"):
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class NodeSpec(Struct, frozen=True, gc=False):
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None
    providerID: str | None = None


class NodeStatus(Struct, frozen=True, gc=False):
    allocatable: Resources | None = None
    capacity: Resources | None = None
    conditions: tuple[PodCondition, ...] | None = None
    declaredFeatures: tuple[str, ...] | None = None


class Node(KubeObject, frozen=True, gc=False, kw_only=True, tag="Node"):
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class NamespaceStatus(Struct, frozen=True, gc=False):
    phase: str | None = None


class Namespace(KubeObject, frozen=True, gc=False, kw_only=True, tag="Namespace"):
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ScopedSelectorRequirement(Struct, frozen=True, gc=False):
    scopeName: str
    operator: str
    values: tuple[str, ...] | None = None


class ScopeSelector(Struct, frozen=True, gc=False):
    matchExpressions: tuple[ScopedSelectorRequirement, ...] | None = None


class ResourceQuotaSpec(Struct, frozen=True, gc=False):
    hard: Resources | None = None
    scopes: tuple[str, ...] | None = None
    scopeSelector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, gc=False):
    hard: Resources | None = None
    used: Resources | None = None


class ResourceQuota(KubeObject, frozen=True, gc=False, kw_only=True, tag="ResourceQuota"):
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class LimitRangeItem(Struct, frozen=True, gc=False):
    type: str = ""
    max: Resources | None = None
    min: Resources | None = None
    default: Resources | None = None
    defaultRequest: Resources | None = None
    maxLimitRequestRatio: Resources | None = None


class LimitRangeSpec(Struct, frozen=True, gc=False):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(KubeObject, frozen=True, gc=False, kw_only=True, tag="LimitRange"):
    spec: LimitRangeSpec = field(default_factory=LimitRangeSpec)


class PriorityClass(KubeObject, frozen=True, gc=False, kw_only=True, tag="PriorityClass"):
    value: int = 0
    globalDefault: bool | None = None
    preemptionPolicy: str | None = None
    description: str | None = None


class PodDisruptionBudgetSpec(Struct, frozen=True, gc=False):
    minAvailable: int | str | None = None
    maxUnavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthyPodEvictionPolicy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, gc=False):
    disruptionsAllowed: int | None = None
    currentHealthy: int | None = None
    desiredHealthy: int | None = None
    expectedPods: int | None = None
    observedGeneration: int | None = None
    disruptedPods: dict[str, str] | None = None


class PodDisruptionBudget(
    KubeObject, frozen=True, gc=False, kw_only=True, tag="PodDisruptionBudget"
):
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class VolumeResourceRequirements(Struct, frozen=True, gc=False):
    requests: Resources | None = None
    limits: Resources | None = None


class PersistentVolumeClaimSpec(Struct, frozen=True, gc=False):
    volumeName: str | None = None
    storageClassName: str | None = None
    accessModes: tuple[str, ...] | None = None
    resources: VolumeResourceRequirements | None = None
    volumeMode: str | None = None
    selector: LabelSelector | None = None
    volumeAttributesClassName: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True, gc=False):
    phase: str | None = None


class PersistentVolumeClaim(
    KubeObject, frozen=True, gc=False, kw_only=True, tag="PersistentVolumeClaim"
):
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class VolumeNodeAffinity(Struct, frozen=True, gc=False):
    required: NodeSelector | None = None


class ObjectReference(Struct, frozen=True, gc=False):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class PersistentVolumeSpec(Struct, frozen=True, gc=False):
    capacity: Resources | None = None
    accessModes: tuple[str, ...] | None = None
    storageClassName: str | None = None
    nodeAffinity: VolumeNodeAffinity | None = None
    claimRef: ObjectReference | None = None
    volumeMode: str | None = None
    volumeAttributesClassName: str | None = None
    csi: dict[str, Any] | None = None


class PersistentVolume(KubeObject, frozen=True, gc=False, kw_only=True, tag="PersistentVolume"):
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class TopologySelectorRequirement(Struct, frozen=True, gc=False):
    key: str
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Struct, frozen=True, gc=False):
    matchLabelExpressions: tuple[TopologySelectorRequirement, ...] | None = None


class StorageClass(KubeObject, frozen=True, gc=False, kw_only=True, tag="StorageClass"):
    provisioner: str | None = None
    volumeBindingMode: str | None = None
    allowedTopologies: tuple[TopologySelectorTerm, ...] | None = None


class CSINode(KubeObject, frozen=True, gc=False, kw_only=True, tag="CSINode"):
    spec: dict[str, Any] | None = None


class RuntimeClassScheduling(Struct, frozen=True, gc=False):
    nodeSelector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClassOverhead(Struct, frozen=True, gc=False):
    podFixed: Resources | None = None


class RuntimeClass(KubeObject, frozen=True, gc=False, kw_only=True, tag="RuntimeClass"):
    handler: str | None = None
    overhead: RuntimeClassOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class ServiceAccount(KubeObject, frozen=True, gc=False, kw_only=True, tag="ServiceAccount"):
    automountServiceAccountToken: bool | None = None


class ConfigMap(KubeObject, frozen=True, gc=False, kw_only=True, tag="ConfigMap"):
    data: dict[str, str] | None = None


class Event(KubeObject, frozen=True, gc=False, kw_only=True, tag="Event"):
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    involvedObject: dict[str, Any] | None = None
    count: int | None = None
    lastTimestamp: str | None = None
    eventTime: str | None = None


class GpuTopology(KubeObject, frozen=True, gc=False, kw_only=True, tag="GpuTopology"):
    """The agent's map of the node of the same name; of our own API group."""

    spec: GpuTopologySpec = field(default_factory=GpuTopologySpec)


class Generic(KubeObject, frozen=True, gc=False, kw_only=True, tag="Generic"):
    """Any other kind: identity, and the whole document as plain data.

    ``realKind`` is the object's own kind. Owners (Deployment, Job …) and CRDs arrive so.
    """

    realKind: str = ""
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.realKind
