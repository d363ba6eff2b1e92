"""What the envelope of a served model says; computes nothing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.sizing.amount import Range
from kubectl_gpuadmit.sizing.problem import Problem


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
    headroom: Range | None = None
    """Of the device, not in the budget, after what is taken beside it: for fragmentation and for
    a restart while the last process is still going."""
    recovery: Range | None = None
    """To be left free of the budget where a restart is dear: what fragments after hours of work."""
    loading: float | None = None
    """Most that is held while weights are loaded, where that is more than what stays."""
    max_model_len: int | None = None
    parameters: int | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """Starts, but: ``/dev/shm``, a share that co-tenants hold, a cap below what is wanted."""
    assumptions: tuple[Assumption, ...] = ()
    unknown: tuple[str, ...] = ()
    """What is missing to answer; not empty if and only if ``fits`` is ``unknown``."""
