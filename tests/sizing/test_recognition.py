"""What people write to start an engine -> model and arguments, and from where each was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from kubectl_gpuadmit.sizing.recognise import recognised
from kubectl_gpuadmit.sizing.recognition import Naming, Recognised, Recognition
from kubectl_gpuadmit.sizing.serving import Serving

CONFIG = {
    "engine": {
        "config.yaml": "model: Qwen/Qwen3-8B\nmax_model_len: 8192\ntensor-parallel-size: 2\n",
        "start.sh": "#!/bin/bash\nset -e\nexec vllm serve $MODEL --max-model-len ${LEN:-4096}\n",
        "MODEL": "Qwen/Qwen3-4B",
        "extra.yaml": "kv_cache_config:\n  free_gpu_memory_fraction: 0.8\n  dtype: fp8\n",
    }
}


def config(name: str) -> Mapping[str, str] | str:
    return CONFIG.get(name, f"ConfigMap {name}: not in the source")


def pod(text: str, *, kind: str = "Deployment", **manifest: Any) -> Recognition:
    """``text`` is one container as YAML; it gets two GPUs unless it says otherwise."""
    container = {
        "name": "server",
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
        **yaml.safe_load(text),
    }
    volumes = [{"name": "engine", "configMap": {"name": "engine"}}]
    template = {
        "metadata": manifest.pop("metadata", {}),
        "spec": {"containers": [container], "volumes": volumes, **manifest.pop("spec", {})},
    }
    naming = manifest.pop("naming", Naming())
    return recognised(manifest, kind, "", template, naming=naming, config=config)


def one(text: str, **more: Any) -> Recognised:
    found = pod(text, **more)
    assert len(found.found) == 1, found
    return found.found[0]


def told(text: str, **more: Any) -> dict[str, Any]:
    """The fields of ``Serving`` that were said, and the model."""
    found = one(text, **more)
    plain: dict[str, Any] = to_builtins(found.serving)
    default: dict[str, Any] = to_builtins(Serving())
    said = {k: v for k, v in plain.items() if v != default[k] or k == "engine"}
    return {"model": found.model, **said}


# -- engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "means"),
    [
        pytest.param(
            """
            image: vllm/vllm-openai:v0.11.0
            args: [--model=Qwen/Qwen3-8B, -tp, "2", --max_model_len, 16k,
                   --no-enable-prefix-caching, --gpu-memory-utilization, "0.92",
                   --kv-cache-dtype, fp8, --max-num-seq, "64"]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "vllm",
                "version": "0.11.0",
                "tensor_parallel_size": 2,
                "max_model_len": 16000,
                "enable_prefix_caching": False,
                "gpu_memory_utilization": 0.92,
                "kv_cache_dtype": "fp8",
                "max_num_seqs": 64,
            },
            id="vllm arguments: equals signs, short names, underscores, beginnings, negations",
        ),
        pytest.param(
            """
            image: registry.example.com/own:1
            command: [sh, -c]
            args:
            - |
              export MODEL=Qwen/Qwen3-8B TP=2
              # the cache is on a volume
              HF_HOME=/cache exec python3 -m vllm.entrypoints.openai.api_server \\
                --model "$MODEL" \\
                --tensor-parallel-size=${TP} --max-model-len 8K && echo done
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "vllm",
                "tensor_parallel_size": 2,
                "max_model_len": 8192,
            },
            id="a shell with variables, continuations, exec and an assignment before the command",
        ),
        pytest.param(
            """
            image: vllm/vllm-openai:latest
            command: [vllm, serve, $(MODEL)]
            args: [--max-model-len, $(LEN), --speculative-config,
                   '{"method": "eagle3", "model": "org/draft", "num_speculative_tokens": 3}']
            env: [{name: BASE, value: Qwen}, {name: MODEL, value: $(BASE)/Qwen3-8B},
                  {name: LEN, value: "2048"}]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "vllm",
                "max_model_len": 2048,
                "speculative_method": "eagle3",
                "speculative_model": "org/draft",
                "num_speculative_tokens": 3,
            },
            id="references that the kubelet replaces, one of them inside another",
        ),
        pytest.param(
            """
            image: vllm/vllm-openai:v0.10.2
            args: [--config, /etc/engine/config.yaml, --max-model-len, "4096"]
            volumeMounts: [{name: engine, mountPath: /etc/engine}]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "vllm",
                "version": "0.10.2",
                "max_model_len": 4096,
                "tensor_parallel_size": 2,
            },
            id="a config file of a ConfigMap, which the command line overrides",
        ),
        pytest.param(
            """
            image: registry.example.com/own:1
            command: [/opt/start.sh]
            env: [{name: MODEL, valueFrom: {configMapKeyRef: {name: engine, key: MODEL}}}]
            volumeMounts: [{name: engine, mountPath: /opt/start.sh, subPath: start.sh}]
            """,
            {"model": "Qwen/Qwen3-4B", "engine": "vllm", "max_model_len": 4096},
            id="a script and a variable out of a ConfigMap",
        ),
        pytest.param(
            """
            image: lmsysorg/sglang:v0.5.2
            command: [python3, -m, sglang.launch_server]
            args: [--model-path, Qwen/Qwen3-8B, --tp, "2", --mem-fraction-static, "0.85",
                   --context-length, "8192", --disable-cuda-graph, --enable-dp-attention]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "sglang",
                "version": "0.5.2",
                "tensor_parallel_size": 2,
                "mem_fraction_static": 0.85,
                "max_model_len": 8192,
                "enforce_eager": True,
                "enable_dp_attention": True,
            },
            id="sglang",
        ),
        pytest.param(
            """
            image: ghcr.io/huggingface/text-generation-inference:3.3.4
            args: [--max-total-tokens, "8192"]
            env: [{name: MODEL_ID, value: Qwen/Qwen3-8B}, {name: QUANTIZE, value: fp8},
                  {name: MAX_TOTAL_TOKENS, value: "4096"}]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "tgi",
                "version": "3.3.4",
                "quantization": "fp8",
                "max_model_len": 8192,
                "tensor_parallel_size": 2,
            },
            id="tgi: environment, flags above it, every GPU a shard by default",
        ),
        pytest.param(
            """
            image: nvcr.io/nvidia/tensorrt-llm/release:1.0.0
            command: [trtllm-serve, serve, Qwen/Qwen3-8B, --tp_size, "2", --max_seq_len, "4096",
                      --kv_cache_free_gpu_memory_fraction, "0.9",
                      --extra_llm_api_options, /opt/extra.yaml]
            volumeMounts: [{name: engine, mountPath: /opt}]
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "tensorrt-llm",
                "tensor_parallel_size": 2,
                "max_model_len": 4096,
                "free_gpu_memory_fraction": 0.8,
                "kv_cache_dtype": "fp8",
            },
            id="tensorrt-llm: its options file overrides the command line",
        ),
        pytest.param(
            """
            image: nvcr.io/nvidia/tensorrt-llm/release:1.0.0
            command: [bash, -c]
            args:
            - |
              cat > /tmp/options.yaml <<EOF
              kv_cache_config: {free_gpu_memory_fraction: 0.7}
              EOF
              trtllm-serve Qwen/Qwen3-8B --extra_llm_api_options /tmp/options.yaml
            """,
            {"model": "Qwen/Qwen3-8B", "engine": "tensorrt-llm", "free_gpu_memory_fraction": 0.7},
            id="an options file that the script itself writes",
        ),
        pytest.param(
            """
            image: ghcr.io/ggml-org/llama.cpp:server-cuda
            args: [-hf, "unsloth/Qwen3-8B-GGUF:Q4_K_M", -c, "8192", -np, "4", -ngl, "99", -fa, "on"]
            """,
            {
                "model": "unsloth/Qwen3-8B-GGUF",
                "engine": "llama.cpp",
                "max_model_len": 8192,
                "max_num_seqs": 4,
                "n_gpu_layers": 99,
                "flash_attention": True,
                "pipeline_parallel_size": 2,
            },
            id="llama.cpp spreads layers over both GPUs",
        ),
        pytest.param(
            """
            image: nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4
            env: [{name: NIM_MAX_MODEL_LEN, value: "8192"},
                  {name: NIM_TENSOR_PARALLEL_SIZE, value: "1"}]
            """,
            {
                "model": "meta/llama-3.1-8b-instruct",
                "engine": "nim",
                "max_model_len": 8192,
                "tensor_parallel_size": 1,
            },
            id="a NIM is its image",
        ),
        pytest.param(
            """
            image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0
            command: [python3, -m, dynamo.vllm, --model, Qwen/Qwen3-8B, --is-prefill-worker]
            """,
            {"model": "Qwen/Qwen3-8B", "engine": "vllm"},
            id="dynamo over vllm",
        ),
        pytest.param(
            """
            image: kserve/huggingfaceserver:latest-gpu
            args: [--model_name=chat, --model_id=Qwen/Qwen3-8B, --max_model_len=4096]
            """,
            {"model": "Qwen/Qwen3-8B", "engine": "vllm", "max_model_len": 4096},
            id="kserve's own server over vllm",
        ),
        pytest.param(
            """
            image: registry.example.com/own:1
            command: [tini, --, env, VLLM_USE_V1=1, timeout, -k, "5", "1h", numactl, -N, "0",
                      python, -u, -m, vllm.entrypoints.openai.api_server, --model, Qwen/Qwen3-8B]
            """,
            {"model": "Qwen/Qwen3-8B", "engine": "vllm"},
            id="launchers before the program",
        ),
        pytest.param(
            """
            image: vllm/vllm-openai:v0.11.0
            args: [Qwen/Qwen3-Embedding-8B, --task, embed]
            env: [{name: PYTORCH_CUDA_ALLOC_CONF, value: "expandable_segments:True"}]
            """,
            {
                "model": "Qwen/Qwen3-Embedding-8B",
                "engine": "vllm",
                "version": "0.11.0",
                "runner": "pooling",
                "expandable_segments": True,
            },
            id="an embedding model, and the allocator's setting",
        ),
        pytest.param(
            """
            image: registry.example.com/own:1
            command: [bash, -c]
            args:
            - |
              ARGS=(--tensor-parallel-size 2)
              ARGS+=(--max-model-len "8192")
              vllm serve Qwen/Qwen3-8B "${ARGS[@]}" 2>&1 | tee /var/log/vllm.log
            """,
            {
                "model": "Qwen/Qwen3-8B",
                "engine": "vllm",
                "tensor_parallel_size": 2,
                "max_model_len": 8192,
            },
            id="arrays of bash, and a pipe behind it",
        ),
    ],
)
def test_each_engine_is_read_as_people_start_it(container: str, means: dict[str, Any]) -> None:
    assert told(container) == means


