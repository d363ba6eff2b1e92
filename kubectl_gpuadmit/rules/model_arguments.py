"""Rule model/arguments."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Finding


@rule(
    "model/arguments",
    reasons={
        "model/contradiction": "The engine is told the same thing twice and differently, so one of "
        "the two is not what its author meant. Keep one."
    },
    reads={"ConfigMap"},
    level="warn",
)
def model_arguments(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Arguments of a serving engine that contradict each other.

    ``--tensor-parallel-size 2 … -tp 4``: the engine takes the last one. An annotation that names
    another model than the arguments is told too.
    """
    for engine in serving.engines(ask, cluster):
        one = engine.recognised
        for said in one.contradictions:
            yield Finding(
                reason="model/contradiction",
                detail=f"container {one.container}: {said}",
                field=ask.field(one.pointer),
            )
