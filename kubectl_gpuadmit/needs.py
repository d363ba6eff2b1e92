"""Which objects of a cluster a question needs; reads none of them.

A live cluster holds far more than one verdict reads: this names the kinds, and for kinds that
live in namespaces, which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.devices.extended import may_be_backed
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Generic, KubeObject, Pod
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.policy import Policy, serving
from kubectl_gpuadmit.rule import Rule

ADMISSION_CONFIGURATION = (
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
)

LIVING_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""Finished pods hold nothing, and are often the most."""


class Need(Struct, frozen=True):
    """One kind. ``namespaces`` None: all of them, or a kind that lives in none."""

    kind: str
    namespaces: tuple[str, ...] | None = None
    fields: str = ""
    """A field selector."""
    optional: bool = False
    """Most clusters have none, and nobody misses it: where it is refused, nothing is said."""


KUBELETS = "KubeletConfiguration"
"""No kind that an API server serves: each kubelet is asked for its own."""

ALIGNMENT = (
    Need("GpuTopology", optional=True),
    Need("NodeResourceTopology", optional=True),
    Need(KUBELETS, optional=True),
)
"""Who knows NUMA nodes, and what kubelets make of them."""

EVERYTHING = (
    Need("Pod", fields=LIVING_PODS),
    *(
        Need(kind)
        for kind in (
            *("Node", "Namespace", "ResourceQuota", "LimitRange", "ServiceAccount"),
            *("PriorityClass", "PodDisruptionBudget", "RuntimeClass", "Job"),
            *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode"),
            *("CSIDriver", "CSIStorageCapacity", "DeviceClass", "ResourceSlice"),
            *("ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule"),
            *ADMISSION_CONFIGURATION,
        )
    ),
    *ALIGNMENT,
)
"""What any question may need: for a snapshot."""


def needs(
    workloads: Iterable[Workload],
    policy: Policy,
    rules: Mapping[str, Rule],
    *,
    claims_in: Iterable[str] = (),
) -> tuple[Need, ...]:
    """What judging ``workloads`` reads, in a fixed order.

    ``claims_in`` are namespaces where claims come up though no pod names one: isolated ones, whose
    pods are given theirs, and those of claims that are judged by themselves.

    Always: nodes and the pods on them, what admission looks at in the workloads' namespaces, what
    preemption weighs. Volumes, claims, runtime classes and controllers only where a pod or rule
    wants them.
    """
    listed = list(workloads)
    pods = [group.pod for one in listed for group in one.groups]
    homes = tuple(sorted({one.ref.namespace or "default" for one in listed}))
    found = [
        Need("Pod", fields=LIVING_PODS),
        Need("Node"),
        Need("Namespace"),
        Need("ResourceQuota", homes),
        Need("LimitRange", homes),
        Need("ServiceAccount", homes),
        Need("PriorityClass"),
        Need("PodDisruptionBudget"),
        Need("DeviceClass"),
        *(Need(kind) for kind in ADMISSION_CONFIGURATION),
    ]
    if any(pod.spec.runtimeClassName for pod in pods):
        found.append(Need("RuntimeClass"))
    if any(map(_has_volumes, pods)):
        found += map(Need, _VOLUME_KINDS)
    found += _of_claims(pods, homes, frozenset(claims_in))
    if any(map(_takes_part_in_alignment, pods)):
        found += ALIGNMENT
    if any(one.ref.kind == "TrainJob" for one in listed):
        found += [Need("TrainingRuntime", homes), Need("ClusterTrainingRuntime")]
    asked = [rule for rule in rules.values() if _is_on(rule, policy, homes)]
    families = {rule.family for rule in asked}
    if policy.names("dra/one-owner"):
        _add(found, Need("ResourceSlice"))
    if "ephemeral" in families:
        found.append(Need("Job"))
    if "topology" in families:
        _add(found, Need("GpuTopology", optional=True), Need("ResourceSlice", optional=True))
    if any(serving.may_serve(pod, policy) for pod in pods):
        _add(found, Need("GpuTopology", optional=True))  # memory that nobody holds
        found += _config_maps(listed, policy)
    kinds = {kind for rule in asked for kind in rule.needs} - {"GpuPoolHistory"}
    _add(found, *map(Need, sorted(kinds)))
    return tuple(found)


_VOLUME_KINDS = (
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
)


def _add(found: list[Need], *needs: Need) -> None:
    """Those of which the kind is not needed already."""
    there = {need.kind for need in found}
    found += [need for need in needs if need.kind not in there]


def _of_claims(
    pods: Iterable[Pod], homes: tuple[str, ...], claiming: frozenset[str]
) -> Iterator[Need]:
    claims = bool(claiming) or any(pod.spec.resourceClaims for pod in pods)
    if claims:
        yield Need("ResourceClaimTemplate", tuple(sorted({*homes, *claiming})))
    if claims or any(map(_may_get_devices, pods)):
        # without claims they matter only where a DeviceClass backs a resource: the filter says so
        for kind in ("ResourceClaim", "ResourceSlice", "DeviceTaintRule"):
            yield Need(kind, optional=not claims)


