"""Asks sizing about a pod group as the policy has it: its models, its target load."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.kube import gpus

if TYPE_CHECKING:
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.kube.objects import Pod
    from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
    from kubectl_gpuadmit.policy.model import Policy
    from kubectl_gpuadmit.rule import Ask
    from kubectl_gpuadmit.sizing.fitting import EngineFit, Load, PodFit
    from kubectl_gpuadmit.sizing.registry import Models

RULE = "model/memory-fit"
"""The rule whose settings say which load a model has to bear."""


def may_serve(pod: Pod, policy: Policy) -> bool:
    """False for a pod that can use no GPU: nothing of sizing is imported for it."""
    return bool(pod.spec.resourceClaims or gpus.pod_gpus(pod, policy.gpu_patterns))


def pod_fit(
    workload: Workload,
    group: PodGroup,
    pod: Pod,
    cluster: Cluster,
    policy: Policy,
    *,
    now: dt.datetime,
    kubernetes: str,
) -> PodFit:
    """The answer for one group; ``pod`` is the group's as it would be stored. The load that it has
    to bear is that of rule ``model/memory-fit``, whoever asks."""
    from kubectl_gpuadmit.sizing import fitting

    if not may_serve(pod, policy):
        return fitting.NOT_A_MODEL
    return fitting.fit(
        workload,
        group,
        pod,
        cluster,
        models_of(policy),
        wanted(policy.settings(RULE)),
        now=now,
        patterns=policy.gpu_patterns,
        kubernetes=kubernetes,
    )


def engines(ask: Ask, cluster: Cluster) -> tuple[EngineFit, ...]:
    """The engines of the pod group that a rule is asked about; none, and nothing loaded, for a pod
    that can use no GPU."""
    if not may_serve(ask.pod, ask.policy):
        return ()
    found = pod_fit(
        ask.workload,
        ask.group,
        ask.pod,
        cluster,
        ask.policy,
        now=ask.now,
        kubernetes=ask.kubernetes,
    )
    return found.engines


def models_of(policy: Policy) -> Models:
    if policy.models is not None:
        return policy.models
    from kubectl_gpuadmit.sizing import registry

    return registry.NONE


def wanted(settings: Mapping[str, Any]) -> Load:
    """The target load: so many requests of such a length, and room for the share that comes back
    at once after a restart."""
    from kubectl_gpuadmit.sizing.fitting import Load

    concurrency = int(settings.get("concurrency") or 0)
    headroom = float(settings.get("headroom_percent") or 0)
    return Load(ceil(concurrency * (1 + headroom / 100)), int(settings.get("context") or 0))
