"""Whether a model that is served in a given way fits its GPUs, with ranges and what they rest on.

    envelope(architecture, serving, device_mib=81559)

is pure: the same question gives the same answer. Nothing here reads files, clusters or catalogues.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.sizing.amount import Range, certain, left, widened
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.cache import Pool, Rank, cache_element, pool, state_bytes
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.constants import CONTEXT, RECOVERY, RESERVED, RESERVED_OF
from kubectl_gpuadmit.sizing.defaults import Settled, settled
from kubectl_gpuadmit.sizing.layout import layout_problems
from kubectl_gpuadmit.sizing.ledger import Ledger, expert_ranks, ledger
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.problem import Dimension, Problem
from kubectl_gpuadmit.sizing.quantized import served_quantization
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.stored import stored_weights
from kubectl_gpuadmit.sizing.versions import (
    ADAPTERS_OF_VOCABULARY,
    STATES_CHECKED,
    TOKENS_BY_CONCURRENCY,
    TWO_BATCHES,
    release,
)
from kubectl_gpuadmit.sizing.weights import Lora, Sharding, Stage, element_bytes, stage_weights

__all__ = ["Assumption", "Dimension", "Envelope", "Problem", "Range", "Want", "envelope"]

GIB = 1 << 30
MIB = 1 << 20


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
        question = _Question(
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


def capacity_of(device_mib: int, product: str) -> Range:
    """Bytes that the driver gives of a device: NVML's total less what it keeps."""
    size = device_mib * float(MIB)
    name = product.upper()
    known = "A100-40" if "A100" in name and device_mib < 50000 else ""
    known = known or ("A100-80" if "A100" in name else "")
    words = name.replace(" ", "-").split("-")
    known = known or next((key for key in RESERVED_OF if key in words), "")
    known = known or next((k for k in RESERVED_OF if k in name.replace(" ", "-")), "")
    if known and "MIG" not in name:
        kept = RESERVED_OF[known]
        return Range(size * (1 - kept - 0.002), size * (1 - kept), size * (1 - kept + 0.002))
    return Range(
        size * (1 - RESERVED.high), size * (1 - RESERVED.likely), size * (1 - RESERVED.low)
    )


