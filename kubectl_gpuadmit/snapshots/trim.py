"""Objects as they are kept: the fields that the engine reads, and of those nothing that is secret.

What is kept of a kind that has a struct is what the struct has: a field that the engine does not
read is not in it, so this page cannot fall behind. Kinds that arrive as plain data are named in
``KEPT``; of all others only that they exist: identity, labels, owners. Secrets and Events are left
out, and no kind list claims that they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.admission import native
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import dra, objects, policy_parameters
from kubectl_gpuadmit.kube.listed import Listed
from kubectl_gpuadmit.kube.objects import ConfigMap, Generic, KubeObject
from kubectl_gpuadmit.kube.policy_parameters import KIND as PARAMETERS
from kubectl_gpuadmit.kube.policy_parameters import written
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.snapshots import secrets

NEVER = frozenset({"Event", "Event.events.k8s.io", "Secret"})
"""Kinds that are not written at all."""

KEPT: dict[str, tuple[str, ...]] = {
    "CSIDriver": ("spec",),
    "ClusterTrainingRuntime": ("spec",),
    "GpuPoolHistory": ("samples",),
    "KubeletConfiguration": (
        "topologyManagerPolicy",
        "topologyManagerScope",
        "topologyManagerPolicyOptions",
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions",
        "memoryManagerPolicy",
        "reservedSystemCPUs",
        "reservedMemory",
        "systemReserved",
        "kubeReserved",
        "featureGates",
    ),
    "MutatingAdmissionPolicy": ("spec",),
    "MutatingAdmissionPolicyBinding": ("spec",),
    "MutatingWebhookConfiguration": ("webhooks",),
    "NodeResourceTopology": ("topologyPolicies", "attributes", "zones"),
    "PolicyParameters": ("spec",),
    "Service": ("spec",),
    "TrainingRuntime": ("spec",),
    "ValidatingAdmissionPolicy": ("spec",),
    "ValidatingAdmissionPolicyBinding": ("spec",),
    "ValidatingWebhookConfiguration": ("webhooks",),
}
"""Kind without a struct -> the parts of it that are kept."""

_WITHIN: dict[str, frozenset[str]] = {
    "Service": frozenset({"type", "ports", "allocateLoadBalancerNodePorts"}),
    "webhooks": frozenset(
        {
            "name",
            "rules",
            "failurePolicy",
            "matchPolicy",
            "namespaceSelector",
            "objectSelector",
            "matchConditions",
            "reinvocationPolicy",
            "sideEffects",
            "timeoutSeconds",
        }
    ),
}
"""Of a Service and of each webhook only this: addresses and certificates are nobody's business."""

_LINKS = ("secretRef", "keyring", "nodePublishSecretRef", "chapAuthDiscovery", "chapAuthSession")


def items(
    cluster: Cluster,
    *,
    namespace: str = "",
    annotations: Collection[str] = (),
    parameters: bool = True,
) -> list[dict[str, Any]]:
    """As ``each``, all at once."""
    return list(each(cluster, namespace=namespace, annotations=annotations, parameters=parameters))


def each(
    cluster: Cluster,
    *,
    namespace: str = "",
    annotations: Collection[str] = (),
    parameters: bool = True,
) -> Iterator[dict[str, Any]]:
    """Every object as plain data by kind, namespace and name.

    With ``namespace`` the others' own objects are left out, except what decides about room for
    everybody: pods, their volume claims and disruption budgets. ``annotations`` are kept besides
    the allow-list. Without ``parameters`` nothing is kept of objects that admission policies take
    parameters from.
    """
    kept = parameters_of(cluster) if parameters else {}
    left_out = NEVER if parameters else NEVER | {PARAMETERS}
    return (
        trimmed(obj, annotations, kept.get((kind, obj.namespace, obj.name)))
        for kind in cluster.kinds()
        if kind not in left_out
        for obj in sorted(cluster.every(kind), key=lambda o: (o.namespace, o.name))
        if not namespace
        or obj.namespace in ("", namespace)
        or kind in _SHARED
        or (kind, obj.namespace, obj.name) in kept
    )


