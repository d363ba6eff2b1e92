"""Sizes that must divide for a model to be cut over GPUs, and the shared memory that this needs."""

from __future__ import annotations

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.ledger import expert_ranks
from kubectl_gpuadmit.sizing.plan import Plan
from kubectl_gpuadmit.sizing.problem import Problem
from kubectl_gpuadmit.sizing.serving import Serving

SHM_NEEDED = 1 << 30
"""NCCL and the workers' queues in ``/dev/shm``: vLLM's documentation mounts it from memory, and
containers have 64 MiB (vllm docs, deployment/k8s; NCCL troubleshooting, shared memory)."""

Found = tuple[list[Problem], list[Problem]]


def layout_problems(
    a: Architecture, plan: Plan, serving: Serving, *, shm_bytes: int | None
) -> Found:
    """Problems that stop a start, and warnings."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    tensor = serving.tensor_parallel_size or 1
    pipeline = serving.pipeline_parallel_size or 1
    heads = a.num_attention_heads
    cuts = tensor > 1 and serving.engine != "llama.cpp"
    if cuts and heads and heads % tensor:
        problems.append(
            _layout(
                "heads-not-divisible",
                f"{heads} attention heads do not divide by tensor-parallel-size {tensor}",
            )
        )
    kv = a.num_key_value_heads or heads
    if cuts and not a.kv_lora_rank and kv and kv % tensor and tensor % kv:
        problems.append(
            _layout(
                "heads-not-divisible",
                f"{kv} key-value heads neither divide by tensor-parallel-size {tensor} "
                "nor are a part of it",
            )
        )
    problems += _widths(a, serving, tensor) if cuts else []
    if pipeline > 1 and len(plan.layers) % pipeline:
        most = -(-len(plan.layers) // pipeline)
        warnings.append(
            _layout(
                "layers-not-divisible",
                f"{len(plan.layers)} layers over {pipeline} stages: the fullest has {most}",
            )
        )
    if tensor > 1 and shm_bytes is not None and shm_bytes < SHM_NEEDED:
        warnings.append(
            _layout(
                "shm-too-small",
                f"/dev/shm has {shm_bytes >> 20} MiB, and {tensor} GPUs that exchange data want "
                f"{SHM_NEEDED >> 20}: mount an emptyDir with medium Memory there",
            )
        )
    return problems, warnings


def _layout(reason: str, detail: str) -> Problem:
    return Problem(reason=reason, dimension="layout", detail=detail)


def _widths(a: Architecture, serving: Serving, tensor: int) -> list[Problem]:
    """Feed-forward widths, and their groups of scales."""
    width = a.intermediate_size
    if a.num_experts and a.moe_intermediate_size and expert_ranks(serving) == 1:
        width = a.moe_intermediate_size
    elif a.num_experts and expert_ranks(serving) > 1:
        return []
    if width and width % tensor:
        return [
            _layout(
                "width-not-divisible",
                f"a width of {width:,} does not divide by tensor-parallel-size {tensor}",
            )
        ]
    quantization = a.quantization
    if quantization is None or not width:
        return []
    group = quantization.group_size or 0
    if quantization.block_size:
        group = quantization.block_size[0]
    if group > 1 and quantization.method != "mxfp4" and (width // tensor) % group:
        return [
            _layout(
                "groups-not-divisible",
                f"a width of {width // tensor:,} a GPU does not divide by the {group} weights "
                "that share a scale: use expert parallelism or fewer GPUs",
            )
        ]
    return []
