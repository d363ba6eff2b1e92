"""Rule spec/legacy-resource."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads import amounts
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/legacy-resource",
    reasons={
        "spec/legacy-resource": "The GPU resource has a name that was given up years ago and that "
        "no device plugin advertises. Write today's name."
    },
    level="warn",
)
def spec_legacy_resource(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Names of GPU resources from before device plugins.

    ``alpha.kubernetes.io/nvidia-gpu`` went with Kubernetes 1.11; a pod that asks for it waits for
    ever.
    """
    for field in ("initContainers", "containers"):
        for index, container in enumerate(getattr(ask.pod.spec, field) or ()):
            resources = container.resources
            if resources is None:
                continue
            for name in sorted({**(resources.requests or {}), **(resources.limits or {})}):
                meaning = gpus.means(name)
                if meaning is None or not meaning.legacy:
                    continue
                who = f"container {container.name}"
                at = f"/spec/{field}/{index}"
                part = "limits" if name in (resources.limits or {}) else "requests"
                ops = amounts.renamed(ask.group.template, at, name, meaning.legacy)
                patch = ask.manifest_patch(ops)
                yield Finding(
                    reason="spec/legacy-resource",
                    detail=f"{who} asks for {name}, which is called {meaning.legacy} today",
                    evidence=(Evidence(who, "resource", name, meaning.legacy, "manifest"),),
                    field=ask.field(f"{at}/resources/{part}/{token(name)}"),
                    suggest=(Remedy(f"{meaning.legacy} instead of {name}", patch=patch, cost=0),)
                    if patch
                    else (),
                )
