"""The picture that ``topo`` draws, as values; whoever draws it decides on words and colours alone.

A number that cannot be known is None: ``clean`` of a node whose free GPUs are counted but not
named, ``held`` of one whose GPUs are shared.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

from msgspec import Struct

from kubectl_gpuadmit.topology.model import Gpu, NodeMap

SIZES = (1, 2, 4, 8)
"""Sizes of placement that are counted, in GPUs of one node."""

State = Literal["free", "held", "unfree", "unhealthy", "unknown"]
"""``unfree``: nobody has it and yet it cannot be used (residue). ``unknown``: the source does not
tell whether anybody has it."""


class Held(Struct, frozen=True):
    """A pod that has a GPU, a share of one, or some whose indexes are not known."""

    namespace: str
    pod: str
    workload_class: str = ""
    via: Literal["device-plugin", "dra", "process"] = "device-plugin"
    resource: str = ""
    """``nvidia.com/gpu``; of DRA the claim as ``namespace/name``."""
    container: str = ""
    share: str = ""
    """``1g.10gb``, ``1 of 4 places``; '' for a whole GPU."""
    count: int = 1

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.pod}" if self.namespace else self.pod


class GpuView(Struct, frozen=True):
    gpu: Gpu
    state: State
    why: str = ""
    """What makes it unfree or unhealthy: ``3.1 GiB in use by nobody (residue)``."""
    holders: tuple[Held, ...] = ()
    island: int | None = None
    """Number of its island on the node, None where islands are not known."""

    @property
    def index(self) -> int:
        return self.gpu.index


class NodeView(Struct, frozen=True):
    name: str
    pool: str
    map: NodeMap
    total: int
    """Physical GPUs."""
    held: int | None
    free: int | None
    unfree: int
    unhealthy: int
    gpus: tuple[GpuView, ...] = ()
    """By index; empty where the source only counts."""
    islands: tuple[tuple[int, ...], ...] | None = None
    """GPUs that NVLink joins, by index; a GPU without NVLink is one by itself."""
    clean: dict[int, int] | None = None
    """Size -> placements that could be taken one beside the other, NVLink-complete and within a
    NUMA node where the machine allows it."""
    loose: tuple[Held, ...] = ()
    """Pods whose GPUs are counted and not named."""
    sharing: str = ""
    """``4 places a GPU (time-slicing)``, ``MIG``; '' where GPUs are whole."""
    cordoned: bool = False
    age_seconds: int | None = None

    @property
    def split(self) -> bool | None:
        """Whether some island is held in part: None where that is not known."""
        if self.islands is None or self.loose or any(g.state == "unknown" for g in self.gpus):
            return None
        state = {g.index: g.state for g in self.gpus}
        taken = [{state.get(index, "unknown") == "free" for index in one} for one in self.islands]
        return any(len(one) == 2 for one in taken)


class Alert(Struct, frozen=True):
    """One thing that a person should look at. ``severity``: ``alert``, or ``unknown`` for a fact
    that is missing."""

    code: str
    """``stale-map``, ``residue``, ``link-down``, ``gpu-lost``, ``xid``, ``ecc``, ``two-owners``,
    ``leaked-claim``, ``cordon``, ``missing-gpus``, ``unreadable-map``."""
    severity: Literal["alert", "unknown"]
    node: str
    what: str
    """``GPU 5   3.1 GiB in use by nobody (residue)``."""
    effect: str = ""
    """``unfree until reset``, ``degraded since 09:12``."""
    gpu: int | None = None
    next: str = ""
    """The command that tells more or mends it."""


class Demand(Struct, frozen=True):
    """Pods that wait for GPUs of one node each."""

    size: int
    pods: int
    placeable: int
    """Of these, how many a clean placement is left for."""
    countable: int
    """And for how many there would be GPUs if any free ones did, wherever they are."""


class PoolView(Struct, frozen=True):
    name: str
    """'' for nodes of no pool."""
    nodes: int
    total: int
    held: int
    free: int
    unfree: int
    unhealthy: int
    clean: dict[int, int]
    """Over the nodes where it is known."""
    unclear: int
    """Nodes for which ``clean`` is not known."""
    split: int
    """Islands that are held in part."""
    shared: int = 0
    """Nodes whose GPUs are shared (MIG, time-slicing): how many GPUs they have free is not told."""
    demand: tuple[Demand, ...] = ()


class Overview(Struct, frozen=True):
    source: str
    """Snapshot or live cluster, as a person names it."""
    kind: Literal["live", "snapshot", "text"]
    as_of: dt.datetime
    pools: tuple[PoolView, ...]
    alerts: tuple[Alert, ...]
    nodes: tuple[NodeView, ...]
    """By pool, then by name; only nodes with GPUs."""
    unknowns: tuple[str, ...] = ()
    """What could not be asked, and what would make it known."""
    assumed: str = ""
