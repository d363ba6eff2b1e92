"""What changed between releases of an engine, where it changes memory; compares versions."""

from __future__ import annotations

import re

Version = tuple[int, int, int]

NEWEST: Version = (999, 0, 0)
"""Stands for an engine whose version nobody stated: as the newest release that is known."""

# vLLM
V1_DEFAULT: Version = (0, 8, 0)
"""V1 became the default engine (release notes of v0.8.0)."""
HYBRID_ALLOCATOR: Version = (0, 10, 0)
"""Layers with windows stop being cached whole (vllm-project/vllm#17996)."""
CHEAP_SAMPLING: Version = (0, 16, 0)
"""Top-k and top-p no longer sort the whole vocabulary while profiling (Triton kernel)."""
GRAPHS_PROFILED: Version = (0, 21, 0)
"""CUDA graphs count in the budget ("default since v0.21.0", gpu_worker.py)."""
TOKENS_BY_CONCURRENCY: Version = (0, 21, 0)
"""``GPU KV cache size`` is concurrency × length; before: blocks of a group × block size."""
TWO_BATCHES: Version = (0, 26, 0)
"""Windows keep two steps of tokens, as scheduling is asynchronous (vllm-project/vllm#47728)."""
STATES_CHECKED: Version = (0, 19, 0)
"""A start is refused where states are fewer than max-num-seqs (vllm-project/vllm#38270)."""
LEAKS_TO_OUTSIDE = ((0, 6, 4), (0, 6, 5))
"""From the first to before the second, memory that torch holds back counts as not torch's
(vllm-project/vllm#10511, #11230)."""
UTILIZATION_92: Version = (0, 22, 0)
"""``gpu-memory-utilization`` defaults to 0.92; before: 0.9 (log of vLLM 0.22.1)."""
ADAPTERS_OF_VOCABULARY: Version = (0, 13, 0)
"""Until here embeddings and output of Llama and Mistral get adapters."""

_NUMBERS = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?")


def version_of(text: str) -> Version | None:
    """``0.11.2``, ``v0.10.1.dev123+g``, ``0.11``; None for what is no version (``latest``)."""
    found = _NUMBERS.match(text.strip())
    if found is None:
        return None
    return int(found[1]), int(found[2]), int(found[3] or 0)


def release(text: str) -> Version:
    """The version, or NEWEST where none is stated."""
    return version_of(text) or NEWEST
