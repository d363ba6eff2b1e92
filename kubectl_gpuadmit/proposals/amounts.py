"""Proposes less of the same: fewer pods, or fewer GPUs for each pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube.gpus import is_gpu, pod_gpus
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.proposals import Case, Proposal

_COUNT_AT: dict[str, tuple[str, ...]] = {
    "Deployment": ("/spec/replicas",),
    "StatefulSet": ("/spec/replicas",),
    "ReplicaSet": ("/spec/replicas",),
    "ReplicationController": ("/spec/replicas",),
    "LeaderWorkerSet": ("/spec/replicas",),
    "InferenceDeployment": ("/spec/replicas",),
    "Job": ("/spec/parallelism", "/spec/completions"),
}
"""Kind -> where its number of pods (or groups of pods) is written; those present are changed together."""

_TENSOR_PARALLEL = re.compile(
    r"^(--tensor-parallel-size|--tensor_parallel_size|-tp|--tp-size|--tp|--num-shard)(?:=(\d+))?$"
)
"""vLLM, SGLang and TGI name the size of a tensor-parallel group so."""


def fewer_pods(case: Case) -> Iterator[Proposal]:
    """As many pods as were admitted and placed, where that is some but not all of them."""
    manifest = case.document.data
    paths = [at for at in _COUNT_AT.get(case.workload.ref.kind, ()) if _value(manifest, at)]
    if not paths or len(case.workload.groups) > 1 and case.workload.ref.kind != "LeaderWorkerSet":
        return
    now = int(_value(manifest, paths[0]) or 0)
    for fewer in sorted({now - 1, now // 2, 1, _settled(case)} - {0}, reverse=True):
        if 0 < fewer < now:
            yield Proposal(
                summary=f"{_words(fewer)} instead of {now}",
                topic="pods",
                cost=30 + (now - fewer) * 10 // now,
                patch=tuple({"op": "replace", "path": at, "value": fewer} for at in paths),
            )


def fewer_gpus(case: Case) -> Iterator[Proposal]:
    """Half as many GPUs, a quarter … for each pod of a group, with the engine's own flag if it says so."""
    for group in case.workload.groups:
        if group.pointer == "-":
            continue
        for resource, asked in pod_gpus(group.pod).items():
            size = 1 << max(0, asked - 1).bit_length() >> 1
            while size:
                if size < asked:
                    patch = _with_gpus(group, resource, asked, size)
                    if patch:
                        yield Proposal(
                            summary=f"{size} {resource} a pod instead of {asked}"
                            + (f" ({group.role})" if group.role else ""),
                            topic=f"gpus {group.role}",
                            cost=40 + (asked - size) * 10 // asked,
                            patch=patch,
                        )
                size >>= 1


def _settled(case: Case) -> int:
    return len(case.verdict.places)


def _words(pods: int) -> str:
    return "one replica" if pods == 1 else f"{pods} replicas"


def _with_gpus(group: PodGroup, resource: str, asked: int, size: int) -> tuple[dict[str, Any], ...]:
    """Operations for the one container that asks for all of the GPUs; none if several share them."""
    ops: list[dict[str, Any]] = []
    spec = group.template.get("spec") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        resources = container.get("resources") or {}
        for part in ("limits", "requests"):
            amounts = resources.get(part) or {}
            if resource in amounts:
                if str(amounts[resource]) != str(asked):
                    return ()
                ops.append(
                    {
                        "op": "replace",
                        "path": f"{group.pointer}/spec/containers/{index}/resources/{part}/"
                        + resource.replace("~", "~0").replace("/", "~1"),
                        "value": str(size) if isinstance(amounts[resource], str) else size,
                    }
                )
        if ops and is_gpu(resource):
            ops += _parallel_flags(group.pointer, index, container, asked, size)
    return tuple(ops)


def _parallel_flags(
    pointer: str, index: int, container: dict[str, Any], asked: int, size: int
) -> Iterator[dict[str, Any]]:
    for part in ("command", "args"):
        words = container.get(part) or []
        for at, word in enumerate(words):
            match = _TENSOR_PARALLEL.match(str(word))
            if not match:
                continue
            if match[2] == str(asked):
                yield {
                    "op": "replace",
                    "path": f"{pointer}/spec/containers/{index}/{part}/{at}",
                    "value": f"{match[1]}={size}",
                }
            elif match[2] is None and str(words[at + 1 : at + 2]) == str([str(asked)]):
                yield {
                    "op": "replace",
                    "path": f"{pointer}/spec/containers/{index}/{part}/{at + 1}",
                    "value": str(size),
                }


def _value(manifest: dict[str, Any], pointer: str) -> int | None:
    value: Any = manifest
    for key in pointer.split("/")[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
