"""Where a pod could land now and what is known of the GPUs there, as all topology rules ask it.

A node counts where selectors, affinity and taints let the pod in and what is free is enough for it,
as the scheduler counts. Nothing of the topology is imported before a pod with whole GPUs asks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
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
    from kubectl_gpuadmit.devices.prospects import Gifts
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
    claims_known: bool = True
    """Whether the source holds the claims by which pods may have GPUs."""

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
    from kubectl_gpuadmit.topology import claimed, maps, standing

    found = maps.node_map(cluster, info.name, now, max_age=max_age)
    told = cluster.knows("ResourceClaim")
    if found is None or not found.gpus:
        return Landing(info, None, None, told)
    held = claimed.held_on(cluster).get(info.name, ())
    key = "topology/standing"
    known = info.memo.get(key)
    if known is None or known[0] is not found or known[1] != held:
        offered = _whole(info.allocatable)
        now_there = standing.standing(found, info.pods, offered or None, claimed=held)
        known = (found, held, now_there)
        info.memo[key] = known
    return Landing(info, found, known[2], told)


class Allotment(NamedTuple):
    """What DRA would give such pods on one node, GPU by GPU of the node's map."""

    landing: Landing
    sets: tuple[tuple[int, ...], ...] = ()
    """The GPUs of the pods that find devices there, one pod after another."""
    devices: tuple[tuple[str, ...], ...] = ()
    """Their names for DRA; also of devices that the map does not know."""
    parts: bool = False
    """Some of them are parts of a GPU."""
    missing: str = ""
    """What is not known of it, '' for nothing; otherwise ``sets`` may not hold all."""

    @property
    def name(self) -> str:
        return self.landing.name

    @property
    def unknown(self) -> str:
        """What is missing to judge it by its links, '' if nothing is."""
        found = self.landing.map
        if self.missing or found is None or self.landing.now is None:
            return self.missing or self.landing.unknown
        if found.stale:
            return f"topology of node {self.name}: its agent map is stale"
        return ""


def allotments(
    ask: Ask, cluster: Cluster, *, max_age: dt.timedelta = MAX_AGE
) -> tuple[list[Allotment], str]:
    """Every node that has room for such a pod now and whose GPUs would come to it by DRA, from its
    claims or from a class that backs what it asks for; none for a pod without either. And what is
    missing to tell of any node.

    Which devices these are follows from the allocator: they are the ones that the scheduler would
    take, unless others come first.
    """
    from kubectl_gpuadmit.kube.resource_names import is_extended

    if not ask.pod.spec.resourceClaims and not any(map(is_extended, requests(ask.pod))):
        return [], ""
    from kubectl_gpuadmit.devices.prospects import Prospects

    prospects = Prospects.of(cluster, ask.pod, ask.namespace, kubernetes=ask.kubernetes)
    if prospects is None or prospects.missing:
        return [], prospects.missing if prospects is not None else ""
    needed = [(name, amount) for name, amount in requests(ask.pod).items() if amount]
    found: list[Allotment] = []
    for info in open_nodes(cluster, ask.pod):
        if not prospects.by_devices(info):
            continue
        delegated = prospects.delegated(info)
        if any(name not in delegated and info.free(name) < amount for name, amount in needed):
            continue
        gifts = prospects.on(info, pods=max(min(ask.group.count, _MOST_PODS), 1))
        one = _landing(info, cluster, ask.now, max_age)
        if isinstance(gifts, str):
            found.append(Allotment(one, missing=gifts))
        elif gifts and any(given.device is not None for given in gifts[0]):
            allotted = _allotment(one, gifts)
            if allotted.sets or allotted.missing:
                found.append(allotted)
    return found, ""


_MOST_PODS = 64
"""So many pods of a group are followed on one node, where only claims bound how many it takes."""


def _allotment(one: Landing, gifts: Sequence[Gifts]) -> Allotment:
    """() for sets of pods that get other devices than GPUs."""
    from kubectl_gpuadmit.devices.gpus import is_gpu, is_whole
    from kubectl_gpuadmit.topology.claimed import gpu_index

    sets: list[tuple[int, ...]] = []
    names: list[tuple[str, ...]] = []
    parts = False
    missing = ""
    for gift in gifts:
        chosen: list[int] = []
        named: list[str] = []
        for given in gift:
            if given.device is None or not is_gpu(given.device) or given.allotted.admin_access:
                continue
            parts = parts or bool(given.allotted.share) or not is_whole(given.device)
            named.append(given.device.name)
            index = gpu_index(one.map, given.device) if one.map is not None else None
            if index is not None:
                chosen.append(index)
            elif one.map is None:
                missing = missing or one.unknown
            else:
                missing = missing or (
                    f"which GPU of node {one.name} device {given.device.name} is: neither its UUID "
                    f"nor its PCI address is told by {one.rests_on}"
                )
        if named:
            sets.append(tuple(chosen))
            names.append(tuple(named))
    return Allotment(one, tuple(sets), tuple(names), parts, missing)


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
    booking: dict[tuple[str, str], bool] = {}
    for pod in one.info.pods:
        whole = bool(_whole(gpus.pod_gpus(pod, policy.gpu_patterns)))
        if (whole or pod.spec.resourceClaims) and class_of(policy, pod) in wanted:
            booking[pod.namespace, pod.name] = whole or not one.claims_known
    found: dict[int, str] = {}
    named: set[tuple[str, str]] = set()
    for index, holders in (one.now.held if one.now else {}).items():
        for holder in holders:
            key = (holder.namespace, holder.pod)
            if key in booking:
                found.setdefault(index, f"{holder.namespace}/{holder.pod}")
                named.add(key)
    loose = next(
        (f"{ns}/{name}" for (ns, name), has in booking.items() if has and (ns, name) not in named),
        "",
    )
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
