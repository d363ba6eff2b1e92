"""Rule quota/dead-key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quota_keys
from kubectl_gpuadmit.kube.objects import ResourceQuota
from kubectl_gpuadmit.kube.resource_names import REQUESTS, is_extended
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy

_TYPOS = ("limits.", "limit.", "request.", "requests/", "request/", "limits/", "requests-")


@rule(
    "quota/dead-key",
    reasons={
        "quota/dead-key": "A key of a ResourceQuota is accepted by the API and never enforced. Use "
        "the key that counts; for GPUs it is requests. followed by the resource."
    },
    needs={"ResourceQuota"},
    fidelity="exact",
    level="warn",
)
def quota_dead_key(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Keys of the namespace's quotas that nothing ever counts.

    The API server checks the form of a key with a domain, not whether anything is charged to it.
    ``nvidia.com/gpu`` and ``limits.nvidia.com/gpu`` look right and limit nothing: extended
    resources are charged to ``requests.nvidia.com/gpu`` alone. A key that only nobody uses at the
    moment is another matter, see rule quota/unused-key.
    """
    if not ask.first_group:
        return
    quotas = cluster.quotas(ask.namespace)
    if not any(dead(key) for quota in quotas for key in quota.spec.hard or ()):
        return
    known = sorted(advertised(cluster) | set(_asked(ask)))
    for quota in quotas:
        for key, amount in sorted((quota.spec.hard or {}).items()):
            if dead(key):
                yield _finding(quota, key, str(amount), likely(key, known))


def dead(key: str) -> bool:
    """Accepted by the API (it has a domain) and counted by nobody."""
    return "/" in key and quota_keys.counter(key) is None


def advertised(cluster: Cluster) -> frozenset[str]:
    """Extended resources that some node advertises."""
    found = cluster.static_memo.get("extended resources")
    if not isinstance(found, frozenset):
        found = frozenset(filter(is_extended, cluster.advertised()))
        cluster.static_memo["extended resources"] = found
    return found


def _asked(ask: Ask) -> Iterator[str]:
    for container in ask.pod.spec.containers or ():
        own = container.resources
        for name in (*(own.limits or ()), *(own.requests or ())) if own is not None else ():
            if is_extended(name):
                yield name


def likely(key: str, known: Iterable[str]) -> str:
    """The key that was probably meant, '' if none comes to mind."""
    owner, _, what = key.rpartition("/")
    if owner.endswith(".deviceclass.resource.k8s.io"):
        return f"{owner}/devices"
    if owner.endswith(".storageclass.storage.k8s.io"):
        return f"{owner}/{'requests.storage' if 'storage' in what else 'persistentvolumeclaims'}"
    if is_extended(key) and not key.startswith(_TYPOS):
        return REQUESTS + key
    for typo in _TYPOS:
        resource = key.removeprefix(typo)
        if resource != key and is_extended(resource):
            return REQUESTS + resource
    close = difflib.get_close_matches(key, [REQUESTS + name for name in known], 1, 0.8)
    return close[0] if close else ""


def _finding(quota: ResourceQuota, key: str, amount: str, meant: str) -> Finding:
    hard = quota.spec.hard or {}
    detail = (
        f'ResourceQuota {quota.name}: {key}: "{amount}" is accepted by the API and never enforced'
    )
    change: dict[str, str | None] = {key: None}
    summary = f"remove {key} from ResourceQuota {quota.name}"
    if meant and meant in hard:
        detail += f"; {meant} in the same quota is"
    elif meant:
        detail += f"; the key that counts is {meant}"
        change[meant] = amount
        summary = f"replace {key} by {meant} in ResourceQuota {quota.name}"
    return Finding(
        reason="quota/dead-key",
        detail=detail,
        evidence=(
            Evidence(f"ResourceQuota {quota.name}", key, amount, meant or None, "spec.hard"),
        ),
        suggest=(
            Remedy(
                summary=summary,
                command=quota_keys.patch_command(quota.namespace, quota.name, change),
                cost=80,
            ),
        ),
    )
