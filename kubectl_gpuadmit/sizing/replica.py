"""How the GPUs of one replica hold a model: shards, stages, pools and states."""

from __future__ import annotations

from msgspec import Struct

from kubectl_gpuadmit.sizing.amount import Range, widened
from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.cache import Pool, Rank, pool, state_bytes
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.defaults import Settled
from kubectl_gpuadmit.sizing.ledger import expert_ranks
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.plan import NoPlan, Plan
from kubectl_gpuadmit.sizing.serving import Serving
from kubectl_gpuadmit.sizing.stored import stored_weights
from kubectl_gpuadmit.sizing.versions import (
    ADAPTERS_OF_VOCABULARY,
    TOKENS_BY_CONCURRENCY,
    TWO_BATCHES,
    release,
)
from kubectl_gpuadmit.sizing.weights import Lora, Sharding, Stage, element_bytes, stage_weights

GIB = 1 << 30


class Replica(Struct, frozen=True, kw_only=True):
    """A model as it is served. ``doubt``: of the weights, as a share; elements are bytes."""

    architecture: Architecture
    serving: Serving
    plan: Plan
    settled: Settled
    element: float
    cache_element: float
    sparse: bool
    """The cache is ``fp8_ds_mla``."""
    quantization: Quantization | None
    doubt: float
    checkpoint: Checkpoint | None = None
    draft: Architecture | None = None

    def sharding(self) -> Sharding:
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

    def stages(self) -> tuple[Stage, ...]:
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
        if self.sharding().pipeline > len(self.plan.layers):
            raise NoPlan("a pipeline of no more stages than the model has layers")
        if self.checkpoint is not None:
            return stored_weights(
                self.checkpoint, self.plan, self.sharding(), serving, element=self.element
            )
        return stage_weights(
            self.architecture,
            self.sharding(),
            element=self.element,
            quantization=self.quantization,
            lora=lora,
        )

    def weights(self, stage: Stage) -> Range:
        size = stage.weights + stage.adapters + self.draft_weights()
        size -= (self.serving.cpu_offload_gb or 0) * GIB
        return widened(max(0.0, size), below=self.doubt / 2, above=self.doubt)

    def draft_weights(self) -> float:
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

    def rank(self) -> Rank:
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

    def pool(self, stage: Stage) -> Pool:
        serving, chosen = self.serving, self.settled
        layers = self.plan.layers[stage.first : stage.last]
        if self.sharding().prediction and stage.last == len(self.plan.layers):
            layers = (*layers, *self.plan.prediction)
        if self.draft is not None:
            layers = (*layers, *plan(self.draft).layers)
        version = release(serving.version)
        rank = self.rank()
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

    def states(self, stage: Stage) -> float:
        """Recurrent states of all sequences, where the engine keeps them apart."""
        serving = self.serving
        if serving.engine in ("vllm", "nim"):
            return 0.0
        slots = serving.max_mamba_cache_size or self.settled.sequences
        rank = self.rank()
        return slots * sum(
            state_bytes(layer.state, rank)
            for layer in self.plan.layers[stage.first : stage.last]
            if layer.state is not None
        )

    def loading(self) -> float | None:
        """An engine that quantises while loading holds the unquantised weights first (vLLM
        ``fp8.py``, process_weights_after_loading)."""
        if self.architecture.quantization is not None or self.quantization is None:
            return None
        parts = stage_weights(
            self.architecture, self.sharding(), element=self.element, quantization=None
        )
        return max(stage.weights for stage in parts)
