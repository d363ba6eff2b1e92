"""Rule spec/gpu-fraction."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus, quantity
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads import amounts
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/gpu-fraction",
    reasons={
        "spec/gpu-fraction": "A fraction of a GPU is asked for as a number, but extended resources "
        "are whole. Ask for a whole one, a MIG slice, a shared resource, or use the scheduler's "
        "own "
        "way of sharing."
    },
    level="warn",
)
def spec_gpu_fraction(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """GPU amounts such as ``0.5`` or ``500m``.

    The API server refuses them (``must be an integer``); what the author wanted is a share of a
    device, which each way of sharing writes differently: ``nvidia.com/mig-1g.10gb: 1``,
    ``nvidia.com/gpu.shared: 1``, the annotation ``gpu-fraction`` of KAI and Run:ai, ``gpumem`` of
    HAMi.
    """
    for field in ("initContainers", "containers"):
        for index, container in enumerate(getattr(ask.pod.spec, field) or ()):
            resources = container.resources
            if resources is None:
                continue
            asked = {**(resources.requests or {}), **(resources.limits or {})}
            for name, amount in asked.items():
                if not gpus.is_gpu(name, ask.policy.gpu_patterns):
                    continue
                try:
                    parsed = quantity.parse(amount)
                except quantity.QuantityError:
                    continue  # the API server's own finding says it
                if parsed.nano % quantity.NANO == 0:
                    continue
                at = f"/spec/{field}/{index}"
                who = f"container {container.name}"
                whole = parsed.value()
                part = "limits" if name in (resources.limits or {}) else "requests"
                ops = amounts.changed(ask.group.template, at, name, str(whole))
                patch = ask.manifest_patch(ops)
                yield Finding(
                    reason="spec/gpu-fraction",
                    detail=f"{who} asks for {amount} {name}, but extended "
                    "resources are whole numbers",
                    evidence=(Evidence(who, name, str(amount), whole, "manifest"),),
                    field=ask.field(f"{at}/resources/{part}/{token(name)}"),
                    suggest=(Remedy(f"{whole} whole {name} a pod", patch=patch, cost=10),)
                    if patch
                    else (),
                )
