"""KubeRay: RayCluster, RayJob and RayService.

Source: ray-project/kuberay ray-operator/apis/ray/v1 and controllers/ray (worker replicas default to
0 and are held between minReplicas and maxReplicas; numOfHosts pods a replica; the autoscaler runs
as a container of the head pod).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.workloads.model import DRAWN, SUPPLIED_IMAGE
from kubectl_gpuadmit.kube.workloads.reading import INT32, Reading

_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
_SUBMITTER = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "ray-job-submitter",
                "image": SUPPLIED_IMAGE,
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "200Mi"},
                },
            }
        ],
    }
}


def ray_cluster(reading: Reading) -> None:
    reading.suspended("/spec/suspend")
    _pods(reading, "/spec", cluster=reading.name)


def ray_job(reading: Reading) -> None:
    """Its cluster, and the pod that submits the job (submissionMode K8sJobMode is the default)."""
    reading.suspended("/spec/suspend")
    if reading.mapping("/spec/clusterSelector"):
        reading.charge("jobs.batch")
    else:
        reading.charge("rayclusters.ray.io")
        _pods(reading, "/spec/rayClusterSpec", cluster="")
    if reading.text("/spec/submissionMode") not in ("", "K8sJobMode"):
        return
    if not reading.mapping("/spec/clusterSelector"):
        reading.charge("jobs.batch")
    own = reading.at("/spec/submitterPodTemplate") is not None
    reading.group(
        "submitter",
        1,
        "/spec/submitterPodTemplate" if own else "-",
        template=None if own else _SUBMITTER,
    )


def ray_service(reading: Reading) -> None:
    reading.charge("rayclusters.ray.io")
    reading.suspended("/spec/suspend")
    _pods(reading, "/spec/rayClusterConfig", cluster="")


def _pods(reading: Reading, at: str, *, cluster: str) -> None:
    """Head and workers of the cluster spec at ``at``; ``cluster`` is its name where it is
    certain."""
    if reading.at(f"{at}/headGroupSpec") is None:
        reading.fail(
            f"{at}/headGroupSpec", "a Ray cluster needs a headGroupSpec", ref="missing-field"
        )
    base = cluster or f"{reading.base}-{DRAWN}"
    labels = {"ray.io/is-ray-node": "yes", "app.kubernetes.io/name": "kuberay"}
    if cluster:
        labels["ray.io/cluster"] = cluster
    scaled = reading.flag(f"{at}/enableInTreeAutoscaling")
    sidecar: list[dict[str, Any]] = []
    if scaled:
        resources = reading.mapping(f"{at}/autoscalerOptions/resources") or {
            "limits": _AUTOSCALER,
            "requests": _AUTOSCALER,
        }
        sidecar.append({"name": "autoscaler", "image": SUPPLIED_IMAGE, "resources": resources})
    reading.charge("services")
    reading.group(
        "head",
        1,
        f"{at}/headGroupSpec/template",
        labels={**labels, "ray.io/node-type": "head", "ray.io/group": "headgroup"},
        containers=sidecar,
        generate=f"{base}-head-",
    )
    for index, _ in enumerate(reading.sequence(f"{at}/workerGroupSpecs")):
        group = f"{at}/workerGroupSpecs/{index}"
        name = reading.text(f"{group}/groupName")
        least = reading.count(f"{group}/minReplicas", 0)
        most = reading.count(f"{group}/maxReplicas", INT32)
        wanted = min(max(reading.count(f"{group}/replicas", least), least), max(most, least))
        hosts = reading.count(f"{group}/numOfHosts", 1, minimum=1)
        reading.suspended(f"{group}/suspend")
        reading.group(
            name,
            wanted * hosts,
            f"{group}/template",
            labels={**labels, "ray.io/node-type": "worker", "ray.io/group": name},
            generate=f"{base}-{name}-worker-",
        )
        if scaled and most > wanted:
            reading.autoscaled(
                f"{group}/maxReplicas",
                start=wanted * hosts,
                maximum=None if most == INT32 else most * hosts,
                role=name,
            )
