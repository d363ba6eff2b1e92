"""How many GPUs a pool has and holds, now and lately, from objects; judges nothing.

History is a plain object that anything may write and a snapshot may carry::

    apiVersion: gpu-admit.io/v1
    kind: GpuPoolHistory
    metadata: {name: any}
    samples:
    - {time: "2026-11-29T13:55:00Z", pool: inference, held: 31, allocatable: 32}

A sample holds until the next one of its pool.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.json import encode

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus, selectors, times
from kubectl_gpuadmit.kube.objects import Generic, Pod
from kubectl_gpuadmit.kube.pods import is_terminal
from kubectl_gpuadmit.kube.workloads import Workload
from kubectl_gpuadmit.policy.model import Policy

HISTORY_KIND = "GpuPoolHistory"


class Usage(NamedTuple):
    """GPUs of one pool; time-sliced and MIG devices count as advertised."""

    held: int
    allocatable: int

    @property
    def free(self) -> int:
        return max(self.allocatable - self.held, 0)

    @property
    def percent(self) -> float:
        """Share that is held; a pool without a single GPU counts as full."""
        return 100 * self.held / self.allocatable if self.allocatable > 0 else 100.0


class Sample(NamedTuple):
    time: dt.datetime
    usage: Usage


def devices(amounts: dict[str, int], patterns: Sequence[str]) -> int:
    """Devices among these amounts: shares of memory or cores beside a count are not counted."""
    return sum([amounts[name] for name in _counted(tuple(amounts), tuple(patterns))])


@lru_cache(maxsize=1 << 12)
def _counted(names: tuple[str, ...], patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Which of these resources count devices: nodes of a pool name the same ones."""
    return tuple(
        name
        for name in names
        if gpus.is_gpu(name, patterns)
        and ((meaning := gpus.means(name)) is None or meaning.counts_devices)
    )


def asked(pod: Pod, patterns: Sequence[str]) -> int:
    """Devices that one such pod books."""
    return devices(gpus.pod_gpus(pod, patterns), patterns)


def uses_gpus(pod: Pod, patterns: Sequence[str]) -> bool:
    """True for a pod that books GPUs, claims devices (DRA) or reaches GPUs past the booking."""
    return bool(
        gpus.pod_gpus(pod, patterns) or pod.spec.resourceClaims or gpus.bypasses(pod, patterns)
    )


class Booking(NamedTuple):
    """What one pod takes of the GPUs."""

    devices: int
    uses: bool
    """As ``uses_gpus``: also without booking a device."""


def booking(cluster: Cluster, pod: Pod, patterns: Sequence[str]) -> Booking:
    """The same as ``asked`` and ``uses_gpus``, worked out once for each pod of a cluster."""
    known = cluster.pod_memo.get(id(pod))
    if known is not None and known[0] is pod and known[1] == patterns:
        found: Booking = known[2]
        return found
    found = Booking(asked(pod, patterns), uses_gpus(pod, patterns))
    cluster.pod_memo[id(pod)] = (pod, patterns, found)
    return found


def node_usage(node: NodeInfo, patterns: Sequence[str]) -> Usage:
    """A cordoned node offers nothing: it counts with what is held on it."""
    key = ("gpu usage", patterns)
    found: Usage | None = node.memo.get(key)
    if found is None:
        held = devices(node.used, patterns)
        found = Usage(held, held if node.unschedulable else devices(node.allocatable, patterns))
        node.memo[key] = found
    return found


