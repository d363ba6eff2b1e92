"""Whether a model that is served in a given way fits its GPUs, with ranges and what they rest on.

    envelope(architecture, serving, device_mib=81559)

is pure: the same question gives the same answer. Nothing here reads files, clusters or catalogues.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.answer import Assumption, Envelope, Want
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.plan import NoPlan
from kubectl_gpuadmit.sizing.problem import Dimension, Problem
from kubectl_gpuadmit.sizing.question import Question
from kubectl_gpuadmit.sizing.serving import Serving

__all__ = ["Assumption", "Dimension", "Envelope", "Problem", "Range", "Want", "envelope"]

GIB = 1 << 30
MIB = 1 << 20


def envelope(
    architecture: Architecture,
    serving: Serving,
    *,
    device_mib: int | None,
    free_mib: int | None = None,
    product: str = "",
    checkpoint: Checkpoint | None = None,
    draft: Architecture | None = None,
    want: Want | None = None,
    shm_bytes: int | None = None,
    measured_cache: float | None = None,
) -> Envelope:
    """What one replica needs on each GPU, and whether a GPU of ``device_mib`` MiB gives it.

    Args:
        architecture: The model.
        serving: Engine, version and arguments.
        device_mib: MiB of one GPU as NVML reports them (of the MIG slice or the share, where that
            is what the pod gets); None where nobody knows.
        free_mib: MiB free on it when the engine starts; None: all but the CUDA context.
        product: GPU as GFD names it, for defaults that depend on it.
        checkpoint: Stored tensors; they outrank the plan of the architecture.
        draft: Model for speculative decoding, where one is loaded.
        want: Target load; None: the engine need only start.
        shm_bytes: Size of ``/dev/shm`` in the pod; None: not known.
        measured_cache: Bytes that a log says are left for the cache, instead of our estimate.
    """
    try:
        question = Question(
            architecture,
            serving,
            device_mib=device_mib,
            free_mib=free_mib,
            product=product,
            checkpoint=checkpoint,
            draft=draft,
            measured_cache=measured_cache,
        )
        return question.answer(want or Want(), shm_bytes)
    except NoPlan as missing:
        return _unknown(serving, device_mib, tuple(str(word) for word in missing.args))


def _unknown(serving: Serving, device_mib: int | None, missing: tuple[str, ...]) -> Envelope:
    return Envelope(
        fits="unknown",
        gpus=serving.world_size,
        device=device_mib * float(MIB) if device_mib else None,
        budget=None,
        weights=None,
        activations=None,
        overhead=None,
        kv_cache=None,
        kv_bytes_per_token=None,
        kv_tokens=None,
        max_concurrency=None,
        longest=None,
        unknown=missing,
    )
