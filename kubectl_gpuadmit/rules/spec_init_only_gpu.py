"""Rule spec/init-only-gpu."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.objects import Container
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "spec/init-only-gpu",
    reasons={
        "spec/init-only-gpu": "Only an init container asks for the GPU, so the pod holds it as "
        "long "
        "as it lives while its main containers never see it. Ask for it where the work is done."
    },
    level="warn",
)
def spec_init_only_gpu(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """GPUs that only an init container asks for.

    Kubernetes books the larger of init containers and main containers for the whole life of the
    pod. A sidecar (an init container with ``restartPolicy: Always``) runs as long as the pod and is
    left alone.
    """
    spec = ask.pod.spec
    patterns = ask.policy.gpu_patterns
    running = [*(spec.containers or ())]
    running += [c for c in spec.initContainers or () if c.restartPolicy == "Always"]
    if any(_gpus(container, patterns) for container in running):
        return
    for index, container in enumerate(spec.initContainers or ()):
        for name in _gpus(container, patterns):
            amount = gpus.pod_gpus(ask.pod, patterns).get(name, 0)
            yield Finding(
                reason="spec/init-only-gpu",
                detail=f"{amount} {name} is asked for by init container {container.name} only: the "
                "pod holds it all its life and its main containers do not see it",
                evidence=(
                    Evidence(f"init container {container.name}", name, amount, 0, "manifest"),
                ),
                field=ask.field(f"/spec/initContainers/{index}/resources"),
            )


def _gpus(container: Container, patterns: tuple[str, ...]) -> list[str]:
    resources = container.resources
    if resources is None:
        return []
    asked = {**(resources.requests or {}), **(resources.limits or {})}
    return sorted(name for name in asked if gpus.is_gpu(name, patterns))
