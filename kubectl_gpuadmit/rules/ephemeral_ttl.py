"""Rule ephemeral/ttl."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.policy.lifetime import JOB_KINDS, created, ttl
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "ephemeral/ttl",
    reasons={
        "ephemeral/ttl-missing": "A job that uses GPUs does not say when it is over. "
        "Annotate it, e.g. gpu-admit.io/ttl: 4h.",
        "ephemeral/ttl-unreadable": "The annotation is neither a duration (90m, 4h, 2d) nor a time "
        "(RFC 3339). Correct it.",
        "ephemeral/ttl-past": "The time that a job was given is over. Delete it, or give it a new "
        "time and say why.",
        "ephemeral/ttl-too-long": "A job asks for more time than the ceiling. Ask for less, or for "
        "an exception.",
    },
)
def ephemeral_ttl(
    ask: Ask,
    cluster: Cluster,
    *,
    kinds: tuple[str, ...] = JOB_KINDS,
    classes: tuple[str, ...] = (),
    max_duration: dt.timedelta = dt.timedelta(hours=24),
) -> Iterator[Found]:
    """Jobs that use GPUs must say when they end, soon enough, and not in the past.

    The policy's ``ttlAnnotations`` are looked for on the workload, then on its pods: a duration
    from the object's creation (``90m``, ``4h``, ``2d``) or a time (RFC 3339). ``kinds`` are the
    kinds of workload concerned, ``classes`` narrows it to some workload classes. The ceiling holds
    from creation, for a new object from now.
    """
    policy = ask.policy
    if ask.workload.ref.kind not in kinds or not uses_gpus(ask.pod, policy.gpu_patterns):
        return
    if classes and policy.workload_class(ask.pod, ask.workload.ref.kind) not in classes:
        return
    limit = times.spell(max_duration)
    given = ttl(ask.workload, ask.pod, policy)
    if given is None:
        key = policy.ttl_annotations[0]
        yield Finding(
            reason="ephemeral/ttl-missing",
            detail=f"the {ask.workload.ref.kind} says nowhere when it ends: annotation {key} of at "
            f"most {limit}",
            evidence=(Evidence(str(ask.workload.ref), f"annotation {key}", None, f"<={limit}"),),
            field="/metadata",
            suggest=_annotate(ask, key, limit),
        )
        return
    subject, what = str(ask.workload.ref), f"annotation {given.key}"
    start = created(ask.workload, cluster)
    try:
        end = times.parse_end(given.text, start or ask.now)
        assert end is not None
    except times.TimeError as error:
        yield Finding(
            reason="ephemeral/ttl-unreadable",
            detail=f"annotation {given.key}: {error}",
            evidence=(Evidence(subject, what, given.text, "90m, 4h, 2d or RFC 3339"),),
            field=given.field,
            suggest=_annotate(ask, given.key, limit),
        )
        return
    if end <= ask.now:
        yield Finding(
            reason="ephemeral/ttl-past",
            detail=f"its time was over at {times.stamp(end)}, {times.spell(ask.now - end)} ago: "
            "delete it, or give it a later end",
            evidence=(
                Evidence(subject, what, times.stamp(end), f">{times.stamp(ask.now)}", given.text),
            ),
            field=given.field,
            suggest=_annotate(ask, given.key, limit)
            if start is None or ask.now - start < max_duration
            else (),
        )
    elif end - (start or ask.now) > max_duration:
        asked = times.spell(end - (start or ask.now))
        yield Finding(
            reason="ephemeral/ttl-too-long",
            detail=f"it asks for {asked}, the ceiling is {limit}",
            evidence=(Evidence(subject, what, asked, f"<={limit}", given.text),),
            field=given.field,
            suggest=_annotate(ask, given.key, limit),
        )


def _annotate(ask: Ask, key: str, value: str) -> tuple[Remedy, ...]:
    metadata = ask.workload.manifest.get("metadata")
    listed = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(listed, dict):
        path = f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"
        patch: dict[str, Any] = {"op": "add", "path": path, "value": value}
    elif isinstance(metadata, dict):
        patch = {"op": "add", "path": "/metadata/annotations", "value": {key: value}}
    else:
        return ()
    return (Remedy(f"let it end after {value}", patch=(patch,), cost=10),)
