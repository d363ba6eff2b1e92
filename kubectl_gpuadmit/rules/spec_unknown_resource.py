"""Rule spec/unknown-resource."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.dra import DeviceClass
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.resource_names import is_extended
from kubectl_gpuadmit.kube.workloads import amounts
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "spec/unknown-resource",
    reasons={
        "spec/unknown-resource": "No node advertises the resource, so no node can ever take the "
        "pod. Correct the name, or install the device plugin that advertises it."
    },
    needs={"Node"},
    fidelity="exact",
    level="warn",
)
def spec_unknown_resource(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Extended resources that no node of the cluster has, not even in use.

    A misspelt name (``nvidia.com/gpus``, ``nvidia.com/mig-1g10gb``) is accepted by the API and
    waits for ever. The nearest name that some node does advertise is offered. Shares that a
    scheduler extender keeps to itself (HAMi's ``nvidia.com/gpumem``) and resources that a
    DeviceClass backs are left alone. A node pool that is scaled to zero advertises nothing: the
    finding is then a hint at most.
    """
    if not cluster.nodes:
        return
    advertised = cluster.advertised()
    for name, amount in sorted(podlib.requests(ask.pod).items()):
        if not amount or not is_extended(name) or name in advertised:
            continue
        meaning = gpus.means(name)
        if (meaning and meaning.kind in ("memory", "cores")) or name in _by_claims(cluster):
            continue
        near = _nearest(name, sorted(advertised))
        where, patch = _places(ask, name, near)
        likely = f"; did you mean {near}?" if near else ""
        yield Finding(
            reason="spec/unknown-resource",
            detail=f"none of {len(cluster.nodes)} nodes advertises {name}{likely}",
            evidence=(Evidence("nodes", name, 0, amount, "status.allocatable", "least"),),
            field=where,
            suggest=(Remedy(f"{near} instead of {name}", patch=patch, cost=0),) if patch else (),
        )


def _by_claims(cluster: Cluster) -> frozenset[str]:
    """Resources that a DeviceClass turns into claims (``spec.extendedResourceName``)."""
    return frozenset(
        obj.spec.extendedResourceName
        for obj in cluster.every("DeviceClass")
        if isinstance(obj, DeviceClass) and obj.spec.extendedResourceName
    )


def _nearest(name: str, known: list[str]) -> str:
    """The advertised extended resource that was probably meant, '' if none is near."""
    extended = [other for other in known if is_extended(other)]
    domain, _, tail = name.partition("/")
    same = [other for other in extended if other.split("/", 1)[0] == domain]
    for choices, cutoff in ((same, 0.7), (extended, 0.85)):
        close = difflib.get_close_matches(name, choices, n=1, cutoff=cutoff)
        if close:
            return close[0]
    return next((other for other in extended if other.split("/", 1)[1] == tail), "")


def _places(ask: Ask, name: str, near: str) -> tuple[str, tuple[dict[str, object], ...]]:
    """Where the name is first written, and the patch that writes ``near`` everywhere instead."""
    first = ""
    ops: list[dict[str, object]] = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(getattr(ask.pod.spec, field) or ()):
            resources = container.resources
            for part in ("limits", "requests"):
                listed = (getattr(resources, part) or {}) if resources else {}
                if name in listed and not first:
                    at = f"/spec/{field}/{index}/resources/{part}/{token(name)}"
                    first = ask.field(at)
            if near:
                ops += amounts.renamed(ask.group.template, f"/spec/{field}/{index}", name, near)
    return first, ask.manifest_patch(ops)