def nodes_by_pool(cluster: Cluster, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Pool -> its nodes' names; it depends on Node objects and the policy alone."""
    key = ("nodes by pool", id(policy))
    known = cluster.static_memo.get(key)
    if known is None or known[0] is not policy:
        found: dict[str, list[str]] = {}
        for node in cluster.nodes.values():
            found.setdefault(policy.pool_of_node(node.labels), []).append(node.name)
        known = (policy, {pool: tuple(names) for pool, names in found.items()})
        cluster.static_memo[key] = known
    by_pool: dict[str, tuple[str, ...]] = known[1]
    return by_pool


def pool_usage(cluster: Cluster, policy: Policy, pool: str) -> Usage:
    """Held and allocatable GPUs over the pool's nodes, as the scheduler counts them; '' is all."""
    names = nodes_by_pool(cluster, policy).get(pool, ()) if pool else cluster.nodes
    held = allocatable = 0
    for name in names:
        usage = node_usage(cluster.nodes[name], policy.gpu_patterns)
        held += usage.held
        allocatable += usage.allocatable
    return Usage(held, allocatable)


def target_pool(policy: Policy, pod: Pod, kind: str) -> str:
    """The pool whose GPUs the pod takes: that it is bound to, else its class's, '' if neither."""
    bound = policy.pool_of_pod(pod)
    if bound:
        return bound
    return policy.class_pool(policy.workload_class(pod, kind))


def pool_name(pool: str) -> str:
    """How a sentence calls it."""
    return f"pool {pool}" if pool else "the cluster"


def asked_of(workload: Workload, policy: Policy, pool: str) -> int:
    """Devices that all pods of the workload together take out of the pool ('' for all of them)."""
    kind = workload.ref.kind
    return sum(
        group.count * asked(group.pod, policy.gpu_patterns)
        for group in workload.groups
        if not pool or target_pool(policy, group.pod, kind) == pool
    )


def history(cluster: Cluster, pool: str) -> list[Sample]:
    """The pool's samples by time; entries that do not read as samples are passed over."""
    samples: dict[dt.datetime, Sample] = {}
    for obj in cluster.every(HISTORY_KIND):
        if not isinstance(obj, Generic):
            continue
        listed = obj.document.get("samples")
        for entry in listed if isinstance(listed, list) else ():
            if not isinstance(entry, dict) or entry.get("pool", "") != pool:
                continue
            held, allocatable, at = (entry.get(k) for k in ("held", "allocatable", "time"))
            if not (isinstance(held, int) and isinstance(allocatable, int) and at):
                continue
            try:
                time = times.parse_instant(str(at))
            except times.TimeError:
                continue
            samples[time] = Sample(time, Usage(held, allocatable))
    return [sample for _, sample in sorted(samples.items())]


def decayed_percent(
    samples: Sequence[Sample], *, now: dt.datetime, window: dt.timedelta, half_life: dt.timedelta
) -> float | None:
    """Mean utilisation over the window before ``now``; an instant counts half for each half-life
    of age (a half-life of 0 weighs all alike). None where the samples do not reach back to the
    window's beginning.

    Each sample holds until the next: the weights are integrals of 2^(-age/half_life), so that
    uneven sampling does not matter.
    """
    start = now - window
    if not samples or samples[0].time > start:
        return None
    total = weight = 0.0
    ends = [sample.time for sample in samples[1:]] + [now]
    for sample, end in zip(samples, ends, strict=True):
        oldest = (now - max(sample.time, start)).total_seconds()
        newest = (now - min(end, now)).total_seconds()
        if oldest <= newest:
            continue
        if half_life:
            unit = half_life.total_seconds()
            part = 2.0 ** (-newest / unit) - 2.0 ** (-oldest / unit)
        else:
            part = oldest - newest
        total += part * sample.usage.percent
        weight += part
    return total / weight if weight else None


def admitted_nodes(cluster: Cluster, pod: Pod) -> tuple[NodeInfo, ...]:
    """Nodes that the pod's nodeName, node selector and required affinity leave open, by name.

    Which they are depends on Node objects alone and is worked out once for each such choice.
    """
    spec = pod.spec
    affinity = spec.affinity and spec.affinity.nodeAffinity
    key = encode(("admitted nodes", spec.nodeName, spec.nodeSelector, affinity))
    names: tuple[str, ...] | None = cluster.static_memo.get(key)
    if names is None:
        names = tuple(
            node.name
            for node in cluster.nodes.values()
            if selectors.leaves_open(pod, node.labels, node.name)
        )
        cluster.static_memo[key] = names
    return tuple(cluster.nodes[name] for name in names)


class GpuPods(NamedTuple):
    """Pods that use GPUs, of those that are not over."""

    pods: int
    devices: int
    waiting: int


def gpu_pods_of(cluster: Cluster, namespace: str, patterns: Sequence[str]) -> GpuPods:
    """Those of one namespace. Pods that have come since the last question are added to its answer,
    so that a run of a thousand workloads does not count the whole namespace a thousand times."""
    pods = cluster.pods_in(namespace)
    key = ("gpu pods", namespace, patterns)
    seen: tuple[Pod, ...]
    found: GpuPods
    seen, found = cluster.pod_memo.get(key, ((), GpuPods(0, 0, 0)))
    if pods[: len(seen)] != seen:
        seen, found = (), GpuPods(0, 0, 0)
    for pod in pods[len(seen) :]:
        taken = booking(cluster, pod, patterns)
        if taken.uses and not is_terminal(pod):
            waits = 0 if pod.spec.nodeName else 1
            found = GpuPods(found.pods + 1, found.devices + taken.devices, found.waiting + waits)
    cluster.pod_memo[key] = (pods, found)
    return found
