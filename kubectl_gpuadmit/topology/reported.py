"""The agent's ``GpuTopology`` object as a NodeMap; an object of a schema we do not know is refused.

Refused or broken objects are an error for that one node, which the caller names as a problem: a
cluster in the middle of an upgrade holds both.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from kubectl_gpuadmit.errors import BadInput, UnreadableMap
from kubectl_gpuadmit.kube import gpu_topology, times
from kubectl_gpuadmit.kube.gpu_topology import (
    GpuTopologySpec,
    ReportedGpu,
    ReportedHolder,
    ReportedKubelet,
    ReportedMemoryBlock,
)
from kubectl_gpuadmit.kube.objects import GpuTopology, KubeObject
from kubectl_gpuadmit.topology.model import (
    PCIE_LEVELS,
    Assignment,
    Fabric,
    Gpu,
    Health,
    Holder,
    Kubelet,
    Link,
    MemoryBlock,
    Mig,
    Nic,
    NodeMap,
    NumaNode,
    Xid,
)

_NVLINKS = re.compile(r"NV([1-9][0-9]?)", re.ASCII)
_VIAS = ("device-plugin", "dra", "process")


def from_object(obj: KubeObject) -> NodeMap:
    """The map in ``obj``. Raises UnreadableMap (``topology-schema``, ``topology-map``)."""
    name = f"GpuTopology {obj.name}"
    if not isinstance(obj, GpuTopology):
        raise UnreadableMap(
            "topology-schema",
            f"{name} is of {obj.apiVersion}, this program reads "
            f"{gpu_topology.GROUP}/{gpu_topology.VERSION}",
            hint="use a kubectl gpu-admit as new as the agent",
        )
    spec = obj.spec
    if spec.schema == gpu_topology.SCHEMA:
        return _current(obj.name, spec)
    if spec.schema == gpu_topology.SCHEMA - 1:
        return _matrix_only(obj.name, spec)
    if spec.schema > gpu_topology.SCHEMA:
        raise UnreadableMap(
            "topology-schema",
            f"{name} has schema {spec.schema}, this program reads {gpu_topology.SCHEMA} and "
            f"{gpu_topology.SCHEMA - 1}",
            hint="use a kubectl gpu-admit as new as the agent",
        )
    raise UnreadableMap("topology-schema", f"{name} does not say its schema", field="spec.schema")


def _matrix_only(name: str, spec: GpuTopologySpec) -> NodeMap:
    """Schema 1: the text of ``nvidia-smi topo -m``."""
    from kubectl_gpuadmit.topology.smi import read_smi

    try:
        reading = read_smi(spec.matrix or "")
    except BadInput as error:
        raise UnreadableMap(
            "topology-map", f"GpuTopology {name}: {error.message}", field="spec.matrix"
        ) from error
    if len(reading.maps) != 1:
        raise UnreadableMap(
            "topology-map",
            f"GpuTopology {name} holds {len(reading.maps)} matrices, a node has one",
            field="spec.matrix",
        )
    found = reading.maps[0]
    return NodeMap(
        node=name,
        source="agent",
        as_of=_instant(name, spec.asOf),
        count=found.count,
        gpus=found.gpus,
        links=found.links,
        nics=found.nics,
        numa=found.numa,
        problems=(*found.problems, *reading.missing),
        heartbeat_seconds=spec.heartbeatSeconds,
    )


def _instant(name: str, text: str) -> dt.datetime:
    try:
        return times.parse_instant(text)
    except times.TimeError as error:
        raise UnreadableMap(
            "topology-map", f"GpuTopology {name}: {error}", field="spec.asOf"
        ) from error


def _current(name: str, spec: GpuTopologySpec) -> NodeMap:
    gpus = tuple(sorted(map(_gpu, spec.gpus), key=lambda gpu: gpu.index))
    if len({gpu.index for gpu in gpus}) < len(gpus):
        raise UnreadableMap(
            "topology-map", f"GpuTopology {name} names a GPU index twice", field="spec.gpus"
        )
    links, levels, problems = _links(spec)
    holders, strangers = _holders(spec.gpus, spec.holders)
    fabric = spec.fabric
    products = {gpu.product for gpu in gpus}
    return NodeMap(
        node=name,
        source="agent",
        as_of=_instant(name, spec.asOf),
        count=len(gpus),
        gpus=gpus,
        links=links,
        nics=tuple(
            Nic(
                nic.name,
                pci_bus_id=nic.pciBusID or None,
                numa=nic.numaNode,
                pcie_switch=nic.pcieSwitch,
                link_layer=nic.linkLayer,
                state=nic.state,
                rate_gbps=nic.rateGbps,
                levels=levels.get(number) if levels else None,
            )
            for number, nic in enumerate(spec.nics)
        ),
        numa=tuple(NumaNode(n.id, n.cpus, n.memoryMiB, n.distances) for n in spec.numa) or None,
        holders=holders,
        fabric=None
        if fabric is None
        else Fabric(
            f"{fabric.clusterUUID}.{fabric.cliqueID}"
            if fabric.clusterUUID and fabric.cliqueID is not None
            else "",
            state=fabric.state,
            healthy=fabric.healthy,
        ),
        kubelet=_kubelet(spec.kubelet) if spec.kubelet else None,
        product=products.pop() if len(products) == 1 else None,
        problems=(*spec.problems, *problems, *strangers),
        heartbeat_seconds=spec.heartbeatSeconds,
    )


def _gpu(gpu: ReportedGpu) -> Gpu:
    nvlinks = gpu.nvlinks
    return Gpu(
        index=gpu.index,
        uuid=gpu.uuid or None,
        pci_bus_id=gpu.pciBusID or None,
        product=gpu.product or None,
        memory_mib=gpu.memoryMiB,
        used_mib=gpu.usedMiB,
        residue_mib=gpu.residueMiB,
        residue_since=gpu.residueSince,
        numa=gpu.numaNode,
        cpus=gpu.cpus,
        pcie_switch=gpu.pcieSwitch,
        pcie_root=gpu.pcieRoot,
        nvlinks=nvlinks.active if nvlinks else None,
        nvlinks_total=nvlinks.total if nvlinks else None,
        nvlinks_down=nvlinks.down if nvlinks else (),
        nvlinks_down_since=nvlinks.downSince if nvlinks else None,
        mig_enabled=gpu.migEnabled,
        mig=tuple(
            Mig(m.uuid, m.profile, m.start, m.slices, m.memoryMiB, m.usedMiB) for m in gpu.mig
        ),
        sharing=gpu.sharing,
        replicas=gpu.replicas,
        health=Health(
            xids=tuple(Xid(xid.code, xid.at, xid.count) for xid in gpu.xids),
            ecc_uncorrected=gpu.eccUncorrected,
            retired_pages=gpu.retiredPages,
            retirement_pending=gpu.retirementPending,
            lost=gpu.lost,
        ),
    )


Levels = dict[int, dict[int, str]]
"""NIC number -> GPU index -> level."""


def _links(spec: GpuTopologySpec) -> tuple[tuple[Link, ...] | None, Levels | None, list[str]]:
    """Pairs of GPUs; levels of NICs; rows that contradict each other."""
    ends = tuple(
        (gpu.index, gpu.nvlinks.active if gpu.nvlinks else None, gpu.nvlinks and gpu.nvlinks.total)
        for gpu in spec.gpus
    )
    links, levels, problems = _matrix(spec.links, ends, len(spec.nics))
    return links, levels, list(problems)


End = tuple[int, int | None, int | None]
"""A GPU's index, its NVLinks that are up, and those that it has."""