class Place(Struct, frozen=True):
    """Where parameters of one binding lie."""

    namespaces: tuple[str, ...]
    """Where the kind lives in namespaces: these; none: all of them."""
    fields: str = ""
    labels: str = ""
    """Field and label selector."""


class Parameters(Struct, frozen=True):
    """Objects of one kind that admission policies take parameters from."""

    api_version: str
    kind: str
    places: tuple[Place, ...]


def parameters(
    objects: Iterable[KubeObject], homes: Iterable[str] | None
) -> tuple[Parameters, ...]:
    """What the bindings among ``objects`` refer to, by kind; ``homes`` are the namespaces of the
    question, None where it is about all. Never Secrets."""
    specs = [
        (one.realKind, one.name, spec)
        for one in objects
        if isinstance(one, Generic)
        and one.realKind in ADMISSION_CONFIGURATION
        and isinstance(spec := one.document.get("spec"), dict)
    ]
    kinds = {
        (kind, name): (str(given.get("apiVersion", "")), str(given.get("kind", "")))
        for kind, name, spec in specs
        if isinstance(given := spec.get("paramKind"), dict)
    }
    here = () if homes is None else tuple(sorted(set(homes)))
    found: dict[tuple[str, str], dict[Place, None]] = {}
    for kind, _, spec in specs:
        ref = spec.get("paramRef")
        of = kinds.get((kind.removesuffix("Binding"), str(spec.get("policyName", ""))))
        if of is None or of == ("v1", "Secret"):
            continue
        places = found.setdefault(of, {})
        if isinstance(ref, dict):
            namespaces = (str(ref["namespace"]),) if ref.get("namespace") else here
            fields = f"metadata.name={ref['name']}" if ref.get("name") else ""
            labels = "" if fields else _labels(ref.get("selector"))
            places[Place(namespaces, fields, labels)] = None
    return tuple(Parameters(*of, tuple(places)) for of, places in sorted(found.items()))


def _labels(selector: Any) -> str:
    """A label selector as a query has it; what cannot be said so is left to the engine."""
    if not isinstance(selector, dict):
        return ""
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = str(one.get("key", "")), ",".join(map(str, one.get("values") or ()))
        match one.get("operator"):
            case "In" | "NotIn" as operator:
                terms.append(f"{key} {operator.lower()} ({values})")
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
    return ",".join(terms)


def _config_maps(workloads: Iterable[Workload], policy: Policy) -> list[Need]:
    """ConfigMaps that GPU pods take arguments from, each by name: no others are read."""
    names: dict[tuple[str, str], None] = {}
    for one in workloads:
        for group in one.groups:
            if serving.may_serve(group.pod, policy):
                home = one.ref.namespace or "default"
                names.update(((home, name), None) for name in _referred(group.template.get("spec")))
    return [
        Need("ConfigMap", (home,), fields=f"metadata.name={name}") for home, name in sorted(names)
    ]


def _referred(data: Any) -> Iterator[str]:
    """Names of ConfigMaps that a pod spec mounts or takes variables from."""
    if isinstance(data, list):
        for item in data:
            yield from _referred(item)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in ("configMap", "configMapRef", "configMapKeyRef") and isinstance(value, dict):
                if isinstance(value.get("name"), str):
                    yield value["name"]
            else:
                yield from _referred(value)


def _has_volumes(pod: Pod) -> bool:
    return any(v.persistentVolumeClaim or v.ephemeral for v in pod.spec.volumes or ())


def _may_get_devices(pod: Pod) -> bool:
    """Whether the pod asks for a resource that a DeviceClass may back."""
    spec = pod.spec
    return any(
        may_be_backed(name)
        for container in (*(spec.containers or ()), *(spec.initContainers or ()))
        if container.resources is not None
        for name in (*(container.resources.requests or ()), *(container.resources.limits or ()))
    )


def _takes_part_in_alignment(pod: Pod) -> bool:
    """Several devices, or CPUs of its own: only then a kubelet may refuse what the scheduler let
    through often enough to ask every kubelet about it."""
    from kubectl_gpuadmit.placement.kubelet import asks  # costs start-up time

    try:
        ask = asks.of(pod)
    except quantity.QuantityError:
        return False
    devices = sum(n for name, n in ask.pod_devices().items() if is_extended(name))
    pinned = ask.guaranteed and any(container.whole_cpus for container in ask.containers)
    return devices > 1 or (devices > 0 and pinned)


def _is_on(rule: Rule, policy: Policy, homes: Iterable[str]) -> bool:
    return any(policy.level(rule.name, namespace=home, pool="") != "off" for home in homes)
