"""Which GPUs of a node are free, held, or free in name only; what is not told stays open.

A holder counts as long as its pod is on the node; a claim holds what it was given with a pod or
without. GPUs that pods book without anybody saying which ones, and those that the device plugin has
taken out of the allocatable ones, are ``loose``: so many of ``free`` are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubectl_gpuadmit.kube import gpus as resources
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.topology.claimed import HeldDevice, gpu_index
from kubectl_gpuadmit.topology.model import Gpu, Holder, NodeMap
from kubectl_gpuadmit.topology.placements import groups_left

RESIDUE_MIB = 512
"""Memory in use by nobody that makes a GPU unfree. A driver without persistence, ECC and display
keep some hundred MiB themselves, which NVML's ``used`` of driver 510 and later leaves out."""


class Standing(Struct, frozen=True):
    free: tuple[int, ...]
    """Held by nobody that is known, whole, and in order."""
    held: dict[int, tuple[Holder, ...]]
    unfree: dict[int, str]
    """Held by nobody, but not to be given out: index -> why."""
    loose: int = 0
    """How many of ``free`` are taken or broken without anybody saying which."""
    shared: bool = False
    """GPUs are given out in parts here: nobody gets a whole one for certain."""

    @property
    def free_count(self) -> int:
        return max(len(self.free) - self.loose, 0)


def standing(
    found: NodeMap,
    pods: Iterable[Pod],
    allocatable: int | None,
    *,
    claimed: Sequence[HeldDevice] = (),
    residue_mib: int = RESIDUE_MIB,
) -> Standing:
    """``pods`` are those on the node; ``allocatable`` its whole GPUs as the device plugin offers
    them, None where it offers none; ``claimed`` what claims hold there."""
    living = {(pod.namespace, pod.name): pod for pod in pods}
    held: dict[int, list[Holder]] = {}
    has: dict[tuple[str, str], int] = {}
    for holder in found.holders or ():
        if holder.via == "process" and not holder.pod:
            held.setdefault(holder.gpu, []).append(holder)
        elif (holder.namespace, holder.pod) in living:
            if holder.gpu not in held or all(h.pod != holder.pod for h in held[holder.gpu]):
                key = (holder.namespace, holder.pod)
                has[key] = has.get(key, 0) + 1
            held.setdefault(holder.gpu, []).append(holder)
    nowhere = _claimed(found, claimed, held, has)
    loose = sum(max(_whole(pod) - has.get(key, 0), 0) for key, pod in living.items() if _whole(pod))
    loose += nowhere
    unfree: dict[int, str] = {}
    free: list[int] = []
    for gpu in found.gpus:
        if gpu.index in held:
            continue
        if why := unusable(gpu, residue_mib):
            unfree[gpu.index] = why
        else:
            free.append(gpu.index)
    broken = sum(1 for gpu in found.gpus if gpu.health.lost)
    missing = 0 if allocatable is None else max(found.count - broken - allocatable, 0)
    shared = any(gpu.mig_enabled or gpu.mig or (gpu.replicas or 1) > 1 for gpu in found.gpus)
    return Standing(
        tuple(free),
        {index: tuple(who) for index, who in sorted(held.items())},
        unfree,
        min(loose + missing, len(free)),
        shared,
    )


def _claimed(
    found: NodeMap,
    claimed: Sequence[HeldDevice],
    held: dict[int, list[Holder]],
    has: dict[tuple[str, str], int],
) -> int:
    """Adds to ``held`` and ``has`` what claims hold and no map has told already. Gives the number
    of whole GPUs among it that the map does not know."""
    nowhere = 0
    for one in claimed:
        index = gpu_index(found, one.device)
        if index is None:
            nowhere += one.whole
            continue
        told = {(holder.namespace, holder.pod) for holder in held.get(index, ())}
        home, name = one.claim.namespace, f"{one.claim.namespace}/{one.claim.name}"
        for pod in one.pods or ("",):
            if (home, pod) not in told:
                holder = Holder(index, home, pod, via="dra", resource=name)
                held.setdefault(index, []).append(holder)
                has[home, pod] = has.get((home, pod), 0) + 1
    return nowhere


def unusable(gpu: Gpu, residue_mib: int = RESIDUE_MIB) -> str:
    """Why a GPU that nobody holds is not to be given out, '' if it may be."""
    if gpu.health.lost:
        return "lost"
    if gpu.residue_mib is not None and gpu.residue_mib >= residue_mib:
        return f"{gibibytes(gpu.residue_mib)} in use by nobody"
    return ""


def gibibytes(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB"


def _whole(pod: Pod) -> int:
    return sum(
        amount
        for name, amount in resources.pod_gpus(pod).items()
        if (meaning := resources.means(name)) and meaning.kind == "whole"
    )


def joined(found: NodeMap, now: Standing, size: int) -> tuple[int, int] | None:
    """How many sets of ``size`` joined GPUs are free: for certain, and at best. None where links
    are not known."""
    return groups_left(found, now.free, now.loose, size)
