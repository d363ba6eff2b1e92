"""Proposes less of the same: fewer pods, or fewer GPUs for each pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.kube.workloads.pointers import token
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
"""Kind -> where its number of pods, or groups of pods, is written; those present go together."""

_TENSOR_PARALLEL = re.compile(
    r"^(--tensor-parallel-size|--tensor_parallel_size|-tp|--tp-size|--tp|--num-shard)(?:=(\d+))?$"
)
"""vLLM, SGLang and TGI name the size of a tensor-parallel group so."""


def fewer_pods(case: Case) -> Iterator[Proposal]:
    """One pod less, half as many, as many as nodes take, as quota admits besides, or one."""
    manifest = case.document.data
    paths = [at for at in _COUNT_AT.get(case.workload.ref.kind, ()) if _value(manifest, at)]
    several_roles = len(case.workload.groups) > 1 and case.workload.ref.kind != "LeaderWorkerSet"
    if not paths or several_roles:
        return
    now = int(_value(manifest, paths[0]) or 0)
    for fewer in sorted(
        {now - 1, now // 2, 1, len(case.verdict.places), _settled(case)} - {0}, reverse=True
    ):
        if 0 < fewer < now:
            yield Proposal(
                summary=f"{_words(fewer)} instead of {now}",
                topic="pods",
                cost=30 + (now - fewer) * 10 // now,
                patch=tuple({"op": "replace", "path": at, "value": fewer} for at in paths),
            )


def fewer_gpus(case: Case) -> Iterator[Proposal]:
    """Half as many GPUs, a quarter … for each pod of a group, with the engine's own flag if any."""
    for group in case.workload.groups:
        for resource, asked in pod_gpus(group.pod).items():
            size = 1 << max(0, asked - 1).bit_length() >> 1
            while size:
                patch = _with_gpus(group, resource, asked, size) if size < asked else ()
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
    """How many of the pods quotas admit and nodes take as things are."""
    group = case.workload.groups[0]
    pod = chain.mutate(group.pod, case.before.cluster).pod
    ledger = case.before.ledger.fork()
    admitted, _, _ = ledger.admit_pods(pod, case.workload.ref.namespace, group.count)
    return min(admitted, len(case.verdict.places))


def _words(pods: int) -> str:
    return "one replica" if pods == 1 else f"{pods} replicas"


def _with_gpus(group: PodGroup, resource: str, asked: int, size: int) -> tuple[dict[str, Any], ...]:
    """Operations for the one container that asks for all the GPUs; none if several share them."""
    ops: list[dict[str, Any]] = []
    containers = (group.template.get("spec") or {}).get("containers") or ()
    for index, container in enumerate(containers):
        here: list[dict[str, Any]] = []
        resources = container.get("resources") or {}
        for part in ("limits", "requests"):
            amount = (resources.get(part) or {}).get(resource)
            if amount is None:
                continue
            if str(amount) != str(asked):
                return ()
            at = f"/spec/containers/{index}/resources/{part}/{token(resource)}"
            value = str(size) if isinstance(amount, str) else size
            here.append({"op": "replace", "path": at, "value": value})
        if here:
            ops += here
            ops += _parallel_flags(index, container, asked, size)
    placed = [group.in_manifest(op["path"]) for op in ops]
    if None in placed:
        return ()
    return tuple({**op, "path": path} for op, path in zip(ops, placed, strict=True))


def _parallel_flags(
    index: int, container: dict[str, Any], asked: int, size: int
) -> Iterator[dict[str, Any]]:
    """``--tensor-parallel-size=4`` or ``--tensor-parallel-size 4`` where 4 is what was asked."""
    for part in ("command", "args"):
        words = [str(word) for word in container.get(part) or ()]
        for at, word in enumerate(words):
            match = _TENSOR_PARALLEL.match(word)
            if match and match[2] == str(asked):
                path = f"/spec/containers/{index}/{part}/{at}"
                yield {"op": "replace", "path": path, "value": f"{match[1]}={size}"}
            elif match and match[2] is None and words[at + 1 : at + 2] == [str(asked)]:
                path = f"/spec/containers/{index}/{part}/{at + 1}"
                yield {"op": "replace", "path": path, "value": str(size)}


def _value(manifest: dict[str, Any], pointer: str) -> int | None:
    value: Any = manifest
    for key in pointer.split("/")[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
