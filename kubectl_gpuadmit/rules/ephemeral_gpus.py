"""Rule ephemeral/gpus."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy.lifetime import JOB_KINDS
from kubectl_gpuadmit.policy.usage import asked_of
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "ephemeral/gpus",
    reasons={
        "ephemeral/too-many-gpus": "A job asks for more GPUs at a time than ephemeral work may "
        "have. Ask for fewer, or run it where long work runs."
    },
)
def ephemeral_gpus(
    ask: Ask,
    cluster: Cluster,
    *,
    kinds: tuple[str, ...] = JOB_KINDS,
    classes: tuple[str, ...] = (),
    max_gpus: int = 4,
) -> Iterator[Found]:
    """A job may hold at most this many GPUs over all its pods that run at the same time.

    The companion of ``ephemeral/ttl``: a ceiling in number beside the one in time. ``kinds`` and
    ``classes`` say which work is meant.
    """
    if ask.workload.ref.kind not in kinds or not ask.first_group:
        return
    policy = ask.policy
    if classes and policy.workload_class(ask.pod, ask.workload.ref.kind) not in classes:
        return
    total = asked_of(ask.workload, policy, "")
    if total > max_gpus:
        yield Finding(
            reason="ephemeral/too-many-gpus",
            detail=f"it asks for {total} GPUs, ephemeral work may have {max_gpus}",
            evidence=(
                Evidence(str(ask.workload.ref), "GPUs of all pods", total, max_gpus, bound="most"),
            ),
            field=ask.field("/spec/containers"),
        )
