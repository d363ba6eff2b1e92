"""LeaderWorkerSet and JobSet: sets of pods that belong together.

Sources: kubernetes-sigs/lws api/leaderworkerset/v1 and pkg/webhooks; kubernetes-sigs/jobset
api/jobset/v1alpha2 and pkg/webhooks (completionMode Indexed and restartPolicy OnFailure by
default).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.workloads.core import job_pods
from kubectl_gpuadmit.kube.workloads.reading import Reading

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def leader_worker_set(reading: Reading) -> None:
    """``size`` counts the leader; without a leaderTemplate the worker's serves for both."""
    reading.gang = True
    replicas = reading.count("/spec/replicas", 1)
    at = "/spec/leaderWorkerTemplate"
    size = reading.count(f"{at}/size", 1, minimum=1)
    if reading.at(f"{at}/workerTemplate") is None:
        reading.fail(
            f"{at}/workerTemplate", "a LeaderWorkerSet needs a workerTemplate", ref="missing-field"
        )
    own_leader = reading.at(f"{at}/leaderTemplate") is not None
    leader_worker_pods(
        reading,
        replicas=replicas,
        size=size,
        leader=f"{at}/leaderTemplate" if own_leader else f"{at}/workerTemplate",
        worker=f"{at}/workerTemplate",
    )
    reading.charge("statefulsets.apps", 1 + (replicas if size > 1 else 0))
    reading.charge("services", 1)


def leader_worker_pods(
    reading: Reading,
    *,
    replicas: int,
    size: int,
    leader: str,
    worker: str,
    base: str = "",
    prefix: str = "",
    leader_template: dict[str, Any] | None = None,
    worker_template: dict[str, Any] | None = None,
    leader_paths: tuple[tuple[str, str], ...] = (),
    worker_paths: tuple[tuple[str, str], ...] = (),
) -> None:
    """Leaders ``name-0`` and workers ``name-0-1`` … of ``replicas`` groups of ``size`` pods."""
    base = base or reading.base
    labels = {"leaderworkerset.sigs.k8s.io/name": base}
    annotations = {"leaderworkerset.sigs.k8s.io/size": str(size)}
    reading.group(
        f"{prefix}leader",
        replicas,
        leader,
        template=leader_template,
        paths=leader_paths,
        labels={**labels, "leaderworkerset.sigs.k8s.io/worker-index": "0"},
        annotations=annotations,
        names=f"{base}-{{index}}",
    )
    if size > 1:
        reading.group(
            f"{prefix}worker",
            replicas * (size - 1),
            worker,
            template=worker_template,
            paths=worker_paths,
            labels=labels,
            annotations=annotations,
            names=f"{base}-{{group}}-{{member}}",
            first=1,
            members=size - 1,
        )


def job_set(reading: Reading) -> None:
    reading.suspended("/spec/suspend")
    replicated_jobs(reading, "/spec", name=reading.base)
    if reading.flag("/spec/network/enableDNSHostnames", default=True):
        reading.charge("services")


def replicated_jobs(reading: Reading, at: str, *, name: str) -> None:
    """The Jobs of a JobSet spec at ``at``."""
    reading.gang = True
    jobs = reading.sequence(f"{at}/replicatedJobs")
    for index, _ in enumerate(jobs):
        here = f"{at}/replicatedJobs/{index}"
        role = reading.text(f"{here}/name")
        replicas = reading.count(f"{here}/replicas", 1)
        job_pods(
            reading,
            role,
            f"{here}/template/spec",
            name=f"{name}-{role}-0",
            copies=replicas,
            labels={
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": role,
                "jobset.sigs.k8s.io/replicatedjob-replicas": str(replicas),
            },
            completion_mode="Indexed",
            defaults={"restartPolicy": "OnFailure"},
        )
        reading.charge("jobs.batch", replicas)
    topology = reading.mapping("/metadata/annotations").get(_EXCLUSIVE)
    if topology:
        reading.unknown(
            f"affinities that JobSet's own webhook adds: one Job for each {topology}",
            hint="look at the pods after they are created",
            stages=("placement",),
        )
