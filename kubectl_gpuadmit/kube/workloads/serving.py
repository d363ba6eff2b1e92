"""Serving operators: NVIDIA NIM, KAITO, AIBrix, KubeAI, and ``InferenceDeployment``
(svr.sivaro.io).

Sources: NVIDIA/k8s-nim-operator api/apps/v1alpha1; kaito-project/kaito api/v1beta1;
vllm-project/aibrix api/orchestration/v1alpha1; substratusai/kubeai api/k8s/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.workloads.groups import leader_worker_pods
from kubectl_gpuadmit.kube.workloads.model import SUPPLIED_IMAGE
from kubectl_gpuadmit.kube.workloads.reading import Reading

_NIM_POD_FIELDS = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "runtimeClassName",
    "schedulerName",
    "initContainers",
)
_SHARED_MEMORY = {"name": "dshm", "emptyDir": {"medium": "Memory"}}


def nim_service(reading: Reading) -> None:
    _nim(reading, "/spec", "", reading.base)


def nim_pipeline(reading: Reading) -> None:
    """A list of NIMServices; one that is not enabled makes nothing."""
    for index, _ in enumerate(reading.sequence("/spec/services")):
        at = f"/spec/services/{index}"
        if not reading.flag(f"{at}/enabled", default=True):
            continue
        name = reading.text(f"{at}/name")
        reading.charge("nimservices.apps.nvidia.com")
        _nim(reading, f"{at}/spec", name, name)


def _nim(reading: Reading, at: str, role: str, base: str) -> None:
    replicas = reading.count(f"{at}/replicas", 1)
    if reading.flag(f"{at}/scale/enabled"):
        replicas = reading.count(f"{at}/scale/hpa/minReplicas", 1)
        maximum = reading.count(f"{at}/scale/hpa/maxReplicas", replicas)
        reading.autoscaled(
            f"{at}/scale/hpa/maxReplicas",
            start=replicas,
            maximum=maximum,
            role=role,
        )
    resources = reading.mapping(f"{at}/resources")
    container: dict[str, Any] = {
        "name": f"{base}-ctr",
        "image": SUPPLIED_IMAGE,
        "resources": resources,
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
    }
    repository, tag = reading.text(f"{at}/image/repository"), reading.at(f"{at}/image/tag")
    if repository:
        container["image"] = f"{repository}:{tag}" if tag else repository
    for field in ("env", "args", "command"):
        if reading.at(f"{at}/{field}") is not None:
            container[field] = reading.at(f"{at}/{field}")
    spec: dict[str, Any] = {"containers": [container], "volumes": [_SHARED_MEMORY]}
    paths = [
        ("/spec/containers/0/resources", f"{at}/resources"),
        ("/spec/containers/0/env", f"{at}/env"),
        ("/spec/containers/0/image", f"{at}/image"),
        ("/metadata/labels", f"{at}/labels"),
        ("/metadata/annotations", f"{at}/annotations"),
    ]
    for field in _NIM_POD_FIELDS:
        if reading.at(f"{at}/{field}") is not None:
            spec[field] = reading.at(f"{at}/{field}")
        paths.append((f"/spec/{field}", f"{at}/{field}"))
    metadata = {k: reading.mapping(f"{at}/{k}") for k in ("labels", "annotations")}
    template = {"metadata": metadata, "spec": spec}
    labels = {"app": base, "app.kubernetes.io/name": base}
    if reading.mapping(f"{at}/multiNode"):
        _nim_multi_node(reading, at, role, base, replicas, template, tuple(paths))
        return
    if not _names_gpu(resources):
        reading.unknown(
            f"GPUs of {base}: it names none, so the NIM operator takes the number from the model "
            "profile",
            hint=f"write nvidia.com/gpu under {at}/resources/limits",
            level="deny",
        )
    reading.charge("deployments.apps")
    reading.charge("replicasets.apps")
    reading.charge("services")
    reading.group(
        role, replicas, "-", template=template, paths=paths, labels=labels, generate=f"{base}-"
    )


def _nim_multi_node(
    reading: Reading,
    at: str,
    role: str,
    base: str,
    replicas: int,
    template: dict[str, Any],
    paths: tuple[tuple[str, str], ...],
) -> None:
    """A LeaderWorkerSet of ``multiNode.size`` pods a replica, each with ``gpusPerPod`` GPUs."""
    reading.gang = True
    size = reading.count(f"{at}/multiNode/size", 1, minimum=1)
    per_pod = reading.count(f"{at}/multiNode/gpusPerPod", 1)
    container = template["spec"]["containers"][0]
    resources = container["resources"]
    if not _names_gpu(resources):
        amounts = {"nvidia.com/gpu": per_pod}
        merged = {
            part: {**(resources.get(part) or {}), **amounts} for part in ("limits", "requests")
        }
        container["resources"] = {**resources, **merged}
        paths = (
            ("/spec/containers/0/resources/limits/nvidia.com~1gpu", f"{at}/multiNode/gpusPerPod"),
            *paths,
        )
    reading.charge("leaderworkersets.leaderworkerset.x-k8s.io")
    leader_worker_pods(
        reading,
        replicas=replicas,
        size=size,
        leader="-",
        worker="-",
        base=f"{base}-lws",
        prefix=f"{role}-" if role else "",
        leader_template=template,
        worker_template=template,
        leader_paths=paths,
        worker_paths=paths,
    )


def _names_gpu(resources: Mapping[str, Any]) -> bool:
    return any(
        isinstance(part, dict) and any(isinstance(k, str) and gpus.is_gpu(k) for k in part)
        for part in (resources.get("limits"), resources.get("requests"))
    )


def nim_cache(reading: Reading) -> None:
    """A Job that downloads the model: it asks no GPU (``tensorParallelism`` filters profiles)."""
    reading.charge("jobs.batch")
    if reading.flag("/spec/storage/pvc/create"):
        reading.charge("persistentvolumeclaims")
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "nim-cache-ctr",
                "image": SUPPLIED_IMAGE,
                "resources": reading.mapping("/spec/resources"),
            }
        ],
    }
    for field in ("nodeSelector", "tolerations", "runtimeClassName"):
        if reading.at(f"/spec/{field}") is not None:
            spec[field] = reading.at(f"/spec/{field}")
    reading.group(
        "",
        1,
        "-",
        template={"spec": spec},
        paths=(("/spec/containers/0/resources", "/spec/resources"), ("/spec", "/spec")),
        generate=f"{reading.base}-job-",
    )


def kaito_workspace(reading: Reading) -> None:
    """``inference.template`` runs on ``resource.count`` nodes; a preset's own needs are not in
    it."""
    nodes = reading.count("/resource/count", 1)
    selector = reading.mapping("/resource/labelSelector/matchLabels")
    at = next((p for p in ("/inference", "/tuning") if reading.mapping(p)), "")
    if reading.at(f"{at}/template") is not None and at:
        template = reading.mapping(f"{at}/template")
        spec = template.get("spec")
        own = spec.get("nodeSelector") if isinstance(spec, dict) else None
        chosen = {**selector, **own} if isinstance(own, dict) else dict(selector)
        reading.charge("deployments.apps")
        reading.charge("replicasets.apps")
        reading.group(
            "",
            nodes,
            f"{at}/template",
            overrides={"nodeSelector": chosen} if chosen else None,
            paths=(("/spec/nodeSelector", "/resource/labelSelector/matchLabels"),)
            if selector
            else (),
            labels={"kaito.sh/workspace": reading.base},
        )
        return
    preset = reading.text(f"{at}/preset/name") if at else ""
    reading.unknown(
        f"pods of preset {preset or '(none named)'}: KAITO decides their number and GPUs",
        hint="check the StatefulSet or Deployment that KAITO makes of it",
        level="deny",
    )


def storm_service(reading: Reading) -> None:
    """replicas x roles[].replicas x roles[].podGroupSize pods."""
    reading.charge("rolesets.orchestration.aibrix.ai", reading.count("/spec/replicas", 1))
    _roles(reading, "/spec/template/spec", reading.count("/spec/replicas", 1))


def role_set(reading: Reading) -> None:
    _roles(reading, "/spec", 1)


def _roles(reading: Reading, at: str, copies: int) -> None:
    if reading.mapping(f"{at}/schedulingStrategy"):
        reading.gang = True
    roles = reading.sequence(f"{at}/roles")
    if not roles:
        reading.fail(
            f"{at}/roles", "no roles: nothing says which pods to make", ref="missing-field"
        )
    for index, _ in enumerate(roles):
        role = f"{at}/roles/{index}"
        name = reading.text(f"{role}/name")
        size = reading.count(f"{role}/podGroupSize", 1, minimum=1)
        reading.group(
            name,
            copies * reading.count(f"{role}/replicas", 1) * size,
            f"{role}/template",
            labels={"storm-service-name": reading.base, "role-name": name},
            generate=f"{reading.base}-{name.lower()}-",
        )


def kubeai_model(reading: Reading) -> None:
    """Its GPUs come from a resource profile of KubeAI's own configuration."""
    profile = reading.text("/spec/resourceProfile") or "(none)"
    reading.unknown(
        f"resource profile {profile}: it lies in KubeAI's configuration",
        hint="check the pods that KubeAI makes of it",
        level="deny",
    )


def inference_deployment(reading: Reading) -> None:
    """``svr.sivaro.io/v1alpha1``: one container under ``spec.container``, ``spec.replicas``
    copies."""
    if not reading.mapping("/spec/container"):
        reading.fail(
            "/spec/container", "an InferenceDeployment needs a container", ref="missing-field"
        )
    reading.charge("deployments.apps")
    reading.charge("replicasets.apps")
    model = reading.text("/spec/modelName")
    fields = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName")
    spec = {k: reading.at(f"/spec/{k}") for k in fields if reading.at(f"/spec/{k}") is not None}
    spec["containers"] = [
        {"name": "server", "image": SUPPLIED_IMAGE, **reading.mapping("/spec/container")}
    ]
    reading.group(
        "",
        reading.count("/spec/replicas", 1),
        "-",
        template={"metadata": {}, "spec": spec},
        paths=(
            ("/spec/containers/0", "/spec/container"),
            *((f"/spec/{k}", f"/spec/{k}") for k in fields),
        ),
        annotations={"svr.sivaro.io/model": model} if model else None,
    )
