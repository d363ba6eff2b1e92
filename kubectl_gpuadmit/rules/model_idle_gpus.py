"""Rule model/idle-gpus."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding

_SPREADS = frozenset({"unknown", "nim", "triton", "ollama", "follower"})
"""Engines of which nobody here knows how many GPUs they take."""


@rule(
    "model/idle-gpus",
    reasons={
        "model/idle-gpus": "The engine uses fewer GPUs than its container asks for: the others "
        "idle, and their memory does not help the model. Raise the tensor-parallel size, or ask "
        "for fewer GPUs."
    },
    reads={"Node", "ConfigMap"},
    level="warn",
)
def model_idle_gpus(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """GPUs that a container asks for and its engine does not use.

    Two GPUs of 24 GB are not one of 48: without ``--tensor-parallel-size`` (or its like) vLLM and
    SGLang load the whole model on the first one.
    """
    for engine in serving.engines(ask, cluster):
        one = engine.recognised
        replicas = max(one.serving.data_parallel_size or 1, 1)
        used = one.serving.world_size * replicas
        if not engine.on or one.engine in _SPREADS or used >= engine.gpus:
            continue
        yield Finding(
            reason="model/idle-gpus",
            detail=f"{one.engine} in container {one.container} uses {used} of its {engine.gpus} "
            f"GPUs: nothing shards the model over the others",
            evidence=(
                Evidence(f"container {one.container}", "GPUs used", used, engine.gpus, "arguments"),
            ),
            field=ask.field(one.pointer),
        )
