"""Proposes what makes a model fit: shorter context, quantised cache or weights, more GPUs, others.

Sizes are worked out from the envelope where it says them, so that few tries are spent; whether a
proposal is enough is tried by the engine like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kubectl_gpuadmit.kube.gpu_memory import product_mib
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pointers import resolve, token
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.proposals import Case, Proposal
from kubectl_gpuadmit.proposals.pools import missing_tolerations

if TYPE_CHECKING:
    from kubectl_gpuadmit.sizing.fitting import EngineFit, OnDevices

_PRODUCT = "nvidia.com/gpu.product"
_GPUS = (2, 4, 8)


def model_fits(case: Case) -> Iterator[Proposal]:
    """Everything for every engine that does not fit."""
    if case.verdict.running != "exceeds":
        return
    from kubectl_gpuadmit.policy import serving

    for group in case.workload.groups:
        if not group.count or not serving.may_serve(group.pod, case.terms.policy):
            continue
        found = serving.pod_fit(
            case.workload,
            group,
            group.pod,
            case.before.cluster,
            case.terms.policy,
            now=case.terms.now,
            kubernetes=case.terms.kubernetes,
        )
        for engine in found.engines:
            if engine.on and engine.standing() != "fits" and not engine.recognised.follows:
                yield from _for_engine(case, group, engine)


def _for_engine(case: Case, group: PodGroup, engine: EngineFit) -> Iterator[Proposal]:
    best = max(engine.on, key=lambda one: one.devices.usable_mib or 0)
    yield from _less_share(group, engine, best)
    yield from _shorter(case, group, engine, best)
    yield from _less_at_once(group, engine, best)
    yield from _quantised_cache(group, engine)
    yield from _quantised(case, group, engine, best)
    yield from _sharded(group, engine)
    yield from _other_product(case, group, engine)


def _change(
    group: PodGroup, engine: EngineFit, field: str, value: object
) -> tuple[dict[str, Any], ...]:
    """Operations against the user's manifest; () where there are none."""
    from kubectl_gpuadmit.sizing.engines.editing import changed

    ops = changed(engine.recognised, group.template, field, value)
    placed = [group.in_manifest(op["path"]) for op in ops]
    if None in placed:
        return ()
    return tuple({**op, "path": path} for op, path in zip(ops, placed, strict=True))


def _flag(engine: EngineFit, field: str) -> str:
    from kubectl_gpuadmit.sizing.engines.editing import flag_of

    given = next((g for g in reversed(engine.recognised.given) if g.field == field), None)
    if given is not None and given.text.startswith("-"):
        return given.text.partition("=")[0].split()[0]
    return flag_of(engine.recognised, field) or field


def _topic(group: PodGroup, what: str) -> str:
    return f"{what} {group.role}".rstrip()


def _shorter(case: Case, group: PodGroup, engine: EngineFit, best: OnDevices) -> Iterator[Proposal]:
    """The longest context that the cache holds, in whole 1,024 tokens."""
    length = _longest(case, best)
    patch = _change(group, engine, "max_model_len", length) if length else ()
    if patch:
        yield Proposal(
            summary=f"{_flag(engine, 'max_model_len')} {length:,}",
            topic=_topic(group, "context"),
            cost=8,
            patch=patch,
            less=True,
        )


def _longest(case: Case, on: OnDevices) -> int:
    found = on.envelope
    if found is None or found.longest is None or found.max_model_len is None:
        return 0
    length = int(max(found.longest.low, found.longest.likely * 0.9)) // 1024 * 1024
    wanted = case.terms.policy.settings("model/memory-fit").get("context") or 0
    return length if 1024 <= length < found.max_model_len and length >= wanted else 0


def _less_share(group: PodGroup, engine: EngineFit, best: OnDevices) -> Iterator[Proposal]:
    """What others leave free, where the asked share of the GPU is more than that."""
    found, usable = best.envelope, best.devices.free_mib
    if found is None or usable is None or not best.devices.mib:
        return
    share = int(usable / best.devices.mib * 100 - 3) / 100
    if share < 0.05 or all(p.dimension != "free-memory" for p in found.problems):
        return
    if patch := _change(group, engine, "gpu_memory_utilization", share):
        yield Proposal(
            summary=f"{_flag(engine, 'gpu_memory_utilization')} {share:g}",
            topic=_topic(group, "share"),
            cost=6,
            patch=patch,
        )


def _less_at_once(group: PodGroup, engine: EngineFit, best: OnDevices) -> Iterator[Proposal]:
    """Fewer sequences or tokens in one step, where their states or activations burst."""
    found = best.envelope
    for problem in found.problems if found is not None else ():
        if problem.dimension == "sequences" and problem.needs and problem.has:
            few = problem.reason == "sequences-above-states"
            number = int(problem.has if few else problem.needs)
            if number > 0 and (patch := _change(group, engine, "max_num_seqs", number)):
                yield Proposal(
                    summary=f"{_flag(engine, 'max_num_seqs')} {number:,}",
                    topic=_topic(group, "sequences"),
                    cost=9,
                    patch=patch,
                )
        elif problem.dimension == "activations":
            for number in (4096, 2048, 1024):
                if patch := _change(group, engine, "max_num_batched_tokens", number):
                    yield Proposal(
                        summary=f"{_flag(engine, 'max_num_batched_tokens')} {number:,}",
                        topic=_topic(group, "step"),
                        cost=9 + (4096 - number) // 1024,
                        patch=patch,
                        less=True,
                    )