@lru_cache(maxsize=512)
def _matrix(
    written: tuple[str, ...], ends: tuple[End, ...], nics: int
) -> tuple[tuple[Link, ...] | None, Levels | None, tuple[str, ...]]:
    """The same for machines that are wired alike: there are few kinds of them, and many machines.

    A pair whose two cells differ is left out: which of them holds cannot be told.
    """
    count, width = len(ends), len(ends) + nics
    if not written:
        return (() if count == 1 else None), None, ()
    rows = [row.split() for row in written]
    if len(rows) != count or any(len(row) != width for row in rows):
        return None, None, (f"links is not a matrix of {count} rows and {width} columns",)
    found: list[Link] = []
    problems: list[str] = []
    for i, first in enumerate(ends):
        for j in range(i + 1, count):
            second = ends[j]
            cells = {rows[i][j], rows[j][i]} - {"?"}
            low, high = sorted((first[0], second[0]))
            if len(cells) > 1:
                problems.append(f"links contradict each other for GPU {low} and {high}")
            elif cells and (link := _link(low, high, cells.pop(), first, second)):
                found.append(link)
    levels = {
        number: {
            end[0]: level
            for i, end in enumerate(ends)
            if (level := rows[i][count + number]) in PCIE_LEVELS
        }
        for number in range(nics)
    }
    return tuple(sorted(found, key=lambda one: (one.a, one.b))), levels, tuple(problems)


