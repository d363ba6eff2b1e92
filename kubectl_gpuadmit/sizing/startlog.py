"""Reads an engine's start-up log: what was started, and where the memory went; judges nothing.

Formats are those that vLLM 0.4 to 0.28, SGLang and llama.cpp print. GB and GiB are both GiB there.
A log may be cut, coloured, or of several ranks: of figures that differ the one that decides is
kept, the smallest cache and the largest weights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.sizing.serving import Serving

GIB = 1 << 30
MOST_CHARACTERS = 16 << 20
"""A start is at the beginning of a log."""
LONGEST_LINE = 20_000


class StartLog(Struct, frozen=True, kw_only=True):
    """What a log says; None where it does not. Sizes are bytes of one GPU."""

    model: str = ""
    serving: Serving = Serving()
    total: float | None = None
    weights: float | None = None
    activations: float | None = None
    outside_torch: float | None = None
    graphs: float | None = None
    cache: float | None = None
    tokens: int | None = None
    concurrency: float | None = None
    refusal: str = ""
    """The engine's own sentence, where it would not start."""
    ranks: int = 0
    """How many lines said how much is left for the cache."""

    @property
    def says_anything(self) -> bool:
        return any(value is not None for value in (self.weights, self.cache, self.tokens)) or bool(
            self.refusal
        )


def read_log(text: str) -> StartLog:
    """Everything that is known of the start; an empty StartLog for any other text."""
    found = _Found()
    for line in _lines(text[:MOST_CHARACTERS]):
        for pattern, take in _READERS:
            if match := pattern.search(line):
                take(found, match)
    return found.log()


def _lines(text: str) -> Iterable[str]:
    for line in text.splitlines():
        yield re.sub(r"\x1b\[[0-9;]*m", "", line[:LONGEST_LINE])