# -- where it was read -------------------------------------------------------------------------


def test_every_argument_says_where_it_stood() -> None:
    found = one(
        """
        image: vllm/vllm-openai:v0.11.0
        args: [--model, Qwen/Qwen3-8B, -tp, "2"]
        """
    )
    assert [(g.field, g.value, g.text, g.where, g.pointer) for g in found.given] == [
        ("model", "Qwen/Qwen3-8B", "--model Qwen/Qwen3-8B", "args", "/spec/containers/0/args/0"),
        ("tensor_parallel_size", 2, "-tp 2", "args", "/spec/containers/0/args/2"),
    ]
    assert found.model_from == "args of container server"


def test_an_annotation_counts_before_arguments_and_these_before_the_image() -> None:
    text = "{image: 'registry.example.com/llm:8b', args: [vllm, serve, Qwen/Qwen3-8B]}"
    naming = Naming(images={"registry.example.com/llm:*": "acme/by-image"})
    assert one(text, naming=naming).model == "Qwen/Qwen3-8B"
    named = one(text, metadata={"annotations": {"gpu-admit.io/model": "acme/named"}})
    assert (named.model, named.model_from) == ("acme/named", "annotation gpu-admit.io/model")
    assert named.contradictions == (
        "annotation gpu-admit.io/model says acme/named, args of container server Qwen/Qwen3-8B: "
        "the former counts",
    )
    bare = one("{image: 'registry.example.com/llm:8b'}", naming=naming)
    assert (bare.model, bare.engine) == ("acme/by-image", "unknown")


