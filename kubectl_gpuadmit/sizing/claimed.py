"""What the devices have that DRA would give a container: memory as slices state it, node by node.

The allocator says which devices these are; where all are taken now, which they would be if nobody
had any. Of a share counts the amount of memory that the claim asks for, of a MIG device its own.
Source of the capacity's name: the driver's own ``memory`` (kubernetes-sigs/dra-driver-nvidia-gpu,
cmd/gpu-kubelet-plugin/deviceinfo.go).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices.extended import CLAIM_NAME
from kubectl_gpuadmit.devices.gpus import is_gpu, is_whole
from kubectl_gpuadmit.devices.model import Device
from kubectl_gpuadmit.devices.prospects import Gifts, Given, Prospects
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.sizing.devices import Devices, open_nodes
from kubectl_gpuadmit.topology import maps
from kubectl_gpuadmit.topology.claimed import gpu_index

MIB = 1 << 20
_WHAT = "memory of claimed devices"


class Asked(Struct, frozen=True):
    """The part of a pod's devices that one container gets."""

    requests: frozenset[tuple[str, str]]
    """(the pod's name for the claim, request); '' for all requests of the claim."""
    resources: tuple[str, ...]
    """Beginnings of the names of requests that stand for its resources."""

    def has(self, given: Given) -> bool:
        if given.claim == CLAIM_NAME:
            return given.request.startswith(self.resources)
        return bool({(given.claim, given.request), (given.claim, "")} & self.requests)


def asked(pod: Pod, container: Mapping[str, Any], pointer: str) -> Asked:
    """``pointer`` leads to the container in the pod template."""
    resources = container.get("resources")
    named = resources.get("claims") if isinstance(resources, dict) else None
    entries = [entry for entry in named or () if isinstance(entry, dict)]
    field, _, index = pointer.rpartition("/")
    number = int(index) if index.isdecimal() else 0
    if not field.endswith("initContainers"):
        number += len(pod.spec.initContainers or ())
    return Asked(
        frozenset((str(e.get("name")), str(e.get("request") or "")) for e in entries),
        (f"container-{number}-request-",),
    )


def candidates(
    cluster: Cluster,
    pod: Pod,
    namespace: str,
    wanted: Asked,
    *,
    kubernetes: str,
    now: dt.datetime,
) -> tuple[Devices, ...] | str:
    """Every kind of devices that the container could be given, most nodes first; or what is missing
    to know them. () for a container that DRA gives nothing on any node."""
    prospects = Prospects.of(cluster, pod, namespace, kubernetes=kubernetes)
    if prospects is None:
        return ()
    return _candidates(cluster, pod, prospects, wanted, now)


def alternatives(
    cluster: Cluster,
    pod: Pod,
    namespace: str,
    wanted: Asked,
    *,
    kubernetes: str,
    now: dt.datetime,
) -> tuple[Devices, ...]:
    """What each alternative of the container's requests would bring if it were the one that is
    given: only those that some node has."""
    prospects = Prospects.of(cluster, pod, namespace, kubernetes=kubernetes)
    found: list[Devices] = []
    for claim, request, name in prospects.alternatives if prospects is not None else ():
        if prospects is not None and {(claim, request), (claim, "")} & wanted.requests:
            only = prospects.only(claim, request, name)
            kinds = _candidates(cluster, pod, only, wanted, now)
            found += kinds if not isinstance(kinds, str) else ()
    return tuple(found)


def _candidates(
    cluster: Cluster, pod: Pod, prospects: Prospects, wanted: Asked, now: dt.datetime
) -> tuple[Devices, ...] | str:
    if prospects.missing_of_devices:
        return _missing(prospects.missing_of_devices)
    alike: dict[tuple[Any, ...], list[str]] = {}
    nodes = [info for info in open_nodes(cluster, pod) if prospects.by_devices(info)]
    unsure = ""
    for info in nodes:
        gifts = _on(prospects, info)
        if isinstance(gifts, str):
            unsure = unsure or gifts
            continue
        given = [one for one in gifts if wanted.has(one) and _is_gpu(one)]
        if given:
            alike.setdefault(_kind(cluster, info, given, now), []).append(info.name)
    if not alike:
        if unsure:
            return f"{_WHAT}: {unsure}"
        if not nodes and not prospects.has_claims:
            return ()
        return f"{_WHAT}: no node that the pod may use has enough that match"
    return tuple(
        Devices(
            resource="claim",
            product=name,
            mib=mib,
            free_mib=free,
            how=how,
            count=count,
            nodes=tuple(names),
            share_of_mib=whole,
            source="capacity memory of the ResourceSlice" if mib is not None else "",
        )
        for (name, mib, free, how, count, whole), names in sorted(
            alike.items(), key=lambda item: (-len(item[1]), item[0][0], item[0][3], item[1])
        )
    )


