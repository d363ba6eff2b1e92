"""What a workload serves, in lines for a person: memory asked and there, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_gpuadmit.render.wording import plural
from kubectl_gpuadmit.verdict import ServedModel, ServedOn


def memory(model: ServedModel) -> str:
    """``33.3 of 79.6 GiB a GPU, KV for 214,000 tokens`` on the devices that count first."""
    return _on(model.on[0]) if model.on else ""


def _on(on: ServedOn) -> str:
    parts = [p for p in (on.weightsGiB, on.activationsGiB, on.overheadGiB) if p is not None]
    mib = on.freeMiB if on.freeMiB is not None else on.memoryMiB
    if not parts or mib is None:
        return ""
    said = f"{sum(parts):,.1f} of {mib / 1024:,.1f} GiB a GPU"
    if on.kvCacheTokens:
        said += f", KV for {on.kvCacheTokens:,} tokens"
    return said


def missing(models: Iterable[ServedModel]) -> str:
    """The first thing that nobody knows."""
    return next((m for model in models for m in model.missing), "")


def lines(model: ServedModel, *, several: bool, details: bool) -> Iterator[str]:
    """What was recognised and where; with ``details`` every kind of devices and assumption."""
    engine = f"{model.engine} {model.version}".strip()
    engine = "an engine that is not known" if engine == "unknown" else engine
    name = model.model or "model not known"
    role = f"{model.role}: " if model.role else ""
    source = f" ({model.recognisedFrom})" if model.recognisedFrom else ""
    yield f"{role}{name} by {engine}{source}"
    if several and (said := memory(model)):
        yield f"{model.running}: {said}"
    for text in dict.fromkeys(w for on in model.on[:1] for w in on.warnings):
        yield text
    if not details:
        return
    if model.arguments:
        yield "told " + " · ".join(model.arguments)
    if model.source:
        yield f"its needs from {model.source}"
    for on in model.on:
        product = on.product or on.resource
        yield f"{product} · {plural(on.nodes, 'node')}: {on.running} {_on(on)}".rstrip()
    assumed = dict.fromkeys(a for on in model.on for a in on.assumptions)
    for text in assumed:
        yield f"assumed {text}"
