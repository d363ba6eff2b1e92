"""``fit`` as a person calls it: what is printed, the data and the exit codes."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.command import called
from tests.sizing.formats.test_gguf import file_of

SCHEMA = json.loads(
    resources.files("kubectl_gpuadmit").joinpath("schema/fit-v1.json").read_text("utf-8")
)
LOG = b"""\
INFO 10-02 11:04:31 [__init__.py:216] Automatically detected platform cuda.
(APIServer pid=1) INFO [api_server.py:1839] vLLM API server version 0.11.0
(APIServer pid=1) INFO [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-4B', \
'max_num_batched_tokens': 8192}
\x1b[36m(EngineCore)\x1b[0;0m INFO Initializing a V1 LLM engine (v0.11.0) with config: \
model='Qwen/Qwen3-4B', dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size=1, \
pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto
INFO [gpu_model_runner.py:2653] Model loading took 7.5552 GiB and 2.1 seconds
INFO [gpu_worker.py:298] Available KV cache memory: 58.05 GiB
INFO [kv_cache_utils.py:1087] GPU KV cache size: 422,672 tokens
INFO [kv_cache_utils.py:1091] Maximum concurrency for 40,960 tokens per request: 10.32x
INFO [gpu_model_runner.py:3480] Graph capturing finished in 5 secs, took 0.54 GiB
"""


def call(*args: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    return called("fit", *args, given=given)


def data(*args: str, code: int = 0, given: bytes = b"") -> dict[str, Any]:
    done = call(*args, "-o", "json", given=given)
    assert (done.returncode, done.stderr) == (code, "")
    document: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(document)
    return document


def test_one_answer_in_whole() -> None:
    done = call("--model", "Qwen/Qwen3-32B", "--gpu", "H100", "--engine", "vllm@0.11")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "Qwen/Qwen3-32B · 1 × NVIDIA-H100-80GB-HBM3 · vllm 0.11                   EXCEEDS\n"
        "\n"
        "  ✗ kv-cache     one request of 40,960 tokens needs 10.00 GiB of cache a GPU,\n"
        "                 and 4.45 are left: up to 18,240 tokens fit\n"
        "                 fit/kv-below-context\n"
        "\n"
        "What would fit (each tried)\n"
        "  1  --max-model-len 17408             1.0 requests of 17,408 tokens\n"
        "  2  --quantization fp8                3.3 requests of 40,960 tokens\n"
        "  3  --tensor-parallel-size 2          6.9 requests of 40,960 tokens\n"
        "\n"
        "A GPU  of 79.6 GiB\n"
        "  engine's share     71.26 GiB\n"
        "  weights            61.03 GiB   60.91 to 61.28\n"
        "  activations         5.64 GiB   4.76 to 6.59\n"
        "  overhead            0.13 GiB   0.06 to 0.30\n"
        "  cache               4.45 GiB   2.95 to 5.67\n"
        "\n"
        "Cache  18,240 tokens   12,064 to 23,200\n"
        "       0.4 requests of 40,960 tokens   0.3 to 0.6\n"
        "       256.0 KiB a token a GPU\n"
        "\n"
        "Rests on  catalogue: Qwen/Qwen3-32B\n"
        "          max_model_len 40960 (max_position_embeddings of the model)\n"
        "          max_num_seqs 1024 (vLLM 0.11, its default)\n"
        "          max_num_batched_tokens 8192 (vLLM 0.11, its default)\n"
        "          gpu_memory_utilization 0.9 (vLLM 0.11, its default)\n"
    )


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--model", "Qwen/Qwen3-8B", "--gpu", "H100 80GB"), 0),
        (("--model", "Qwen/Qwen3-8B", "--gpu", "T4"), 1),
        (("--model", "Qwen/Qwen3-8B"), 3),
        (("--model", "Qwen/Qwen3-8B", "--gpu", "A100 40GB", "--advise"), 0),
        (("--model", "deepseek-ai/DeepSeek-R1", "--gpu", "L4", "--advise"), 1),
        (("--model", "Qwen/Qwen3-8B", "--gpu", "L4", "--table"), 0),
        (("--model", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "L4", "--table"), 1),
    ],
)
def test_the_exit_code_is_the_verdict_and_the_data_keep_to_their_schema(
    args: tuple[str, ...], code: int
) -> None:
    data(*args, code=code)


def test_yaml_is_the_same_document() -> None:
    args = ("--model", "Qwen/Qwen3-8B", "--gpu", "L4", "--max-model-len", "8192")
    assert yaml.safe_load(call(*args, "-o", "yaml").stdout) == data(*args)


def test_remedies_of_the_data_are_tried() -> None:
    found = data("--model", "Qwen/Qwen3-32B", "--gpu", "H100", code=1)
    for remedy in found["remedies"]:
        flag, value = remedy["change"].split(" ")
        flag = {"--tensor-parallel-size": "--tp"}.get(flag, flag)
        data("--model", "Qwen/Qwen3-32B", "--gpu", "H100", flag, value)
    assert [r["change"] for r in found["remedies"]] != []


def test_a_layout_that_does_not_divide_gets_one_that_does() -> None:
    found = data("--model", "Qwen/Qwen3-30B-A3B-FP8", "--gpu", "L40S", "--tp", "4", code=1)
    assert [p["reason"] for p in found["problems"]] == ["fit/groups-not-divisible"]
    assert [r["change"] for r in found["remedies"]] == [
        "--enable-expert-parallel",
        "--tensor-parallel-size 2",
    ]


def test_the_target_load_may_be_what_bursts() -> None:
    args = ("--model", "Qwen/Qwen3-8B", "--gpu", "A100 80GB", "--max-model-len", "8192")
    assert data(*args)["fits"] is True
    found = data(*args, "--concurrency", "200", "--context", "8192", code=1)
    assert [p["reason"] for p in found["problems"]] == ["fit/kv-below-load"]


def test_advice_lists_the_smallest_first_and_every_one_fits() -> None:
    found = data(
        "--model", "meta-llama/Llama-3.3-70B-Instruct", "--advise", "--max-model-len", "8192"
    )
    sizes = [c["gpus"] * c["perGpu"]["memoryMiB"] for c in found["configurations"]]
    assert sizes == sorted(sizes)
    assert all(c["fits"] for c in found["configurations"])
    assert len(found["configurations"]) > 5


def test_a_config_file_is_read(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    found = data("--config", str(file), "--gpu", "L4", "--max-model-len", "8192")
    assert (found["parameters"], found["fits"]) == (1235814400, True)


def test_an_unknown_architecture_is_unknown_and_says_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(
        json.dumps(
            {
                "model_type": "brand_new",
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "vocab_size": 100,
            }
        )
    )
    found = data("--config", str(file), "--gpu", "L4", code=3)
    assert found["unknown"] == ["how models of type brand_new are laid out"]
    assert found["fits"] is None


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        ((), 2, "error: no model is named [no-model]"),
        (
            ("--model", "Qwen/Qwen3-8", "--gpu", "L4"),
            3,
            "error: 'Qwen/Qwen3-8' is no model of the catalogue [unknown-model]",
        ),
        (
            ("--model", "Qwen/Qwen3-8B", "--gpu", "H100 40GB"),
            2,
            "error: 'H100 40GB' is no GPU that is known here [unknown-gpu]",
        ),
        (
            ("--model", "Qwen/Qwen3-8B", "--engine", "ollama"),
            2,
            "error: 'ollama' is no engine that is known here [unknown-engine]",
        ),
        (
            ("--model", "Qwen/Qwen3-8B", "--engine", "vllm@new"),
            2,
            "error: 'new' is no version [unknown-engine]",
        ),
        (
            ("--model", "a", "--config", "b"),
            2,
            "error: --model, --config and --gguf name one model each: give one of them [usage]",
        ),
        (
            ("--model", "a", "--advise", "--table"),
            2,
            "error: --advise, --table and --from-log are questions of their own: ask one [usage]",
        ),
        (
            ("--model", "Qwen/Qwen3-8B", "--gpu-memory-utilization", "90"),
            2,
            "error: --gpu-memory-utilization 90 is no share: above 0, at most 1 [usage]",
        ),
        (("--config", "nowhere/config.json"), 2, "no such file"),
    ],
)
def test_bad_input_is_one_error_and_what_to_type(
    args: tuple[str, ...], code: int, error: str
) -> None:
    done = call(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert error in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_log_says_where_the_memory_went_and_how_the_estimate_compares() -> None:
    done = call("--from-log", "-", "--gpu", "H100", given=LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Qwen/Qwen3-4B · vllm 0.11.0                                              started\n"
        "\n"
        "                           log      estimate    error\n"
        "  weights             7.56 GiB      7.56 GiB    -0.0%\n"
        "  graphs              0.54 GiB\n"
        "  cache              58.05 GiB     57.97 GiB    -0.1%\n"
        "  tokens               422,672       422,128    -0.1%\n"
    )


def test_the_data_of_a_log_hold_both_and_the_errors() -> None:
    found = data("--from-log", "-", "--gpu", "H100", given=LOG)
    assert found["log"]["kvCacheTokens"] == 422672
    assert [e["what"] for e in found["errors"]] == ["weights", "cache", "tokens"]
    assert all(abs(e["error"]) < 0.01 for e in found["errors"])


def test_a_refusal_is_read_from_a_log() -> None:
    refusal = (
        b"ValueError: To serve at least one request with the models's max seq len (131072), "
        b"(24.00 GiB KV cache is needed, which is larger than the available KV cache memory "
        b"(10.91 GiB). Based on the available memory, the estimated maximum model length is "
        b"59584."
    )
    found = data(
        "--from-log",
        "-",
        "--model",
        "Qwen/Qwen2.5-14B",
        "--gpu",
        "L40S",
        given=LOG[:300] + b"\n" + refusal,
    )
    assert found["log"]["refusal"].startswith("max seq len (131072), (24.00 GiB KV cache is")
    assert found["log"]["kvCacheGiB"] == 10.91


def test_a_log_that_says_nothing_is_refused() -> None:
    done = call("--from-log", "-", given=b"hello\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "says nothing of an engine's memory [no-start-log]" in done.stderr


def test_a_model_that_the_log_names_and_nobody_knows_leaves_the_comparison_open() -> None:
    log = LOG.replace(b"Qwen/Qwen3-4B", b"someone/private-model")
    found = data("--from-log", "-", "--gpu", "H100", code=3, given=log)
    assert (found["estimate"], found["errors"]) == (None, [])


def test_a_gguf_file_is_read_by_its_header(tmp_path: Path) -> None:
    metadata = {
        "general.architecture": "llama",
        "general.name": "Small",
        "general.file_type": 7,
        "llama.block_count": 2,
        "llama.embedding_length": 512,
        "llama.feed_forward_length": 1024,
        "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": 8,
        "llama.context_length": 4096,
        "tokenizer.ggml.tokens": ["a", "b", "c"],
    }
    layers = [
        (f"blk.{i}.ffn_down.weight", (1024, 512), 8)  # Q8_0
        for i in range(2)
    ]
    file = tmp_path / "small-Q8_0.gguf"
    header = file_of(metadata, [("token_embd.weight", (512, 3), 0), *layers])
    file.write_bytes(header + bytes(4 << 20))
    found = data("--gguf", str(file), "--gpu", "8192", "--max-model-len", "4096")
    assert (found["engine"], found["fits"]) == ("llama.cpp", True)
    assert found["kvBytesPerToken"] == 2 * 2 * 8 * 64 * 2


def test_what_is_no_gguf_file_is_said_so_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(bytes(range(128, 228)))
    done = call("--gguf", str(file), "--gpu", "L4")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no GGUF file: it does not begin with GGUF" in done.stderr
    assert "hint: " in done.stderr
