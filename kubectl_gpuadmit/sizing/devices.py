"""What the devices that a pod could get have: memory of a GPU, a slice or a share, node by node.

Rules of this module
1. Amounts are MiB as NVML reports them; a device whose memory nobody states is unknown.
2. A MIG slice is a device of its own. A time-sliced GPU shows its users the whole memory, which
   they share without any bound: what is free for one of them is its part. MPS and HAMi bound it.

Sources: NVIDIA/k8s-device-plugin docs (sharing: time-slicing, MPS divides memory evenly);
Project-HAMi/HAMi docs (gpumem limits what the process sees).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, structs
from msgspec.json import encode

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus, selectors
from kubectl_gpuadmit.kube.gpu_memory import memory_mib, product_mib
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.topology import maps


class Devices(Struct, frozen=True, kw_only=True):
    """Nodes whose devices are alike for one pod."""

    resource: str
    product: str
    """As GFD names it; '' where nothing says."""
    mib: int | None
    """Total that the engine sees on one device."""
    free_mib: int | None = None
    """What others leave of it, where they share it; None: all of it."""
    how: str = ""
    """Why it is less than a whole device: ``time-sliced among 4``."""
    share_of_mib: int | None = None
    """``mib`` is a share of a device with so much, and nobody says which of both a process sees."""
    count: int = 0
    """Devices that the pod gets."""
    nodes: tuple[str, ...] = ()
    source: str = ""

    @property
    def known(self) -> bool:
        return self.mib is not None

    @property
    def usable_mib(self) -> int | None:
        return self.free_mib if self.free_mib is not None else self.mib


def with_residue(
    cluster: Cluster, kinds: tuple[Devices, ...], now: dt.datetime
) -> tuple[Devices, ...]:
    """The same, nodes apart whose topology map tells of memory that nobody holds and that is not
    free: the most of it on one of the GPUs that the pod could be given."""
    if not any(True for _ in cluster.every(maps.KIND)):
        return kinds
    found: list[Devices] = []
    for kind in kinds:
        left: dict[int, list[str]] = {}
        for name in kind.nodes:
            left.setdefault(_residue(cluster, name, now) if _is_whole(kind) else 0, []).append(name)
        for mib, names in sorted(left.items()):
            part = structs.replace(kind, nodes=tuple(names))
            if mib and kind.mib is not None:
                how = f"{mib:,} MiB of it in use by nobody"
                part = structs.replace(part, free_mib=max(kind.mib - mib, 0), how=how)
            found.append(part)
    return tuple(found)


def _is_whole(kind: Devices) -> bool:
    return kind.resource == "nvidia.com/gpu" and not kind.how


def _residue(cluster: Cluster, node: str, now: dt.datetime) -> int:
    """MiB on the worst GPU that nobody is known to hold; 0 where no fresh map tells of any."""
    found = maps.node_map(cluster, node, now)
    if found is None or found.stale:
        return 0
    held = {holder.gpu for holder in found.holders or ()}
    return max((gpu.residue_mib or 0 for gpu in found.gpus if gpu.index not in held), default=0)


PRODUCT_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")
"""Labels of a node, or of a pod's selector, that name the GPU."""


def candidates(cluster: Cluster, pod: Pod, resource: str, count: int) -> tuple[Devices, ...]:
    """Every kind of devices that placement could give the pod, most nodes first.

    A node counts that the pod's selectors and tolerations leave open and that has as many devices
    even if others hold them now; cordoned ones only where there are no others.
    """
    spec = pod.spec
    share = gpus.share(pod)
    key = encode(
        (
            "model devices",
            resource,
            count,
            spec.nodeName,
            spec.nodeSelector,
            spec.affinity and spec.affinity.nodeAffinity,
            spec.tolerations,
            share,
        )
    )
    found = cluster.static_memo.get(key)
    if found is None:
        found = cluster.static_memo[key] = _candidates(cluster, pod, resource, count, share)
    listed: tuple[Devices, ...] = found
    return listed


