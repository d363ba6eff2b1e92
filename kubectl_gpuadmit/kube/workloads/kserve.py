"""KServe: InferenceService (v1beta1) and LLMInferenceService (v1alpha1, v1alpha2).

Source: kserve/kserve pkg/apis/serving. A component's pod spec lies inline beside the serving
fields; minReplicas defaults to 1. What a ServingRuntime or a base config would add is unknown
without it.
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.workloads.groups import leader_worker_pods
from kubectl_gpuadmit.kube.workloads.model import SUPPLIED_IMAGE
from kubectl_gpuadmit.kube.workloads.reading import Reading

_COMPONENTS = ("predictor", "transformer", "explainer")
_FRAMEWORKS = (
    "model",
    "tensorflow",
    "pytorch",
    "triton",
    "huggingface",
    "sklearn",
    "xgboost",
    "onnx",
    "pmml",
    "lightgbm",
    "paddle",
    "art",
    "alibi",
)
_POD_SPEC_FIELDS = frozenset(
    {
        "containers",
        "initContainers",
        "volumes",
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "schedulerName",
        "priorityClassName",
        "runtimeClassName",
        "serviceAccountName",
        "hostNetwork",
        "hostIPC",
        "hostPID",
        "overhead",
        "resourceClaims",
        "terminationGracePeriodSeconds",
        "restartPolicy",
        "schedulingGates",
    }
)


def inference_service(reading: Reading) -> None:
    if not reading.mapping("/spec/predictor"):
        reading.fail(
            "/spec/predictor", "an InferenceService needs a predictor", ref="missing-field"
        )
    for component in _COMPONENTS:
        if reading.mapping(f"/spec/{component}"):
            _component(reading, component)


def _component(reading: Reading, component: str) -> None:
    at = f"/spec/{component}"
    own = reading.mapping(at)
    least = reading.count(f"{at}/minReplicas", 1)
    most = reading.at(f"{at}/maxReplicas")
    spec, paths = _inline(reading, at, own)
    role = "" if component == "predictor" else component
    labels = {"serving.kserve.io/inferenceservice": reading.base, "component": component}
    metadata = {k: own[k] for k in ("labels", "annotations") if isinstance(own.get(k), dict)}
    reading.charge("services")
    workers = reading.mapping(f"{at}/workerSpec")
    if workers:
        _multi_node(reading, at, role, max(least, 1), spec, paths, workers)
        return
    reading.charge("deployments.apps")
    reading.charge("replicasets.apps")
    reading.group(
        role,
        least,
        "-",
        template={"metadata": metadata, "spec": spec},
        paths=paths,
        labels=labels,
        generate=f"{reading.base}-{component}-",
    )
    if most is None or most != least:
        maximum = reading.count(f"{at}/maxReplicas", 0) or None
        reading.autoscaled(f"{at}/maxReplicas", start=least, maximum=maximum, role=component)


def _inline(
    reading: Reading, at: str, own: dict[str, Any]
) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """The pod spec of a component, and where its parts lie."""
    spec = {k: v for k, v in own.items() if k in _POD_SPEC_FIELDS}
    framework = next((f for f in _FRAMEWORKS if isinstance(own.get(f), dict)), "")
    if not framework:
        return spec, (("/spec", at),)
    container = {"name": "kserve-container", "image": SUPPLIED_IMAGE, **own[framework]}
    others = spec.get("containers")
    spec["containers"] = [container, *(others if isinstance(others, list) else ())]
    if not _names_gpu(container):
        runtime = reading.text(f"{at}/{framework}/runtime") if framework == "model" else ""
        named = f"ServingRuntime {runtime}" if runtime else f"the {framework} ServingRuntime"
        reading.unknown(
            f"resources that {named} gives the container: the {at.rsplit('/', 1)[1]} names no GPU "
            "itself",
            hint="write the GPU under resources.limits, or export ServingRuntimes too",
        )
    # The framework's own block is container 0, so a container list beside it is shifted by one.
    paths = [("/spec/containers/0", f"{at}/{framework}")]
    paths += [
        (f"/spec/containers/{i + 1}", f"{at}/containers/{i}")
        for i in range(len(spec["containers"]) - 1)
    ]
    return spec, (*paths, ("/spec", at))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names_gpu(container: Any) -> bool:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return False
    return any(
        isinstance(part, dict) and any(isinstance(k, str) and gpus.is_gpu(k) for k in part)
        for part in (resources.get("limits"), resources.get("requests"))
    )


def _multi_node(
    reading: Reading,
    at: str,
    role: str,
    replicas: int,
    spec: dict[str, Any],
    paths: tuple[tuple[str, str], ...],
    workers: dict[str, Any],
) -> None:
    """A head and pipelineParallelSize - 1 workers a replica; the size counts nodes (default 2)."""
    reading.gang = True
    size = reading.count(f"{at}/workerSpec/pipelineParallelSize", 2, minimum=1)
    worker_spec = {k: v for k, v in workers.items() if k in _POD_SPEC_FIELDS}
    tensor = reading.at(f"{at}/workerSpec/tensorParallelSize")
    named = [c for s in (spec, worker_spec) for c in _items(s.get("containers")) if _names_gpu(c)]
    if tensor is not None and not named:
        reading.unknown(
            f"GPUs that KServe sets from tensorParallelSize {tensor} where a container names none",
            hint="write nvidia.com/gpu under the containers' limits",
            level="deny",
        )
    prefix = f"{role}-" if role else ""
    reading.group(
        f"{prefix}head",
        replicas,
        "-",
        template={"spec": spec},
        paths=paths,
        generate=f"{reading.base}-predictor-",
    )
    reading.group(
        f"{prefix}worker",
        replicas * (size - 1),
        "-",
        template={"spec": worker_spec},
        paths=(("/spec", f"{at}/workerSpec"),),
        generate=f"{reading.base}-predictor-worker-",
    )


def llm_inference_service(reading: Reading) -> None:
    """The top level is the (decode) workload, ``prefill`` a second one of the same shape."""
    prefill = reading.mapping("/spec/prefill")
    _llm_workload(reading, "/spec", "decode" if prefill else "", "")
    if prefill:
        _llm_workload(reading, "/spec/prefill", "prefill", "-prefill")
    if reading.sequence("/spec/baseRefs"):
        reading.unknown(
            "LLMInferenceServiceConfigs named by baseRefs: they may add to the pods",
            hint="check the Deployments that KServe makes of it",
        )


def _llm_workload(reading: Reading, at: str, role: str, suffix: str) -> None:
    start = reading.count(f"{at}/replicas", 1)
    if reading.mapping(f"{at}/scaling"):
        start = reading.count(f"{at}/scaling/minReplicas", 1)
        maximum = reading.count(f"{at}/scaling/maxReplicas", 0) or None
        reading.autoscaled(f"{at}/scaling/maxReplicas", start=start, maximum=maximum, role=role)
    metadata = {
        k: reading.mapping(f"{at}/{k}")
        for k in ("labels", "annotations")
        if reading.at(f"{at}/{k}")
    }
    head = _with_images(reading.mapping(f"{at}/template"))
    if not head:
        reading.unknown(
            f"pod template of {role or 'the workload'}: it names none, so KServe's default config "
            "decides",
            hint=f"write {at}/template with the container named main",
            level="deny",
        )
    paths = (("/spec", f"{at}/template"),)
    base = f"{reading.base}-kserve{suffix}"
    worker = reading.at(f"{at}/worker")
    if worker is None:
        reading.charge("deployments.apps")
        reading.charge("replicasets.apps")
        reading.group(
            role,
            start,
            "-",
            template={"metadata": metadata, "spec": head},
            paths=paths,
            generate=f"{base}-",
        )
        return
    reading.gang = True
    reading.charge("leaderworkersets.leaderworkerset.x-k8s.io")
    leader_worker_pods(
        reading,
        replicas=start,
        size=_nodes(reading, f"{at}/parallelism"),
        leader="-",
        worker="-",
        base=f"{base}-mn",
        prefix=f"{role}-" if role else "",
        leader_template={"metadata": metadata, "spec": head},
        worker_template={
            "metadata": metadata,
            "spec": _with_images(reading.mapping(f"{at}/worker")),
        },
        leader_paths=paths,
        worker_paths=(("/spec", f"{at}/worker"),),
    )


def _with_images(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod spec; KServe's default config gives containers their image where none is written."""
    listed = spec.get("containers")
    if not isinstance(listed, list):
        return spec
    filled = [{"image": SUPPLIED_IMAGE, **c} if isinstance(c, dict) else c for c in listed]
    return {**spec, "containers": filled}


def _nodes(reading: Reading, at: str) -> int:
    """Nodes of one replica: data / dataLocal, else pipeline (v1alpha1 ParallelismSpec)."""
    data = reading.count(f"{at}/data", 0)
    local = reading.count(f"{at}/dataLocal", 0)
    if data and local:
        return max(-(-data // local), 1)
    pipeline = reading.count(f"{at}/pipeline", 0)
    if not pipeline:
        reading.unknown(
            f"number of nodes a replica: {at} gives neither data with dataLocal nor pipeline; "
            "judged for 2",
            hint=f"write {at}/pipeline",
        )
    return pipeline or 2