class _Found:
    """Collects figures; of several ranks' figures the one that decides."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.figures: dict[str, float] = {}
        self.model = ""
        self.refusal = ""
        self.ranks = 0
        self.before: float | None = None

    def most(self, name: str, value: float) -> None:
        self.figures[name] = max(self.figures.get(name, value), value)

    def least(self, name: str, value: float) -> None:
        self.figures[name] = min(self.figures.get(name, value), value)

    def argument(self, name: str, text: str) -> None:
        """An argument of a start, as Python prints it; what is no such value is left out."""
        field, kind = _ARGUMENTS[name]
        text = text.strip().strip("'\"")
        if text in ("None", ""):
            return
        try:
            if kind is bool:
                self.given[field] = {"True": True, "False": False}[text]
            elif kind is int:
                self.given[field] = int(text)
            elif kind is float:
                self.given[field] = float(text)
            else:
                self.given[field] = text.removeprefix("torch.")
        except (ValueError, KeyError):
            return

    def log(self) -> StartLog:
        figures = self.figures
        tokens = figures.get("tokens")
        if "blocks" in figures and tokens is None:
            tokens = figures["blocks"] * (self.given.get("block_size") or 16)
        given = {k: v for k, v in self.given.items() if _sound(v)}
        return StartLog(
            model=self.model[:300],
            serving=Serving(**given),
            total=figures.get("total"),
            weights=figures.get("weights"),
            activations=figures.get("activations"),
            outside_torch=figures.get("outside"),
            graphs=figures.get("graphs"),
            cache=figures.get("cache"),
            tokens=None if tokens is None else int(tokens),
            concurrency=figures.get("concurrency"),
            refusal=self.refusal,
            ranks=self.ranks,
        )


def _sound(value: Any) -> bool:
    """Numbers that an argument can be: anything else came from a mangled line."""
    if isinstance(value, bool | str):
        return True
    return bool(0 < value <= 1 << 40)


_ARGUMENTS: dict[str, tuple[str, type]] = {
    # argument as engines print it: field of Serving
    "max_seq_len": ("max_model_len", int),
    "max_model_len": ("max_model_len", int),
    "context_length": ("max_model_len", int),
    "tensor_parallel_size": ("tensor_parallel_size", int),
    "tp_size": ("tensor_parallel_size", int),
    "pipeline_parallel_size": ("pipeline_parallel_size", int),
    "pp_size": ("pipeline_parallel_size", int),
    "data_parallel_size": ("data_parallel_size", int),
    "enable_expert_parallel": ("enable_expert_parallel", bool),
    "decode_context_parallel_size": ("decode_context_parallel_size", int),
    "quantization": ("quantization", str),
    "kv_cache_dtype": ("kv_cache_dtype", str),
    "dtype": ("dtype", str),
    "enforce_eager": ("enforce_eager", bool),
    "gpu_memory_utilization": ("gpu_memory_utilization", float),
    "mem_fraction_static": ("mem_fraction_static", float),
    "max_num_seqs": ("max_num_seqs", int),
    "max_running_requests": ("max_num_seqs", int),
    "max_num_batched_tokens": ("max_num_batched_tokens", int),
    "chunked_prefill_size": ("max_num_batched_tokens", int),
    "block_size": ("block_size", int),
    "enable_prefix_caching": ("enable_prefix_caching", bool),
    "enable_lora": ("enable_lora", bool),
    "max_lora_rank": ("max_lora_rank", int),
    "language_model_only": ("language_model_only", bool),
}
_PAIR = re.compile(
    r"['\"]?\b([a-z_]+)['\"]?\s*[=:]\s*"
    r"('[^']{0,300}'|\"[^\"]{0,300}\"|[\w.\-/]{1,300}(?![\w=]))"
)

_Take = Callable[[_Found, "re.Match[str]"], None]


def _pairs(found: _Found, match: re.Match[str]) -> None:
    """``name=value`` and ``'name': value`` of a line that lists arguments."""
    for pair in _PAIR.finditer(match[0]):
        name, value = pair[1], pair[2]
        if name in ("model", "model_path", "model_tag") and not found.model:
            found.model = value.strip("'\"")
        elif name in _ARGUMENTS:
            found.argument(name, value)


def _vllm_start(found: _Found, match: re.Match[str]) -> None:
    found.given["engine"] = "vllm"
    if match[1]:
        found.given["version"] = match[1]
    _pairs(found, match)


def _vllm_version(found: _Found, match: re.Match[str]) -> None:
    found.given["engine"] = "vllm"
    found.given["version"] = match[1]


def _sglang_start(found: _Found, match: re.Match[str]) -> None:
    found.given["engine"] = "sglang"
    _pairs(found, match)


def _size(name: str, *, least: bool = False, unit: float = GIB) -> _Take:
    def take(found: _Found, match: re.Match[str]) -> None:
        value = _number(match[1]) * unit
        (found.least if least else found.most)(name, value)
        if name == "cache":
            found.ranks += 1

    return take


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def _parts(found: _Found, match: re.Match[str]) -> None:
    """vLLM before V1 says all parts in one sentence."""
    for name, text in zip(("weights", "outside", "activations"), match.groups(), strict=False):
        found.most(name, _number(text) * GIB)
    found.least("cache", _number(match[4]) * GIB)
    found.ranks += 1


def _total(found: _Found, match: re.Match[str]) -> None:
    found.most("total", _number(match[1]) * GIB)
    found.given["gpu_memory_utilization"] = _number(match[2])


def _refused(found: _Found, match: re.Match[str]) -> None:
    if not found.refusal:
        found.refusal = match[0].strip()[:600]


def _needs(found: _Found, match: re.Match[str]) -> None:
    found.given.setdefault("max_model_len", int(_number(match[1])))
    found.least("cache", _number(match[2]) * GIB)
    _refused(found, match)


def _free(found: _Found, match: re.Match[str]) -> None:
    found.most("total", _number(match[2]) * GIB)
    found.given.setdefault("gpu_memory_utilization", _number(match[3]))
    _refused(found, match)


def _halves(found: _Found, match: re.Match[str]) -> None:
    """SGLang allocates keys and values apart."""
    found.least("tokens", _number(match[1]))
    found.least("cache", (_number(match[2]) + _number(match[3])) * GIB)
    found.ranks += 1


def _llama_buffer(name: str) -> _Take:
    def take(found: _Found, match: re.Match[str]) -> None:
        found.given["engine"] = "llama.cpp"
        found.most(name, _number(match[1]) * (1 << 20))

    return take


def _context(found: _Found, match: re.Match[str]) -> None:
    found.given["max_model_len"] = int(_number(match[1]))


def _batched(found: _Found, match: re.Match[str]) -> None:
    found.given.setdefault("max_num_batched_tokens", int(_number(match[1])))


_N = r"([0-9][0-9,]*(?:\.[0-9]+)?)"
_READERS: tuple[tuple[re.Pattern[str], _Take], ...] = (
    (re.compile(r"vLLM API server version v?([0-9][\w.+\-]*)"), _vllm_version),
    (
        re.compile(r"Initializing an? (?:V\d )?LLM engine \(v?([0-9][\w.+\-]*)\).{0,8000}"),
        _vllm_start,
    ),
    (re.compile(r"non-default args:.{0,8000}()"), lambda f, m: _pairs(f, m)),
    (re.compile(r"server_args=ServerArgs\(.{0,12000}"), _sglang_start),
    (
        re.compile(
            rf"model weights take {_N}\s?GiB; non_torch_memory takes {_N}\s?GiB; "
            rf"PyTorch activation peak memory takes {_N}\s?GiB; the rest of the memory reserved "
            rf"for KV Cache is {_N}\s?GiB"
        ),
        _parts,
    ),
    (
        re.compile(rf"total_gpu_memory \({_N}\s?GiB\) x gpu_memory_utilization \({_N}\)"),
        _total,
    ),
    (re.compile(rf"[Ll]oading (?:model weights )?took {_N} Gi?B"), _size("weights")),
    (re.compile(rf"Available KV cache memory: {_N} GiB"), _size("cache", least=True)),
    (re.compile(rf"GPU KV cache size: {_N} tokens"), _size("tokens", least=True, unit=1)),
    (re.compile(rf"# (?:GPU|cuda) blocks: {_N}"), _size("blocks", least=True, unit=1)),
    (
        re.compile(rf"Maximum concurrency for [\d,]+ tokens per request: {_N}x"),
        _size("concurrency", least=True, unit=1),
    ),
    (
        re.compile(rf"Graph capturing finished in .{{0,40}} took (-?{_N[1:-1]}) GiB"),
        _size("graphs"),
    ),
    (re.compile(rf"max_num_batched_tokens={_N}"), _batched),
    (
        re.compile(
            rf"max seq len \({_N}\), \([\d.]+ GiB KV cache is needed, which is larger than the "
            rf"available KV cache memory \({_N} GiB\)(?:.{{0,40}}?estimated maximum model length "
            r"is [\d,]+)?"
        ),
        _needs,
    ),
    (
        re.compile(
            rf"Free memory on device .{{0,60}}\({_N}/{_N} GiB\) on startup is less than desired "
            rf"GPU memory utilization \({_N}"
        ),
        _free,
    ),
    (
        re.compile(r"max_num_seqs \([\d,]+\) exceeds available Mamba cache blocks \([\d,]+\)"),
        _refused,
    ),
    (re.compile(r"No available memory for the cache blocks"), _refused),
    (
        re.compile(r"(?:torch\.)?(?:cuda\.)?OutOfMemoryError: CUDA out of memory\..{0,200}"),
        _refused,
    ),
    (
        re.compile(rf"#tokens: {_N}, K size: {_N} GB, V size: {_N} GB"),
        _halves,
    ),
    (re.compile(rf"mem usage={_N} GB"), _size("weights")),
    (re.compile(rf"\bcontext_len={_N}"), _context),
    (re.compile(rf"CUDA\d+ model buffer size =\s+{_N} MiB"), _llama_buffer("weights")),
    (re.compile(rf"CUDA\d+ KV buffer size =\s+{_N} MiB"), _llama_buffer("cache")),
    (re.compile(rf"CUDA\d+ compute buffer size =\s+{_N} MiB"), _llama_buffer("activations")),
    (re.compile(rf"llama_context: n_ctx\s+= {_N}"), _context),
)
