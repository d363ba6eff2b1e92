"""Readings of one node → what its GpuTopology object says. Looks at nothing itself.

Rules of this module
1. What no source tells is absent, and a sentence in ``problems`` says what is missing.
2. What was known before counts only for identity (a lost GPU), for times (since when) and for links
   that used to be up. A driver that is silent makes no new facts: the old ones keep their time.
3. Memory has no owner only where somebody could have seen one: the kubelet answered, and the
   processes of the whole node are visible.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kubectl_gpuadmit.kube import gpu_topology as wire
from kubectl_gpuadmit.kube.gpu_topology import (
    GpuTopologySpec,
    ReportedFabric,
    ReportedGpu,
    ReportedMig,
    ReportedNic,
    ReportedNuma,
)
from kubectl_gpuadmit.topology import health, held, nvlink, pci, wires
from kubectl_gpuadmit.topology.readings import (
    Board,
    Driver,
    Grants,
    Kernel,
    KubeletConfig,
    MigDevice,
    Silent,
)

HEARTBEAT = 300
"""Seconds: an object that says nothing new is renewed this often."""
RESIDUE_MIB = 512
"""Less than this on an idle GPU is what drivers and their daemons keep."""


class Look(Struct, frozen=True, gc=False):
    """All readings of one pass."""

    driver: Driver | Silent
    kernel: Kernel
    grants: Grants | Silent
    owners: Mapping[int, str | None] = {}
    """PID -> UID of its pod, '' for no pod, None where it could not be seen."""
    sees_processes: bool = False
    """Whether processes outside our own container would be seen."""
    matrix: str = ""
    """Text of ``nvidia-smi topo -m``, where NVML told no links."""
    config: KubeletConfig | None = None


class Seen(Struct, frozen=True, gc=False):
    """What a pass leaves for the next one."""

    spec: GpuTopologySpec | None = None
    """As reported last, by us or by the agent that ran before us."""
    boards: tuple[Board, ...] = ()
    unowned: Mapping[str, int] = {}
    """UUID -> MiB that had no owner: reported once they are there twice in a row."""


def observe(
    look: Look,
    *,
    now: str,
    seen: Seen = Seen(),  # noqa: B008  frozen
    heartbeat: int = HEARTBEAT,
    residue_mib: int = RESIDUE_MIB,
    version: str = "",
) -> tuple[GpuTopologySpec | None, Seen]:
    """What to report, and what to remember; None for a node without a GPU. ``now`` is RFC 3339."""
    driver, before = look.driver, seen.spec
    if isinstance(driver, Silent):
        return _without_driver(look, driver, seen, now=now, heartbeat=heartbeat, version=version)
    if not driver.boards and before is None and not look.kernel.gpus:
        return None, seen
    unowned = health.unowned(look, driver)
    gpus = _gpus(look, driver, seen, now=now, unowned=unowned, residue_mib=residue_mib)
    links, problems = wires.rows(gpus, driver, look.kernel, look.matrix)
    holders = held.holders(look.grants, driver, look.owners, gpus)
    spec = GpuTopologySpec(
        schema=wire.SCHEMA,
        asOf=now,
        heartbeatSeconds=heartbeat,
        source="nvml",
        agentVersion=version or None,
        driverVersion=driver.version or None,
        gpus=gpus,
        nics=_nics(look.kernel),
        links=links,
        numa=_numa(look.kernel),
        holders=holders,
        fabric=_fabric(driver),
        kubelet=held.kubelet(look.grants, look.config),
        problems=(
            *driver.missing,
            *problems,
            *_unseen(look, driver),
            *_fabric_problems(driver),
            *_common_problems(look),
        ),
    )
    return spec, Seen(spec, driver.boards, unowned)


# -- GPUs ------------------------------------------------------------------------------------------


def _gpus(
    look: Look,
    driver: Driver,
    seen: Seen,
    *,
    now: str,
    unowned: Mapping[str, int],
    residue_mib: int,
) -> tuple[ReportedGpu, ...]:
    old = {gpu.uuid or gpu.pciBusID: gpu for gpu in (seen.spec.gpus if seen.spec else ())}
    by_index = {gpu.index: gpu for gpu in old.values()}
    places = {place.address: place for place in look.kernel.gpus}
    earlier = {board.uuid: board for board in seen.boards if board.uuid}
    shared = held.sharing(look.grants, driver)
    found: dict[str, ReportedGpu] = {}
    for board in driver.boards:
        was = old.get(board.uuid or board.pci) if board.uuid or board.pci else None
        if board.lost:
            was = was or by_index.get(board.index)
            gone = _lost(board, was)
            found[gone.uuid or gone.pciBusID or f"index {board.index}"] = gone
            continue
        place = places.get(board.pci)
        numa = place.numa if place is not None and place.numa is not None else board.numa
        sharing, replicas = shared.get(board.uuid, (None, None))
        residue, since = health.residue(
            board.uuid,
            unowned,
            seen.unowned if seen.spec else None,
            was,
            now=now,
            least=residue_mib,
        )
        found[board.uuid or board.pci or f"index {board.index}"] = ReportedGpu(
            index=board.index,
            uuid=board.uuid,
            pciBusID=board.pci,
            product=board.name,
            memoryMiB=board.memory_mib,
            usedMiB=board.used_mib,
            residueMiB=residue,
            residueSince=since,
            numaNode=numa,
            cpus=next((s.cpus for s in look.kernel.sockets if s.id == numa and s.cpus), None),
            pcieRoot=place.root if place is not None else None,
            pcieSwitch=pci.switch(place) if place is not None else None,
            nvlinks=nvlink.counted(
                board,
                (one for one in driver.boards if one is not board),
                earlier=earlier.get(board.uuid),
                before=was.nvlinks if was else None,
                now=now,
            ),
            migEnabled=board.mig_enabled,
            mig=tuple(map(_mig, board.mig)),
            sharing=sharing,
            replicas=replicas,
            xids=health.xids(driver, board.index, was.xids if was else (), now=now),
            eccUncorrected=board.ecc_uncorrected,
            retiredPages=board.retired_pages,
            retirementPending=_retires(board),
        )
    return _with_missing(found, old, driver, now=now)


def _mig(part: MigDevice) -> ReportedMig:
    return ReportedMig(
        uuid=part.uuid,
        profile=part.profile,
        gpuInstance=part.gpu_instance,
        computeInstance=part.compute_instance,
        start=part.start,
        slices=part.slices,
        memoryMiB=part.memory_mib,
        usedMiB=part.used_mib,
    )


def _retires(board: Board) -> bool | None:
    """Whether memory waits to be retired, or could not be remapped; None where nobody tells."""
    if board.retirement_pending is None:
        return None
    return board.retirement_pending or board.remap_failed or False


def _lost(board: Board, was: ReportedGpu | None) -> ReportedGpu:
    if was is None:
        return ReportedGpu(
            index=board.index,
            uuid=board.uuid,
            pciBusID=board.pci,
            product=board.name,
            lost=True,
        )
    return _gone(was, index=board.index)


def _gone(was: ReportedGpu, *, index: int) -> ReportedGpu:
    """Its identity and place; what it holds and how it fares nobody can see any more."""
    return replace(
        was,
        index=index,
        lost=True,
        usedMiB=None,
        residueMiB=None,
        residueSince=None,
        nvlinks=None,
        mig=(),
        sharing=None,
        replicas=None,
        eccUncorrected=None,
    )


def _with_missing(
    found: dict[str, ReportedGpu], old: Mapping[str, ReportedGpu], driver: Driver, *, now: str
) -> tuple[ReportedGpu, ...]:
    """GPUs reported before that the driver does not count any more. It numbers the others anew, so
    a lost one may have to leave its index to another."""
    taken = {gpu.index for gpu in found.values()}
    addresses = {gpu.pciBusID for gpu in found.values() if gpu.pciBusID}
    for key, was in old.items():
        if key in found or (was.pciBusID in addresses and was.pciBusID):
            continue  # a board was exchanged for another in the same slot
        index = was.index
        while index in taken:
            index = max(taken) + 1
        taken.add(index)
        gone = _gone(was, index=index)
        found[key] = replace(gone, xids=health.xids(driver, -1, was.xids, now=now))
    return tuple(sorted(found.values(), key=lambda gpu: gpu.index))


# -- the node ----------------------------------------------------------------------------------


def _fabric(driver: Driver) -> ReportedFabric | None:
    told = [board.fabric for board in driver.boards if board.fabric is not None]
    if not told:
        return None
    first = max(told, key=lambda one: one.state == "completed")
    known = [one.healthy for one in told if one.healthy is not None]
    return ReportedFabric(
        clusterUUID=first.cluster,
        cliqueID=first.clique,
        state=next((one.state for one in told if one.state != "completed"), first.state),
        healthy=all(known) if known else None,
    )


def _fabric_problems(driver: Driver) -> list[str]:
    told = {(board.fabric.cluster, board.fabric.clique) for board in driver.boards if board.fabric}
    waiting = [
        str(board.index)
        for board in driver.boards
        if board.fabric is not None and board.fabric.state in ("not-started", "in-progress")
    ]
    found = []
    if waiting:
        found.append(
            f"GPU {', '.join(waiting)}: not yet part of the NVLink fabric (fabric manager)"
        )
    elif len(told) > 1:
        found.append("the GPUs of this node are in different NVLink cliques")
    return found


def _nics(kernel: Kernel) -> tuple[ReportedNic, ...]:
    return tuple(
        ReportedNic(
            name=card.name,
            pciBusID=card.place.address,
            numaNode=card.place.numa,
            pcieSwitch=pci.switch(card.place),
            linkLayer=card.layer or None,
            state=card.state or None,
            rateGbps=card.rate_gbps,
        )
        for card in kernel.cards
        if card.place is not None
    )


def _numa(kernel: Kernel) -> tuple[ReportedNuma, ...]:
    return tuple(
        ReportedNuma(one.id, one.cpus or None, one.memory_mib, one.distances)
        for one in kernel.sockets
    )


def _unseen(look: Look, driver: Driver) -> list[str]:
    """GPUs on the PCI bus that the driver does not show: unbound, or fallen off."""
    shown = {board.pci for board in driver.boards}
    if any(board.lost and not board.pci for board in driver.boards):
        return []
    return [
        f"the GPU at {place.address} is on the PCI bus, and the driver does not show it"
        for place in look.kernel.gpus
        if place.address not in shown
    ]


def _common_problems(look: Look) -> list[str]:
    found = []
    if isinstance(look.grants, Silent):
        found.append(f"holders: {look.grants.why}")
    elif not look.sees_processes:
        found.append("processes outside the agent's container cannot be seen (hostPID)")
    return found


def _without_driver(
    look: Look, silent: Silent, seen: Seen, *, now: str, heartbeat: int, version: str
) -> tuple[GpuTopologySpec | None, Seen]:
    """The last report with its own time; without one, what the PCI bus and nvidia-smi tell."""
    said = f"the driver: {silent.why}"
    if seen.spec is not None:
        spec = replace(seen.spec, problems=(said, *_common_problems(look)))
        return spec, replace(seen, spec=spec)
    if not look.kernel.gpus:
        return None, seen
    gpus = tuple(
        ReportedGpu(
            index=number,
            pciBusID=place.address,
            numaNode=place.numa,
            pcieRoot=place.root,
            pcieSwitch=pci.switch(place),
            cpus=next((s.cpus for s in look.kernel.sockets if s.id == place.numa and s.cpus), None),
        )
        for number, place in enumerate(look.kernel.gpus)
    )
    links, _ = wires.rows(gpus, Driver("", ()), look.kernel, look.matrix)
    spec = GpuTopologySpec(
        schema=wire.SCHEMA,
        asOf=now,
        heartbeatSeconds=heartbeat,
        source="nvidia-smi" if wires.pasted(look.matrix) else "sysfs",
        agentVersion=version or None,
        gpus=gpus,
        nics=_nics(look.kernel),
        links=links,
        numa=_numa(look.kernel),
        problems=(said, "GPUs are numbered by PCI address", *_common_problems(look)),
    )
    return spec, seen
