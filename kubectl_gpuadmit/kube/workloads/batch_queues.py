"""Batch systems: Volcano Job and CronJob.

Source: volcano-sh/volcano pkg/webhooks/admission/jobs/mutate (scheduler ``volcano``, queue
``default``) and pkg/controllers/job (pods ``job-task-0``).
"""

from __future__ import annotations

from kubectl_gpuadmit.kube.workloads.model import DRAWN
from kubectl_gpuadmit.kube.workloads.reading import Reading


def volcano_job(reading: Reading) -> None:
    _tasks(reading, "/spec", reading.base)


def volcano_cron_job(reading: Reading) -> None:
    reading.charge("jobs.batch.volcano.sh")
    reading.suspended("/spec/suspend")
    _tasks(reading, "/spec/jobTemplate/spec", f"{reading.base}-{DRAWN}")


def _tasks(reading: Reading, at: str, base: str) -> None:
    reading.gang = True
    queue = reading.text(f"{at}/queue") or "default"
    reading.queue = f"Volcano queue {queue}"
    reading.charge("podgroups.scheduling.volcano.sh")
    tasks = reading.sequence(f"{at}/tasks")
    if not tasks:
        reading.fail(
            f"{at}/tasks", "no tasks: nothing says which pods to make", ref="missing-field"
        )
    for index, _ in enumerate(tasks):
        task = f"{at}/tasks/{index}"
        name = reading.text(f"{task}/name") or f"default{index}"
        if reading.at(f"{task}/replicas") is None:
            reading.unknown(
                f"number of pods of task {name}: {task}/replicas is not written; judged for 1",
                hint=f"write {task}/replicas",
            )
        reading.group(
            name,
            reading.count(f"{task}/replicas", 1),
            f"{task}/template",
            labels={
                "volcano.sh/job-name": base,
                "volcano.sh/queue-name": queue,
                "volcano.sh/task-spec": name,
            },
            defaults={
                "schedulerName": reading.text(f"{at}/schedulerName") or "volcano",
                "priorityClassName": reading.text(f"{at}/priorityClassName") or None,
            },
            names=f"{base}-{name}-{{index}}",
        )