def test_a_label_that_the_policy_names_is_read() -> None:
    found = one(
        "{image: 'registry.example.com/own:1'}",
        naming=Naming(labels=("ai.example.com/model",)),
        metadata={"labels": {"ai.example.com/model": "gemma-7b"}},
    )
    assert (found.model, found.model_from) == ("gemma-7b", "label ai.example.com/model")


def test_a_model_that_an_init_container_downloads_is_known_by_its_folder() -> None:
    download = {
        "name": "fetch",
        "image": "python:3.12",
        "command": ["sh", "-c", "hf download Qwen/Qwen3-8B --local-dir /data/models/q"],
        "volumeMounts": [{"name": "weights", "mountPath": "/data"}],
    }
    found = one(
        """
        image: vllm/vllm-openai:v0.11.0
        args: [--model, /models/q]
        volumeMounts: [{name: weights, mountPath: /models, subPath: models}]
        """,
        spec={"initContainers": [download]},
    )
    assert (found.model, found.model_from) == (
        "Qwen/Qwen3-8B",
        "init container fetch downloads it",
    )


# -- objects that say it themselves ------------------------------------------------------------


def test_a_llm_inference_service_names_model_and_parallelism() -> None:
    spec = {"model": {"uri": "hf://Qwen/Qwen3-8B"}, "parallelism": {"tensor": 2}}
    found = one(
        "{image: supplied, env: [{name: VLLM_ADDITIONAL_ARGS, value: '--max-model-len 4096'}]}",
        kind="LLMInferenceService",
        spec={},
    )
    assert found.model == ""
    naming = Naming()
    template = {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "supplied",
                    "env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": "--max-model-len 4096"}],
                    "resources": {"limits": {"nvidia.com/gpu": "2"}},
                }
            ]
        }
    }
    (read,) = recognised(
        {"spec": spec}, "LLMInferenceService", "", template, naming=naming, config=config
    ).found
    assert (read.model, read.model_from) == ("Qwen/Qwen3-8B", "spec.model.uri")
    assert (read.serving.tensor_parallel_size, read.serving.max_model_len) == (2, 4096)


