"""What real manifests serve: every GPU workload of the corpus has the right model, or says why it
has none."""

from __future__ import annotations

from collections import Counter

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.sizing.recognise import recognised
from kubectl_gpuadmit.sizing.recognition import Naming
from tests.corpus import items, needs_corpus

SERVED = {
    "001-vllm-gie-deployment.yaml": {("vllm", "meta-llama/Llama-3.2-1B-Instruct", 1)},
    "007-kserve-llmisvc-nemotron-pd.yaml": {
        ("vllm", "RedHatAI/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8-block", 8)
    },
    "008-kserve-llmisvc-pd-qwen.yaml": {("vllm", "Qwen/Qwen2.5-7B-Instruct", 1)},
    "009-nim-service.yaml": {("nim", "meta/llama-3.2-1b-instruct", 1)},
    "011-nim-rag-pipeline.yaml": {
        ("nim", "meta/llama-3.1-8b-instruct", 1),
        ("nim", "nvidia/llama-3.2-nv-embedqa-1b-v2", 1),
        ("nim", "nvidia/llama-3.2-nv-rerankqa-1b-v2", 1),
    },
    "013-lws-vllm.yaml": {
        ("vllm", "meta-llama/Llama-3.1-405B-Instruct", 16),
        ("follower", "", 1),
    },
    "014-lws-sglang.yaml": {("sglang", "meta-llama/Meta-Llama-3.1-8B-Instruct", 2)},
    "025-rayservice-deepseek.yaml": {("ray", "deepseek-ai/DeepSeek-R1", 16)},
    "033-tgi-llama3-70b.yaml": {("tgi", "meta-llama/Meta-Llama-3-70B-Instruct", 2)},
    "049-aibrix-stormservice-pd.yaml": {("vllm", "/models/Qwen3-8B", 1)},
    "053-hami-cross-vgpu-vllm.yaml": {("vllm", "Qwen/Qwen2.5-3B-Instruct", 2)},
    "060-amd-vllm.yaml": {("vllm", "mistralai/Mistral-7B-v0.3", 1)},
}
"""File -> (engine, model, GPUs of one replica) of its pods; read by a person in each file."""

OPEN = {
    "015-lws-trtllm.yaml": "container leader tells --triton_model_repo_dir to a program",
    "028-rayservice-falcon40b-gke.yaml": "Ray Serve application model_nf4_mg:chat_app_nf4_mg",
    "040-deployment-triton.yaml": "Triton loads what its model repository holds",
    "048-kaito-workspace.yaml": "container custom-llm-container tells --pretrained_model",
    "075-dynamo-dgd-v1alpha1.yaml": "the object does not say which model its engine loads",
    "086-ollama-gpu-strings.yaml": "Ollama loads the models that requests name",
}
"""Files that serve a model which nobody can tell from them, and how the reason begins."""


@needs_corpus
def test_each_gpu_workload_serves_what_it_serves_or_says_why_nobody_knows() -> None:
    served: dict[str, set[tuple[str, str, int]]] = {}
    open_: dict[str, str] = {}
    tally: Counter[str] = Counter()
    for item in items("workloads"):
        name = item.path.name
        for document in read_documents(item.path.read_bytes(), name):
            if isinstance(document, BadManifest):
                continue
            try:
                made = expand(document)
            except BadManifest:
                continue
            for group in made.groups if isinstance(made, Workload) else ():
                if not pod_gpus(group.pod) and not group.pod.spec.resourceClaims:
                    continue
                assert isinstance(made, Workload)
                found = recognised(
                    made.manifest,
                    made.ref.kind,
                    group.role,
                    group.template,
                    naming=Naming(),
                    config=lambda name: f"ConfigMap {name}: not in the source",
                )
                if not found.found:
                    assert found.why, name
                    tally["no model" if found.certain else "no engine known"] += 1
                for one in found.found:
                    if one.model or one.follows:
                        world = one.serving.world_size
                        served.setdefault(name, set()).add((one.engine, one.model, world))
                        tally["model"] += 1
                    else:
                        open_.setdefault(name, one.missing[0])
                        tally["model not known"] += 1
    assert served == SERVED
    assert open_.keys() == OPEN.keys()
    assert {n: why for n, why in open_.items() if not why.startswith(OPEN[n])} == {}
    assert tally == {"model": 19, "model not known": 7, "no model": 22, "no engine known": 12}
