"""Rule spec/bare-gpu-key."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads import amounts
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/bare-gpu-key",
    reasons={
        "spec/bare-gpu-key": "A resource is called gpu without a domain, which no device plugin "
        "advertises and the API server refuses. Write the full name, e.g. nvidia.com/gpu."
    },
    level="warn",
)
def spec_bare_gpu_key(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Resource names such as ``gpu`` or ``gpus`` that lack their domain.

    The full name is taken from what the nodes advertise, else it is ``nvidia.com/gpu``.
    """
    for field in ("initContainers", "containers"):
        for index, container in enumerate(getattr(ask.pod.spec, field) or ()):
            resources = container.resources
            if resources is None:
                continue
            asked = {**(resources.requests or {}), **(resources.limits or {})}
            for name in asked:
                if "/" in name or "gpu" not in name.lower():
                    continue
                full = _likely(cluster)
                at = f"/spec/{field}/{index}"
                part = "limits" if name in (resources.limits or {}) else "requests"
                ops = amounts.renamed(ask.group.template, at, name, full)
                patch = ask.manifest_patch(ops)
                yield Finding(
                    reason="spec/bare-gpu-key",
                    detail=f"container {container.name} asks for {name}, which names no domain; "
                    f"did you mean {full}?",
                    evidence=(
                        Evidence(f"container {container.name}", "resource", name, full, "manifest"),
                    ),
                    field=ask.field(f"{at}/resources/{part}/{token(name)}"),
                    suggest=(Remedy(f"{full} instead of {name}", patch=patch, cost=0),)
                    if patch
                    else (),
                )


def _likely(cluster: Cluster) -> str:
    """The whole-GPU resource that most nodes advertise."""
    counts: dict[str, int] = {}
    for node in cluster.nodes.values():
        for name, amount in node.allocatable.items():
            meaning = gpus.means(name)
            if amount and meaning and meaning.kind == "whole" and not meaning.legacy:
                counts[name] = counts.get(name, 0) + 1
    return min(counts, key=lambda name: (-counts[name], name)) if counts else "nvidia.com/gpu"
