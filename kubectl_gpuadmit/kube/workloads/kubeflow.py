"""Kubeflow: the v1 training jobs, MPIJob v2beta1 and Trainer v2 TrainJob.

Sources: kubeflow/training-operator pkg/apis/kubeflow.org/v1 (replicas default 1, names
``job-worker-0``); kubeflow/mpi-operator v2beta1; kubeflow/trainer pkg/apis/trainer/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve, token
from kubectl_gpuadmit.kube.workloads.core import job_pods
from kubectl_gpuadmit.kube.workloads.model import SUPPLIED_IMAGE
from kubectl_gpuadmit.kube.workloads.reading import Reading

_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def replica_specs(field: str, framework: str) -> Callable[[Reading], None]:
    """Reader of a v1 training job whose roles lie in ``spec.<field>``."""

    def read(reading: Reading) -> None:
        reading.suspended("/spec/runPolicy/suspend")
        specs = reading.mapping(f"/spec/{field}")
        if not specs:
            reading.fail(
                f"/spec/{field}", f"no roles: {field} is missing or empty", ref="missing-field"
            )
        _schedule(reading, "/spec/runPolicy/schedulingPolicy")
        v2 = framework == "mpi-operator"
        for role in map(str, specs):
            at = f"/spec/{field}/{token(role)}"
            replicas = reading.count(f"{at}/replicas", 1)
            lower = role.lower()
            policy = reading.text(f"{at}/restartPolicy")
            restart = "Never" if policy == "ExitCode" else policy
            launcher = v2 and lower == "launcher"
            if launcher:
                reading.charge("jobs.batch")  # the launcher of v2beta1 is a Job
            reading.group(
                lower,
                replicas,
                f"{at}/template",
                labels={
                    "training.kubeflow.org/job-name": reading.base,
                    "training.kubeflow.org/operator-name": framework,
                    (
                        "training.kubeflow.org/job-role"
                        if v2
                        else "training.kubeflow.org/replica-type"
                    ): lower,
                },
                overrides={"restartPolicy": restart} if restart else None,
                generate=f"{reading.base}-launcher-" if launcher else "",
                names="" if launcher else f"{reading.base}-{lower}-{{index}}",
            )
        _elastic(reading)

    return read


pytorch_job = replica_specs("pytorchReplicaSpecs", "pytorchjob-controller")
tf_job = replica_specs("tfReplicaSpecs", "tfjob-controller")
xgboost_job = replica_specs("xgbReplicaSpecs", "xgboostjob-controller")
paddle_job = replica_specs("paddleReplicaSpecs", "paddlejob-controller")
jax_job = replica_specs("jaxReplicaSpecs", "jaxjob-controller")


def mpi_job(reading: Reading) -> None:
    """v1 and v2beta1 share the kind; slotsPerWorker is a number of processes, not of GPUs."""
    v2 = reading.text("/apiVersion").endswith("/v2beta1")
    replica_specs("mpiReplicaSpecs", "mpi-operator" if v2 else "mpijob-controller")(reading)


def _schedule(reading: Reading, at: str) -> None:
    if reading.at(at) is None:
        return
    reading.gang = True
    queue = reading.text(f"{at}/queue")
    if queue:
        reading.queue = f"Volcano queue {queue}"


def _elastic(reading: Reading) -> None:
    at = "/spec/elasticPolicy"
    if not reading.mapping(at) or reading.at(f"{at}/maxReplicas") is None:
        return
    worker = next((g for g in reading.groups if g.role == "worker"), None)
    reading.autoscaled(
        f"{at}/maxReplicas",
        start=worker.count if worker else 1,
        maximum=reading.count(f"{at}/maxReplicas", 1),
        role="worker",
    )


def train_job(reading: Reading) -> None:
    """A TrainJob is its runtime with the trainer's numbers put in; without the runtime, half
    unknown."""
    reading.gang = True
    reading.suspended("/spec/suspend")
    reading.charge("jobsets.jobset.x-k8s.io")
    kind = reading.text("/spec/runtimeRef/kind") or "ClusterTrainingRuntime"
    name = reading.text("/spec/runtimeRef/name")
    runtime = reading.other(kind, "" if kind.startswith("Cluster") else reading.namespace, name)
    nodes = reading.at("/spec/trainer/numNodes")
    count = None if nodes is None else reading.count("/spec/trainer/numNodes", 1)
    per_node = reading.mapping("/spec/trainer/resourcesPerNode")
    if runtime is None:
        _without_runtime(reading, f"{kind} {name}", count, per_node)
    else:
        _with_runtime(reading, runtime, count, per_node)


def _without_runtime(
    reading: Reading, runtime: str, count: int | None, per_node: Mapping[str, Any]
) -> None:
    known = "" if per_node else ", and with it how many GPUs a node gets"
    if count is None:
        known += ", and how many nodes"
    reading.unknown(
        f"{runtime}: not among the documents or the snapshot{known}",
        hint=(
            "give the runtime's manifest too, or export it: kubectl get "
            f"{runtime.split()[0].lower()} -o yaml"
        ),
        level="deny" if known else "warn",
    )
    container: dict[str, Any] = {"name": "node", "image": SUPPLIED_IMAGE}
    for field in ("image", "command", "args", "env"):
        value = reading.at(f"/spec/trainer/{field}")
        if value is not None:
            container[field] = value
    if per_node:
        container["resources"] = dict(per_node)
    reading.charge("jobs.batch")
    reading.group(
        "node",
        1 if count is None else count,
        "-",
        template={"spec": {"containers": [container]}},
        paths=(
            ("/spec/containers/0/resources", "/spec/trainer/resourcesPerNode"),
            ("/spec/containers/0", "/spec/trainer"),
        ),
        labels={"jobset.sigs.k8s.io/jobset-name": reading.base, _STEP: "trainer"},
        generate=f"{reading.base}-node-0-0-",
    )


def _with_runtime(
    reading: Reading, runtime: Mapping[str, Any], count: int | None, per_node: Mapping[str, Any]
) -> None:
    spec = resolve(runtime, "/spec")
    jobs = resolve(spec, "/template/spec/replicatedJobs")
    policy = resolve(spec, "/mlPolicy/numNodes")
    nodes = count if count is not None else policy if isinstance(policy, int) else 1
    if not isinstance(jobs, list):
        reading.unknown("replicatedJobs of the runtime: it has none", level="deny")
        return
    names = [str(resolve(j, "/name") or "") for j in jobs]
    trainer = "node" if "node" in names else ""
    launcher_as_node = resolve(spec, "/mlPolicy/mpi/runLauncherAsNode") is True
    for job, name in zip(jobs, names, strict=True):
        is_trainer = name == trainer or (
            not trainer and resolve(job, f"/template/metadata/labels/{token(_STEP)}") == "trainer"
        )
        template = resolve(job, "/template/spec/template")
        template = template if isinstance(template, dict) else {}
        size = 1
        if is_trainer:
            size = max(nodes - 1, 0) if launcher_as_node else nodes
        if (is_trainer or (launcher_as_node and name == "launcher")) and per_node:
            template = _with_resources(template, per_node)
        job_pods(
            reading,
            name,
            "-",
            name=f"{reading.base}-{name}-0",
            labels={"jobset.sigs.k8s.io/jobset-name": reading.base},
            completion_mode="Indexed",
            defaults={"restartPolicy": "OnFailure"},
            parallelism=size,
            template=template,
        )
        reading.charge("jobs.batch")


def _with_resources(template: dict[str, Any], per_node: Mapping[str, Any]) -> dict[str, Any]:
    containers = resolve(template, "/spec/containers")
    if not isinstance(containers, list):
        return template
    changed = [
        {**c, "resources": dict(per_node)} if isinstance(c, dict) and c.get("name") == "node" else c
        for c in containers
    ]
    return {**template, "spec": {**template["spec"], "containers": changed}}
