"""Whether a model that is served in a given way fits its GPUs, with ranges and what they rest on.

    envelope(architecture, serving, device_mib=81559)

is pure: the same question gives the same answer. Nothing here reads files, clusters or catalogues.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.serving import Serving

GIB = 1 << 30

Dimension = Literal[
    "weights", "activations", "overhead", "kv-cache", "sequences", "free-memory", "layout"
]
"""What burst. ``layout``: sizes that do not divide; ``sequences``: state of hybrid models."""


class Range(Struct, frozen=True):
    """Bytes, tokens or sequences; ``likely`` lies within ``low`` and ``high``."""

    low: float
    likely: float
    high: float


class Problem(Struct, frozen=True, kw_only=True):
    """One reason why the engine would not start or could not serve what is asked."""

    reason: str
    """Catalogued code: ``weights-exceed``, ``kv-below-context``, ``heads-not-divisible`` …"""
    dimension: Dimension
    detail: str
    """One sentence in the model owner's words, with numbers and units."""
    needs: float | None = None
    has: float | None = None
    """In bytes a GPU, or tokens for ``kv-cache``; None where no amount is compared."""


class Assumption(Struct, frozen=True):
    """What was taken for granted and on whose word: ``max_num_seqs 256``, ``vLLM 0.11``."""

    what: str
    source: str


class Want(Struct, frozen=True, kw_only=True):
    """What the owner wants served, beyond a start: so many requests of such a length at once."""

    concurrency: int | None = None
    context: int | None = None


class Envelope(Struct, frozen=True, kw_only=True):
    """Per GPU, of the GPU that has least room. Sizes are bytes."""

    fits: Literal["fits", "exceeds", "unknown"]
    gpus: int
    """Of one replica: tensor × pipeline parallel."""
    device: float | None
    budget: float | None
    """What the engine lets itself use of ``device``."""
    weights: Range | None
    activations: Range | None
    overhead: Range | None
    """CUDA context, NCCL, CUDA graphs, adapters: whatever is neither of the others."""
    kv_cache: Range | None
    """Left for the cache. ``low`` counts the high end of all else."""
    kv_bytes_per_token: float | None
    """At ``max_model_len`` for layers whose bytes depend on it (sliding windows, states)."""
    kv_tokens: Range | None
    """As the engine prints it (``GPU KV cache size``)."""
    max_concurrency: Range | None
    """Requests of ``max_model_len`` tokens, as the engine prints it."""
    longest: Range | None
    """The longest ``max_model_len`` that would start."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """Starts, but: ``/dev/shm``, a share that co-tenants hold, a cap below what is wanted."""
    assumptions: tuple[Assumption, ...] = ()
    unknown: tuple[str, ...] = ()
    """What is missing to answer; not empty if and only if ``fits`` is ``unknown``."""


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
    """
    raise NotImplementedError
