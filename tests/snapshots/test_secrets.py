"""What may be written to a file: only what a list names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.snapshots.secrets import (
    DROPPED,
    arguments,
    env,
    kept_annotations,
)


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (["--model", "meta/llama", "--tp=8"], ["--model", "meta/llama", "--tp=8"]),
        (["--api-key", "hunter2"], [DROPPED, DROPPED]),
        (["--api-key=hunter2", "--max_model_len=4096"], [DROPPED, "--max_model_len=4096"]),
        (
            ["--max-num-batched-tokens", "8192", "surplus"],
            ["--max-num-batched-tokens", "8192", DROPPED],
        ),
        (["vllm", "serve", "meta/llama"], ["vllm", "serve", "meta/llama"]),
        (["--model=https://me:hunter2@host/m"], [DROPPED]),
        (["--model", "https://me:hunter2@host/m"], ["--model", DROPPED]),
        (
            ["export TOKEN=hunter2; vllm serve meta/llama --tensor-parallel-size 8"],
            [f"{DROPPED} vllm serve meta/llama --tensor-parallel-size 8"],
        ),
        (
            ["set -e\nexec vllm serve meta/llama \\\n  --tp 8 \\\n  --api-key hunter2\nsleep 9"],
            [f"{DROPPED}\nexec vllm serve meta/llama --tp 8 {DROPPED}\nsleep {DROPPED}"],
        ),
        (["redis-cli", "-a", "hunter2", "-phunter2"], [DROPPED] * 4),
        ([8, {"not": "text"}], [8, DROPPED]),
    ],
)
def test_arguments_keep_their_places_and_lose_what_no_list_names(
    given_: list[object], kept: list[object]
) -> None:
    assert arguments(given_) == kept


@given(st.lists(st.text(max_size=12), max_size=6))
def test_arguments_are_as_many_as_before(words: list[str]) -> None:
    assert len(arguments(words)) == len(words)


def test_variables_keep_their_names_and_lose_their_values() -> None:
    assert env(
        [
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "HF_TOKEN", "value": "hunter2"},
            {"name": "MODEL_ID", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            "not a variable",
        ]
    ) == [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        {"name": "HF_TOKEN"},
        {"name": "MODEL_ID"},
        DROPPED,
    ]


def test_annotations_outside_the_list_are_dropped_unless_a_policy_reads_them() -> None:
    given_ = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "acme.com/class": "batch",
        "acme.com/notes": "hunter2",
        "gpu-admit.io/ttl": "4h",
        "gpu-fraction": "0.5",
        "kueue.x-k8s.io/queue-name": "team-a",
        "kai.scheduler/queue": "team-a",
        "nvidia.com/mig-1g.10gb": "1",
    }
    assert kept_annotations(given_, ("acme.com/class",)) == {
        "acme.com/class": "batch",
        "gpu-admit.io/ttl": "4h",
        "gpu-fraction": "0.5",
        "kueue.x-k8s.io/queue-name": "team-a",
        "kai.scheduler/queue": "team-a",
        "nvidia.com/mig-1g.10gb": "1",
    }


def test_a_model_of_the_hub_by_its_full_name_is_kept_wherever_it_stands() -> None:
    given = ["Qwen/Qwen3-8B", "acme/private", "--max-model-len", "8192", "qwen"]
    assert arguments(given) == ["Qwen/Qwen3-8B", DROPPED, "--max-model-len", "8192", DROPPED]
