"""DRA objects in few words, for the tests."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from tests.placement.build import Json, decoded, pod

DRIVER = "gpu.example.com"


def gpu(name: str, *, memory: str = "80Gi", **more: Any) -> Json:
    """A device: keywords of one scalar are attributes, others are the API's own fields."""
    attributes: Json = {}
    fields: Json = {}
    for key, value in more.items():
        match value:
            case bool():
                attributes[key] = {"bool": value}
            case int():
                attributes[key] = {"int": value}
            case str():
                attributes[key] = {"string": value}
            case _:
                fields[key] = value
    capacity = {"memory": {"value": memory}}
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def slices(
    home: str, *devices: Json, name: str = "", count: int = 1, generation: int = 1, **spec: Any
) -> KubeObject:
    """A ResourceSlice of node ``home``, whose pool has the node's name."""
    where = spec or {"nodeName": home}
    return decoded(
        {
            "kind": "ResourceSlice",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name or f"{home}-a"},
            "spec": {
                "driver": DRIVER,
                "pool": {"name": home, "generation": generation, "resourceSliceCount": count},
                "devices": list(devices),
                **where,
            },
        }
    )


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> KubeObject:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return decoded(
        {
            "kind": "DeviceClass",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name},
            "spec": {"selectors": selectors, **spec},
        }
    )


def exactly(name: str = "gpu", *expressions: str, **more: Any) -> Json:
    """A request for one device of class ``gpu`` unless said otherwise."""
    wanted = {"deviceClassName": "gpu", **more}
    if expressions:
        wanted["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": wanted}


def claim(
    name: str = "claim",
    *requests: Json,
    constraints: list[Json] | None = None,
    status: Json | None = None,
    meta: Json | None = None,
    namespace: str = "default",
) -> KubeObject:
    return decoded(
        {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"} | (meta or {}),
            "spec": {
                "devices": {
                    "requests": list(requests) or [exactly()],
                    "constraints": constraints or [],
                }
            },
            "status": status or {},
        }
    )


def template(name: str = "template", *requests: Json, **more: Any) -> KubeObject:
    return decoded(
        {
            "kind": "ResourceClaimTemplate",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": list(requests) or [exactly()], **more}}},
        }
    )


def held(*devices: str, pool: str = "a", by: str = "") -> Json:
    """The status of a claim that has these devices, and a pod that uses it."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} for device in devices
    ]
    status: Json = {"allocation": {"devices": {"results": results}}}
    if by:
        status["reservedFor"] = [{"resource": "pods", "name": by, "uid": f"uid-{by}"}]
    return status


def with_claim(name: str = "claim", **more: Any) -> Pod:
    """A pod that uses a claim by its name."""
    return pod(resourceClaims=[{"name": "gpu", "resourceClaimName": name}], **more)


def with_template(name: str = "template", **more: Any) -> Pod:
    """A pod that gets a claim of its own from a template."""
    return pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": name}], **more)