def _link(low: int, high: int, cell: str, first: End, second: End) -> Link | None:
    if matched := _NVLINKS.fullmatch(cell):
        lanes = int(matched[1])
        return Link(low, high, cell, lanes, _lanes_total(lanes, first, second))
    return Link(low, high, cell) if cell in (*PCIE_LEVELS, "C2C") else None


def _lanes_total(lanes: int, first: End, second: End) -> int | None:
    """How many links would join the two. Through NVSwitch a pair has as many as the GPU that has
    fewer up; between two GPUs directly what is down cannot be told from the count of the pair."""
    ups, totals = [], []
    for _, up, total in (first, second):
        if up is None or total is None:
            return None
        ups.append(up)
        totals.append(total)
    if ups == totals:
        return lanes
    return min(totals) if lanes == min(ups) else None


def _holders(
    gpus: tuple[ReportedGpu, ...], held: tuple[ReportedHolder, ...] | None
) -> tuple[tuple[Holder, ...] | None, list[str]]:
    if held is None:
        return None, []
    where: dict[str, tuple[int, str | None]] = {}
    for gpu in gpus:
        for key in (gpu.uuid, gpu.pciBusID):
            if key:
                where[key] = (gpu.index, None)
        where |= {mig.uuid: (gpu.index, mig.uuid) for mig in gpu.mig if mig.uuid}
    found: list[Holder] = []
    problems: list[str] = []
    for one in held:
        at = where.get(one.device)
        if at is None:
            problems.append(
                f"{one.namespace}/{one.pod} holds {one.device}, which is none of the node's GPUs"
            )
            continue
        via = one.via if one.via in _VIAS else "device-plugin"
        found.append(
            Holder(
                at[0],
                one.namespace,
                one.pod,
                one.container,
                pod_uid=one.podUID,
                via=via,  # type: ignore[arg-type]
                resource=one.resource,
                mig=at[1],
                pid=one.pid,
                used_mib=one.usedMiB,
            )
        )
    found.sort(key=lambda h: (h.gpu, h.mig or "", h.namespace, h.pod, h.container, h.pid or 0))
    return tuple(found), problems


def _kubelet(told: ReportedKubelet) -> Kubelet:
    assignments = told.assignments
    return Kubelet(
        topology_policy=told.topologyPolicy,
        topology_scope=told.topologyScope,
        topology_options=told.topologyOptions,
        cpu_policy=told.cpuPolicy,
        cpu_options=told.cpuOptions,
        memory_policy=told.memoryPolicy,
        reserved_cpus=told.reservedCpus,
        reserved_memory=_blocks(told.reservedMemory),
        assignments=None
        if assignments is None
        else tuple(
            Assignment(a.namespace, a.pod, a.container, a.cpus, _blocks(a.memory))
            for a in assignments
        ),
    )


def _blocks(blocks: tuple[ReportedMemoryBlock, ...]) -> tuple[MemoryBlock, ...]:
    return tuple(MemoryBlock(block.type, block.bytes, block.numa) for block in blocks)
