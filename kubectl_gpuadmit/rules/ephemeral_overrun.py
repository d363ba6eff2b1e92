"""Rule ephemeral/overrun."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.policy.lifetime import created, ttl
from kubectl_gpuadmit.policy.usage import asked
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown


@rule(
    "ephemeral/overrun",
    reasons={
        "ephemeral/overrun": "Pods of a job still hold GPUs after the time that the job was given. "
        "Delete the job, or give it a new time and say why."
    },
    reads={"Pod"},
)
def ephemeral_overrun(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Reports a workload whose pods in the cluster hold GPUs past the end that it has set itself.

    Any kind that carries one of the policy's ``ttlAnnotations``; one without is left alone. A
    duration counts from the creation of the object in the cluster.
    """
    given = ttl(ask.workload, ask.pod, ask.policy)
    if given is None or not ask.first_group:
        return
    if not cluster.knows("Pod"):
        yield Unknown(rule="ephemeral/overrun", missing="running pods: no Pod objects given")
        return
    patterns = ask.policy.gpu_patterns
    mine = [pod for pod in ask.running if pod.spec.nodeName and asked(pod, patterns)]
    if not mine:
        return
    start = created(ask.workload, cluster) or min(
        (
            times.parse_instant(p.metadata.creationTimestamp)
            for p in mine
            if p.metadata.creationTimestamp
        ),
        default=None,
    )
    try:
        end = times.parse_end(given.text, start)
    except times.TimeError:
        return  # ephemeral/ttl says so
    if end is None or end >= ask.now:
        return
    held = sum(asked(pod, patterns) for pod in mine)
    late = times.spell(ask.now - end)
    yield Finding(
        reason="ephemeral/overrun",
        detail=f"{len(mine)} pod{'s' * (len(mine) > 1)} still hold{'s' * (len(mine) == 1)} {held} "
        f"GPU{'s' * (held > 1)}, {late} after its end at {times.stamp(end)}",
        evidence=tuple(
            Evidence(
                f"Pod {pod.namespace}/{pod.name}",
                "GPUs held",
                asked(pod, patterns),
                0,
                f"on node {pod.spec.nodeName}",
            )
            for pod in sorted(mine, key=lambda pod: pod.name)
        ),
        permanent=False,
        field=given.field,
    )