def _missing(text: str) -> str:
    if text.startswith("ResourceSlice objects"):
        return f"{_WHAT}: ResourceSlice objects are not in the source"
    return text


def _on(prospects: Prospects, info: NodeInfo) -> Gifts | str:
    """As things stand; where nothing is to be had now, or nobody knows who has what, as it would be
    if nobody had anything."""
    found = prospects.on(info) if not prospects.missing else ()
    if isinstance(found, str) or not found:
        found = prospects.on(info, emptied=True)
    if isinstance(found, str):
        return found
    return found[0] if found else ()


def _is_gpu(given: Given) -> bool:
    return given.device is not None and is_gpu(given.device)


def _kind(
    cluster: Cluster, info: NodeInfo, given: Sequence[Given], now: dt.datetime
) -> tuple[Any, ...]:
    """(product, MiB, MiB that are free, why, how many, MiB of the whole that it is a share of) by
    the smallest of them: an engine takes the same of each."""
    smallest = min(given, key=lambda one: memory_mib(one) or 0)
    device = smallest.device
    assert device is not None
    mib = memory_mib(smallest)
    whole: int | None = None
    free: int | None = None
    how = []
    if names := dict.fromkeys(f"alternative {g.alternative}" for g in given if g.alternative):
        how.append(" and ".join(names))
    if _consumed(smallest) is not None and mib is not None:
        whole = _stated(device)
        how.append(f"a share of {whole or 0:,} MiB")
    elif not is_whole(device):
        profile = device.attributes.get(f"{device.driver}/profile")
        how.append(f"MIG {profile}" if isinstance(profile, str) else "a part of a GPU")
    elif mib is not None and (left := _residue(cluster, info, given, now)):
        free = max(mib - left, 0)
        how.append(f"{left:,} MiB of it in use by nobody")
    return product(device), mib, free, ", ".join(how), len(given), whole


def _residue(cluster: Cluster, info: NodeInfo, given: Iterable[Given], now: dt.datetime) -> int:
    """MiB that nobody holds on the worst of the GPUs; 0 where no fresh map tells of any."""
    if not any(True for _ in cluster.every(maps.KIND)):
        return 0
    found = maps.node_map(cluster, info.name, now)
    if found is None or found.stale:
        return 0
    chosen = {gpu_index(found, one.device) for one in given if one.device is not None}
    held = {holder.gpu for holder in found.holders or ()}
    return max(
        (gpu.residue_mib or 0 for gpu in found.gpus if gpu.index in chosen - held), default=0
    )


def memory_mib(given: Given) -> int | None:
    """MiB of the share, else of the device's capacity ``memory``; None where nobody states it."""
    consumed = _consumed(given)
    if consumed is not None:
        return consumed
    if given.allotted.share and given.allotted.consumed is not None:
        return None  # a share, and of memory nothing is said
    return _stated(given.device) if given.device is not None else None


def _consumed(given: Given) -> int | None:
    for name, amount in (given.allotted.consumed or {}).items():
        if name.rpartition("/")[2] == "memory":
            return int(amount.value()) // MIB
    return None


def _stated(device: Device) -> int | None:
    for name, held in device.capacity.items():
        if name.rpartition("/")[2] == "memory":
            return int(held.value.value()) // MIB
    return None


def product(device: Device) -> str:
    """``NVIDIA H100 80GB HBM3`` spelt as GFD spells it; '' where the driver does not say."""
    for name, value in device.attributes.items():
        if name.rpartition("/")[2] == "productName" and isinstance(value, str):
            return value.replace(" ", "-")
    return ""
