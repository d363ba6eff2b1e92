"""Bytes and tokens of the cache: what a token, a sequence and a pool hold, as vLLM allocates them.

Rules are those of vLLM ``v1/core/kv_cache_utils.py`` and ``v1/kv_cache_interface.py``: layers with
one kind of cache form groups of equally many layers, every group's block has one size in bytes,
and a request needs blocks of every group.
"""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from kubectl_gpuadmit.sizing.plan import Cache, Layer, NoPlan, State

KV_BYTES = {
    "auto": 0.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "f16": 2.0,
    "float32": 4.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "fp8_inc": 1.0,
    "float8_e4m3fn": 1.0,
    "int8": 1.0,
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
    "nvfp4": 0.5625,
    "fp4_e2m1": 0.5,
}
"""Bytes of an element. GGUF types and NVFP4 carry their scales."""

SPARSE_TOKEN = 656
"""Bytes of a token in ``fp8_ds_mla``: 512 of latent, 16 of scales, 128 of rotary key
(``flashmla_sparse.py``)."""


def cache_element(dtype: str | None, element: float) -> float:
    """Bytes of a cached element; ``element`` is the model's own for ``auto``."""
    name = (dtype or "auto").lower()
    if name == "auto":
        return element
    if name == "fp8_ds_mla":
        return 1.0
    if name not in KV_BYTES:
        raise NoPlan(f"how large an element of a cache of type {dtype} is")
    return KV_BYTES[name]


class Rank(Struct, frozen=True, kw_only=True):
    """How one GPU keeps caches."""

    tensor: int = 1
    element: float = 2.0
    """Bytes of a cached element."""
    state_element: float = 2.0
    """Of states whose family does not ask for float32."""
    conv_element: float = 2.0
    context: int = 1
    """Decode context parallel: tokens are dealt out over so many ranks."""
    sparse: bool = False
    """``fp8_ds_mla``."""
    speculative: int = 0
    """Tokens proposed in a step: states keep a slot for each."""


def token_bytes(cache: Cache, rank: Rank) -> float:
    """Of one token in one layer on one rank. Heads are dealt out; where there are fewer heads than
    ranks each rank holds one, so tensor parallelism saves nothing beyond the heads."""
    if cache.kind == "latent":
        size = float(SPARSE_TOKEN) if rank.sparse else cache.k_dim * rank.element
        if cache.index_dim:
            # the indexer's keys: FP8 with a float32 scale for each 128 (vLLM
            # deepseek_v2.py, DeepseekV32IndexerCache); 2 bytes where the cache is not FP8
            size += cache.index_dim + 4 if rank.sparse else cache.index_dim * rank.element
        return size
    heads = max(1, ceil(cache.heads / rank.tensor))
    return heads * (cache.k_dim + cache.v_dim) * rank.element


def state_bytes(state: State, rank: Rank) -> float:
    """Of one sequence in one layer on one rank: convolution tail and state."""
    tail = state.conv_tail + rank.speculative
    size = ceil(state.conv_channels / rank.tensor) * tail * rank.conv_element
    width = 4.0 if state.float32 else rank.state_element
    return size + ceil(state.heads / rank.tensor) * state.rows * state.cols * width


class Group(Struct, frozen=True):
    """Layers that share a block table. ``kind``: of Cache, or ``state``."""

    kind: str
    layers: int
    block: int
    """Tokens of a block."""
    window: int = 0
    slots: int = 1
    """Of a ``state``: blocks of one sequence, whatever its length."""

    def blocks(self, length: int, *, chunk: int, context: int) -> int:
        """Blocks of one request of ``length`` tokens, ``chunk`` of which may be in flight."""
        match self.kind:
            case "state":
                return self.slots
            case "sliding":
                return ceil(min(self.window - 1 + chunk, length) / self.block) + 1
            case "chunked":
                return ceil(min(self.window + chunk, length) / self.block)
            case _:
                return ceil(ceil(length / context) / self.block)