def _candidates(
    cluster: Cluster, pod: Pod, resource: str, count: int, share: gpus.Share | None
) -> tuple[Devices, ...]:
    nodes = [n for n in open_nodes(cluster, pod) if n.allocatable.get(resource, 0) >= count]
    ready = [node for node in nodes if not node.unschedulable] or nodes
    alike: dict[Devices, list[str]] = {}
    for node in ready:
        alike.setdefault(of_node(node.labels, resource, count, share), []).append(node.name)
    return tuple(
        Devices(
            resource=kind.resource,
            product=kind.product,
            mib=kind.mib,
            free_mib=kind.free_mib,
            how=kind.how,
            count=kind.count,
            nodes=tuple(names),
            source=kind.source,
        )
        for kind, names in sorted(alike.items(), key=lambda item: (-len(item[1]), item[1][0]))
    )


def open_nodes(cluster: Cluster, pod: Pod) -> Iterator[NodeInfo]:
    """Nodes that node name, selectors, required affinity and taints leave open."""
    for node in cluster.nodes.values():
        if selectors.leaves_open(pod, node.labels, node.name) and not _keeps_away(node, pod):
            yield node


def _keeps_away(node: NodeInfo, pod: Pod) -> bool:
    """By a taint that does not come and go with the node's health."""
    return any(
        taint.effect in ("NoSchedule", "NoExecute")
        and not taint.key.startswith("node.kubernetes.io/")
        and not selectors.tolerated(pod.spec.tolerations, taint)
        for taint in node.taints
    )


def of_node(
    labels: Mapping[str, str], resource: str, count: int, share: gpus.Share | None = None
) -> Devices:
    """The devices of one node as the pod sees them."""
    product = product_of(labels)
    mib = memory_mib(labels, resource)
    source = "label nvidia.com/gpu.memory" if labels.get("nvidia.com/gpu.memory") else "product"
    if mib is None and product:
        mib = product_mib(_as_gfd(product))
    free: int | None = None
    how = ""
    parts = _replicas(labels, resource)
    if share is not None and share.memory_mib is not None:
        mib, how, source = share.memory_mib, f"{share.memory_mib:,} MiB by {share.by}", share.by
    elif share is not None and share.memory_percent is not None and mib is not None:
        part = int(mib * share.memory_percent / 100)
        how = f"{share.memory_percent:g} % by {share.by}"
        if share.by.startswith("annotation"):
            free = part  # a promise among neighbours: the process sees the whole device
        else:
            mib = part
    elif parts > 1 and mib is not None:
        if labels.get("nvidia.com/gpu.sharing-strategy") == "mps":
            mib, how = mib // parts, f"MPS divides it among {parts}"
        else:
            free, how = mib // parts, f"time-sliced among {parts}: its part of the memory"
    return Devices(
        resource=resource,
        product=product,
        mib=mib,
        free_mib=free,
        how=how,
        count=count,
        source=source if mib is not None else "",
    )


def pinned(pod: Pod, resource: str, count: int) -> Devices | None:
    """The devices that the pod's own selector names, where no nodes are known."""
    selector = pod.spec.nodeSelector or {}
    if not product_of(selector):
        return None
    found = of_node(selector, resource, count, gpus.share(pod))
    return found if found.known else None


def product_of(labels: Mapping[str, str]) -> str:
    return next((labels[key] for key in PRODUCT_LABELS if labels.get(key)), "")


def _replicas(labels: Mapping[str, str], resource: str) -> int:
    """Users of one whole GPU; MIG slices are shared by a label of their own."""
    if resource.startswith("nvidia.com/mig-"):
        text = labels.get(f"{resource}.replicas", "")
    else:
        text = labels.get("nvidia.com/gpu.replicas", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else 1


_GKE = {"nvidia-tesla-a100": "NVIDIA-A100-SXM4-40GB", "nvidia-h100-mega-80gb": "NVIDIA-H100-80GB"}
"""cloud.google.com/kubernetes-engine/docs/concepts/gpus: names that do not say the memory."""


def _as_gfd(product: str) -> str:
    """``nvidia-tesla-t4``, ``nvidia-h100-80gb`` as GKE has it -> as GFD would name it."""
    if product in _GKE:
        return _GKE[product]
    words = re.sub(r"^nvidia-(tesla-)?", "", product.lower()).split("-")
    return "NVIDIA-" + "-".join(word.upper() for word in words)
