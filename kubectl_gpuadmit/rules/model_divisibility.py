"""Rule model/divisibility."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "model/divisibility",
    reasons={
        "model/layout": "The model does not divide as the engine is told: heads or widths that do "
        "not divide by the tensor-parallel size stop the start, layers that do not divide by the "
        "pipeline make one stage the fullest. Choose sizes that divide.",
        "model/too-few-gpus": "The engine is told to use more GPUs than the pods of one replica "
        "have, and refuses to start. Ask for as many, or lower its parallel sizes.",
    },
    reads={"Node", "ConfigMap"},
    level="warn",
)
def model_divisibility(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Parallel sizes that the model or the pod's GPUs do not allow.

    Attention heads have to divide by the tensor-parallel size, experts by the expert-parallel size,
    as the engine of that version demands; tensor times pipeline parallel GPUs must be there.
    """
    for engine in serving.engines(ask, cluster):
        one = engine.recognised
        field = ask.field(one.pointer)
        world = one.serving.world_size
        if engine.too_few:
            pods = f" in {engine.pods} pods" if engine.pods > 1 else ""
            yield Finding(
                reason="model/too-few-gpus",
                detail=f"{one.engine} in container {one.container} is told to use {world} GPUs and "
                f"has {engine.gpus}{pods}",
                evidence=(
                    Evidence(f"container {one.container}", "GPUs", engine.gpus, world, "", "least"),
                ),
                field=field,
            )
        told: set[str] = set()
        for on in engine.on:
            found = on.envelope
            for problem in (*found.problems, *found.warnings) if found is not None else ():
                if (
                    problem.dimension == "layout"
                    and problem.reason != "shm-too-small"
                    and problem.detail not in told
                ):
                    told.add(problem.detail)
                    detail = problem.detail.rstrip(".")
                    yield Finding(reason="model/layout", detail=detail, field=field)
