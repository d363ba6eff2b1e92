"""Where a pod could land now and what is known of the GPUs there, as all topology rules ask it.

A node counts where selectors, affinity and taints let the pod in and what is free is enough for it,
as the scheduler counts. Nothing of the topology is imported before a pod with whole GPUs asks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus, selectors
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import requests
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.policy.usage import admitted_nodes
from kubectl_gpuadmit.rule import Ask
from kubectl_gpuadmit.verdict import Remedy

if TYPE_CHECKING:
    from kubectl_gpuadmit.policy.model import Policy
    from kubectl_gpuadmit.topology.model import NodeMap
    from kubectl_gpuadmit.topology.standing import Standing

TENSOR_PARALLEL = "gpu-admit.io/tensor-parallel"
"""Label or annotation of a pod: GPUs in each of its tensor-parallel groups."""
HOSTNAME = "kubernetes.io/hostname"
MAX_AGE = dt.timedelta(minutes=5)
"""An agent's map that is older counts as missing."""


class Landing(NamedTuple):
    """One node, its map and how its GPUs stand; both None where nothing is told of them."""

    info: NodeInfo
    map: NodeMap | None
    now: Standing | None

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def unknown(self) -> str:
        """What is missing to judge it by its links, '' if nothing is."""
        found, now = self.map, self.now
        if found is None or now is None:
            return f"GPUs of node {self.name}: neither an agent map nor labels tell of them"
        if found.stale:
            return f"topology of node {self.name}: its agent map is stale"
        if now.shared:
            return f"whole GPUs of node {self.name}: they are given out in parts"
        return ""

    @property
    def rests_on(self) -> str:
        """Where the facts come from, for evidence."""
        found = self.map
        if found is None:
            return ""
        words = {
            "agent": "agent map",
            "slices": "ResourceSlices",
            "labels": "GPU labels",
            "allocatable": "allocatable resources",
            "smi": "nvidia-smi",
        }
        source = words[found.source]
        return f"{source}, assumed: {found.assumed}" if found.assumed else source


def whole_gpus(ask: Ask) -> int:
    """Whole GPUs that one pod asks for, 0 for a pod of shares or slices."""
    return _whole(gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns))


def _whole(booked: dict[str, int]) -> int:
    return sum(
        amount
        for name, amount in booked.items()
        if (meaning := gpus.means(name)) and meaning.kind == "whole"
    )


def landings(ask: Ask, cluster: Cluster, *, max_age: dt.timedelta = MAX_AGE) -> list[Landing]:
    """Every node that has room for one such pod now, by name."""
    needed = [(name, amount) for name, amount in requests(ask.pod).items() if amount]
    return [
        _landing(info, cluster, ask.now, max_age)
        for info in open_nodes(cluster, ask.pod)
        if all(info.free(name) >= amount for name, amount in needed)
    ]


def open_nodes(cluster: Cluster, pod: Pod) -> Iterator[NodeInfo]:
    """Nodes that would let the pod in if they were empty."""
    for info in admitted_nodes(cluster, pod):
        if not info.unschedulable and all(
            taint.effect not in ("NoSchedule", "NoExecute")
            or selectors.tolerated(pod.spec.tolerations, taint)
            for taint in info.taints
        ):
            yield info


def of_node(
    info: NodeInfo, cluster: Cluster, now: dt.datetime, *, max_age: dt.timedelta = MAX_AGE
) -> Landing:
    """The same for one node, with room or without."""
    return _landing(info, cluster, now, max_age)


def _landing(info: NodeInfo, cluster: Cluster, now: dt.datetime, max_age: dt.timedelta) -> Landing:
    from kubectl_gpuadmit.topology import maps, standing

    found = maps.node_map(cluster, info.name, now, max_age=max_age)
    if found is None or not found.gpus:
        return Landing(info, None, None)
    key = "topology/standing"
    known = info.memo.get(key)
    if known is None or known[0] is not found:
        offered = _whole(info.allocatable)
        known = (found, standing.standing(found, info.pods, offered or None))
        info.memo[key] = known
    return Landing(info, found, known[1])


