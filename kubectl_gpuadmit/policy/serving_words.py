"""How a model that does not fit is told to its owner: which dimension burst, in which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.devices import Devices
from kubectl_gpuadmit.sizing.fitting import GIB, EngineFit, OnDevices, PodFit
from kubectl_gpuadmit.verdict import Evidence, ServedModel, ServedOn

Burst = Literal[
    "weights", "activations", "overhead", "kv-cache", "sequences", "free-memory", "registry"
]

REASON_OF: dict[Burst, str] = {
    "weights": "model/weights",
    "activations": "model/activations",
    "overhead": "model/activations",
    "kv-cache": "model/kv-cache",
    "sequences": "model/sequences",
    "free-memory": "model/free-memory",
    "registry": "model/required-memory",
}


def roomiest(on: Sequence[OnDevices]) -> OnDevices:
    """The kind of devices that is nearest to enough: the one with most memory."""
    return max(on, key=lambda one: (not one.too_few, one.devices.usable_mib or 0))


def burst(one: OnDevices) -> Burst | None:
    """The first dimension that is too large; None where only the layout is wrong."""
    if one.too_few:
        return None
    if one.envelope is None:
        return "weights" if one.by_weights else "registry"
    for problem in one.envelope.problems:
        if problem.dimension != "layout":
            return problem.dimension
    return None


def sentence(engine: EngineFit, on: OnDevices, what: Burst) -> str:
    """One sentence in the model owner's words."""
    one, devices = engine.recognised, on.devices
    name = one.model
    asked = devices_words(devices, devices.count * engine.pods)
    if on.envelope is None and engine.facts is not None and engine.facts.memory_gib is None:
        need, gpus = on.need_gib or 0.0, on.shards
        each = f", {need:,.1f} on each GPU even if they share it" if gpus > 1 else ""
        return f"{name} needs {need * gpus:,.1f} GiB for weights{each}; requested {asked}" + (
            _not_added(engine) if gpus == 1 else ""
        )
    if on.envelope is None:
        assert engine.facts is not None
        whole = engine.facts.memory_gib or 0.0
        shards = one.serving.world_size
        each = f", {on.need_gib:,.0f} GiB on each of {shards} GPUs" if shards > 1 else ""
        return f"{name} needs {whole:,.0f} GiB of GPU memory{each}; requested {asked}" + _not_added(
            engine
        )
    problem = next(p for p in on.envelope.problems if p.dimension == what)
    return f"{name} on {asked}: {problem.detail.rstrip('.')}{_not_added(engine)}"


def why(engine: EngineFit) -> str:
    """Why an engine fits nowhere, in one sentence."""
    best = roomiest(engine.on)
    what = burst(best)
    if what is not None:
        return sentence(engine, best, what)
    problems = best.envelope.problems if best.envelope is not None else ()
    return "; ".join(p.detail.rstrip(".") for p in problems)


def devices_words(devices: Devices, gpus: int) -> str:
    """``2 × NVIDIA-A10 (22.5 GiB each)``."""
    product = devices.product or devices.resource
    usable = devices.usable_mib or 0
    each = " each" if gpus > 1 else ""
    how = f", {devices.how}" if devices.how else ""
    slice_of = f" {devices.resource.partition('/mig-')[2]}" if "/mig-" in devices.resource else ""
    return f"{gpus} × {product}{slice_of} ({usable / 1024:,.1f} GiB{each}{how})"


def _not_added(engine: EngineFit) -> str:
    idle = engine.gpus - engine.recognised.serving.world_size
    if idle <= 0 or engine.recognised.serving.world_size > 1:
        return ""
    return "; nothing shards it, so the memory of its GPUs is not added up"


def evidence(engine: EngineFit, on: OnDevices) -> tuple[Evidence, ...]:
    """What the model needs and has, GiB a GPU."""
    subject = f"container {engine.recognised.container}"
    source = engine.facts.source if engine.facts is not None else ""
    rows: list[Evidence] = []
    found = on.envelope
    if found is None:
        has = round((on.devices.usable_mib or 0) / 1024, 1)
        need = round(on.need_gib or 0, 1)
        return (Evidence(subject, "GiB a GPU", has, need, source, "least"),)
    for what, part in (
        ("weights, GiB a GPU", found.weights),
        ("activations, GiB a GPU", found.activations),
        ("overhead, GiB a GPU", found.overhead),
        ("left for the KV cache, GiB a GPU", found.kv_cache),
    ):
        if part is not None:
            rows.append(Evidence(subject, what, _gib(part), None, source))
    if found.device is not None:
        memory = round(found.device / GIB, 1)
        rows.append(Evidence(subject, "memory, GiB a GPU", memory, None, on.devices.source))
    if found.budget is not None:
        budget = round(found.budget / GIB, 1)
        rows.append(Evidence(subject, "the engine may use, GiB a GPU", budget, None, "arguments"))
    for problem in found.problems:
        if problem.reason in ("kv-below-context", "kv-below-load"):
            has, need = (problem.has or 0) / GIB, (problem.needs or 0) / GIB
            what = "KV cache, GiB a GPU"
            rows.append(Evidence(subject, what, round(has, 2), round(need, 2), source, "least"))
    return tuple(rows)


