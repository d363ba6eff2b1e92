"""One question to the envelope, answered part by part; see ``envelope``."""

from __future__ import annotations

from typing import Literal

from kubectl_gpuadmit.sizing.amount import Range, certain, left
from kubectl_gpuadmit.sizing.answer import Assumption, Envelope, Want
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.cache import Pool, cache_element
from kubectl_gpuadmit.sizing.capacity import capacity_of, require_sound
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.constants import CONTEXT, RECOVERY
from kubectl_gpuadmit.sizing.defaults import Settled, settled
from kubectl_gpuadmit.sizing.layout import layout_problems
from kubectl_gpuadmit.sizing.ledger import Ledger, Start, ledger
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.problem import Problem
from kubectl_gpuadmit.sizing.quantized import served_quantization
from kubectl_gpuadmit.sizing.replica import Replica
from kubectl_gpuadmit.sizing.room import Room, burst
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.weights import element_bytes

GIB = 1 << 30
MIB = 1 << 20


class Question:
    """One question with everything derived that its parts share."""

    def __init__(
        self,
        architecture: Architecture,
        serving: Serving,
        *,
        device_mib: int | None,
        free_mib: int | None,
        product: str,
        checkpoint: Checkpoint | None,
        draft: Architecture | None,
        measured_cache: float | None,
    ) -> None:
        if serving.contradictions or serving.not_understood:
            raise NoPlan(
                *(f"one meaning for {text}" for text in serving.contradictions),
                *(f"what {text} does to memory" for text in serving.not_understood),
            )
        if device_mib is not None and device_mib <= 0:
            raise NoPlan(f"the memory of the GPU ({device_mib} MiB cannot be)")
        require_sound(serving)
        self.architecture = architecture
        self.product = product
        self.serving = serving
        self.measured_cache = measured_cache
        self.assumptions: list[Assumption] = []
        self.device = device_mib * float(MIB) if device_mib else None
        self.capacity = capacity_of(device_mib, product) if device_mib else None
        self.free_given = free_mib * float(MIB) if free_mib is not None else None
        self.plan: Plan = plan(architecture)
        self.settled: Settled = settled(
            architecture,
            serving,
            capacity=self.capacity.likely if self.capacity else None,
            product=product,
        )
        self.assumptions += [Assumption(what, source) for what, source in self.settled.assumed]
        self.element = element_bytes(architecture, serving.dtype)
        quantization, doubt, note = served_quantization(architecture, serving)
        if note:
            self.assumptions.append(Assumption(*note))
        if architecture.remote_code:
            self.assumptions.append(
                Assumption(
                    f"the model's own code lays it out as {architecture.model_type}",
                    "config.json names code that comes with the model",
                )
            )
        cache_dtype = serving.kv_cache_dtype or "auto"
        own = quantization.kv_cache_dtype if quantization else ""
        if cache_dtype == "auto" and own:
            cache_dtype = own
            self.assumptions.append(Assumption(f"kv_cache_dtype {own}", "the checkpoint's config"))
        sparse = cache_dtype == "fp8_ds_mla" or (
            architecture.index_head_dim is not None
            and cache_dtype.startswith("fp8")
            and serving.engine == "vllm"
        )
        self.replica = Replica(
            architecture=architecture,
            serving=serving,
            plan=self.plan,
            settled=self.settled,
            element=self.element,
            cache_element=cache_element(cache_dtype, self.element),
            sparse=sparse,
            quantization=quantization,
            doubt=doubt,
            checkpoint=checkpoint,
            draft=draft,
        )

    @property
    def free(self) -> Range | None:
        """Bytes free when the engine starts."""
        if self.free_given is not None:
            return certain(self.free_given)
        if self.capacity is None:
            return None
        return Range(
            self.capacity.low - CONTEXT.high,
            self.capacity.likely - CONTEXT.likely,
            self.capacity.high - CONTEXT.low,
        )

    def answer(self, want: Want, shm_bytes: int | None) -> Envelope:
        serving, chosen = self.serving, self.settled
        problems, warnings = layout_problems(
            self.architecture, self.plan, serving, shm_bytes=shm_bytes
        )
        parts = self.replica.stages()
        pools = [self.replica.pool(stage) for stage in parts]
        samples = not self.plan.encoder_only and serving.runner != "pooling"
        ledgers = [
            ledger(
                Start(
                    architecture=self.architecture,
                    plan=self.plan,
                    serving=serving,
                    settled=chosen,
                    weights=self.replica.weights(stage),
                    states=self.replica.states(stage),
                    capacity=self.capacity,
                    free=self.free,
                    element=self.element,
                    samples=samples,
                    product=self.product,
                )
            )
            for stage in parts
        ]
        book, kept = min(
            zip(ledgers, pools, strict=True), key=lambda pair: _room(pair[0], pair[1], chosen)
        )
        cache = book.cache
        if self.measured_cache is not None:
            cache = certain(self.measured_cache)
        found = Room(cache, kept, chosen, serving)
        if cache is None or self.capacity is None:
            missing = ("the memory of the GPU",)
            return self._report(book, found, "unknown", problems, warnings, missing)
        problems += self._start(book, found)
        problems += found.wanted(want)
        if not problems:
            warnings += self._close(found)
            warnings += self._beside(book)
            warnings += found.shortened()
        verdict: Literal["fits", "exceeds"] = "exceeds" if problems else "fits"
        return self._report(book, found, verdict, problems, warnings, ())

    def _start(self, book: Ledger, found: Room) -> list[Problem]:
        """Why the engine would not start."""
        capacity, free = self.capacity, self.free_given
        budget = book.budget
        if budget is None or capacity is None:
            return []
        asked = self.settled.share * capacity.likely
        vllm = self.serving.engine in ("vllm", "nim")
        if vllm and free is not None and free < asked and self.measured_cache is None:
            return [
                Problem(
                    reason="free-memory-below-share",
                    dimension="free-memory",
                    detail=f"{free / GIB:.2f} GiB are free of {capacity.likely / GIB:.2f}, and "
                    f"gpu-memory-utilization {self.settled.share:g} asks for {asked / GIB:.2f}",
                    needs=asked,
                    has=free,
                )
            ]
        if self.measured_cache is None and book.weights.likely > budget.likely:
            return [burst("weights-exceed", "weights", "weights", book.weights, budget)]
        return found.start(book)

    def _close(self, found: Room) -> list[Problem]:
        """Fits, but not at the far end of what is known."""
        cache = found.cache
        if cache is None or not found.pool.groups or self.measured_cache is not None:
            return []
        needed = found.pool.request_bytes(found.chosen.length)
        if cache.low >= needed:
            return []
        return [
            Problem(
                reason="close-to-the-limit",
                dimension="kv-cache",
                detail=f"between {max(0.0, cache.low) / GIB:.1f} and {cache.high / GIB:.1f} GiB "
                f"are left for the cache and one request needs {needed / GIB:.2f}",
                needs=needed,
                has=cache.low,
            )
        ]

    def _headroom(self, book: Ledger) -> Range | None:
        if self.capacity is None or book.budget is None:
            return None
        if self.serving.engine not in ("vllm", "nim", "sglang"):
            return left(self.capacity, book.budget)
        return left(self.capacity, book.budget, book.outside)

    def _beside(self, book: Ledger) -> list[Problem]:
        """What is taken outside of the budget, or only while loading, may not fit."""
        found: list[Problem] = []
        room = self._headroom(book)
        if room is not None and room.likely < 0:
            beside = room.likely + book.outside.likely
            found.append(
                Problem(
                    reason="no-headroom",
                    dimension="overhead",
                    detail=f"the engine takes {book.outside.likely / GIB:.1f} GiB beside its share "
                    f"(CUDA context, graphs), and {beside / GIB:.1f} are left: lower the share",
                    needs=book.outside.likely,
                    has=beside,
                )
            )
        loading = self.replica.loading()
        if self.capacity is not None and loading and loading > self.capacity.likely:
            found.append(
                Problem(
                    reason="loading-exceeds",
                    dimension="weights",
                    detail="weights are quantised after loading, and unquantised they take "
                    f"{loading / GIB:.1f} of {self.capacity.likely / GIB:.1f} GiB: name a "
                    "checkpoint that is stored quantised",
                    needs=loading,
                    has=self.capacity.likely,
                )
            )
        return found

    def _report(
        self,
        book: Ledger,
        found: Room,
        verdict: Literal["fits", "exceeds", "unknown"],
        problems: list[Problem],
        warnings: list[Problem],
        missing: tuple[str, ...],
    ) -> Envelope:
        length = self.settled.length
        return Envelope(
            fits=verdict,
            gpus=self.serving.world_size,
            device=self.device,
            budget=book.budget.likely if book.budget else None,
            weights=book.weights,
            activations=book.activations,
            overhead=book.overhead,
            kv_cache=found.cache,
            kv_bytes_per_token=found.bytes_per_token(),
            kv_tokens=found.tokens(),
            max_concurrency=found.concurrency(),
            longest=found.longest(self.architecture.max_position_embeddings or length),
            headroom=self._headroom(book),
            recovery=_recovery(book),
            loading=self.replica.loading(),
            max_model_len=length,
            parameters=self.plan.elements,
            problems=tuple(problems),
            warnings=tuple(warnings),
            assumptions=tuple(self.assumptions),
            unknown=missing,
        )


def _recovery(book: Ledger) -> Range | None:
    if book.budget is None:
        return None
    shares = (RECOVERY.low, RECOVERY.likely, RECOVERY.high)
    return Range(*(book.budget.likely * share for share in shares))


def _room(book: Ledger, kept: Pool, chosen: Settled) -> float:
    """Requests that a stage has room for: the one with least decides for all."""
    if book.cache is None:
        return -book.weights.likely
    needed = kept.request_bytes(chosen.length) if kept.groups else 1.0
    return book.cache.likely / max(1.0, needed)
