"""Does a static rule's match hold for a pod? Yes, no or unknown, with what was compared."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.json import encode

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus, selectors
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.gpu_memory import MIB_PER_GB, memory_mib
from kubectl_gpuadmit.kube.objects import LabelSelector, Pod
from kubectl_gpuadmit.policy.entries import Comparison, StaticMatch
from kubectl_gpuadmit.policy.model import Policy
from kubectl_gpuadmit.policy.patterns import has_all, matches
from kubectl_gpuadmit.policy.usage import admitted_nodes
from kubectl_gpuadmit.verdict import Evidence

GPU_MEMORY = "gpuMemoryGB"
"""The one resource of a match that is no resource name."""


class Match(Struct, frozen=True):
    """``holds`` is None where ``missing`` would have to be known."""

    holds: bool | None
    missing: str = ""
    evidence: tuple[Evidence, ...] = ()


NO = Match(False)


def match_pod(
    match: StaticMatch, pod: Pod, *, kind: str, namespace: str, policy: Policy, cluster: Cluster
) -> Match:
    """All of the match against a pod of a workload of this kind. The cluster is asked last."""
    selector = selectors.label_selector(LabelSelector(matchExpressions=match.matchExpressions))
    if not (
        has_all(pod.labels, match.labels)
        and has_all(pod.annotations, match.annotations)
        and (not match.matchExpressions or selector.matches(pod.labels))
        and (not match.namespaces or any(matches(namespace, p) for p in match.namespaces))
        and (not match.kinds or any(matches(kind, p) for p in match.kinds))
        and (not match.classes or policy.workload_class(pod, kind) in match.classes)
    ):
        return NO
    evidence: list[Evidence] = []
    missing = ""
    for name, wanted in match.resources.items():
        if name == GPU_MEMORY:
            compared = _gpu_memory(wanted, pod, policy, cluster)
        else:
            compared = _resource(name, wanted, pod)
        if compared.holds is False:
            return NO
        evidence += compared.evidence
        missing = missing or compared.missing
    return Match(None if missing else True, missing, tuple(evidence))


def _resource(name: str, wanted: Comparison, pod: Pod) -> Match:
    """Cores for cpu, bytes for memory, else units; a pattern (``nvidia.com/mig-*``) is summed."""
    asked = podlib.requests(pod)
    amount = sum(
        value / 1000 if resource == "cpu" else value
        for resource, value in asked.items()
        if matches(resource, name)
    )
    return Match(
        wanted.holds(amount), evidence=(Evidence("pod", name, amount, str(wanted), "requests"),)
    )


def _gpu_memory(wanted: Comparison, pod: Pod, policy: Policy, cluster: Cluster) -> Match:
    """All the GPU memory that one pod could get, in GB as product names count (MiB / 1024).

    Number of devices times memory of one, for every node that the pod's selectors admit and that
    advertises the devices; it holds if it holds for any of them, since the pod could land there. A
    share (HAMi, KAI) counts as the share. A pod without GPUs has 0.
    """
    asked = {
        name: amount
        for name, amount in gpus.pod_gpus(pod, policy.gpu_patterns).items()
        if (meaning := gpus.means(name)) is None or meaning.counts_devices
    }
    share = gpus.share(pod)
    if share and share.memory_mib is not None:
        total = share.memory_mib * max(sum(asked.values()), 1)
        return _compared(wanted, {total: share.by}, "")
    if not asked:
        return Match(wanted.holds(0), evidence=(_evidence(0, wanted, "the pod asks for no GPU"),))
    if not cluster.knows("Node"):
        return Match(None, f"memory of {', '.join(asked)}: no Node objects given")
    spec = pod.spec
    key = encode(("gpu memory", spec.nodeName, spec.nodeSelector, spec.affinity, asked, share))
    if key not in cluster.static_memo:
        cluster.static_memo[key] = _memory_on_nodes(cluster, pod, asked, share)
    found, silent = cluster.static_memo[key]
    if not found and not silent:
        return Match(None, f"memory of {', '.join(asked)}: no node that the pod may use has any")
    return _compared(wanted, found, silent)


def _memory_on_nodes(
    cluster: Cluster, pod: Pod, asked: Mapping[str, int], share: gpus.Share | None
) -> tuple[dict[int, str], str]:
    """MiB that the pod would get -> a node where; and a node that does not say, if any."""
    found: dict[int, str] = {}
    silent = ""
    for node in admitted_nodes(cluster, pod):
        if any(node.allocatable.get(name, 0) < 1 for name in asked):
            continue
        amounts = [_times(memory_mib(node.labels, name), count) for name, count in asked.items()]
        if None in amounts:
            silent = silent or node.name
            continue
        total = sum(amount for amount in amounts if amount is not None)
        if share and share.memory_percent is not None:
            total = int(total * share.memory_percent / 100)
        found.setdefault(total, f"Node {node.name}")
    return found, silent


def _compared(wanted: Comparison, found: Mapping[int, str], silent: str) -> Match:
    for mib, source in sorted(found.items(), reverse=True):
        if wanted.holds(mib / MIB_PER_GB):
            return Match(True, evidence=(_evidence(mib, wanted, source),))
    if silent:
        return Match(None, f"GPU memory of node {silent}: no label nvidia.com/gpu.memory")
    return NO


def _evidence(mib: int, wanted: Comparison, source: str) -> Evidence:
    return Evidence("pod", GPU_MEMORY, round(mib / MIB_PER_GB, 1), str(wanted), source)


def _times(mib: int | None, count: int) -> int | None:
    return None if mib is None else mib * count
