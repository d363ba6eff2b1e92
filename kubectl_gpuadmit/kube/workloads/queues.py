"""Who has the last word on a workload's pods where that is not the default scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_gpuadmit.kube.objects import Pod

_BY_LABEL: tuple[tuple[str, str], ...] = (
    ("kueue.x-k8s.io/queue-name", "Kueue LocalQueue"),
    ("kai.scheduler/queue", "KAI queue"),
    ("runai/queue", "Run:ai queue"),
    ("volcano.sh/queue-name", "Volcano queue"),
    ("scheduling.volcano.sh/queue-name", "Volcano queue"),
    ("yunikorn.apache.org/queue", "YuniKorn queue"),
)
_SCHEDULERS: dict[str, str] = {
    "kai-scheduler": "KAI scheduler",
    "runai-scheduler": "Run:ai scheduler",
    "volcano": "Volcano scheduler",
    "yunikorn": "YuniKorn scheduler",
    "hami-scheduler": "HAMi scheduler",
    "scheduler-plugins-scheduler": "scheduler-plugins scheduler",
}
_GANG = ("Kueue", "KAI", "Volcano", "Run:ai")


def decided_by(metadata: Iterable[Mapping[str, str]], pod: Pod | None) -> str:
    """``Kueue LocalQueue team-a``, ``scheduler my-scheduler`` …; '' for the default scheduler.

    ``metadata`` are the labels and annotations of the object and of its templates, the object's own
    first. HAMi is named by its resources: its webhook sends such pods to its own scheduler.
    """
    tables = list(metadata)
    for key, title in _BY_LABEL:
        for table in tables:
            if table.get(key):
                return f"{title} {table[key]}"
    for table in tables:
        if table.get("queue") and ("applicationId" in table or _scheduler(pod) == "yunikorn"):
            return f"YuniKorn queue {table['queue']}"
    scheduler = _scheduler(pod)
    if scheduler and scheduler != "default-scheduler":
        return _SCHEDULERS.get(scheduler, f"scheduler {scheduler}")
    names = _resource_names(pod)
    if names & {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}:
        return _SCHEDULERS["hami-scheduler"]
    if "aliyun.com/gpu-mem" in names:
        return "gpushare scheduler extender"
    return ""


def makes_gang(queue: str) -> bool:
    """True for queues that admit a workload's pods all together or not at all."""
    return queue.startswith(_GANG)


def _scheduler(pod: Pod | None) -> str:
    return (pod.spec.schedulerName or "") if pod else ""


def _resource_names(pod: Pod | None) -> set[str]:
    found: set[str] = set()
    for container in (pod.spec.containers or ()) if pod else ():
        if container.resources:
            found.update(container.resources.limits or ())
            found.update(container.resources.requests or ())
    return found
