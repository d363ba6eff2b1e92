"""Every manifest of the corpus has the reading that its index gives, or one clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import corpus, items, needs_corpus
from given import devices

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.verdict import Skipped

FOLDER = (corpus() or Path("absent")) / "workloads"

NVIDIA = "nvidia.com/gpu"

# file -> (devices over all pods of all workloads, kinds that make them), read from the index.
DEVICES: dict[str, tuple[dict[str, int], list[str]]] = {
    "001-vllm-gie-deployment.yaml": ({NVIDIA: 2}, ["Deployment"]),
    "003-kserve-isvc-tf-gpu.yaml": ({NVIDIA: 1}, ["InferenceService"]),
    "004-kserve-isvc-autoscale.yaml": ({NVIDIA: 1}, ["InferenceService"]),
    "007-kserve-llmisvc-nemotron-pd.yaml": ({NVIDIA: 16}, ["LLMInferenceService"]),
    "008-kserve-llmisvc-pd-qwen.yaml": ({NVIDIA: 3}, ["LLMInferenceService"]),
    "009-nim-service.yaml": ({NVIDIA: 1}, ["NIMCache", "NIMService"]),
    "011-nim-rag-pipeline.yaml": ({NVIDIA: 3}, ["NIMPipeline"]),
    "013-lws-vllm.yaml": ({NVIDIA: 32}, ["LeaderWorkerSet"]),
    "014-lws-sglang.yaml": ({NVIDIA: 4}, ["LeaderWorkerSet"]),
    "015-lws-trtllm.yaml": ({NVIDIA: 16}, ["LeaderWorkerSet"]),
    "016-lws-tpu.yaml": ({"google.com/tpu": 48}, ["LeaderWorkerSet"]),
    "017-lws-405b-trn1.yaml": ({"aws.amazon.com/neuron": 64}, ["LeaderWorkerSet"]),
    "019-jobset-tpu-multislice.yaml": ({"google.com/tpu": 32}, ["JobSet"]),
    "020-jobset-nccl-a3ultra.yaml": ({NVIDIA: 32}, ["JobSet"]),
    "022-trainer-runtime-torchtune.yaml": ({}, []),
    "023-trainjob-flux-gpus.yaml": ({NVIDIA: 2}, ["TrainJob"]),
    "024-rayjob-pytorch.yaml": ({NVIDIA: 1}, ["RayJob"]),
    "025-rayservice-deepseek.yaml": ({NVIDIA: 16}, ["RayService"]),
    "026-raycluster-verl.yaml": ({NVIDIA: 4}, ["RayCluster"]),
    "028-rayservice-falcon40b-gke.yaml": ({NVIDIA: 2}, ["RayService"]),
    "031-kueue-hami.yaml": ({NVIDIA: 2}, ["Deployment"]),
    "032-kueue-provisioning-job.yaml": ({NVIDIA: 3}, ["Job"]),
    "033-tgi-llama3-70b.yaml": ({NVIDIA: 2}, ["Deployment"]),
    "038-statefulset-vit.yaml": ({NVIDIA: 1}, ["StatefulSet"]),
    "039-job-patch-jax.yaml": ({NVIDIA: 1}, ["Job"]),
    "040-deployment-triton.yaml": ({NVIDIA: 1}, ["Deployment"]),
    "041-job-axolotl.yaml": ({NVIDIA: 1}, ["Job"]),
    "045-pytorchjob-hyperpod-team.yaml": ({NVIDIA: 3}, ["Deployment", "PyTorchJob"]),
    "046-mpijob-nccl.yaml": ({NVIDIA: 16}, ["MPIJob"]),
    "048-kaito-workspace.yaml": ({NVIDIA: 1}, ["Workspace"]),
    "049-aibrix-stormservice-pd.yaml": ({NVIDIA: 12}, ["StormService"]),
    "050-hami-default.yaml": ({NVIDIA: 1}, ["Pod"]),
    "052-hami-mig.yaml": ({"nvidia.com/mig-3g.20gb": 1}, ["Pod"]),
    "053-hami-cross-vgpu-vllm.yaml": ({NVIDIA: 2}, ["Deployment"]),
    "055-aliyun-gpumem-gib.yaml": ({"aliyun.com/gpu-mem": 2}, ["Deployment"]),
    "056-kai-pytorchjob.yaml": ({NVIDIA: 3}, ["PyTorchJob"]),
    "057-kai-two-queue-jobs.yaml": ({NVIDIA: 16}, ["Pod", "Pod"]),
    "058-intel-i915-job.yaml": ({"gpu.intel.com/i915": 1}, ["Job"]),
    "059-intel-dxg-wsl.yaml": ({"gpu.intel.com/dxg": 1}, ["Job"]),
    "060-amd-vllm.yaml": ({"amd.com/gpu": 1}, ["Deployment"]),
    "061-amd-jax-multi.yaml": ({"amd.com/gpu": 2}, ["Pod"]),
    "065-runai-fraction-reservation.yaml": ({NVIDIA: 1}, ["Pod"]),
    "066-runai-mig-pod.yaml": ({"nvidia.com/mig-1g.5gb": 1}, ["Pod"]),
    "067-mixed-objects.yaml": ({NVIDIA: 2}, ["Deployment", "StatefulSet", "Pod"]),
    "068-deviceplugin-testjob.yaml": ({NVIDIA: 1}, ["Job"]),
    "069-dranet-mi300x-mpijob.yaml": ({"amd.com/gpu": 16}, ["MPIJob"]),
    "070-helm-nccl-tcpxo-pods.yaml": ({NVIDIA: 16}, ["Pod", "Pod"]),
    "075-dynamo-dgd-v1alpha1.yaml": ({NVIDIA: 4}, ["DynamoGraphDeployment"]),
    "076-dynamo-dgd-v1beta1-no-gpu.yaml": ({}, ["DynamoGraphDeployment"]),
    "079-job-gang-workload-podgroup-kep5547.yaml": ({NVIDIA: 4}, ["Job"]),
    "080-daemonset-agent-no-request.yaml": ({}, ["DaemonSet"]),
    "081-daemonset-deviceplugin-toleration-only.yaml": ({}, ["DaemonSet"]),
    "083-podlist-pending-5gpu.json": ({NVIDIA: 5}, ["Pod"]),
    "084-elasticquota-gpu.yaml": ({}, []),
    "086-ollama-gpu-strings.yaml": ({NVIDIA: 1}, ["Deployment"]),
    "087-cronjob-train-hourly.yaml": ({NVIDIA: 1}, ["CronJob"]),
    "089-resourcequota-list.yaml": ({}, []),
}

# What must be said where there is no plain number.
SAID: dict[str, list[str]] = {
    "003-kserve-isvc-tf-gpu.yaml": ["audit spec/autoscaled"],
    "004-kserve-isvc-autoscale.yaml": ["audit spec/autoscaled"],
    "009-nim-service.yaml": ["audit spec/autoscaled"],
    "015-lws-trtllm.yaml": ["warn spec/unresolved-template"],
    "019-jobset-tpu-multislice.yaml": ["unknown affinities that JobSet's own webhook adds"],
    "022-trainer-runtime-torchtune.yaml": [
        "not-a-workload a template: pods come only with a TrainJob that names it; a pod template "
        "at /spec/template/spec/replicatedJobs/0/template/spec/template asks no GPU; "
        "a pod template at /spec/template/spec/replicatedJobs/1/template/spec/template asks no "
        "GPU; a pod template at /spec/template/spec/replicatedJobs/2/template/spec/template asks "
        "2 nvidia.com/gpu"
    ],
    "023-trainjob-flux-gpus.yaml": ["unknown ClusterTrainingRuntime flux-distributed"],
    "037-infw-gw-shell-defaults.yaml": [
        "unknown-kind unknown kind, not judged; /spec/resources/requests/nvidia.com~1gpu asks "
        "${GPU_REQUEST:-1} nvidia.com/gpu (an unresolved placeholder); "
        "/spec/resources/limits/nvidia.com~1gpu asks ${GPU_LIMIT:-1} nvidia.com/gpu (an unresolved "
        "placeholder); declare it in the policy: kinds: [{apiVersion: "
        "inference.networking.x-k8s.io/v1alpha2, kind: InferenceModel, podTemplate: "
        ".spec.template}]"
    ],
    "042-pytorchjob-envsubst.yaml": [
        "audit spec/autoscaled",
        "deny spec/unresolved-template",
        "unknown replicas at /spec/pytorchReplicaSpecs/Worker/replicas",
        "unknown the amount of nvidia.com/gpu at "
        "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/resources/limits/"
        "nvidia.com~1gpu",
        "unknown the amount of vpc.amazonaws.com/efa at "
        "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/resources/limits/"
        "vpc.amazonaws.com~1efa",
        "warn spec/unresolved-template",
    ],
    "043-hyperpod-pytorchjob.yaml": [
        "unknown-kind unknown kind, not judged; a pod template at /spec/replicaSpecs/0/template "
        "asks $GPU_PER_NODE nvidia.com/gpu; declare it in the policy: kinds: [{apiVersion: "
        "sagemaker.amazonaws.com/v1, kind: HyperPodPyTorchJob, podTemplate: "
        ".spec.replicaSpecs[*].template}]"
    ],
    "045-pytorchjob-hyperpod-team.yaml": ["audit spec/autoscaled"],
    "046-mpijob-nccl.yaml": ["warn spec/unresolved-template"],
    "075-dynamo-dgd-v1alpha1.yaml": ["warn spec/misplaced-gpu"],
    "076-dynamo-dgd-v1beta1-no-gpu.yaml": ["warn spec/unresolved-template"],
    "077-dynamo-dgdr-request.yaml": ["unknown GPUs of the graph for Qwen/Qwen3-0.6B"],
    "079-job-gang-workload-podgroup-kep5547.yaml": [
        "deny spec/unresolved-template",
        "unknown the name at /metadata/name",
    ],
    "088-prescaledcronjob-crd.yaml": [
        "unknown-kind unknown kind, not judged; a pod template at "
        "/spec/cronJob/spec/jobTemplate/spec/template asks 1 nvidia.com/gpu; declare it in the "
        "policy: kinds: [{apiVersion: psc.cronprimer.local/v1alpha1, kind: PreScaledCronJob, "
        "podTemplate: .spec.cronJob.spec.jobTemplate.spec.template}]"
    ],
}

# No number of its own is asserted: unreadable, refused, or unknown as SAID says.
NO_YAML = {"035-vllm-gemma-misindented.yaml", "071-infw-gw-20k.yaml"}
REFUSED = {"073-fraction-string-half.yaml"}
"""4 pods of half a GPU: no whole number of devices, so the API server refuses every pod."""

FILES = [item.path.name for item in items("workloads")]


def _documents(name: str) -> list[Document]:
    read = list(read_documents((FOLDER / name).read_bytes(), name))
    assert [d for d in read if isinstance(d, BadManifest)] == []
    return [d for d in read if isinstance(d, Document)]


@needs_corpus
def test_every_file_of_the_corpus_is_in_the_tables() -> None:
    assert set(FILES) == set(DEVICES) | set(SAID) | NO_YAML | REFUSED


@needs_corpus
@pytest.mark.parametrize("name", [f for f in FILES if f not in NO_YAML])
def test_a_manifest_of_the_corpus_asks_for_what_its_index_says(name: str) -> None:
    total: dict[str, int] = {}
    kinds: list[str] = []
    said: set[str] = set()
    for document in _documents(name):
        made = expand(document)
        if isinstance(made, Skipped):
            if made.detail != "makes no pods":
                said.add(f"{made.treated} {made.detail}")
            continue
        kinds.append(made.ref.kind)
        for resource, amount in devices(made).items():
            total[resource] = total.get(resource, 0) + amount
        said |= {f"{f.level} {f.reason}" for f in made.findings}
        said |= {f"unknown {u.missing.split(':')[0]}" for u in made.unknowns}
    assert sorted(said) == sorted(SAID.get(name, []))
    if name in DEVICES:
        assert (total, kinds) == DEVICES[name]


@needs_corpus
@pytest.mark.parametrize("name", sorted(NO_YAML))
def test_what_does_not_load_is_one_clear_error_with_its_line(name: str) -> None:
    read = list(read_documents((FOLDER / name).read_bytes(), name))
    errors = [d for d in read if isinstance(d, BadManifest)]
    assert [(e.file, e.line > 0, bool(e.message)) for e in errors] == [(name, True, True)]


@needs_corpus
def test_half_a_gpu_is_left_for_the_api_server_to_refuse() -> None:
    (document,) = _documents("073-fraction-string-half.yaml")
    made = expand(document)
    assert isinstance(made, Workload)
    (group,) = made.groups
    (container,) = group.pod.spec.containers or ()
    assert container.resources is not None
    assert (group.count, container.resources.requests, made.queue) == (
        4,
        {"nvidia.com/gpu": "0.5"},
        "Volcano queue default",
    )