class Pool(Struct, frozen=True, kw_only=True):
    """The cache of one rank. ``width`` layers' pages of ``page`` bytes make up one block."""

    groups: tuple[Group, ...]
    width: int
    page: float
    chunk: int
    """Tokens that may be scheduled beyond a window: steps in flight × batched tokens."""
    context: int = 1
    by_concurrency: bool = True
    """The engine prints tokens as concurrency × length."""

    @property
    def block_bytes(self) -> float:
        return self.width * self.page

    def blocks(self, available: float) -> int:
        return max(0, int(available // self.block_bytes)) if self.groups else 0

    def request_blocks(self, length: int) -> int:
        return sum(
            group.blocks(length, chunk=self.chunk, context=self.context) for group in self.groups
        )

    def request_bytes(self, length: int) -> float:
        """What one request of ``length`` tokens holds at most."""
        return self.request_blocks(length) * self.block_bytes

    def concurrency(self, available: float, length: int) -> float:
        """Requests of ``length`` tokens, as ``Maximum concurrency`` says."""
        needed = self.request_blocks(length)
        return self.blocks(available) / needed if needed else 0.0

    def tokens(self, available: float, length: int) -> float:
        """As ``GPU KV cache size`` says."""
        if self.by_concurrency and len(self.groups) > 1:
            return float(int(self.concurrency(available, length) * length))
        smallest = min((group.block for group in self.groups), default=0)
        count = max(1, len(self.groups))
        return float(self.blocks(available) // count * smallest * self.context)

    def longest(self, available: float, most: int) -> int:
        """The longest request up to ``most`` tokens that fits alone; 0 where none does."""
        blocks = self.blocks(available)
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.request_blocks(middle) <= blocks:
                low = middle
            else:
                high = middle - 1
        return low


def pool(
    layers: tuple[Layer, ...],
    rank: Rank,
    *,
    block: int = 16,
    chunk: int,
    hybrid: bool = True,
    aligned: bool = False,
    by_concurrency: bool = True,
) -> Pool:
    """The pool of a stage's layers.

    Args:
        hybrid: Windows are honoured; False: such layers keep every token.
        aligned: States keep two slots a sequence, for prefix caching (``mamba_cache_mode align``).
        block: Tokens of a block, before it grows to a state's size.
    """
    kinds: dict[tuple[str, float, int], int] = {}
    states: dict[float, int] = {}
    for layer in layers:
        if layer.cache is not None:
            cache = layer.cache
            kind = cache.kind if hybrid else "full"
            kind = "full" if kind == "latent" else kind
            key = (kind, token_bytes(cache, rank), cache.window if kind != "full" else 0)
            kinds[key] = kinds.get(key, 0) + 1
        if layer.state is not None:
            size = state_bytes(layer.state, rank)
            states[size] = states.get(size, 0) + 1
    settings = {"chunk": chunk, "context": rank.context, "by_concurrency": by_concurrency}
    if not states and len({kind for kind, _, _ in kinds}) <= 1:
        return _single(kinds, block, settings)
    return _mixed(kinds, states, block, rank, aligned, settings)


def _single(kinds: dict[tuple[str, float, int], int], block: int, settings: dict[str, int]) -> Pool:
    """All layers of one kind: one group, whatever their sizes."""
    if not kinds:
        return Pool(groups=(), width=1, page=1.0, chunk=settings["chunk"])
    count = sum(kinds.values())
    total = sum(size * number for (_, size, _), number in kinds.items())
    kind, _, window = next(iter(kinds))
    return Pool(
        groups=(Group(kind, count, block, window),),
        width=1,
        page=total * block,
        chunk=settings["chunk"],
        context=settings["context"],
        by_concurrency=bool(settings["by_concurrency"]),
    )


def _mixed(
    kinds: dict[tuple[str, float, int], int],
    states: dict[float, int],
    block: int,
    rank: Rank,
    aligned: bool,
    settings: dict[str, int],
) -> Pool:
    """Several kinds: pages of one size, groups of one length."""
    largest_state = max(states, default=0.0)
    if kinds and largest_state:
        # the attention block grows until its page holds a state (vLLM model_executor/models/
        # config.py, HybridAttentionMambaModelConfig), in steps of 16 tokens
        smallest = min(size for _, size, _ in kinds)
        block = max(block, 16 * ceil(largest_state / (16 * smallest)))
    page = max(max((size * block for _, size, _ in kinds), default=0.0), largest_state)
    counts = [*kinds.values(), sum(states.values())] if states else [*kinds.values()]
    width = min(counts)
    if max(counts) < 1.5 * width:
        width = max(counts)
    groups: list[Group] = []
    for (kind, size, window), number in kinds.items():
        scaled = block * int(page // (size * block))
        groups += [Group(kind, width, scaled, window)] * ceil(number / width)
    slots = (2 if aligned else 1) + rank.speculative
    if states:
        number = sum(states.values())
        groups += [Group("state", width, block, 0, slots)] * ceil(number / width)
    return Pool(
        groups=tuple(groups),
        width=width,
        page=page,
        chunk=settings["chunk"],
        context=settings["context"],
        by_concurrency=bool(settings["by_concurrency"]),
    )
