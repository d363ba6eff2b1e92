"""What a person states to ``fit`` in words: a model's name, an engine, a GPU. Nothing is guessed:
what is not known here is one error that says what is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.errors import BadInput, Unanswerable
from kubectl_gpuadmit.sizing.catalogue import find, suggestions
from kubectl_gpuadmit.sizing.products import ADVISED, Product, named
from kubectl_gpuadmit.sizing.registry import NONE, look_up
from kubectl_gpuadmit.sizing.serving import Engine, Serving
from kubectl_gpuadmit.sizing.trial import Trial, trial_of
from kubectl_gpuadmit.sizing.versions import version_of

ENGINES: dict[str, Engine] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "tgi": "tgi",
    "llama.cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "nim": "nim",
}
"""An engine as people write it -> its name here."""

_SHARES: dict[Engine, str] = {
    "sglang": "mem_fraction_static",
    "tensorrt-llm": "free_gpu_memory_fraction",
}
"""Engine -> its own argument for the share of memory that it takes, where it is not vLLM's."""

_POOLING_TASKS = ("embed", "rerank")


def model(name: str) -> Trial:
    """A model of the catalogue. Raises Unanswerable for one that is not in it."""
    facts = look_up(NONE, name)
    found = None if isinstance(facts, str) else trial_of(facts)
    if found is None:
        near = suggestions(name)
        raise Unanswerable(
            "unknown-model",
            f"{name[:120]!r} is no model of the catalogue",
            hint=f"did you mean {', '.join(near)}?" if near else "name its config.json: --config",
        )
    return found


def serving(engine: str, arguments: Mapping[str, Any], share: float | None) -> Serving:
    """``engine`` is ``NAME`` or ``NAME@VERSION``, ``arguments`` fields of Serving, None for what is
    not given; ``share`` is the engine's own, whatever it calls it. Raises BadInput."""
    name, _, version = engine.partition("@")
    known = ENGINES.get(name.strip().lower())
    if known is None:
        raise BadInput(
            "unknown-engine",
            f"{name[:60]!r} is no engine that is known here",
            hint=f"one of {', '.join(sorted(set(ENGINES.values())))}, as vllm@0.11",
        )
    if version and version_of(version) is None:
        raise BadInput(
            "unknown-engine", f"{version[:60]!r} is no version", hint="as vllm@0.11 or vllm@0.11.2"
        )
    if share is not None and not 0 < share <= 1:
        raise BadInput(
            "usage",
            f"--gpu-memory-utilization {share:g} is no share: above 0, at most 1",
            hint="kubectl gpu-admit fit --help",
        )
    given = {field: value for field, value in arguments.items() if value is not None}
    if share is not None:
        given[_SHARES.get(known, "gpu_memory_utilization")] = share
    return Serving(engine=known, version=version, **given)


def as_served(trial: Trial, how: Serving) -> Trial:
    """The trial under these arguments; vLLM runs what the catalogue knows to embed or rank as a
    pooling model, which is not told to it."""
    trial = trial.served(**{field: getattr(how, field) for field in how.__struct_fields__})
    found = find(trial.model)
    pools = found is not None and found.known.task in _POOLING_TASKS
    return trial.served(runner="pooling") if pools and how.engine == "vllm" else trial


def product(gpu: str) -> Product | None:
    """The GPU that is meant, None for ''. Raises BadInput for one that nobody knows."""
    if not gpu:
        return None
    found = named(gpu)
    if found is None:
        short = ", ".join(name.removeprefix("NVIDIA-") for name, _ in ADVISED[2:9:3])
        raise BadInput(
            "unknown-gpu",
            f"{gpu[:60]!r} is no GPU that is known here",
            hint=f"its memory in MiB as nvidia-smi says it, or a product: {short}",
        )
    return found
