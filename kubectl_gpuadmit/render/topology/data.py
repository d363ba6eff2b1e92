"""``topo`` for programs: ``gpu-admit.io/topology/v1``, documented in schema/topology-v1.json."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.overview.model import (
    SIZES,
    Alert,
    GpuView,
    Held,
    NodeView,
    Overview,
    PoolView,
)

SCHEMA_VERSION = "gpu-admit.io/topology/v1"
Json = dict[str, Any]


def to_json(found: Overview) -> Json:
    """Everything, in stable order; null is what is not known."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "asOf": found.as_of.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": {"kind": found.kind, "name": found.source},
        "pools": [_pool(pool) for pool in found.pools],
        "alerts": [alert_json(alert) for alert in found.alerts],
        "nodes": [_node(node) for node in found.nodes],
        "unknowns": list(found.unknowns),
    }


def _pool(pool: PoolView) -> Json:
    return {
        "name": pool.name,
        "nodes": pool.nodes,
        "gpus": pool.total,
        "held": pool.held,
        "free": pool.free,
        "unfree": pool.unfree,
        "unhealthy": pool.unhealthy,
        "cleanPlacements": _clean(pool.clean),
        "nodesUnclear": pool.unclear,
        "nodesShared": pool.shared,
        "islandsSplit": pool.split,
        "demand": [
            {
                "gpus": one.size,
                "pods": one.pods,
                "placeableClean": one.placeable,
                "placeableByCount": one.countable,
            }
            for one in pool.demand
        ],
    }


def _clean(clean: dict[int, int]) -> Json:
    return {str(size): clean.get(size, 0) for size in SIZES}


def alert_json(alert: Alert) -> Json:
    return {
        "code": alert.code,
        "severity": alert.severity,
        "node": alert.node,
        "gpu": alert.gpu,
        "what": alert.what,
        "effect": alert.effect,
        "next": alert.next,
    }


def _node(node: NodeView) -> Json:
    links = node.map.links
    return {
        "name": node.name,
        "pool": node.pool,
        "source": node.map.source,
        "assumed": node.map.assumed,
        "ageSeconds": node.age_seconds,
        "cordoned": node.cordoned,
        "product": node.map.product,
        "sharing": node.sharing,
        "total": node.total,
        "held": node.held,
        "free": node.free,
        "unfree": node.unfree,
        "unhealthy": node.unhealthy,
        "gpus": [_gpu(view) for view in node.gpus],
        "holdersUnplaced": [_held(held) for held in node.loose],
        "links": None
        if links is None
        else [
            {
                "a": link.a,
                "b": link.b,
                "type": link.type,
                "lanes": link.lanes,
                "lanesTotal": link.lanes_total,
            }
            for link in links
        ],
        "islands": None if node.islands is None else [list(one) for one in node.islands],
        "cleanPlacements": None if node.clean is None else _clean(node.clean),
        "problems": list(node.map.problems),
    }


def _gpu(view: GpuView) -> Json:
    gpu = view.gpu
    holders = [_held(held) for held in view.holders]
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pciBusId": gpu.pci_bus_id,
        "product": gpu.product,
        "memoryMiB": gpu.memory_mib,
        "usedMiB": gpu.used_mib,
        "numa": gpu.numa,
        "island": view.island,
        "pcieRoot": gpu.pcie_root,
        "state": view.state,
        "why": view.why,
        "holder": holders[0] if holders else None,
        "holders": holders,
        "mig": [{"uuid": one.uuid, "profile": one.profile} for one in gpu.mig],
    }


def _held(held: Held) -> Json:
    return {
        "namespace": held.namespace,
        "pod": held.pod,
        "container": held.container,
        "class": held.workload_class,
        "via": held.via,
        "resource": held.resource,
        "share": held.share,
        "count": held.count,
    }
