"""Rule capacity/route."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import operations
from kubectl_gpuadmit.policy.pressure import Pressure, pressure
from kubectl_gpuadmit.policy.usage import asked, target_pool
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation, Unknown


@rule("capacity/route", reasons={}, stage="mutate", reads={"Node", "Pod", "GpuPoolHistory"})
def capacity_route(
    ask: Ask,
    cluster: Cluster,
    *,
    to: Mapping[str, str] = MappingProxyType({}),
    threshold_percent: float = 95.0,
    window: dt.timedelta = dt.timedelta(seconds=120),
    half_life: dt.timedelta = dt.timedelta(seconds=60),
) -> Iterator[Found]:
    """Sends new GPU work to another pool while its own has been too full for a while.

    ``to`` maps a pool to its overflow: ``{interactive: batch}``. Full means what it means to
    ``capacity/utilisation``. Nothing is sent to an overflow that is as full itself. The pod's node
    selector is rewritten: keys of the old pool go, those of the new one and its tolerations come. A
    class that ``partition/confine`` keeps in its own pool is not to be sent away: use one of the
    two.
    """
    policy = ask.policy
    source = target_pool(policy, ask.pod, ask.workload.ref.kind)
    goal = policy.pool(to.get(source, ""))
    old = policy.pool(source)
    if goal is None or old is None or not asked(ask.pod, policy.gpu_patterns):
        return

    def full(pool: str) -> Pressure:
        return pressure(
            cluster,
            policy,
            pool,
            now=ask.now,
            threshold=threshold_percent,
            window=window,
            half_life=half_life,
        )

    here = full(source)
    if here.missing:
        yield Unknown(rule="capacity/route", missing=here.missing)
        return
    if not here.over:
        return
    there = full(goal.name)
    if there.over or there.missing or not there.usage.allocatable:
        return
    chosen = (ask.group.template.get("spec") or {}).get("nodeSelector") or {}
    ops = [
        {"op": "remove", "path": "/spec/nodeSelector/" + k.replace("~", "~0").replace("/", "~1")}
        for k in old.nodeSelector
        if k in chosen and k not in goal.nodeSelector
    ]
    change = TemplateChange(nodeSelector=goal.nodeSelector, tolerations=goal.tolerations)
    ops += operations(change, ask.group.template, ask.pod)
    if ops:
        text = f"pool {source} is {here.usage.percent:.0f} % held: to pool {goal.name}"
        yield Mutation(ops=tuple(ops), summary=text)
