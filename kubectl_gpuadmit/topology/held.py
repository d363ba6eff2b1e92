"""Who has which GPU, from what the kubelet gave and whose processes the driver shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kubectl_gpuadmit.kube.gpu_topology import (
    ReportedAssignment,
    ReportedGpu,
    ReportedHolder,
    ReportedKubelet,
    ReportedMemoryBlock,
)
from kubectl_gpuadmit.topology.readings import (
    Driver,
    Grants,
    KubeletConfig,
    MemoryGrant,
    Silent,
)

DRA_DRIVER = "gpu.nvidia.com"
_REPLICA = re.compile(r"(.+)::(\d+)")
"""How NVIDIA's device plugin names the replicas of a shared device (k8s-device-plugin, internal/rm,
AnnotatedID)."""
_CLAIMED = re.compile(r"gpu-(\d+)(?:-mig-(.+)-(\d+)-(\d+))?")
"""Devices of NVIDIA's DRA driver: ``gpu-<minor>``, ``gpu-<minor>-mig-<profile>-<id>-<start>``."""


def holders(
    grants: Grants | Silent,
    driver: Driver,
    owners: Mapping[int, str | None],
    gpus: tuple[ReportedGpu, ...],
) -> tuple[ReportedHolder, ...] | None:
    """Every container with a device, then processes on GPUs that nobody was given."""
    if isinstance(grants, Silent):
        return None
    ours = _devices(gpus)
    found = [
        holder
        for holder in _granted(grants, driver)
        if holder.device in ours or holder.resource.startswith("nvidia.com/")
        or holder.via == "dra"
    ]  # fmt: skip
    taken = {holder.device for holder in found}
    for board in driver.boards:
        if not taken & {board.uuid, *(part.uuid for part in board.mig)}:
            found += [
                ReportedHolder(
                    device=board.uuid,
                    podUID=owners.get(one.pid) or None,
                    via="process",
                    pid=one.pid,
                    usedMiB=one.mib,
                )
                for one in board.processes or ()
                if owners.get(one.pid) is not None
            ]
    return tuple(
        sorted(found, key=lambda h: (h.device, h.namespace, h.pod, h.container, h.pid or 0))
    )


def given(grants: Grants, driver: Driver) -> frozenset[str]:
    """UUIDs of GPUs and MIG devices that some container has."""
    return frozenset(holder.device for holder in _granted(grants, driver))


def sharing(grants: Grants | Silent, driver: Driver) -> dict[str, tuple[str | None, int | None]]:
    """UUID -> (how it is shared, replicas); '' for a GPU that is not shared. Whether replicas take
    turns or share by MPS the kubelet does not say: only MPS clients that run show it."""
    if isinstance(grants, Silent) or grants.allocatable is None:
        return {}
    ids = [one for grant in grants.allocatable for one in grant.ids]
    replicas = Counter(found[1] for one in ids if (found := _REPLICA.fullmatch(one)))
    shown: dict[str, tuple[str | None, int | None]] = {}
    for board in driver.boards:
        if replicas[board.uuid]:
            mps = any(one.kind == "mps" for one in board.processes or ())
            shown[board.uuid] = "mps" if mps else None, replicas[board.uuid]
        elif board.uuid in ids or any(part.uuid in ids for part in board.mig):
            shown[board.uuid] = "", None
    return shown


def kubelet(grants: Grants | Silent, config: KubeletConfig | None) -> ReportedKubelet | None:
    """CPUs and memory given to containers alone, and the kubelet's own settings."""
    assignments = None
    if not isinstance(grants, Silent):
        assignments = tuple(
            ReportedAssignment(
                one.namespace, one.pod, one.container, ranges(one.cpus), _blocks(one.memory)
            )
            for one in sorted(grants.containers, key=lambda g: (g.namespace, g.pod, g.container))
            if one.cpus or one.memory
        )
    if config is None:
        return None if assignments is None else ReportedKubelet(assignments=assignments)
    return ReportedKubelet(
        topologyPolicy=config.topology_policy,
        topologyScope=config.topology_scope,
        topologyOptions=config.topology_options,
        cpuPolicy=config.cpu_policy,
        cpuOptions=config.cpu_options,
        memoryPolicy=config.memory_policy,
        reservedCpus=config.reserved_cpus,
        reservedMemory=_blocks(config.reserved_memory),
        assignments=assignments,
    )


def ranges(numbers: tuple[int, ...]) -> str:
    """CPU numbers in the kernel's list form: ``0-3,8``."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in parts)


def _granted(grants: Grants, driver: Driver) -> Iterator[ReportedHolder]:
    for one in grants.containers:
        who = ReportedHolder("", one.namespace, one.pod, container=one.container)
        for grant in one.devices:
            seen: set[str] = set()
            for raw in grant.ids:
                replica = _REPLICA.fullmatch(raw)
                device = replica[1] if replica else raw
                if device not in seen:
                    seen.add(device)
                    yield replace(who, device=device, via="device-plugin", resource=grant.resource)
        for claim in one.claims:
            if claim.driver == DRA_DRIVER:
                yield replace(
                    who,
                    device=_claimed(claim.device, driver),
                    via="dra",
                    resource=f"{claim.namespace}/{claim.claim}",
                )


def _claimed(name: str, driver: Driver) -> str:
    """The UUID of a device of the DRA driver; its name where the driver does not show it."""
    found = _CLAIMED.fullmatch(name)
    board = next(
        (b for b in driver.boards if found and b.minor == int(found[1]) and not b.lost), None
    )
    if found is None or board is None:
        return name
    if found[2] is None:
        return board.uuid
    alike = [
        part
        for part in board.mig
        if part.profile.replace(".", "") == found[2].replace(".", "")
        and part.start in (None, int(found[4]))
    ]
    return alike[0].uuid if len(alike) == 1 else name


def _devices(gpus: tuple[ReportedGpu, ...]) -> frozenset[str]:
    return frozenset(
        name for gpu in gpus for name in (gpu.uuid, *(part.uuid for part in gpu.mig)) if name
    )


def _blocks(grants: tuple[MemoryGrant, ...]) -> tuple[ReportedMemoryBlock, ...]:
    return tuple(ReportedMemoryBlock(one.kind, one.size, one.numa) for one in grants)