def parameters_of(cluster: Cluster) -> dict[tuple[str, str, str], frozenset[str]]:
    """Objects that admission policies take parameters from (kind, namespace, name), and what these
    read of them; never a Secret."""
    if not native.present(cluster):
        return {}
    from kubectl_gpuadmit.admission.native import kept

    return kept.parameters(cluster)


_SHARED = frozenset({"Pod", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceClaim"})


def annotations_of(policy: Policy) -> tuple[str, ...]:
    """Keys of the annotations that a policy reads."""
    keys = {*policy.ttl_annotations}
    keys.update(key for cls in policy.classes for key in cls.match.annotations)
    keys.update(key for entry in policy.static for key in entry.match.annotations)
    return tuple(sorted(keys))


def known_kinds(cluster: Cluster) -> list[str]:
    """What the source exported, also where there was none of it."""
    return [kind for kind in cluster.known_kinds() if kind not in NEVER]


def trimmed(
    obj: KubeObject, annotations: Collection[str] = (), parameters: frozenset[str] | None = None
) -> dict[str, Any]:
    """One object as plain data that decodes to what the engine reads of it.

    ``parameters`` are the paths that policies read of it where they take parameters from it.
    """
    found = _trimmed(obj, annotations)
    if parameters is None:
        return found
    if isinstance(obj, ConfigMap):
        document: Mapping[str, Any] = {} if obj.data is None else {"data": obj.data}
    elif isinstance(obj, Generic):
        document = obj.document
    else:
        return found
    before = policy_parameters.kept(obj.annotations)
    if before is not None:  # a snapshot of a snapshot
        parameters = frozenset(before)
    head = {**found["metadata"]}
    marked = {**head.get("annotations", {}), policy_parameters.KEPT: written(parameters)}
    own = {**policy_parameters.only(document, parameters), **found}
    return {**own, "metadata": {**head, "annotations": marked}}


def _trimmed(obj: KubeObject, annotations: Collection[str]) -> dict[str, Any]:
    if isinstance(obj, Generic):
        return _generic(obj, annotations)
    head: dict[str, Any] = {"apiVersion": obj.apiVersion} if obj.apiVersion else {}
    head["kind"] = obj.kind
    return {**head, **_Plain(annotations).struct(obj)}


def _generic(obj: Generic, annotations: Collection[str]) -> dict[str, Any]:
    document = obj.document
    kind = str(document.get("kind") or obj.realKind)
    kept: dict[str, Any] = {"apiVersion": obj.apiVersion} if obj.apiVersion else {}
    kept |= {"kind": kind, "metadata": _Plain(annotations).struct(obj.metadata)}
    for part in KEPT.get(obj.realKind, ()):
        if part in document:
            kept[part] = _part(obj.realKind, part, document[part], annotations)
    return kept


def _part(kind: str, part: str, data: Any, annotations: Collection[str]) -> Any:
    if kind == "Service" and isinstance(data, dict):
        data = {key: data[key] for key in data if key in _WITHIN["Service"]}
    if part == "webhooks" and isinstance(data, list):
        data = [
            {key: hook[key] for key in hook if key in _WITHIN[part]}
            for hook in data
            if isinstance(hook, dict)
        ]
    return plain(data, annotations)


def plain(data: Any, annotations: Collection[str] = ()) -> Any:
    """Data of any shape without what ``secrets`` drops: pod templates may lie anywhere in it."""
    match data:
        case dict():
            return {
                key: _value(key, value, annotations)
                for key, value in data.items()
                if key not in _LINKS and key != "managedFields"
            }
        case list():
            return [plain(item, annotations) for item in data]
        case _:
            return data


def _value(key: Any, value: Any, annotations: Collection[str]) -> Any:
    match key, value:
        case "env", list():
            return secrets.env(value)
        case "envFrom" | "volumeAttributes", _:
            return type(value)()
        case "args" | "command", list():
            return secrets.arguments(value)
        case "annotations", dict():
            return secrets.kept_annotations(value, annotations)
        case _:
            return plain(value, annotations)


def manifest(data: dict[str, Any], annotations: Collection[str] = ()) -> dict[str, Any]:
    """A document of a run, as a capsule may hold it: without a Secret's or ConfigMap's data."""
    kept: dict[str, Any] = plain(data, annotations)
    if data.get("kind") in ("Secret", "ConfigMap"):
        kept = {k: v for k, v in kept.items() if k not in ("data", "stringData", "binaryData")}
    return kept


# -- structs to plain data -------------------------------------------------------------------------


class _Plain:
    """Turns structs into plain data, leaving out what decodes to the same when absent."""

    def __init__(self, annotations: Collection[str]) -> None:
        self._more = annotations

    def struct(self, value: Struct) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for attribute, name, default, special in _fields(type(value)):
            held = getattr(value, attribute)
            if held is None or held == default:
                continue
            if special is not None:
                made = special(held)
                if made is not None:
                    found[name] = made
            elif held.__class__ is str:
                found[name] = held
            elif name == "annotations":
                if kept := secrets.kept_annotations(held, self._more):
                    found[name] = kept
            else:
                found[name] = self._value(held)
        return found

    def _value(self, held: Any) -> Any:
        if isinstance(held, Struct):
            return self.struct(held)
        if isinstance(held, tuple | list | Listed):
            return [self._value(item) for item in held]
        return held


@cache
def _fields(cls: type[Struct]) -> tuple[tuple[str, str, Any, Callable[[Any], Any] | None], ...]:
    """(attribute, field, default, its ``SPECIAL``) in the order of the struct."""
    special = SPECIAL.get(cls, {})
    return tuple(
        (
            f.name,
            f.encode_name,
            f.default
            if f.default is not msgspec.NODEFAULT
            else f.default_factory()
            if f.default_factory is not msgspec.NODEFAULT
            else msgspec.NODEFAULT,
            special.get(f.encode_name),
        )
        for f in msgspec.structs.fields(cls)
    )


def _drop(_: Any) -> None:
    """For fields that the engine does not read of objects in the cluster, or that may be secret."""


def _env(held: tuple[objects.EnvVar, ...]) -> list[dict[str, str]] | None:
    """Only what is allowed: of the others not even the name is read."""
    return [
        {"name": one.name, "value": one.value}
        for one in held
        if one.name in secrets.ENV and one.value is not None
    ] or None


def _arguments(held: tuple[str, ...]) -> list[str] | None:
    words = [word for word in secrets.arguments(list(held)) if word != secrets.DROPPED]
    return words or None


def _only(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda held: {key: held[key] for key in names if key in held}


SPECIAL: dict[type[Struct], dict[str, Callable[[Any], Any]]] = {
    objects.EnvVar: {"valueFrom": _drop},
    objects.Container: {"env": _env, "args": _arguments, "command": _arguments},
    objects.PodCondition: {"message": _drop},
    objects.PodStatus: {
        "message": _drop,
        "resourceClaimStatuses": plain,
        "extendedResourceClaimStatus": plain,
        "nodeAllocatableResourceClaimStatuses": plain,
    },
    objects.ContainerStatus: {"allocatedResourcesStatus": _drop},
    objects.PersistentVolumeSpec: {"csi": _only("driver", "volumeHandle")},
    objects.Volume: {
        "csi": _only("driver"),
        "ephemeral": plain,
        "gcePersistentDisk": _only("pdName", "readOnly"),
        "awsElasticBlockStore": _only("volumeID", "readOnly"),
        "rbd": _only("monitors", "pool", "image", "readOnly"),
        "iscsi": _only("targetPortal", "iqn", "lun", "readOnly"),
    },
    objects.CSINode: {"spec": plain},
    objects.ConfigMap: {"data": _drop},
    objects.PriorityClass: {"description": _drop},
    dra.OpaqueConfiguration: {"parameters": plain},
}
"""Struct -> field -> what is written of it, None for nothing."""