class _Question:
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
        _sound(serving)
        self.architecture = architecture
        self.product = product
        self.serving = serving
        self.checkpoint = checkpoint
        self.draft = draft
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
        self.quantization, self.weight_doubt, note = served_quantization(architecture, serving)
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
        own = self.quantization.kv_cache_dtype if self.quantization else ""
        if cache_dtype == "auto" and own:
            cache_dtype = own
            self.assumptions.append(Assumption(f"kv_cache_dtype {own}", "the checkpoint's config"))
        self.cache_element = cache_element(cache_dtype, self.element)
        self.sparse = cache_dtype == "fp8_ds_mla" or (
            architecture.index_head_dim is not None
            and cache_dtype.startswith("fp8")
            and serving.engine == "vllm"
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
        parts = self._stages()
        pools = [self._pool(stage) for stage in parts]
        samples = not self.plan.encoder_only and serving.runner != "pooling"
        ledgers = [
            ledger(
                self.architecture,
                self.plan,
                serving,
                chosen,
                weights=self._weights(stage),
                states=self._states(stage),
                capacity=self.capacity,
                free=self.free,
                element=self.element,
                samples=samples,
                product=self.product,
            )
            for stage in parts
        ]
        book, kept = min(
            zip(ledgers, pools, strict=True), key=lambda pair: _room(pair[0], pair[1], chosen)
        )
        cache = book.cache
        if self.measured_cache is not None:
            cache = certain(self.measured_cache)
        found = _Room(cache, kept, chosen, serving)
        if cache is None or self.capacity is None:
            missing = ("the memory of the GPU",)
            return self._report(book, found, want, "unknown", problems, warnings, missing)
        problems += self._start(book, found)
        problems += found.wanted(want)
        if not problems:
            warnings += self._close(book, found)
            warnings += self._beside(book)
        verdict: Literal["fits", "exceeds"] = "exceeds" if problems else "fits"
        return self._report(book, found, want, verdict, problems, warnings, ())

    def _sharding(self) -> Sharding:
        serving = self.serving
        vllm = serving.engine in ("vllm", "nim")
        tensorrt = serving.engine in ("tensorrt-llm", "triton")
        attention = None
        if serving.enable_dp_attention and serving.data_parallel_size:
            tensor = serving.tensor_parallel_size or 1
            attention = max(1, tensor // serving.data_parallel_size)
        layered = serving.engine == "llama.cpp"
        return Sharding(
            tensor=1 if layered else serving.tensor_parallel_size or 1,
            pipeline=serving.world_size if layered else serving.pipeline_parallel_size or 1,
            layered=layered,
            experts=expert_ranks(serving),
            attention=attention,
            towers=not serving.language_model_only,
            prediction=serving.speculative_method
            in ("mtp", "nextn", "deepseek_mtp", "qwen3_next_mtp"),
            whole_segments=serving.engine not in ("llama.cpp", "tensorrt-llm")
            and not serving.expandable_segments,
            vocabulary_pad=64 if vllm or serving.engine == "sglang" else 1,
            mxfp4_pad=(128, 128) if tensorrt else (64, 256) if vllm else (1, 1),
            batched_tokens=self.settled.batched,
            even_layers=serving.engine != "sglang",
        )

    def _stages(self) -> tuple[Stage, ...]:
        serving = self.serving
        lora = None
        version = release(serving.version)
        if serving.enable_lora:
            lora = Lora(
                serving.max_loras or 1,
                serving.max_lora_rank or 16,
                self.element,
                version < ADAPTERS_OF_VOCABULARY
                and self.architecture.model_type in ("llama", "mistral"),
            )
        if self._sharding().pipeline > len(self.plan.layers):
            raise NoPlan("a pipeline of no more stages than the model has layers")
        if self.checkpoint is not None:
            return stored_weights(
                self.checkpoint, self.plan, self._sharding(), serving, element=self.element
            )
        return stage_weights(
            self.architecture,
            self._sharding(),
            element=self.element,
            quantization=self.quantization,
            lora=lora,
        )

    def _weights(self, stage: Stage) -> Range:
        size = stage.weights + stage.adapters + self._draft()
        size -= (self.serving.cpu_offload_gb or 0) * GIB
        doubt = self.weight_doubt
        return widened(max(0.0, size), below=doubt / 2, above=doubt)

    def _draft(self) -> float:
        """A draft model is loaded whole, cut over the ranks like the target."""
        if self.draft is None:
            return 0.0
        sharding = Sharding(tensor=self.serving.tensor_parallel_size or 1)
        return sum(
            stage.weights
            for stage in stage_weights(
                self.draft,
                sharding,
                element=element_bytes(self.draft, None),
                quantization=self.draft.quantization,
            )
        )

    def _rank(self) -> Rank:
        serving = self.serving
        tensor = serving.tensor_parallel_size or 1
        if serving.enable_dp_attention and serving.data_parallel_size:
            tensor = max(1, tensor // serving.data_parallel_size)
        states = {"float32": 4.0, "auto": self.element}.get(
            serving.mamba_ssm_cache_dtype or "auto", self.element
        )
        return Rank(
            tensor=tensor if serving.engine != "llama.cpp" else 1,
            element=self.cache_element,
            state_element=states,
            conv_element=4.0 if serving.engine == "llama.cpp" else self.element,
            context=serving.decode_context_parallel_size or 1,
            sparse=self.sparse,
            speculative=serving.num_speculative_tokens or 0,
        )

    def _pool(self, stage: Stage) -> Pool:
        serving, chosen = self.serving, self.settled
        layers = self.plan.layers[stage.first : stage.last]
        if self._sharding().prediction and stage.last == len(self.plan.layers):
            layers = (*layers, *self.plan.prediction)
        if self.draft is not None:
            layers = (*layers, *plan(self.draft).layers)
        version = release(serving.version)
        rank = self._rank()
        if serving.engine not in ("vllm", "nim"):
            # other engines keep states apart, and windows in a pool of their own or not at all
            kept = tuple(layer for layer in layers if layer.cache is not None)
            hybrid = serving.engine == "llama.cpp" and chosen.hybrid
            return pool(kept, rank, block=chosen.block, chunk=chosen.batched, hybrid=hybrid)
        steps = 2 if version >= TWO_BATCHES else 1
        return pool(
            layers,
            rank,
            block=chosen.block,
            chunk=chosen.batched * steps,
            hybrid=chosen.hybrid or not any(la.cache and la.cache.window for la in layers),
            aligned=chosen.prefix_caching,
            by_concurrency=version >= TOKENS_BY_CONCURRENCY,
        )

    def _states(self, stage: Stage) -> float:
        """Recurrent states of all sequences, where the engine keeps them apart."""
        serving = self.serving
        if serving.engine in ("vllm", "nim"):
            return 0.0
        slots = serving.max_mamba_cache_size or self.settled.sequences
        rank = self._rank()
        return slots * sum(
            state_bytes(layer.state, rank)
            for layer in self.plan.layers[stage.first : stage.last]
            if layer.state is not None
        )

    def _start(self, book: Ledger, found: _Room) -> list[Problem]:
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
            return [_burst("weights-exceed", "weights", "weights", book.weights, budget)]
        return found.start(book)

    def _close(self, book: Ledger, found: _Room) -> list[Problem]:
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

    def _loading(self) -> float | None:
        """An engine that quantises while loading holds the unquantised weights first (vLLM
        ``fp8.py``, process_weights_after_loading)."""
        if self.architecture.quantization is not None or self.quantization is None:
            return None
        parts = stage_weights(
            self.architecture, self._sharding(), element=self.element, quantization=None
        )
        return max(stage.weights for stage in parts)

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
        loading = self._loading()
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
        found: _Room,
        want: Want,
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
            loading=self._loading(),
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


def _burst(
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


class _Room:
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
                _burst(
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
        if self.serving.engine in ("tensorrt-llm", "triton"):
            return []  # it starts with a shorter length instead
        needed = self.pool.request_bytes(chosen.length)
        if needed > cache.likely:
            longest = self.pool.longest(cache.likely, chosen.length)
            return [
                Problem(
                    reason="kv-below-context",
                    dimension="kv-cache",
                    detail=f"one request of {chosen.length:,} tokens needs {needed / GIB:.2f} GiB "
                    f"of cache a GPU, and {cache.likely / GIB:.2f} are left: "
                    f"up to {longest:,} tokens fit",
                    needs=needed,
                    has=cache.likely,
                )
            ]
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
        if want.concurrency and self.pool.groups:
            most = self.pool.concurrency(cache.likely, context)
            if want.concurrency > most:
                found.append(
                    Problem(
                        reason="kv-below-load",
                        dimension="kv-cache",
                        detail=f"{want.concurrency:,} requests of {context:,} tokens need "
                        f"{want.concurrency * self.pool.request_bytes(context) / GIB:.1f} GiB of "
                        f"cache a GPU, and {cache.likely / GIB:.1f} are left: "
                        f"{most:.1f} such requests fit",
                        needs=want.concurrency * self.pool.request_bytes(context),
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


def _sound(serving: Serving) -> None:
    """Numbers that no engine takes."""
    counts = (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "expert_parallel_size",
        "decode_context_parallel_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "max_model_len",
    )
    wrong = [
        f"a sound {name} ({getattr(serving, name)} cannot be)"
        for name in counts
        if getattr(serving, name) is not None and not 0 < getattr(serving, name) <= 1 << 30
    ]
    for name in ("gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction"):
        share = getattr(serving, name)
        if share is not None and not 0 < share <= 1:
            wrong.append(f"a sound {name} ({share:g} is not between 0 and 1)")
    if wrong:
        raise NoPlan(*wrong)
