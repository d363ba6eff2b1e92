"""Rule spec/rollout-surge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/rollout-surge",
    reasons={
        "spec/rollout-surge": "An update starts new pods before old ones end and needs more GPUs "
        "than the workload itself. Keep that many free, or let the update replace pods in place."
    },
    level="audit",
)
def spec_rollout_surge(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """How many GPUs an update needs on top.

    A Deployment with RollingUpdate starts ``maxSurge`` pods more (default 25 %, rounded up:
    kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go, pkg/controller/deployment/util). A full pool
    has no room for them and the update stands still. A RayService brings up a whole second cluster
    unless its upgradeStrategy is None.
    """
    if not ask.first_group:
        return
    kind = ask.workload.ref.kind
    if kind == "Deployment":
        yield from _deployment(ask)
    elif kind == "RayService":
        yield from _ray_service(ask)


def _deployment(ask: Ask) -> Iterator[Found]:
    strategy = resolve(ask.workload.manifest, "/spec/strategy") or {}
    replicas = ask.group.count
    wanted = gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns)
    if not isinstance(strategy, dict) or not replicas or not wanted:
        return
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    written = resolve(strategy, "/rollingUpdate/maxSurge")
    surge = _surge("25%" if written is None else written, replicas)
    if surge < 1:
        return
    more = {name: amount * surge for name, amount in wanted.items()}
    yield Finding(
        reason="spec/rollout-surge",
        detail=f"an update starts {surge} more pod{'' if surge == 1 else 's'} before old ones end "
        f"and needs {_listed(more)} on top",
        evidence=tuple(
            Evidence("update", f"{name} on top", amount * surge, None, "maxSurge")
            for name, amount in wanted.items()
        ),
        field="/spec/strategy",
        suggest=(_without_surge(strategy),),
        permanent=False,
    )


def _without_surge(strategy: dict[str, Any]) -> Remedy:
    value = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return Remedy(
        "an update that ends a pod before it starts its successor",
        patch=({"op": "add", "path": "/spec/strategy", "value": value},),
        cost=15,
    )


def _ray_service(ask: Ask) -> Iterator[Found]:
    how = resolve(ask.workload.manifest, "/spec/upgradeStrategy/type")
    total: dict[str, int] = {}
    for group in ask.workload.groups:
        for name, amount in gpus.pod_gpus(group.pod, ask.policy.gpu_patterns).items():
            total[name] = total.get(name, 0) + amount * group.count
    more = {name: amount for name, amount in sorted(total.items()) if amount}
    if how == "None" or not more:
        return
    yield Finding(
        reason="spec/rollout-surge",
        detail=f"an upgrade brings up a second cluster and needs {_listed(more)} on top",
        evidence=tuple(
            Evidence("upgrade", f"{name} on top", amount, None, "upgradeStrategy")
            for name, amount in more.items()
        ),
        field="/spec/upgradeStrategy",
        permanent=False,
    )


def _listed(amounts: dict[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in amounts.items())


def _surge(value: object, replicas: int) -> int:
    """intstr.GetScaledValueFromIntOrPercent, rounded up; 0 for what the API would refuse."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        return -(-replicas * int(value[:-1]) // 100)
    return 0
