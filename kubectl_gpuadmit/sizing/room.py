"""What the cache that is left holds: whether an engine starts, and what load it then bears."""

from __future__ import annotations

from typing import Literal

from kubectl_gpuadmit.sizing.amount import Range, certain
from kubectl_gpuadmit.sizing.answer import Want
from kubectl_gpuadmit.sizing.cache import Pool
from kubectl_gpuadmit.sizing.defaults import Settled
from kubectl_gpuadmit.sizing.ledger import Ledger
from kubectl_gpuadmit.sizing.problem import Dimension, Problem
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.versions import STATES_CHECKED, release

GIB = 1 << 30

SHORTENING = ("sglang", "tensorrt-llm", "triton")
"""Engines that start with the cache there is, and refuse longer requests (SGLang
``model_runner.py``, max_total_num_tokens; TensorRT-LLM ``_util.py`` cuts max_seq_len)."""


def burst(
    reason: str, dimension: Dimension, what: str, needs: Range, has: Range, also: str = ""
) -> Problem:
    return Problem(
        reason=reason,
        dimension=dimension,
        detail=f"{what} need {needs.likely / GIB:.1f} GiB a GPU, "
        f"and the engine lets itself use {has.likely / GIB:.1f}{also}",
        needs=needs.likely,
        has=has.likely,
    )


class Room:
    """What the cache that is left holds."""

    def __init__(self, cache: Range | None, kept: Pool, chosen: Settled, serving: Serving) -> None:
        self.cache = cache
        self.pool = kept
        self.chosen = chosen
        self.serving = serving

    def start(self, book: Ledger) -> list[Problem]:
        cache, chosen = self.cache, self.chosen
        assert cache is not None
        if cache.likely <= 0:
            budget = book.budget or certain(0.0)
            needs = Range(
                *(
                    sum(
                        getattr(part, end)
                        for part in (book.weights, book.activations, book.overhead)
                    )
                    for end in ("low", "likely", "high")
                )
            )
            return [
                burst(
                    "activations-exceed",
                    "activations",
                    f"weights ({book.weights.likely / GIB:.1f}), activations "
                    f"({book.activations.likely / GIB:.1f}) and overhead "
                    f"({book.overhead.likely / GIB:.1f})",
                    needs,
                    budget,
                    ", so nothing is left for the cache",
                )
            ]
        if not self.pool.groups:
            return []
        if self.serving.engine in SHORTENING:
            return []
        if problem := self._too_long(cache):
            return [problem]
        states = any(group.kind == "state" for group in self.pool.groups)
        # a default is judged at the worst: nobody asked for so many sequences, and saying how many
        # costs nothing
        worst = cache.likely if self.serving.max_num_seqs else max(0.0, cache.low)
        blocks = self.pool.blocks(worst)
        newer = release(self.serving.version) >= STATES_CHECKED
        if states and not chosen.eager and newer and chosen.sequences > blocks:
            return [
                Problem(
                    reason="sequences-above-states",
                    dimension="sequences",
                    detail=f"max-num-seqs {chosen.sequences:,} needs a state for each sequence, "
                    f"and the cache holds {blocks:,}",
                    needs=chosen.sequences,
                    has=blocks,
                )
            ]
        return []

    def shortened(self) -> list[Problem]:
        """Starts, but takes no request as long as it was told to."""
        cache = self.cache
        if cache is None or not self.pool.groups or self.serving.engine not in SHORTENING:
            return []
        problem = self._too_long(cache) if cache.likely > 0 else None
        return [problem] if problem else []

    def _too_long(self, cache: Range) -> Problem | None:
        chosen = self.chosen
        needed = self.pool.request_bytes(chosen.length)
        if needed <= cache.likely:
            return None
        longest = self.pool.longest(cache.likely, chosen.length)
        return Problem(
            reason="kv-below-context",
            dimension="kv-cache",
            detail=f"one request of {chosen.length:,} tokens needs {needed / GIB:.2f} GiB "
            f"of cache a GPU, and {cache.likely / GIB:.2f} are left: "
            f"up to {longest:,} tokens fit",
            needs=needed,
            has=cache.likely,
        )

    def wanted(self, want: Want) -> list[Problem]:
        """What the owner wants beyond a start."""
        cache, chosen = self.cache, self.chosen
        if cache is None or cache.likely <= 0:
            return []
        found: list[Problem] = []
        context = want.context or chosen.length
        if want.context and want.context > chosen.length:
            found.append(
                Problem(
                    reason="context-above-length",
                    dimension="kv-cache",
                    detail=f"requests of {want.context:,} tokens are longer than "
                    f"max-model-len {chosen.length:,}",
                    needs=want.context,
                    has=chosen.length,
                )
            )
        if want.concurrency and want.concurrency > chosen.sequences:
            found.append(
                Problem(
                    reason="concurrency-above-sequences",
                    dimension="sequences",
                    detail=f"{want.concurrency:,} requests at once are more than "
                    f"max-num-seqs {chosen.sequences:,}",
                    needs=want.concurrency,
                    has=chosen.sequences,
                )
            )
        asked = want.concurrency or (1 if want.context else 0)
        if asked and self.pool.groups:
            most = self.pool.concurrency(cache.likely, context)
            if asked > most:
                found.append(
                    Problem(
                        reason="kv-below-load",
                        dimension="kv-cache",
                        detail=f"{asked:,} requests of {context:,} tokens need "
                        f"{asked * self.pool.request_bytes(context) / GIB:.1f} GiB of "
                        f"cache a GPU, and {cache.likely / GIB:.1f} are left: "
                        f"{most:.1f} such requests fit",
                        needs=asked * self.pool.request_bytes(context),
                        has=cache.likely,
                    )
                )
        return found

    def bytes_per_token(self) -> float | None:
        if not self.pool.groups:
            return None
        return self.pool.request_bytes(self.chosen.length) / self.chosen.length

    def _each(self, of: Literal["tokens", "concurrency"]) -> Range | None:
        if self.cache is None or not self.pool.groups:
            return None
        measure = getattr(self.pool, of)
        low, likely, high = (
            measure(max(0.0, value), self.chosen.length)
            for value in (self.cache.low, self.cache.likely, self.cache.high)
        )
        return Range(low, likely, high)

    def tokens(self) -> Range | None:
        if self.serving.num_gpu_blocks_override is not None and self.pool.groups:
            return certain(self.serving.num_gpu_blocks_override * self.chosen.block)
        if self.serving.engine == "llama.cpp":
            return certain(self.chosen.length)
        return self._each("tokens")

    def concurrency(self) -> Range | None:
        return self._each("concurrency")

    def longest(self, most: int) -> Range | None:
        if self.cache is None or not self.pool.groups:
            return None
        low, likely, high = (
            float(self.pool.longest(max(0.0, value), most))
            for value in (self.cache.low, self.cache.likely, self.cache.high)
        )
        return Range(low, likely, high)
