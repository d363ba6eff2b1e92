"""Which env variables, arguments and annotations may be written to a file; everything else is not.

Rules of this module
1. Lists name what may stay, never what must go: what nobody has thought of is dropped.
2. What is dropped from a list of arguments leaves ``DROPPED`` in its place, so that positions hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from kubectl_gpuadmit.policy.model import TTL_ANNOTATIONS
from kubectl_gpuadmit.sizing.engines import flags
from kubectl_gpuadmit.snapshots.public import is_public_model

DROPPED = "(dropped)"

ENV = frozenset(
    {
        *flags.VARIABLES,
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "DTYPE",
        "GPU_MEMORY_UTILIZATION",
        "KV_CACHE_DTYPE",
        "MAX_BATCH_PREFILL_TOKENS",
        "MAX_INPUT_LENGTH",
        "MAX_MODEL_LEN",
        "MAX_TOTAL_TOKENS",
        "MODEL_ID",
        "MODEL_NAME",
        "NUM_SHARD",
        "PIPELINE_PARALLEL_SIZE",
        "QUANTIZE",
        "TENSOR_PARALLEL_SIZE",
    }
)
"""Names of env variables whose values are kept: which GPUs are visible, how a model is served."""

FLAGS = frozenset(
    {
        *flags.NAMES,
        "model-dir",
        "model-name-or-path",
        "pretrained-model-name-or-path",
        "context-length",
        "ctx-size",
        "data-parallel-size",
        "dp-size",
        "dtype",
        "enable-expert-parallel",
        "ep-size",
        "expert-parallel-size",
        "gpu-memory-utilization",
        "kv-cache-dtype",
        "max-batch-prefill-tokens",
        "max-input-length",
        "max-lora-rank",
        "max-loras",
        "max-model-len",
        "max-num-batched-tokens",
        "max-num-seqs",
        "max-running-requests",
        "max-total-tokens",
        "mem-fraction-static",
        "model",
        "model-id",
        "model-path",
        "n-gpu-layers",
        "nnodes",
        "node-rank",
        "nproc-per-node",
        "num-gpus",
        "num-shard",
        "parallel",
        "pipeline-parallel-size",
        "pp",
        "pp-size",
        "quantization",
        "quantize",
        "served-model-name",
        "swap-space",
        "tensor-parallel-size",
        "tp",
        "tp-size",
    }
)
"""Options of serving engines and launchers that are kept with their values, dashes as written
``-`` or ``_``."""

WORDS = frozenset({"serve", "vllm", "sglang.launch_server", "torchrun"}) | flags.PROGRAMS
"""Arguments that are kept by themselves, as is a model of the Hub by its full name; the word after
``serve`` is the model."""

ANNOTATIONS = frozenset(
    {
        *TTL_ANNOTATIONS,
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "gpu-fraction",
        "gpu-fraction-num-devices",
        "gpu-memory",
        "pod-group-name",
        "pv.kubernetes.io/bind-completed",
        "scheduling.k8s.io/group-name",
        "storageclass.kubernetes.io/is-default-class",
        "svr.sivaro.io/model",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
    }
)
ANNOTATION_FAMILIES = (
    "cdi.k8s.io/",
    "gpu-admit.io/",
    "hami.io/",
    "jobset.sigs.k8s.io/",
    "kai.scheduler/",
    "kubeplus.io/",
    "kueue.x-k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
    "nvidia.com/mig-",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "resource.kubernetes.io/",
    "scheduling.volcano.sh/",
    "volcano.sh/",
)
"""What annotations that are kept begin with: the keys by which something books, queues or ends."""

_FLAG = re.compile(r"--?(?P<name>[A-Za-z][A-Za-z0-9_-]*)(?:=(?P<value>.*))?", re.DOTALL)
_CREDENTIALS = re.compile(r"://[^/@\s]*@|(?i:token|secret|passw|api[_-]?key)")


def kept_annotations(given: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """Those that may be written; ``more`` are keys that a policy asks for."""
    return {key: value for key, value in given.items() if may_keep(key, more)}


def may_keep(annotation: str, more: Collection[str] = ()) -> bool:
    return (
        annotation in ANNOTATIONS
        or annotation in more
        or annotation.startswith(ANNOTATION_FAMILIES)
    )


def env(given: list[Any]) -> list[Any]:
    """Each variable by its name; with its value only where that is in ``ENV``."""
    kept: list[Any] = []
    for item in given:
        if isinstance(item, dict):
            fields = ("name", "value") if item.get("name") in ENV else ("name",)
            kept.append({key: item[key] for key in fields if key in item})
        else:
            kept.append(DROPPED)
    return kept


def arguments(given: list[Any]) -> list[Any]:
    """The same number of arguments, each as it is or ``DROPPED``.

    A line for a shell is looked at word by word.
    """
    kept: list[Any] = []
    before = ""
    for item in given:
        if not isinstance(item, str):
            kept.append(item if isinstance(item, int | float) else DROPPED)
            before = ""
        elif any(c.isspace() for c in item):
            kept.append(_line(item))
            before = ""
        else:
            kept.append(item if _harmless(item, before) else DROPPED)
            before = item
    return kept


def _line(text: str) -> str:
    """A shell's script with runs of dropped words as one ``DROPPED``, line by line; lines that are
    continued are joined."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    return "\n".join(kept for kept in map(_words, lines) if kept)


def _words(line: str) -> str:
    kept: list[str] = []
    before = ""
    for word in line.split():
        said = word if _harmless(word, before) else DROPPED
        if said != DROPPED or kept[-1:] != [DROPPED]:
            kept.append(said)
        before = word
    return " ".join(kept)


def _harmless(word: str, before: str) -> bool:
    flag = _FLAG.fullmatch(word)
    if flag:
        return _known(flag["name"]) and not _CREDENTIALS.search(flag["value"] or "")
    if _CREDENTIALS.search(word):
        return False
    opened = _FLAG.fullmatch(before)
    if opened and opened["value"] is None:
        return _known(opened["name"])
    return word in WORDS or before == "serve" or is_public_model(word)


def _known(flag: str) -> bool:
    return flag.lower().replace("_", "-") in FLAGS