def test_a_ray_service_tells_its_engine_in_its_serve_config() -> None:
    serve = yaml.safe_dump(
        {
            "applications": [
                {
                    "import_path": "ray.serve.llm:build_openai_app",
                    "args": {
                        "llm_configs": [
                            {
                                "model_loading_config": {"model_source": "Qwen/Qwen3-8B"},
                                "engine_kwargs": {"tensor_parallel_size": 2, "dtype": "auto"},
                            }
                        ]
                    },
                }
            ]
        }
    )
    template = {
        "spec": {
            "containers": [
                {
                    "name": "ray-worker",
                    "image": "rayproject/ray-llm:2.52.0",
                    "resources": {"limits": {"nvidia.com/gpu": "2"}},
                }
            ]
        }
    }
    manifest = {"spec": {"serveConfigV2": serve}}
    (read,) = recognised(
        manifest, "RayService", "gpu", template, naming=Naming(), config=config
    ).found
    assert (read.engine, read.model, read.serving.tensor_parallel_size) == (
        "ray",
        "Qwen/Qwen3-8B",
        2,
    )


# -- what cannot be known ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "missing"),
    [
        (
            "{image: 'vllm/vllm-openai:v0.11.0', args: [--config, /etc/gone/c.yaml], "
            "volumeMounts: [{name: gone, mountPath: /etc/gone}]}",
            "--config /etc/gone/c.yaml: the file lies in configMap volume gone",
        ),
        (
            "{image: 'vllm/vllm-openai:v0.11.0', args: [--model, $(MODEL)], env: [{name: MODEL, "
            "valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
            "--model …: Secret s key k: Secrets are never read",
        ),
        (
            "{image: 'vllm/vllm-openai:v0.11.0', args: [--model, $(MODEL)], env: [{name: MODEL, "
            "valueFrom: {configMapKeyRef: {name: other, key: k}}}]}",
            "--model …: ConfigMap other: not in the source",
        ),
        (
            "{image: own, command: [sh, -c, 'vllm serve $MODEL_FROM_IMAGE']}",
            "…: variable MODEL_FROM_IMAGE: the pod does not set it, the image may",
        ),
        (
            "{image: own, command: [sh, -c, 'vllm serve `cat /model`']}",
            "…: the output of `cat /model`",
        ),
        (
            "{image: 'vllm/vllm-openai:v0.11.0', args: [--model, '<MODEL_ID>']}",
            "--model <MODEL_ID>: it is still the placeholder <MODEL_ID>",
        ),
        (
            "{image: 'vllm/vllm-openai:v0.11.0', args: [--port, '8000']}",
            "nothing names the model that container server loads",
        ),
        (
            "{image: ollama/ollama}",
            "Ollama loads the models that requests name",
        ),
        (
            "{image: 'nvcr.io/nvidia/tritonserver:25.01-py3', "
            "command: [tritonserver, --model-repository=/m]}",
            "Triton loads what its model repository holds",
        ),
    ],
)
def test_a_model_that_cannot_be_known_says_what_is_missing(container: str, missing: str) -> None:
    spec = {"volumes": [{"name": "gone", "configMap": {"name": "gone"}}]}
    found = one(container, spec=spec if "gone" in container else {})
    assert found.model == ""
    assert found.missing[0] in (
        missing,
        "--config /etc/gone/c.yaml: ConfigMap gone: not in the source",
    )


def test_a_value_that_is_not_known_never_falls_back_to_the_engines_default() -> None:
    found = one(
        "{image: 'vllm/vllm-openai:v0.11.0', args: [Qwen/Qwen3-8B, -tp, $(N)], env: [{name: N, "
        "valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}"
    )
    assert found.serving.tensor_parallel_size is None
    assert found.serving.not_understood == ("tensor_parallel_size",)
    assert found.missing == ("-tp …: env N: status.podIP is known in the pod only",)


