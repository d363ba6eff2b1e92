"""Every kind that we can expand, by API group and kind, and the one function that does it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from msgspec import Struct

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.pointers import dotted, token
from kubectl_gpuadmit.kube.workloads import core
from kubectl_gpuadmit.kube.workloads.access import kind_of
from kubectl_gpuadmit.kube.workloads.declared import BUILT_IN, DeclaredKind, read_declared
from kubectl_gpuadmit.kube.workloads.model import PodGroup, Workload
from kubectl_gpuadmit.kube.workloads.queues import decided_by, makes_gang
from kubectl_gpuadmit.kube.workloads.reading import ManifestDocument, ObjectSource, Reading
from kubectl_gpuadmit.kube.workloads.strangers import unknown_kind, without_pods
from kubectl_gpuadmit.verdict import Ref, Skipped

REASONS: dict[str, str] = {
    "spec/no-name": (
        "The object has neither metadata.name nor metadata.generateName, so the API server refuses "
        "it; give it a name"
    ),
}


class Kind(Struct, frozen=True):
    """A kind we know: the plural that count quotas use, and where its reader is.

    Modules are imported when a kind first occurs: most runs meet one or two of them.
    """

    plural: str
    module: str = ""
    function: str = ""
    declared: DeclaredKind | None = None

    def read(self, reading: Reading) -> None:
        if self.declared is not None:
            read_declared(reading, self.declared)
            return
        module = import_module(f"kubectl_gpuadmit.kube.workloads.{self.module}")
        getattr(module, self.function)(reading)


_KINDS: dict[tuple[str, str], Kind] = {
    ("", "Pod"): Kind("pods", "core", "pod"),
    ("", "ReplicationController"): Kind("replicationcontrollers", "core", "replica_set"),
    ("apps", "Deployment"): Kind("deployments", "core", "deployment"),
    ("apps", "ReplicaSet"): Kind("replicasets", "core", "replica_set"),
    ("apps", "StatefulSet"): Kind("statefulsets", "core", "stateful_set"),
    ("apps", "DaemonSet"): Kind("daemonsets", "core", "daemon_set"),
    ("extensions", "Deployment"): Kind("deployments", "core", "deployment"),
    ("extensions", "ReplicaSet"): Kind("replicasets", "core", "replica_set"),
    ("extensions", "DaemonSet"): Kind("daemonsets", "core", "daemon_set"),
    ("batch", "Job"): Kind("jobs", "core", "job"),
    ("batch", "CronJob"): Kind("cronjobs", "core", "cron_job"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Kind(
        "leaderworkersets", "groups", "leader_worker_set"
    ),
    ("jobset.x-k8s.io", "JobSet"): Kind("jobsets", "groups", "job_set"),
    ("kubeflow.org", "PyTorchJob"): Kind("pytorchjobs", "kubeflow", "pytorch_job"),
    ("kubeflow.org", "TFJob"): Kind("tfjobs", "kubeflow", "tf_job"),
    ("kubeflow.org", "MPIJob"): Kind("mpijobs", "kubeflow", "mpi_job"),
    ("kubeflow.org", "XGBoostJob"): Kind("xgboostjobs", "kubeflow", "xgboost_job"),
    ("kubeflow.org", "PaddleJob"): Kind("paddlejobs", "kubeflow", "paddle_job"),
    ("kubeflow.org", "JAXJob"): Kind("jaxjobs", "kubeflow", "jax_job"),
    ("trainer.kubeflow.org", "TrainJob"): Kind("trainjobs", "kubeflow", "train_job"),
    ("ray.io", "RayCluster"): Kind("rayclusters", "ray", "ray_cluster"),
    ("ray.io", "RayJob"): Kind("rayjobs", "ray", "ray_job"),
    ("ray.io", "RayService"): Kind("rayservices", "ray", "ray_service"),
    ("batch.volcano.sh", "Job"): Kind("jobs", "batch_queues", "volcano_job"),
    ("batch.volcano.sh", "CronJob"): Kind("cronjobs", "batch_queues", "volcano_cron_job"),
    ("argoproj.io", "Workflow"): Kind("workflows", "argo", "workflow"),
    ("argoproj.io", "CronWorkflow"): Kind("cronworkflows", "argo", "cron_workflow"),
    ("serving.kserve.io", "InferenceService"): Kind(
        "inferenceservices", "kserve", "inference_service"
    ),
    ("serving.kserve.io", "LLMInferenceService"): Kind(
        "llminferenceservices", "kserve", "llm_inference_service"
    ),
    ("apps.nvidia.com", "NIMService"): Kind("nimservices", "serving", "nim_service"),
    ("apps.nvidia.com", "NIMPipeline"): Kind("nimpipelines", "serving", "nim_pipeline"),
    ("apps.nvidia.com", "NIMCache"): Kind("nimcaches", "serving", "nim_cache"),
    ("nvidia.com", "DynamoGraphDeployment"): Kind("dynamographdeployments", "dynamo", "graph"),
    ("nvidia.com", "DynamoComponentDeployment"): Kind(
        "dynamocomponentdeployments", "dynamo", "component"
    ),
    ("nvidia.com", "DynamoGraphDeploymentRequest"): Kind(
        "dynamographdeploymentrequests", "dynamo", "request"
    ),
    ("kaito.sh", "Workspace"): Kind("workspaces", "serving", "kaito_workspace"),
    ("orchestration.aibrix.ai", "StormService"): Kind("stormservices", "serving", "storm_service"),
    ("orchestration.aibrix.ai", "RoleSet"): Kind("rolesets", "serving", "role_set"),
    ("kubeai.org", "Model"): Kind("models", "serving", "kubeai_model"),
    ("svr.sivaro.io", "InferenceDeployment"): Kind(
        "inferencedeployments", "serving", "inference_deployment"
    ),
}
_KINDS.update(
    ((declared.group, declared.kind), Kind(plural, declared=declared))
    for plural, declared in BUILT_IN
)


_ONE_BY_ONE = frozenset({"Pod", "Deployment", "ReplicaSet", "ReplicationController", "DaemonSet"})
"""Kinds whose pods a queue lets in one by one, also where it knows gangs."""


def kinds() -> tuple[tuple[str, str], ...]:
    """(group, kind) of everything that can be expanded, sorted; '' is the core group."""
    return tuple(sorted(_KINDS))


def expand(
    document: ManifestDocument,
    *,
    declared: Sequence[DeclaredKind] = (),
    namespace: str = "default",
    cluster: ObjectSource | None = None,
) -> Workload | Skipped:
    """The pods that the controllers would make of one document.

    ``declared`` are the policy's own kinds and win over ours; ``namespace`` is where an object
    without one goes; ``cluster`` has the other objects that this one may refer to (a TrainJob's
    runtime). Raises BadManifest with file, line, column and field for what the API server could not
    decode. Unknown kinds and objects without pods come back as Skipped.
    """
    data: Any = document.data
    if not isinstance(data, dict):
        _refuse(document, "", "a manifest must be an object")
    api_version = _name_of(document, data, "apiVersion")
    kind = _name_of(document, data, "kind")
    reading = Reading(document, namespace=namespace, cluster=cluster)
    group = api_version.rpartition("/")[0]
    ref = Ref(
        apiVersion=api_version,
        kind=kind,
        namespace=reading.namespace,
        name=reading.name or reading.text("/metadata/generateName"),
    )
    chosen = next((d for d in declared if d.means(api_version, kind)), None)
    known = _KINDS.get((group, kind))
    if chosen is not None or known is not None:
        _need_name(reading)
    if chosen is not None:
        read_declared(reading, chosen)
    elif known is not None:
        core.check_version(reading, api_version, kind)
        if known.plural != "pods":
            served = "apps" if group == "extensions" else group
            reading.charge(f"{known.plural}.{served}" if served else known.plural)
        known.read(reading)
    else:
        # Whether a kind that we do not know lives in a namespace is not known either.
        ref = Ref(api_version, kind, reading.text("/metadata/namespace"), ref.name)
        reason = without_pods(group, kind, data)
        if reason is not None:
            return Skipped(ref, document.location, "not-a-workload", reason)
        return Skipped(
            ref, document.location, "unknown-kind", unknown_kind(api_version, kind, data)
        )
    return _workload(reading, ref)


def _need_name(reading: Reading) -> None:
    if not reading.base:
        reading.note(
            "spec/no-name",
            "it has neither metadata.name nor metadata.generateName, so the API server refuses it",
            "/metadata",
            level="deny",
        )
        reading.base = "unnamed"


def _workload(reading: Reading, ref: Ref) -> Workload:
    tables = [_texts(reading, "/metadata/labels"), _texts(reading, "/metadata/annotations")]
    if reading.at("/spec/jobTemplate") is not None:
        tables.append(_texts(reading, "/spec/jobTemplate/metadata/labels"))
    for group in reading.groups:
        tables += [group.pod.labels, group.pod.annotations]
    asking = _who_asks(reading.groups)
    queue = decided_by(tables, asking)
    if not queue or (reading.queue and not queue.startswith("Kueue")):
        queue = reading.queue or queue
    pods = sum(group.count for group in reading.groups)
    return Workload(
        ref=ref,
        location=reading.document.location,
        manifest=reading.data,
        groups=tuple(reading.groups),
        gang=reading.gang or (ref.kind not in _ONE_BY_ONE and makes_gang(queue) and pods > 1),
        queue=queue,
        findings=tuple(reading.findings),
        unknowns=tuple(reading.unknowns),
        stored=reading.document.line == 0,
        creates=tuple(reading.creates.items()),
    )


def _who_asks(found: list[PodGroup]) -> Any:
    """The first group's pod that goes to a scheduler of its own, else the first pod."""
    for group in found:
        if group.pod.spec.schedulerName not in (None, "", "default-scheduler"):
            return group.pod
    for group in found:
        if decided_by((), group.pod):
            return group.pod
    return found[0].pod if found else None


def _texts(reading: Reading, pointer: str) -> dict[str, str]:
    table = reading.mapping(pointer)
    for key, value in table.items():
        if value is not None and not isinstance(value, str):
            reading.fail(
                f"{pointer}/{token(str(key))}",
                f"expected text, found {kind_of(value)}",
                hint="put the value in quotes",
            )
    return {key: value for key, value in table.items() if value is not None}


def _name_of(document: ManifestDocument, data: dict[str, Any], field: str) -> str:
    value = data.get(field)
    if value is None or value == "":
        _refuse(document, f"/{field}", f"{field} is missing")
    if not isinstance(value, str):
        _refuse(document, f"/{field}", f"{field} must be text")
    return value


def _refuse(document: ManifestDocument, pointer: str, message: str) -> NoReturn:
    line, column = document.position(pointer)
    raise BadManifest(
        "missing-field",
        message,
        file=document.file,
        line=line,
        column=column,
        field=dotted(pointer),
    )
