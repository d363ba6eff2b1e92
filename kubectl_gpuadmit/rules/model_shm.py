"""Rule model/shm."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "model/shm",
    reasons={
        "model/shm": "The processes of a sharded engine exchange through /dev/shm, and the "
        "container has less of it than they need. Raise the sizeLimit of the memory volume at "
        "/dev/shm, or leave it out."
    },
    reads={"Node", "ConfigMap"},
    level="warn",
)
def model_shm(ask: Ask, cluster: Cluster, *, least_mebibytes: int = 1024) -> Iterator[Found]:
    """Too little shared memory for an engine that runs on several GPUs of one container.

    NCCL's guide (Troubleshooting, Docker) and the engines' own documentation ask for 1 GiB of
    ``/dev/shm``; ``leastMebibytes`` is that figure. A container without any volume there is told by
    ``spec/shared-memory``.
    """
    for engine in serving.engines(ask, cluster):
        from kubectl_gpuadmit.sizing.fitting import shared_memory

        one = engine.recognised
        if min(one.serving.world_size, one.gpus) < 2:
            continue
        has = shared_memory(ask.pod, one.pointer)
        if has is None or has == 64 << 20 or has >= least_mebibytes << 20:
            continue
        yield Finding(
            reason="model/shm",
            detail=f"container {one.container} shards the model over {one.gpus} GPUs and has "
            f"{has >> 20:,} MiB of /dev/shm",
            evidence=(
                Evidence(
                    f"container {one.container}",
                    "/dev/shm in MiB",
                    has >> 20,
                    least_mebibytes,
                    "sizeLimit",
                    "least",
                ),
            ),
            field=ask.field("/spec/volumes"),
        )