def _gib(part: Range) -> float:
    return round(part.likely / GIB, 1)


def hint(engine: EngineFit) -> str:
    """What would make the answer known."""
    if not engine.recognised.known:
        return "annotate the pod template: gpu-admit.io/model: ORG/NAME"
    if engine.facts is None:
        return "describe it in the policy's models.catalogue, or in a file for --models"
    return ""


def served(role: str, found: PodFit, nodes: frozenset[str]) -> tuple[ServedModel, ...]:
    """The engines of one pod group for reports; of a pod without any, why there is none."""
    if not found.engines and found.why:
        none = ServedModel(
            role=role,
            container="",
            engine="",
            version="",
            model="",
            recognisedFrom="",
            arguments=(),
            source="",
            gpus=0,
            running=found.standing(),
            missing=(found.why,),
        )
        return (none,)
    return tuple(_served(role, engine, nodes) for engine in found.engines)


def _served(role: str, engine: EngineFit, nodes: frozenset[str]) -> ServedModel:
    one = engine.recognised
    told = {g.text: None for g in one.given if g.field in _TOLD and g.text}
    unknown = [m for on in engine.on for m in on.unknown]
    return ServedModel(
        role=role,
        container=one.container,
        engine=one.engine,
        version=one.serving.version,
        model=one.model,
        recognisedFrom=one.model_from,
        arguments=tuple(told),
        source=engine.facts.source if engine.facts is not None else "",
        gpus=engine.gpus or one.gpus,
        running=engine.standing(nodes),
        on=tuple(_on(on, engine) for on in _nearest_first(engine.on, nodes)),
        missing=tuple(dict.fromkeys((*engine.missing, *unknown))),
    )


def _nearest_first(on: Sequence[OnDevices], nodes: frozenset[str]) -> list[OnDevices]:
    """Where the pods go, then where the model fits, then the largest devices."""

    def order(one: OnDevices) -> tuple[bool, bool, int]:
        there = bool(nodes & frozenset(one.devices.nodes))
        return not there, one.fits != "fits", -(one.devices.usable_mib or 0)

    return sorted(on, key=order)


_TOLD = frozenset(
    {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"}
    | {"expert_parallel_size", "enable_expert_parallel", "max_model_len", "max_num_seqs"}
    | {"max_num_batched_tokens", "gpu_memory_utilization", "mem_fraction_static"}
    | {"free_gpu_memory_fraction", "kv_cache_memory_bytes", "dtype", "quantization"}
    | {"kv_cache_dtype", "enable_lora", "max_loras", "max_lora_rank", "speculative_model"}
    | {"enforce_eager", "cpu_offload_gb", "n_gpu_layers", "split_mode"}
)
"""Arguments that are shown: those that people set to make a model fit."""


def _on(on: OnDevices, engine: EngineFit) -> ServedOn:
    found, devices = on.envelope, on.devices

    def gib(part: Range | None) -> float | None:
        return round(part.likely / GIB, 2) if part is not None else None

    assumptions = engine.facts.assumed if engine.facts is not None else ()
    if found is not None:
        assumptions += tuple(f"{a.what} ({a.source})" for a in found.assumptions)
    return ServedOn(
        product=devices.product,
        resource=devices.resource,
        nodes=len(devices.nodes),
        memoryMiB=devices.mib,
        freeMiB=devices.free_mib,
        running=on.fits,
        weightsGiB=gib(found.weights) if found is not None else on.need_gib,
        activationsGiB=gib(found.activations) if found is not None else None,
        overheadGiB=gib(found.overhead) if found is not None else None,
        kvCacheGiB=gib(found.kv_cache) if found is not None else None,
        kvCacheTokens=_whole(found.kv_tokens) if found is not None else None,
        maxConcurrency=round(found.max_concurrency.likely, 2)
        if found is not None and found.max_concurrency is not None
        else None,
        assumptions=assumptions,
        warnings=tuple(w.detail for w in found.warnings) if found is not None else (),
    )


def _whole(part: Range | None) -> int | None:
    return int(part.likely) if part is not None else None
