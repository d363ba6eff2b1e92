"""Proposes less of the same: fewer pods, or fewer GPUs for each pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.kube.gpus import pod_gpus
from kubectl_gpuadmit.kube.pointers import resolve, token
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.proposals import Case, Proposal

_COUNT_AT: dict[str, str] = {
    "Deployment": "/spec/replicas",
    "StatefulSet": "/spec/replicas",
    "ReplicaSet": "/spec/replicas",
    "ReplicationController": "/spec/replicas",
    "LeaderWorkerSet": "/spec/replicas",
    "InferenceDeployment": "/spec/replicas",
    "Job": "/spec/parallelism",
}
"""Kind -> where its number of pods, or groups of pods, is written."""

_TENSOR_PARALLEL = r"--tensor[-_]parallel[-_]size|--tp-size|--tp|-tp|--num-shard"
"""vLLM, SGLang and TGI name the size of a tensor-parallel group so."""

_FLAG = re.compile(rf"(?<!\S)(?P<flag>{_TENSOR_PARALLEL})(?P<by>=|\s+)(?P<size>\d+)(?!\S)")
_FLAG_ALONE = re.compile(_TENSOR_PARALLEL)


def fewer_pods(case: Case) -> Iterator[Proposal]:
    """One pod less, half as many, as many as nodes take, as quota admits besides, or one."""
    manifest = case.document.data
    kind = case.workload.ref.kind
    at = _COUNT_AT.get(kind, "")
    several_roles = len(case.workload.groups) > 1 and kind != "LeaderWorkerSet"
    now = _number(manifest, at) if at and not several_roles else 0
    paths = [at]
    if kind == "Job":
        completions = _number(manifest, "/spec/completions")
        if 0 < completions < now:
            return  # the pods are as many as the completions: fewer would be less work
        if resolve(manifest, "/spec/completionMode") == "Indexed" and completions == now:
            paths.append("/spec/completions")  # ranks of one group, not a queue of work
    fitting = {len(case.verdict.places), _settled(case)} if now else set()
    for fewer in sorted({now - 1, now // 2, 1} | fitting, reverse=True):
        if 0 < fewer < now:
            yield Proposal(
                summary=f"{_words(fewer, kind)} instead of {now}",
                topic="pods",
                less=True,
                cost=30 + (now - fewer) * 10 // now,
                patch=tuple({"op": "replace", "path": path, "value": fewer} for path in paths),
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
                        less=True,
                        cost=40 + (asked - size) * 10 // asked,
                        patch=patch,
                    )
                size >>= 1


def _settled(case: Case) -> int:
    """How many of the pods quotas admit and nodes take as things are."""
    group = case.workload.groups[0]
    pod = chain.mutate(
        group.pod, case.before.cluster, kubernetes=case.terms.kubernetes, plugins=case.terms.plugins
    ).pod
    ledger = case.before.ledger.fork()
    admitted, _, _ = ledger.admit_pods(pod, case.workload.ref.namespace, group.count)
    return min(admitted, len(case.verdict.places))


def _words(pods: int, kind: str) -> str:
    if kind == "Job":
        return f"{pods} pod{'' if pods == 1 else 's'} at a time"
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
            flags = _parallel_flags(index, container, asked, size)
            if flags is None:
                return ()
            ops += here + flags
    placed = [group.in_manifest(op["path"]) for op in ops]
    if None in placed:
        return ()
    return tuple({**op, "path": path} for op, path in zip(ops, placed, strict=True))


def _parallel_flags(
    index: int, container: dict[str, Any], asked: int, size: int
) -> list[dict[str, Any]] | None:
    """The same size for the engine where it says ``asked``: as ``--flag=4``, ``--flag 4`` or inside
    a shell's script. None where it says another size that would not fit."""
    ops: list[dict[str, Any]] = []

    def smaller(found: re.Match[str]) -> str:
        given.append(int(found["size"]))
        same = given[-1] == asked
        return f"{found['flag']}{found['by']}{size if same else found['size']}"

    for part in ("command", "args"):
        words = [str(word) for word in container.get(part) or ()]
        for at, word in enumerate(words):
            given: list[int] = []
            changed = _FLAG.sub(smaller, word)
            if at and _FLAG_ALONE.fullmatch(words[at - 1]) and word.isdecimal():
                given.append(int(word))
                changed = str(size) if given[-1] == asked else word
            if any(size < number != asked for number in given):
                return None
            if changed != word:
                path = f"/spec/containers/{index}/{part}/{at}"
                ops.append({"op": "replace", "path": path, "value": changed})
    return ops


def _number(manifest: dict[str, Any], pointer: str) -> int:
    value = resolve(manifest, pointer)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
