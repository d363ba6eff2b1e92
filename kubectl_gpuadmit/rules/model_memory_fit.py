"""Rule model/memory-fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Finding, Unknown

if TYPE_CHECKING:
    from kubectl_gpuadmit.sizing.fitting import EngineFit


@rule(
    "model/memory-fit",
    reasons={
        "model/weights": "The model's weights take more memory than any GPU, slice or share has "
        "that the pod could get. Shard it over more GPUs, take a quantised variant, or choose "
        "nodes with larger GPUs.",
        "model/kv-cache": "The weights fit, but what they leave does not hold the KV cache of the "
        "longest context, or of the target load. Shorten --max-model-len, serve fewer sequences "
        "at once, quantise the cache, or use larger or more GPUs.",
        "model/activations": "The weights fit, but the peak of one step does not beside them. "
        "Lower --max-num-batched-tokens or --max-num-seqs, or use larger or more GPUs.",
        "model/sequences": "More sequences are to be served at once than max-num-seqs lets in, or "
        "than the cache holds recurrent states for. Change max-num-seqs, or the target load.",
        "model/free-memory": "The engine wants a larger part of the GPU than its other users leave "
        "free, and refuses to start. Lower --gpu-memory-utilization, or use a GPU of its own.",
        "model/required-memory": "The registry says that one replica needs more GPU memory than "
        "the pod's devices have. Devices are added up only where the engine shards the model.",
    },
    reads={"Node", "ConfigMap"},
    level="warn",
)
def model_memory_fit(
    ask: Ask,
    cluster: Cluster,
    *,
    concurrency: int = 0,
    context: int = 0,
    headroom_percent: float = 0.0,
) -> Iterator[Found]:
    """Models that do not fit the memory of the devices that the pod could get.

    What the pod serves is read from annotations, from the engine's own arguments, environment and
    files, from the image, or from the object (KServe, Ray, NIM); what the model needs, from its
    architecture in the shipped catalogue, the policy's ``models``, ``--models`` or MLflow. It is
    judged against the real memory of every kind of devices that the pod's selectors and tolerations
    leave open: MiB as NVML reports them, a MIG slice, a share. It is refused where none is enough.

    ``concurrency`` and ``context`` are the load that the service has to bear: so many requests of
    that many tokens at once; 0 means that the engine need only start. ``headroomPercent`` is the
    share of that load which comes on top after a restart. A model or an argument that nobody knows
    is not judged: ``ifMissing`` says what to make of that.
    """
    for engine in serving.engines(ask, cluster):
        yield from _judged(ask, engine)


def _judged(ask: Ask, engine: EngineFit) -> Iterator[Found]:
    from kubectl_gpuadmit.policy import serving_words as words

    name = "model/memory-fit"
    if engine.missing:
        for missing in engine.missing:
            yield Unknown(name, missing, hint=words.hint(engine), stage="running")
        return
    answers = {one.fits for one in engine.on}
    if "fits" in answers:
        return
    if answers != {"exceeds"}:
        said = dict.fromkeys(m for one in engine.on if one.fits == "unknown" for m in one.unknown)
        for missing in said:
            yield Unknown(name, missing, hint=words.hint(engine), stage="running")
        return
    best = words.roomiest(engine.on)
    burst = words.burst(best)
    if burst is None:
        return  # the layout alone is wrong: model/divisibility says that
    yield Finding(
        reason=words.REASON_OF[burst],
        detail=words.sentence(engine, best, burst),
        evidence=words.evidence(engine, best),
        field=ask.field(engine.recognised.pointer),
    )
