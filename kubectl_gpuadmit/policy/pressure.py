"""Has a pool been too full for a while? One answer for the rules that refuse and that route."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.usage import (
    HISTORY_KIND,
    Sample,
    Usage,
    decayed_percent,
    history,
    pool_name,
    pool_usage,
)


class Pressure(NamedTuple):
    """``missing`` says what would have to be known; otherwise ``over`` is the answer."""

    over: bool
    usage: Usage
    mean: float = 0.0
    """Percent held over the window, recent instants weighing more."""
    missing: str = ""


def pressure(
    cluster: Cluster,
    policy: Policy,
    pool: str,
    *,
    now: dt.datetime,
    threshold: float,
    window: dt.timedelta,
    half_life: dt.timedelta,
) -> Pressure:
    """Above ``threshold`` percent now and in the decayed mean over ``window``.

    Below it now is an answer without any history. The newest sample is the present itself.
    """
    nothing = Usage(0, 0)
    for kind in ("Node", "Pod"):
        if not cluster.knows(kind):
            missing = f"GPUs held in {pool_name(pool)}: no {kind} objects given"
            return Pressure(False, nothing, missing=missing)
    usage = pool_usage(cluster, policy, pool)
    if usage.percent <= threshold or not usage.allocatable:
        return Pressure(False, usage)  # a pool without GPUs is a matter of placement
    samples = [sample for sample in history(cluster, pool) if sample.time < now]
    mean = decayed_percent(
        [*samples, Sample(now, usage)], now=now, window=window, half_life=half_life
    )
    if not window:
        mean = usage.percent
    if mean is None:
        since = now - samples[0].time if samples else None
        known = (
            f"known for {times.spell(since)} of {times.spell(window)}" if since else "none given"
        )
        return Pressure(
            False,
            usage,
            missing=f"{HISTORY_KIND} of {pool_name(pool)}: {known}; it is {usage.percent:.0f} % "
            "held now",
        )
    return Pressure(mean > threshold, usage, mean)
