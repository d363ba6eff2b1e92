"""One reason why an engine would not start or could not serve what is asked."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Dimension = Literal[
    "weights", "activations", "overhead", "kv-cache", "sequences", "free-memory", "layout"
]
"""What burst. ``layout``: sizes that do not divide; ``sequences``: state of hybrid models."""


class Problem(Struct, frozen=True, kw_only=True):
    """``reason`` is a code of REASONS."""

    reason: str
    dimension: Dimension
    detail: str
    """One sentence in the model owner's words, with numbers and units."""
    needs: float | None = None
    has: float | None = None
    """In bytes a GPU, or tokens or sequences; None where no amount is compared."""


REASONS = {
    "weights-exceed": "The weights alone are more than the engine lets itself use of a GPU.",
    "activations-exceed": "Weights and the peak of one step leave nothing for the cache.",
    "kv-below-context": "The cache that is left does not hold one request of max-model-len.",
    "kv-below-load": "The cache that is left does not hold the wanted requests at once.",
    "context-above-length": "The wanted context is longer than max-model-len.",
    "concurrency-above-sequences": "More requests at once are wanted than max-num-seqs lets in.",
    "sequences-above-states": "max-num-seqs needs more recurrent states than the cache holds.",
    "free-memory-below-share": "Others hold so much of the GPU that the asked share is not free.",
    "heads-not-divisible": "Attention heads do not divide by the tensor-parallel size.",
    "width-not-divisible": "A layer's width does not divide by the tensor-parallel size.",
    "groups-not-divisible": "Scales of quantised weights do not divide by tensor parallelism.",
    "layers-not-divisible": "Layers do not divide by the pipeline: one stage is the fullest.",
    "shm-too-small": "Tensor parallelism needs more of /dev/shm than the pod has.",
    "no-headroom": "CUDA context and graphs may not fit beside the share that the engine takes.",
    "loading-exceeds": "Unquantised weights, which are held while loading, exceed the GPU.",
    "close-to-the-limit": "It fits by the likely figures and does not by the worst.",
}
"""Reason codes of sizing and what each means."""
