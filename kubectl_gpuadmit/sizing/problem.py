"""One reason why an engine would not start or could not serve what is asked."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Dimension = Literal[
    "weights", "activations", "overhead", "kv-cache", "sequences", "free-memory", "layout"
]
"""What burst. ``layout``: sizes that do not divide; ``sequences``: state of hybrid models."""


class Problem(Struct, frozen=True, kw_only=True):
    """``reason`` is a code of REASONS without its family."""

    reason: str
    dimension: Dimension
    detail: str
    """One sentence in the model owner's words, with numbers and units."""
    needs: float | None = None
    has: float | None = None
    """In bytes a GPU, or tokens or sequences; None where no amount is compared."""


REASONS = {
    "fit/weights-exceed": "The weights alone are more than the engine lets itself use of a GPU.",
    "fit/activations-exceed": "Weights and the peak of one step leave nothing for the cache.",
    "fit/kv-below-context": "The cache that is left does not hold one request of max-model-len.",
    "fit/kv-below-load": "The cache that is left does not hold the wanted requests at once.",
    "fit/context-above-length": "The wanted context is longer than max-model-len.",
    "fit/concurrency-above-sequences": "More requests are wanted at once than max-num-seqs allows.",
    "fit/sequences-above-states": "The cache holds fewer recurrent states than max-num-seqs.",
    "fit/free-memory-below-share": "Others hold so much of the GPU that the share is not free.",
    "fit/heads-not-divisible": "Attention heads do not divide by the tensor-parallel size.",
    "fit/width-not-divisible": "A layer's width does not divide by the tensor-parallel size.",
    "fit/groups-not-divisible": "Scales of quantised weights do not divide by tensor parallelism.",
    "fit/layers-not-divisible": "Layers do not divide by the pipeline: one stage is the fullest.",
    "fit/shm-too-small": "Tensor parallelism needs more of /dev/shm than the pod has.",
    "fit/no-headroom": "CUDA context and graphs may not fit beside the engine's share.",
    "fit/loading-exceeds": "Unquantised weights, which are held while loading, exceed the GPU.",
    "fit/close-to-the-limit": "It fits by the likely figures and does not by the worst.",
}
"""Reason codes of sizing and what each means."""
