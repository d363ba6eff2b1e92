"""One node as ``topo`` shows it: each GPU's state and holder, islands, placements that are left."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.overview.holding import Holding, holding
from kubectl_gpuadmit.overview.model import GpuView, Held, NodeView, State
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.maps import age_seconds
from kubectl_gpuadmit.topology.model import Gpu, NodeMap

GIB = 1024


def node_view(
    cluster: Cluster,
    info: NodeInfo,
    found: NodeMap,
    policy: Policy,
    now: dt.datetime,
    claimed: Mapping[str, tuple[tuple[str, Held], ...]],
) -> NodeView:
    """``found`` is the node's map from the best source; ``claimed`` of ``holding.claimed_on``."""
    held = holding(cluster, info, found, policy, claimed)
    grouped = islands(found)
    number = {index: i for i, one in enumerate(grouped or ()) for index in one}
    views = tuple(_gpu(gpu, held, found, number.get(gpu.index)) for gpu in found.gpus)
    total = max(len(found.gpus), found.count)
    unhealthy = sum(view.state == "unhealthy" for view in views)
    unfree = sum(view.state == "unfree" for view in views)
    sharing = _sharing(found)
    taken, free = _counts(info, held, views, total, sharing)
    return NodeView(
        name=info.name,
        pool=policy.pool_of_node(info.labels),
        map=found,
        total=total,
        held=taken,
        free=free,
        unfree=unfree,
        unhealthy=unhealthy if views else _missing(info),
        gpus=views,
        islands=grouped,
        clean=_clean(found, views, held, sharing),
        loose=tuple(held.loose),
        sharing=sharing,
        cordoned=info.unschedulable,
        age_seconds=age_seconds(found, now),
    )


def _gpu(gpu: Gpu, held: Holding, found: NodeMap, island: int | None) -> GpuView:
    holders = tuple(held.by_index.get(gpu.index, ()))
    state, why = _state(gpu, holders, held)
    return GpuView(gpu, state, why, holders, island)


def _state(gpu: Gpu, holders: tuple[Held, ...], held: Holding) -> tuple[State, str]:
    if broken := broken_because(gpu):
        return "unhealthy", broken
    if holders:
        return "held", ""
    if gpu.residue_mib:
        return "unfree", f"{size(gpu.residue_mib)} residue"
    if held.told and not held.loose:
        return "free", ""
    return "unknown", ""


def broken_because(gpu: Gpu) -> str:
    """Why no work should go to it, '' for nothing known."""
    health = gpu.health
    if health.lost:
        return "lost: the driver does not see it any more"
    if health.retirement_pending:
        return "pages wait to be retired: reset it"
    if health.ecc_uncorrected:
        return f"{health.ecc_uncorrected} uncorrected ECC errors"
    return ""


def size(mib: int) -> str:
    """``3.1 GiB``, ``240 MiB``."""
    return f"{mib / GIB:.1f} GiB" if mib >= GIB else f"{mib} MiB"


def _sharing(found: NodeMap) -> str:
    if any(gpu.mig_enabled or gpu.mig for gpu in found.gpus):
        return "MIG"
    for gpu in found.gpus:
        if gpu.sharing and (gpu.replicas or 1) > 1:
            return f"{gpu.replicas} places a GPU ({gpu.sharing})"
    return ""


def _whole(info: NodeInfo) -> Iterator[tuple[str, int]]:
    for name, amount in info.allocatable.items():
        meaning = gpus.means(name)
        if meaning is not None and meaning.kind == "whole" and gpus.is_gpu(name):
            yield name, amount


def _counts(
    info: NodeInfo, held: Holding, views: tuple[GpuView, ...], total: int, sharing: str
) -> tuple[int | None, int | None]:
    """(held, free) physical GPUs; None where sharing hides it."""
    if views and held.told and not held.loose:
        return (
            sum(bool(view.holders) for view in views),
            sum(view.state == "free" for view in views),
        )
    if sharing:
        return None, None
    named = {view.index for view in views if view.holders}
    taken = len(named) + sum(one.count for one in held.loose if not one.share)
    out = sum(view.state in ("unfree", "unhealthy") and not view.holders for view in views)
    return min(taken, total), max(total - taken - (out if views else _missing(info)), 0)


def _missing(info: NodeInfo) -> int:
    """Devices that the plugin counts as there and not healthy: capacity beyond allocatable."""
    from kubectl_gpuadmit.kube.pods import amounts

    capacity = amounts(info.node.status.capacity)
    return sum(max(capacity.get(name, amount) - amount, 0) for name, amount in _whole(info))
