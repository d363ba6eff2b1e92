"""Rule spec/shared-memory."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus, quantity
from kubectl_gpuadmit.kube.objects import Container, Pod
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/shared-memory",
    reasons={
        "spec/shared-memory": "A container with several GPUs has only the 64 MiB of /dev/shm that "
        "the runtime gives it, and NCCL and data loaders fail with less than they need. Mount an "
        "emptyDir with medium Memory at /dev/shm."
    },
    level="warn",
)
def spec_shared_memory(ask: Ask, cluster: Cluster, *, gpus_from: int = 2) -> Iterator[Found]:
    """Containers with several GPUs and no shared memory of their own.

    NCCL exchanges between the processes of one container through ``/dev/shm``; without a volume
    there, the container runtime gives 64 MiB. A host path at ``/dev/shm`` and ``hostIPC`` count as
    shared memory too. ``gpusFrom`` is the number of GPUs from which a container is looked at.
    """
    if ask.pod.spec.hostIPC:
        return
    for index, container in enumerate(ask.pod.spec.containers or ()):
        devices = _devices(container, ask.policy.gpu_patterns)
        if devices < gpus_from or any(
            mount.mountPath.rstrip("/") in ("/dev/shm", "/dev")
            for mount in container.volumeMounts or ()
        ):
            continue
        at = f"/spec/containers/{index}"
        patch = ask.manifest_patch(_ops(ask, ask.pod, container, at))
        yield Finding(
            reason="spec/shared-memory",
            detail=f"container {container.name} has {devices} GPUs and only 64 MiB of /dev/shm",
            evidence=(
                Evidence(f"container {container.name}", "/dev/shm in MiB", 64, None, "runtime"),
                Evidence(f"container {container.name}", "GPUs", devices, None, "manifest"),
            ),
            field=ask.field(at),
            suggest=(Remedy("a memory volume at /dev/shm", patch=patch, cost=5),) if patch else (),
        )


def _devices(container: Container, patterns: tuple[str, ...]) -> int:
    limits = (container.resources.limits or {}) if container.resources else {}
    total = 0
    for name, amount in limits.items():
        meaning = gpus.means(name)
        if gpus.is_gpu(name, patterns) and (meaning is None or meaning.counts_devices):
            try:
                total += quantity.value(amount)
            except quantity.QuantityError:
                continue
    return total


def _ops(ask: Ask, pod: Pod, container: Container, at: str) -> list[dict[str, object]]:
    taken = {volume.name for volume in pod.spec.volumes or ()}
    name = next(n for n in ("dshm", "shared-memory", "dshm-gpu-admit") if n not in taken)
    volume = {"name": name, "emptyDir": {"medium": "Memory"}}
    mount = {"name": name, "mountPath": "/dev/shm"}
    spec = ask.group.template.get("spec") or {}
    written = spec.get("containers", [])[int(at.rsplit("/", 1)[1])]
    return [
        {"op": "add", "path": "/spec/volumes/-", "value": volume}
        if spec.get("volumes")
        else {"op": "add", "path": "/spec/volumes", "value": [volume]},
        {"op": "add", "path": f"{at}/volumeMounts/-", "value": mount}
        if written.get("volumeMounts")
        else {"op": "add", "path": f"{at}/volumeMounts", "value": [mount]},
    ]