def _quantised_cache(group: PodGroup, engine: EngineFit) -> Iterator[Proposal]:
    """FP8 holds twice as many tokens."""
    serving = engine.recognised.serving
    if serving.kv_cache_dtype not in (None, "auto") or engine.recognised.serving.engine not in (
        "vllm",
        "sglang",
        "tgi",
    ):
        return
    kind = "fp8" if serving.engine == "vllm" else "fp8_e5m2"
    if patch := _change(group, engine, "kv_cache_dtype", kind):
        yield Proposal(
            summary=f"KV cache in FP8 ({_flag(engine, 'kv_cache_dtype')} {kind})",
            topic=_topic(group, "cache"),
            cost=12,
            patch=patch,
        )


def _quantised(
    case: Case, group: PodGroup, engine: EngineFit, best: OnDevices
) -> Iterator[Proposal]:
    """Weights in FP8, made while loading; alone, and with the context that then fits."""
    one, facts = engine.recognised, engine.facts
    if (
        facts is None
        or facts.architecture is None
        or facts.architecture.quantization is not None
        or one.serving.quantization is not None
        or one.serving.engine not in ("vllm", "sglang", "tgi")
    ):
        return
    from kubectl_gpuadmit.sizing.engines.editing import both

    patch = _change(group, engine, "quantization", "fp8")
    if not patch:
        return
    words = f"weights in FP8 ({_flag(engine, 'quantization')} fp8)"
    yield Proposal(summary=words, topic=_topic(group, "weights"), cost=15, patch=patch)
    smaller = _again(case, engine, best, group.pod, quantization="fp8")
    length = _longest(case, smaller) if smaller is not None else 0
    more = _change(group, engine, "max_model_len", length) if length else ()
    if more and (together := both(patch, more)):
        yield Proposal(
            summary=f"{words} and {_flag(engine, 'max_model_len')} {length:,}",
            topic=_topic(group, "weights"),
            cost=24,
            patch=together,
        )


def _again(
    case: Case, engine: EngineFit, on: OnDevices, pod: Pod, **changes: object
) -> OnDevices | None:
    from kubectl_gpuadmit.policy.serving import RULE, wanted
    from kubectl_gpuadmit.sizing.fitting import on_devices

    if engine.facts is None:
        return None
    changed = structs.replace(engine.recognised.serving, **changes)
    one = structs.replace(engine.recognised, serving=changed)
    want = wanted(case.terms.policy.settings(RULE))
    return on_devices(engine.facts, one, on.devices, pod, want)


def _sharded(group: PodGroup, engine: EngineFit) -> Iterator[Proposal]:
    """Tensor parallel over 2, 4 or 8 GPUs of one pod."""
    one = engine.recognised
    if engine.pods > 1:
        return
    now = one.serving.tensor_parallel_size or 1
    for size in _GPUS:
        if size <= now:
            continue
        flags = _change(group, engine, "tensor_parallel_size", size)
        if not flags and one.engine not in ("nim", "tgi", "llama.cpp"):
            continue
        amounts = _amounts(group, engine, size)
        if amounts is None:
            continue
        yield Proposal(
            summary=f"tensor parallel over {size} GPUs"
            + (f" ({_flag(engine, 'tensor_parallel_size')} {size})" if flags else ""),
            topic=_topic(group, "gpus"),
            cost=30 + size,
            patch=(*amounts, *flags),
        )


def _amounts(group: PodGroup, engine: EngineFit, size: int) -> tuple[dict[str, Any], ...] | None:
    """The container's GPUs raised to ``size``; () where it has as many, None where it cannot be."""
    if engine.gpus >= size:
        return () if engine.gpus == size else None
    resource = engine.on[0].devices.resource
    if "/mig-" in resource:
        return None  # slices of one card do not reach each other
    container = resolve(group.template, engine.recognised.pointer)
    resources = container.get("resources") if isinstance(container, dict) else None
    ops: list[dict[str, Any]] = []
    for part in ("limits", "requests"):
        amounts = resources.get(part) if isinstance(resources, dict) else None
        if isinstance(amounts, dict) and resource in amounts:
            path = f"{engine.recognised.pointer}/resources/{part}/{token(resource)}"
            place = group.in_manifest(path)
            if place is None:
                return None
            value = str(size) if isinstance(amounts[resource], str) else size
            ops.append({"op": "replace", "path": place, "value": value})
    return tuple(ops) or None


def _other_product(case: Case, group: PodGroup, engine: EngineFit) -> Iterator[Proposal]:
    """Nodes with another GPU, smallest first, as they are labelled."""
    resource = engine.on[0].devices.resource
    here = {one.devices.product for one in engine.on}
    nodes: dict[str, list[Any]] = {}
    for node in case.before.cluster.nodes.values():
        product = node.labels.get(_PRODUCT, "")
        if product and product not in here and node.allocatable.get(resource):
            nodes.setdefault(product, []).append(node)
    at = group.in_manifest("/spec/nodeSelector")
    if at is None:
        return
    own = group.pod.spec.nodeSelector or {}
    for product, listed in sorted(nodes.items(), key=lambda item: product_mib(item[0]) or 0):
        kept = {k: v for k, v in own.items() if all(n.labels.get(k) == v for n in listed)}
        ops: list[dict[str, Any]] = [
            {"op": "add", "path": at, "value": {**kept, _PRODUCT: product}}
        ]
        ops += missing_tolerations(group, listed, case.document.data)
        yield Proposal(
            summary=f"nodes with {product} ({len(listed)})",
            topic=_topic(group, "pool"),
            cost=20 + min((product_mib(product) or 0) // 40_000, 8),
            patch=tuple(ops),
        )
