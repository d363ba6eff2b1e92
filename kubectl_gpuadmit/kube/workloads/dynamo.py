"""NVIDIA Dynamo graphs: v1alpha1 (a map of services) and v1beta1 (a list of components).

Source: ai-dynamo/dynamo deploy/operator/api (replicas default 1; nodeCount pods a replica where a
component is multinode; v1alpha1 resources have fields of their own: ``gpu``, ``gpuType``,
``custom``).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads.model import SUPPLIED_IMAGE
from kubectl_gpuadmit.kube.workloads.reading import Reading

_SHARED_MEMORY = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}


def graph(reading: Reading) -> None:
    components = reading.at("/spec/components")
    services = reading.mapping("/spec/services")
    if components is None and not services:
        reading.fail(
            "/spec", "neither services nor components: no pods are described", ref="missing-field"
        )
    for name in map(str, services):
        _service(reading, f"/spec/services/{token(name)}", name)
    for index, _ in enumerate(reading.sequence("/spec/components")):
        at = f"/spec/components/{index}"
        _component(reading, at, reading.text(f"{at}/name"))


def component(reading: Reading) -> None:
    """A DynamoComponentDeployment: one service (v1alpha1) or one component (v1beta1)."""
    if reading.at("/spec/podTemplate") is not None:
        _component(reading, "/spec", "")
    else:
        _service(reading, "/spec", "")


def request(reading: Reading) -> None:
    """A DynamoGraphDeploymentRequest: its profiling job decides how many GPUs the graph gets."""
    model = reading.at("/spec/model")
    reading.unknown(
        f"GPUs of the graph for {model if isinstance(model, str) else 'the model'}: a profiling "
        "job decides them",
        hint="check the DynamoGraphDeployment that it generates",
        level="deny",
    )


def _replicas(reading: Reading, at: str) -> int:
    replicas = reading.count(f"{at}/replicas", 1)
    if reading.at(f"{at}/multinode") is None:
        return replicas
    reading.gang = True
    return replicas * reading.count(f"{at}/multinode/nodeCount", 2, minimum=1)


def _component(reading: Reading, at: str, name: str) -> None:
    if reading.at(f"{at}/experimental/gpuMemoryService") is not None:
        reading.unknown(
            f"GPUs of {name or 'the component'}: the GPU memory service turns them into a DRA "
            "claim",
            hint="check the pods that the operator makes of it",
            level="deny",
        )
    reading.group(
        name,
        _replicas(reading, at),
        f"{at}/podTemplate",
        labels={"nvidia.com/dynamo-graph-deployment-name": reading.base},
        generate=f"{reading.base}-{name.lower()}-" if name else "",
        volumes=[_SHARED_MEMORY],
    )


def _service(reading: Reading, at: str, name: str) -> None:
    extra = reading.mapping(f"{at}/extraPodSpec")
    main = reading.mapping(f"{at}/extraPodSpec/mainContainer")
    spec = {k: v for k, v in extra.items() if k not in ("mainContainer", "containers")}
    resources, paths = _resources(reading, f"{at}/resources")
    container: dict[str, Any] = {"name": "main", "image": SUPPLIED_IMAGE, **main}
    if resources:
        container["resources"] = resources
    if not reading.flag(f"{at}/sharedMemory/disabled"):
        mounts = main.get("volumeMounts")
        container["volumeMounts"] = [
            *(mounts if isinstance(mounts, list) else ()),
            {"name": "shared-memory", "mountPath": "/dev/shm"},
        ]
    own = extra.get("containers")
    spec["containers"] = [container, *(own if isinstance(own, list) else ())]
    if reading.flag(f"{at}/gpuMemoryService/enabled"):
        reading.unknown(
            f"GPUs of {name or 'the service'}: the GPU memory service turns them into a DRA claim",
            hint="check the pods that the operator makes of it",
            level="deny",
        )
    reading.group(
        name,
        _replicas(reading, at),
        "-",
        template={"metadata": reading.mapping(f"{at}/extraPodMetadata"), "spec": spec},
        paths=(
            *paths,
            *(
                (f"/spec/containers/{i + 1}", f"{at}/extraPodSpec/containers/{i}")
                for i in range(len(own) if isinstance(own, list) else 0)
            ),
            ("/spec/containers/0", f"{at}/extraPodSpec/mainContainer"),
            ("/spec/containers", f"{at}/extraPodSpec/mainContainer"),
            ("/spec", f"{at}/extraPodSpec"),
            ("/metadata", f"{at}/extraPodMetadata"),
        ),
        labels={"nvidia.com/dynamo-graph-deployment-name": reading.base},
        generate=f"{reading.base}-{name.lower()}-" if name else "",
        volumes=[_SHARED_MEMORY],
    )


def _resources(reading: Reading, at: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Kubernetes resources of the kind's own ``{cpu, memory, gpu, gpuType, custom}``.

    A GPU under requests only counts as a limit too: no container could start otherwise.
    """
    found: dict[str, Any] = {}
    paths: list[tuple[str, str]] = []
    for field in ("limits", "requests"):
        own = reading.mapping(f"{at}/{field}")
        amounts: dict[str, Any] = {}
        kind = reading.text(f"{at}/{field}/gpuType") or "nvidia.com/gpu"
        for key, value in own.items():
            if key == "gpuType" or value is None:
                continue
            if key == "custom":
                amounts.update(reading.mapping(f"{at}/{field}/custom"))
                continue
            name = kind if key == "gpu" else key
            if key != "gpu" and isinstance(key, str) and gpus.is_gpu(key):
                reading.note(
                    "spec/misplaced-gpu",
                    f"{key} is no field of a service's resources here, so the API server may drop "
                    "it; "
                    f"write gpu: {value!r}",
                    f"{at}/{field}/{token(key)}",
                )
            amounts[name] = value
            paths.append(
                (
                    f"/spec/containers/0/resources/{field}/{token(str(name))}",
                    f"{at}/{field}/{token(str(key))}",
                )
            )
        if amounts:
            found[field] = amounts
    missing = {
        k: v
        for k, v in found.get("requests", {}).items()
        if isinstance(k, str) and gpus.is_gpu(k) and k not in found.get("limits", {})
    }
    if missing:
        found["limits"] = {**found.get("limits", {}), **missing}
        paths += [
            (f"/spec/containers/0/resources/limits/{token(k)}", p[1])
            for k in missing
            for p in paths
            if p[0] == f"/spec/containers/0/resources/requests/{token(k)}"
        ]
    claims = reading.at(f"{at}/claims")
    if claims is not None:
        found["claims"] = claims
    return found, paths
