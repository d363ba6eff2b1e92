"""Puts the overview of a cluster together; reads nothing and prints nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Literal

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.overview.alerts import alerts
from kubectl_gpuadmit.overview.holding import claimed_on
from kubectl_gpuadmit.overview.model import NodeView, Overview
from kubectl_gpuadmit.overview.nodes import node_view
from kubectl_gpuadmit.overview.pools import pool_views
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.maps import node_map

_WANTED = {
    "Pod": "who holds what: Pod objects",
    "ResourceClaim": "devices given by DRA: ResourceClaim objects",
    "ResourceSlice": "devices published for DRA: ResourceSlice objects",
    "GpuTopology": "links, residue and holders of single GPUs: GpuTopology objects of the agent",
}


def overview(
    cluster: Cluster,
    policy: Policy,
    *,
    now: dt.datetime,
    source: str,
    kind: Literal["live", "snapshot"],
    only: Collection[str] = (),
    assumed: str = "",
) -> Overview:
    """``only``: names of nodes or pools; empty for all. Nodes without GPUs are left out."""
    claimed = claimed_on(cluster, policy)
    nodes: list[NodeView] = []
    for info in cluster.nodes.values():
        pool = policy.pool_of_node(info.labels)
        if only and info.name not in only and pool not in only:
            continue
        found = node_map(cluster, info.name, now)
        if found is not None:
            nodes.append(node_view(cluster, info, found, policy, now, claimed))
    order = {pool.name: place for place, pool in enumerate(policy.pools)}
    nodes.sort(key=lambda node: (order.get(node.pool, len(order)), node.pool == "", node.name))
    missing = tuple(
        f"{what}: not in the source" for one, what in _WANTED.items() if not cluster.knows(one)
    )
    return Overview(
        source=source,
        kind=kind,
        as_of=now,
        pools=pool_views(cluster, nodes, policy),
        alerts=alerts(cluster, nodes, now),
        nodes=tuple(nodes),
        unknowns=missing,
        assumed=assumed,
    )
