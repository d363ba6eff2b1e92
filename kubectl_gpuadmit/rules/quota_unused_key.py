"""Rule quota/unused-key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.dra import DeviceClass
from kubectl_gpuadmit.kube.objects import ResourceQuota
from kubectl_gpuadmit.kube.resource_names import DEVICE_CLASS, REQUESTS
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.rules.quota_dead_key import advertised, dead
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "quota/unused-key",
    reasons={
        "quota/unknown-resource": "A key of a ResourceQuota names an extended resource that no "
        "node advertises and no pod requests. Check its spelling.",
        "quota/unknown-class": "A key of a ResourceQuota names a DeviceClass that does not exist. "
        "Check its spelling.",
    },
    needs={"ResourceQuota"},
    level="warn",
)
def quota_unused_key(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Keys of the namespace's quotas that are counted, but for something that the cluster has not.

    ``requests.nvidia.com/gpuu`` is enforced, for a resource that nobody can have. It is reported
    where nodes and pods are known and none of them names the resource, nor a DeviceClass maps it;
    a node pool that is scaled to zero would make it right again. Keys per DeviceClass are reported
    where the classes are known and this one is not among them. A limit of 0 is a closed door, which
    is meant for what may come.
    """
    if not ask.first_group:
        return
    classes = {
        obj.name: obj.spec.extendedResourceName or ""
        for obj in cluster.every("DeviceClass")
        if isinstance(obj, DeviceClass)
    }
    for quota in cluster.quotas(ask.namespace):
        for key, amount in sorted((quota.spec.hard or {}).items()):
            name = class_of(key)
            if str(amount) == "0":
                continue
            if name:
                if cluster.knows("DeviceClass") and name not in classes:
                    yield _finding(quota, key, str(amount), name, sorted(classes))
            elif key.startswith(REQUESTS) and "/" in key and not dead(key):
                resource = key.removeprefix(REQUESTS)
                if resource in advertised(cluster) or resource in classes.values():
                    continue
                if (
                    cluster.nodes
                    and cluster.knows("Pod")
                    and resource not in _requested(ask, cluster)
                ):
                    known = sorted(advertised(cluster) | set(filter(None, classes.values())))
                    yield _finding(quota, key, str(amount), resource, known)


def class_of(key: str) -> str:
    """The DeviceClass that a key speaks of, '' if it speaks of none."""
    if key.endswith(quota_keys.CLAIMS_PER_CLASS):
        return key.removesuffix(quota_keys.CLAIMS_PER_CLASS)
    return (
        key.removeprefix(REQUESTS + DEVICE_CLASS) if key.startswith(REQUESTS + DEVICE_CLASS) else ""
    )


def _requested(ask: Ask, cluster: Cluster) -> set[str]:
    """What pods of the cluster and of the workload request; asked only where no node has it."""
    return {
        name
        for pod in (ask.pod, *ask.running, *cluster.pods())
        for container in (*(pod.spec.containers or ()), *(pod.spec.initContainers or ()))
        if container.resources is not None
        for name in (*(container.resources.limits or ()), *(container.resources.requests or ()))
    }


def _finding(quota: ResourceQuota, key: str, amount: str, named: str, known: list[str]) -> Finding:
    is_class = bool(class_of(key))
    what = (
        f"DeviceClass {named} does not exist"
        if is_class
        else (f"no node advertises {named} and no pod requests it")
    )
    close = difflib.get_close_matches(named, known, 1, 0.75)
    meant = key.replace(named, close[0]) if close else ""
    hard = quota.spec.hard or {}
    detail = f"ResourceQuota {quota.name}: {key}: {what}"
    suggest: tuple[Remedy, ...] = ()
    if meant:
        detail += f"; did you mean {meant}?" if meant not in hard else f"; {meant} is there too"
        change: dict[str, str | None] = {key: None}
        if meant not in hard:
            change[meant] = amount
        suggest = (
            Remedy(
                summary=f"replace {key} by {meant} in ResourceQuota {quota.name}",
                command=quota_keys.patch_command(quota.namespace, quota.name, change),
                cost=80,
            ),
        )
    return Finding(
        reason="quota/unknown-class" if is_class else "quota/unknown-resource",
        detail=detail,
        evidence=(
            Evidence(f"ResourceQuota {quota.name}", key, amount, meant or None, "spec.hard"),
        ),
        suggest=suggest,
    )
