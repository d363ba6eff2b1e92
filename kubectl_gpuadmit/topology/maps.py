"""The map of a node from the best source that there is, always named; it judges nothing.

Best first: the agent's GpuTopology object, ResourceSlices, labels of GPU Feature Discovery, counts
of allocatable resources. Below the agent, links come from the machine's known shape if it has one,
and then the map says so (``assumed``). What a source cannot know stays None.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

import msgspec

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.errors import UnreadableMap
from kubectl_gpuadmit.topology import labelled, shapes, slices
from kubectl_gpuadmit.topology.model import NodeMap
from kubectl_gpuadmit.topology.reported import from_object

MAX_AGE = dt.timedelta(minutes=5)
"""An agent that has been silent for longer is not believed; it renews every minute or so."""

KIND = "GpuTopology"


def node_map(
    cluster: Cluster, node: str, now: dt.datetime, *, max_age: dt.timedelta = MAX_AGE
) -> NodeMap | None:
    """The map of one node; None where nothing speaks of GPUs on it.

    An agent's map older than ``max_age`` (or three of its own heartbeats, if that is longer) is
    ``stale``: a lower source would know less, and its wires still hold. A map that cannot be read
    is a problem of the map that takes its place.
    """
    found = _fixed(cluster, node)
    return found if found is None else aged(found, now, max_age)


def node_maps(
    cluster: Cluster, nodes: Iterable[str], now: dt.datetime, *, max_age: dt.timedelta = MAX_AGE
) -> Iterator[NodeMap]:
    """The maps of those nodes that have GPUs, in the order given."""
    for name in nodes:
        if found := node_map(cluster, name, now, max_age=max_age):
            yield found


def aged(found: NodeMap, now: dt.datetime, max_age: dt.timedelta) -> NodeMap:
    """The map as it counts at ``now``."""
    if found.as_of is None:
        return found
    heartbeats = dt.timedelta(seconds=3 * (found.heartbeat_seconds or 0))
    stale = now - found.as_of > max(max_age, heartbeats)
    return found if stale == found.stale else msgspec.structs.replace(found, stale=stale)


def age_seconds(found: NodeMap, now: dt.datetime) -> int | None:
    """None for a source without a time of its own."""
    return None if found.as_of is None else max(int((now - found.as_of).total_seconds()), 0)


def _fixed(cluster: Cluster, node: str) -> NodeMap | None:
    """The map without regard to the time: it follows from three objects, and is kept with them."""
    info = cluster.nodes.get(node)
    reported = cluster.get(KIND, "", node)
    own_slices = slices.by_node(cluster).get(node, ()) if cluster.knows("ResourceSlice") else ()
    key = ("topology/map", node)
    known = cluster.static_memo.get(key)
    held = (info and info.node, reported, own_slices)
    if known is not None and all(a is b for a, b in zip(known[0], held, strict=True)):
        kept: NodeMap | None = known[1]
        return kept
    problem = ""
    found: NodeMap | None = None
    if reported is not None:
        try:
            found = from_object(reported)
        except UnreadableMap as error:
            problem = error.message
    if found is None:
        found = _without_agent(info, node, own_slices)
    elif info is not None and found.fabric is None and (told := labelled.clique(info.labels)):
        found = msgspec.structs.replace(found, fabric=told)
    if problem and found is not None:
        found = msgspec.structs.replace(found, problems=(problem, *found.problems))
    cluster.static_memo[key] = (held, found)
    return found


def _without_agent(
    info: NodeInfo | None, node: str, own_slices: tuple[object, ...]
) -> NodeMap | None:
    named = labelled.from_node(info) if info is not None else None
    found = slices.from_slices(node, own_slices) or named  # type: ignore[arg-type]
    if found is None:
        return None
    labels = info.labels if info is not None else {}
    if found.fabric is None and (told := labelled.clique(labels)):
        found = msgspec.structs.replace(found, fabric=told)
    if found.links is not None or not found.product or not found.gpus:
        return found
    shape = shapes.shape(found.product, found.count, labels.get(labelled.MACHINE, ""))
    links = shape.links(found.count) if shape else None
    if shape is None or links is None:
        return found
    return msgspec.structs.replace(
        found,
        links=links,
        gpus=shapes.assumed_gpus(shape, found.gpus),
        assumed=shape.assumption,
    )


def rests_on(cluster: Cluster, now: dt.datetime, *, max_age: dt.timedelta = MAX_AGE) -> str:
    """From where the maps are that were looked at in this cluster so far, '' for none:
    ``agent maps of 2 nodes, 30 s old at most; labels of 1 node, by known machines``."""
    ages: list[int] = []
    counts = dict.fromkeys(("agent", "stale", "slices", "labels", "allocatable"), 0)
    assumed = 0
    for key, held in cluster.static_memo.items():
        if not isinstance(key, tuple) or key[0] != "topology/map" or held[1] is None:
            continue
        found = aged(held[1], now, max_age)
        counts["stale" if found.stale else found.source] += 1
        assumed += bool(found.assumed)
        if found.source == "agent" and not found.stale:
            ages.append(age_seconds(found, now) or 0)
    parts = [
        words.format(f"{number:,} node{'' if number == 1 else 's'}")
        for kind, words in (
            ("agent", f"agent maps of {{}}, {max(ages, default=0):,} s old at most"),
            ("stale", "stale agent maps of {}"),
            ("slices", "ResourceSlices of {}"),
            ("labels", "GPU labels of {}"),
            ("allocatable", "allocatable counts of {}"),
        )
        if (number := counts[kind])
    ]
    told = "; ".join(parts)
    return told + (f" (NVLink of {assumed:,} by the known machine)" if assumed else "")
