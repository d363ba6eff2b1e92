"""Rule capacity/utilisation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.policy.pressure import pressure
from kubectl_gpuadmit.policy.usage import asked, pool_name, target_pool
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "capacity/utilisation",
    reasons={
        "capacity/pool-full": "So many of a pool's GPUs have been held for so long that new work "
        "is refused. Wait for work to end, use another pool, or ask for fewer replicas."
    },
    reads={"Node", "Pod", "GpuPoolHistory"},
)
def capacity_utilisation(
    ask: Ask,
    cluster: Cluster,
    *,
    threshold_percent: float = 95.0,
    window: dt.timedelta = dt.timedelta(seconds=120),
    half_life: dt.timedelta = dt.timedelta(seconds=60),
) -> Iterator[Found]:
    """New GPU work is refused while its pool has been too full for a while.

    Full is the share of the pool's GPUs that pods hold. It must be above the threshold now, and so
    must its mean over the window, in which an instant counts half for each half-life of age: a peak
    of seconds refuses nobody. The past comes from ``GpuPoolHistory`` objects
    (``gpu-admit.io/v1``, samples of time, pool, held, allocatable); without them only the present
    is known, and a pool that is full now is *unknown*, handled as ``ifMissing`` says. A pod bound
    to no pool is measured against the whole cluster.
    """
    if not asked(ask.pod, ask.policy.gpu_patterns):
        return
    pool = target_pool(ask.policy, ask.pod, ask.workload.ref.kind)
    found = pressure(
        cluster,
        ask.policy,
        pool,
        now=ask.now,
        threshold=threshold_percent,
        window=window,
        half_life=half_life,
    )
    if found.missing:
        yield Unknown(rule="capacity/utilisation", missing=found.missing)
    elif found.over:
        usage, span = found.usage, times.spell(window)
        yield Finding(
            reason="capacity/pool-full",
            detail=f"{pool_name(pool)} has {usage.held} of {usage.allocatable} GPUs held, "
            f"{found.mean:.0f} % over the last {span}; the limit is {threshold_percent:g} %",
            evidence=(
                Evidence(
                    pool_name(pool),
                    "GPUs held, percent",
                    round(usage.percent, 1),
                    f"<={threshold_percent:g}",
                    "pods on nodes now",
                ),
                Evidence(
                    pool_name(pool),
                    f"GPUs held over {span}, percent",
                    round(found.mean, 1),
                    f"<={threshold_percent:g}",
                    "GpuPoolHistory",
                ),
            ),
            permanent=False,
        )
