"""``NodeResourceTopology`` objects: what is left on each NUMA node, and the kubelet's policy.

Written by NFD's topology updater or the resource-topology exporter, one object a node, of its name.
Source: github.com/k8stopologyawareschedwg/noderesourcetopology-api, topology.node.k8s.io v1alpha1
and v1alpha2. They count and do not name: which device a pod holds is not in them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.objects import Generic, QuantityText

KIND = "NodeResourceTopology"
GROUP = "topology.node.k8s.io"

_LEGACY = {
    "SingleNUMANode": "single-numa-node",
    "Restricted": "restricted",
    "BestEffort": "best-effort",
    "None": "none",
}
_SCOPES = {"ContainerLevel": "container", "PodLevel": "pod", "": "container"}
_ZONE_NUMBER = re.compile(r"(\d+)$")


class UnreadableZones(Exception):
    """The object of one node does not hold what such objects hold."""


class _Attribute(Struct, frozen=True):
    name: str
    value: str = ""


class _Cost(Struct, frozen=True):
    name: str
    value: int = 0


class _Resource(Struct, frozen=True):
    name: str
    capacity: QuantityText = 0
    allocatable: QuantityText = 0
    available: QuantityText = 0


class _Zone(Struct, frozen=True):
    name: str
    type: str = "Node"
    costs: tuple[_Cost, ...] | None = None
    resources: tuple[_Resource, ...] | None = None


class _Document(Struct, frozen=True):
    topologyPolicies: tuple[str, ...] | None = None
    attributes: tuple[_Attribute, ...] | None = None
    zones: tuple[_Zone, ...] | None = None


class Amount(Struct, frozen=True):
    """Of one resource on one NUMA node: devices, millicores or bytes."""

    capacity: int
    allocatable: int
    available: int


class NumaZone(Struct, frozen=True):
    id: int
    amounts: dict[str, Amount] = {}
    distances: tuple[int, ...] = ()
    """To each NUMA node, by the order of IDs; () where the object does not tell all."""


class NodeZones(Struct, frozen=True):
    """One node's object."""

    policy: str | None = None
    scope: str | None = None
    zones: tuple[NumaZone, ...] = ()
    """By ID."""


def of_node(cluster: Cluster, node: str) -> NodeZones | None:
    """What the node's object says, None where there is none. Raises UnreadableZones."""
    found = cluster.get(KIND, "", node)
    if not isinstance(found, Generic) or found.apiVersion.partition("/")[0] != GROUP:
        return None
    key = ("topology/zones", node)
    held = cluster.static_memo.get(key)
    if held is None or held[0] is not found:
        held = (found, read(found.document))
        cluster.static_memo[key] = held
    zones: NodeZones = held[1]
    return zones


def read(document: dict[str, Any]) -> NodeZones:
    """Raises UnreadableZones."""
    try:
        told = msgspec.convert(document, _Document)
        zones = [_zone(zone) for zone in told.zones or () if zone.type in ("Node", "NUMANode")]
    except (msgspec.ValidationError, quantity.QuantityError) as problem:
        raise UnreadableZones(str(problem)) from None
    if len({zone.id for zone, _ in zones}) < len(zones):
        raise UnreadableZones("two zones are of one NUMA node")
    zones.sort(key=lambda pair: pair[0].id)
    numbers = [zone.id for zone, _ in zones]
    policy, scope = _policy(told)
    return NodeZones(
        policy,
        scope,
        tuple(
            msgspec.structs.replace(zone, distances=tuple(costs[number] for number in numbers))
            if all(number in costs for number in numbers)
            else zone
            for zone, costs in zones
        ),
    )


def _policy(told: _Document) -> tuple[str | None, str | None]:
    given = {one.name: one.value for one in told.attributes or ()}
    policy, scope = given.get("topologyManagerPolicy"), given.get("topologyManagerScope")
    if policy is not None:
        return policy, scope or "container"
    for legacy in told.topologyPolicies or ():
        for name, meant in _LEGACY.items():
            level = legacy.removeprefix(name)
            if legacy.startswith(name) and level in _SCOPES:
                return meant, _SCOPES[level]
    return None, None


def _zone(zone: _Zone) -> tuple[NumaZone, dict[int, int]]:
    amounts = {
        one.name: Amount(
            *(_units(one.name, n) for n in (one.capacity, one.allocatable, one.available))
        )
        for one in zone.resources or ()
    }
    return NumaZone(_number(zone.name), amounts), {
        _number(cost.name): cost.value for cost in zone.costs or ()
    }


def _units(resource: str, text: QuantityText) -> int:
    nano = quantity.parse(text).nano
    return nano // (quantity.MILLI if resource == "cpu" else quantity.NANO)


def _number(name: str) -> int:
    """``node-1`` -> 1. Raises UnreadableZones."""
    found = _ZONE_NUMBER.search(name)
    if found is None:
        raise UnreadableZones(f"zone {name!r} does not end in the number of a NUMA node")
    return int(found[1])