def tensor_parallel(ask: Ask, cluster: Cluster) -> tuple[int, str]:
    """GPUs of a tensor-parallel group of the pod, and who says so; (0, '') where nobody does.

    The pod's annotation or label counts before the arguments of its serving engine.
    """
    for what, values in (("annotation", ask.pod.annotations), ("label", ask.pod.labels)):
        text = values.get(TENSOR_PARALLEL, "")
        if text.isascii() and text.isdecimal() and 0 < len(text) < 5 and int(text):
            return int(text), f"{what} {TENSOR_PARALLEL}"
    if not serving.may_serve(ask.pod, ask.policy):
        return 0, ""
    from kubectl_gpuadmit.sizing import fitting

    models = serving.models_of(ask.policy)
    found = fitting.of_group(ask.workload, ask.group, cluster, models).found
    sizes = {one.serving.tensor_parallel_size: one.engine for one in found}
    size = max((size for size in sizes if size), default=0)
    return (size, f"arguments of {sizes[size]}") if size else (0, "")


def class_of(policy: Policy, pod: Pod) -> str:
    """The workload class of a pod that runs."""
    owner = next((o for o in pod.metadata.ownerReferences or () if o.controller), None)
    return policy.workload_class(pod, owner.kind if owner else "Pod")


def held_by(one: Landing, policy: Policy, classes: Iterable[str]) -> tuple[dict[int, str], str]:
    """GPU -> a pod of one of the classes that holds it; and a pod of them that books GPUs of the
    node without anybody saying which, '' if there is none."""
    wanted = frozenset(classes)
    pods = {
        (pod.namespace, pod.name): pod
        for pod in one.info.pods
        if class_of(policy, pod) in wanted and _whole(gpus.pod_gpus(pod, policy.gpu_patterns))
    }
    found: dict[int, str] = {}
    named: set[tuple[str, str]] = set()
    for index, holders in (one.now.held if one.now else {}).items():
        for holder in holders:
            key = (holder.namespace, holder.pod)
            if key in pods:
                found.setdefault(index, f"{holder.namespace}/{holder.pod}")
                named.add(key)
    loose = next((f"{ns}/{name}" for ns, name in pods if (ns, name) not in named), "")
    return found, loose


def listed(names: Iterable[str], most: int = 4) -> str:
    """``a, b, c, d and 3 more``."""
    every = list(names)
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


def elsewhere(ask: Ask, good: Iterable[Landing]) -> tuple[Remedy, ...]:
    """The suggestion to bind the pod to nodes where a rule has nothing to say."""
    names = hostnames(good)[:4]
    patch = ask.manifest_patch(affinity_ops(ask, names)) if names else ()
    return (Remedy(f"only on {', '.join(names)}", patch=patch, cost=10),) if patch else ()


def affinity_ops(ask: Ask, nodes: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """Operations on the pod template that leave only these nodes: one more condition in each of the
    alternatives that the pod has already."""
    spec = ask.group.template.get("spec") or {}
    expression = {"key": HOSTNAME, "operator": "In", "values": list(nodes)}
    affinity = spec.get("affinity")
    node = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    required = node.get(field) if isinstance(node, dict) else None
    terms = required.get("nodeSelectorTerms") if isinstance(required, dict) else None
    if isinstance(terms, list) and terms:
        value: Any = [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), expression]}
            for term in terms
            if isinstance(term, dict)
        ]
        path = f"/spec/affinity/nodeAffinity/{field}/nodeSelectorTerms"
    else:
        path, value = (
            "/spec/affinity",
            {"nodeAffinity": {field: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}},
        )
        if isinstance(node, dict):
            path, value = f"{path}/nodeAffinity/{field}", value["nodeAffinity"][field]
        elif isinstance(affinity, dict):
            path, value = f"{path}/nodeAffinity", value["nodeAffinity"]
    return ({"op": "add", "path": path, "value": value},)


def hostnames(chosen: Iterable[Landing]) -> list[str]:
    """Values of the label by which affinity names the nodes; those without it are left out."""
    return [value for one in chosen if (value := one.info.labels.get(HOSTNAME))]