def test_arguments_out_of_a_variable_that_nobody_sets_leave_the_answer_open() -> None:
    found = one("{image: own, command: [sh, -c, 'vllm serve Qwen/Qwen3-8B $EXTRA_ARGS']}")
    assert found.model == "Qwen/Qwen3-8B"
    assert found.serving.not_understood == (
        "the argument … (variable EXTRA_ARGS: the pod does not set it, the image may)",
    )


def test_a_value_of_the_wrong_type_is_told_and_not_guessed() -> None:
    found = one("{image: 'vllm/vllm-openai:v0.11.0', args: [Qwen/Qwen3-8B, -tp, two]}")
    assert found.missing == ("-tp two: 'two' is no whole number",)


def test_two_engines_of_which_a_branch_chooses_are_unknown_unless_they_serve_the_same() -> None:
    def script(first: str, second: str) -> Recognised:
        text = f"if [ $ROLE = a ]; then vllm serve {first}; else vllm serve {second}; fi"
        return one(yaml.safe_dump({"image": "own", "command": ["bash", "-c", text]}))

    assert script("Qwen/Qwen3-8B", "Qwen/Qwen3-4B").model == ""
    assert "which one is not known" in script("Qwen/Qwen3-8B", "Qwen/Qwen3-4B").missing[-1]
    assert script("Qwen/Qwen3-8B", "Qwen/Qwen3-8B").model == "Qwen/Qwen3-8B"


def test_a_script_that_was_written_without_its_secrets_is_read_all_the_same() -> None:
    text = "(dropped) vllm serve Qwen/Qwen3-8B (dropped) --tensor-parallel-size 2 (dropped)"
    found = one(yaml.safe_dump({"image": "own", "command": ["bash", "-c", text]}))
    assert (found.model, found.serving.tensor_parallel_size) == ("Qwen/Qwen3-8B", 2)


def test_a_worker_that_joins_another_pod_follows_it() -> None:
    found = one("{image: 'vllm/vllm-openai:v0.11.0', command: [ray, start, --address=x, --block]}")
    assert (found.follows, found.model) == (True, "")


def test_what_serves_nothing_is_certain_and_what_may_is_not() -> None:
    assert pod("{image: cuda, command: [sleep, inf]}").certain
    assert pod("{image: trainer, command: [python, train.py]}", kind="PyTorchJob").certain
    other = pod("{image: own, command: [python, app.py]}")
    assert (other.found, other.certain) == ((), False)
    assert other.why == ("container server starts a program that is no serving engine known here")


def test_a_model_flag_of_an_unknown_program_is_a_sign_that_it_serves() -> None:
    text = "{image: own, command: [python, app.py, --model-path, Qwen/Qwen3-8B]}"
    assert one(text).missing == (
        "container server tells --model-path to a program that is no engine known here",
    )
    assert pod(text, kind="Job").found == ()


# -- anything at all ---------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *("vllm", "serve", "--model", "-tp", "2", "$(X)", "${Y:-z}", "sh", "-c", "exec", "&&"),
        *("'", '"', "\\\n", "`ls`", "$(", "<<EOF", "EOF", "if", "fi", "A=b", "--config"),
        *("/etc/c.yaml", "", "{}"),
    ]
)


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=6), st.text(max_size=60))
def test_any_command_gives_an_answer(command: list[str], args: list[str], script: str) -> None:
    for words in (command, ["bash", "-c", " ".join(command)], ["sh", "-c", script]):
        container = {"image": "vllm/vllm-openai:v0.11.0", "command": words, "args": args}
        found = pod(yaml.safe_dump(container))
        assert isinstance(found, Recognition)


def test_lmdeploy_says_its_model_and_how_many_gpus_share_it() -> None:
    text = """
    {image: 'openmmlab/lmdeploy:v0.7.3', command: [lmdeploy, serve, api_server, Qwen/Qwen3-32B],
     args: [--tp, '2', --session-len=8192, --cache-max-entry-count, '0.5', --server-port, '23333']}
    """
    found = one(text)
    assert (found.engine, found.model, found.serving.engine) == (
        "lmdeploy",
        "Qwen/Qwen3-32B",
        "unknown",
    )
    assert (found.serving.tensor_parallel_size, found.serving.max_model_len) == (2, 8192)
    assert found.missing == ()


def test_an_lmdeploy_that_serves_nothing_names_no_model() -> None:
    found = one("{image: 'openmmlab/lmdeploy:v0.7.3', command: [lmdeploy, chat, Qwen/Qwen3-8B]}")
    assert (found.model, found.missing) == (
        "",
        ("the LMDeploy image starts nothing by itself, and no arguments name a model",),
    )
