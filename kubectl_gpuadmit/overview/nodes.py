"""One node as ``topo`` shows it: each GPU's state and holder, islands, placements that are left."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.pods import amounts
from kubectl_gpuadmit.overview.holding import Claimed, Holding, holding
from kubectl_gpuadmit.overview.model import GpuView, Held, NodeView, State
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.islands import islands
from kubectl_gpuadmit.topology.maps import age_seconds
from kubectl_gpuadmit.topology.model import Gpu, NodeMap
from kubectl_gpuadmit.topology.placements import clean_placements

GIB = 1024


def node_view(
    cluster: Cluster,
    info: NodeInfo,
    found: NodeMap,
    policy: Policy,
    now: dt.datetime,
    claimed: Claimed,
) -> NodeView:
    """``found`` is the node's map from the best source; ``claimed`` of ``holding.claimed_on``."""
    held = holding(info, found, policy, claimed)
    sound = without_lost(found)
    grouped = members(sound)
    number = {index: i for i, one in enumerate(grouped or ()) for index in one}
    total = max(len(found.gpus), found.count)
    sharing = _sharing(info, found)
    others = _others(held, total, sharing)
    views = tuple(_gpu(gpu, held, others, number.get(gpu.index)) for gpu in found.gpus)
    unhealthy = sum(view.state == "unhealthy" for view in views)
    unfree = sum(view.state == "unfree" for view in views)
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
        clean=_clean(sound, views, sharing),
        loose=tuple(held.loose),
        sharing=sharing,
        cordoned=info.unschedulable,
        age_seconds=age_seconds(found, now),
    )


def without_lost(found: NodeMap) -> NodeMap:
    """The map without GPUs that the driver does not see any more: what joined them is not known,
    and need not be to tell what joins the others."""
    lost = {gpu.index for gpu in found.gpus if gpu.health.lost}
    if not lost:
        return found
    gpus = tuple(gpu for gpu in found.gpus if gpu.index not in lost)
    links = found.links
    if links is not None:
        links = tuple(one for one in links if one.a not in lost and one.b not in lost)
    return structs.replace(found, gpus=gpus, links=links, count=len(gpus))


def members(found: NodeMap) -> tuple[tuple[int, ...], ...] | None:
    """The islands as indexes, by their first GPU; None where they are not known."""
    told = islands(found)
    return None if told is None else tuple(one.gpus for one in told)


def _others(held: Holding, total: int, sharing: str) -> State:
    """The state of a GPU of which no source names a holder: if pods without named GPUs account for
    none, or for all that are left, it is known all the same."""
    if not held.loose:
        return "free"
    loose = sum(one.count for one in held.loose)
    named = sum(bool(holders) for holders in held.by_index.values())
    return "held" if not sharing and named + loose >= total else "unknown"


def _gpu(gpu: Gpu, held: Holding, others: State, island: int | None) -> GpuView:
    holders = tuple(held.by_index.get(gpu.index, ()))
    state, why = _state(gpu, holders, others)
    return GpuView(gpu, state, why, holders, island)


def _state(gpu: Gpu, holders: tuple[Held, ...], others: State) -> tuple[State, str]:
    if broken := broken_because(gpu):
        return "unhealthy", broken
    if holders:
        return "held", ""
    if gpu.residue_mib:
        return "unfree", f"{size(gpu.residue_mib)} residue"
    return others, ""


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


def _sharing(info: NodeInfo, found: NodeMap) -> str:
    kinds = {meaning.kind for name in info.allocatable if (meaning := gpus.means(name))}
    if "mig" in kinds or any(gpu.mig_enabled or gpu.mig for gpu in found.gpus):
        return "MIG"
    for gpu in found.gpus:
        if gpu.sharing and (gpu.replicas or 1) > 1:
            return f"{gpu.replicas} places a GPU ({gpu.sharing})"
    return "shared" if "shared" in kinds else ""


def _whole(info: NodeInfo) -> Iterator[tuple[str, int]]:
    for name, amount in info.allocatable.items():
        meaning = gpus.means(name)
        if meaning is not None and meaning.kind == "whole" and gpus.is_gpu(name):
            yield name, amount


def _counts(
    info: NodeInfo, held: Holding, views: tuple[GpuView, ...], total: int, sharing: str
) -> tuple[int | None, int | None]:
    """(held, free) physical GPUs; None where sharing hides it."""
    if views and not any(view.state == "unknown" for view in views):
        return (
            sum(view.state == "held" or bool(view.holders) for view in views),
            sum(view.state == "free" for view in views),
        )
    if sharing:
        return None, None
    named = {view.index for view in views if view.holders}
    taken = len(named) + sum(one.count for one in held.loose if not one.share)
    out = sum(view.state in ("unfree", "unhealthy") and not view.holders for view in views)
    return min(taken, total), max(total - taken - (out if views else _missing(info)), 0)


def _clean(found: NodeMap, views: tuple[GpuView, ...], sharing: str) -> dict[int, int] | None:
    """None where it is not known which GPUs are free, or what joins them."""
    if sharing or found.stale:
        return None
    if views and not any(view.state == "unknown" for view in views):
        return clean_placements(found, [view.index for view in views if view.state == "free"])
    return None


def _missing(info: NodeInfo) -> int:
    """Devices that the plugin counts as there and not healthy: capacity beyond allocatable."""
    capacity = amounts(info.node.status.capacity)
    return sum(max(capacity.get(name, amount) - amount, 0) for name, amount in _whole(info))
