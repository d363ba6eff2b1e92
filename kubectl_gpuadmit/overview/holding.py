"""Who has which GPU of a node: from the agent's map, from allocated claims, else by count alone.

The kubelet's word (agent) comes first, then DRA's, which names devices; a pod on the node that
neither knows is ``loose``: it has GPUs, and which ones nobody told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices.model import DeviceId
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import is_terminal, requests
from kubectl_gpuadmit.overview.model import Held
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.claimed import HeldDevice, gpu_index, held_on
from kubectl_gpuadmit.topology.model import NodeMap

Claimed = Mapping[str, tuple[tuple[HeldDevice, Held], ...]]


class Holding(Struct):
    """Of one node."""

    by_index: dict[int, list[Held]]
    loose: list[Held]


def holding(
    info: NodeInfo,
    found: NodeMap,
    policy: Policy,
    claimed: Claimed,
) -> Holding:
    """``claimed``: of ``claimed_on``. Pods that have ended hold nothing."""
    by_index: dict[int, list[Held]] = {}
    pods = {(p.namespace, p.name): p for p in info.pods if not is_terminal(p)}
    told: dict[tuple[str, str], int] = {}
    for holder in found.holders or ():
        pod = pods.get((holder.namespace, holder.pod))
        if pod is None and holder.via != "process":
            continue  # it has ended since the agent looked
        profile = ""
        if holder.mig is not None:
            gpu = found.gpu(holder.gpu)
            instances = gpu.mig if gpu is not None else ()
            profile = next((m.profile for m in instances if m.uuid == holder.mig), "MIG")
        held = Held(
            holder.namespace,
            holder.pod or f"process {holder.pid}",
            class_of(pod, policy) if pod is not None else "",
            holder.via,
            holder.resource,
            holder.container,
            profile,
        )
        by_index.setdefault(holder.gpu, []).append(held)
        told[holder.namespace, holder.pod] = told.get((holder.namespace, holder.pod), 0) + 1
    nowhere: dict[DeviceId, Held] = {}
    for one, held in claimed.get(info.name, ()):
        index = gpu_index(found, one.device)
        who = (held.namespace, held.pod)
        if index is None:
            if one.whole:
                nowhere.setdefault(one.device.id, held)
            told[who] = told.get(who, 0) + 1
            continue
        there = by_index.setdefault(index, [])
        if not any((other.namespace, other.pod) == who for other in there):
            there.append(held)
            told[who] = told.get(who, 0) + 1
    loose = [
        held
        for pod in pods.values()
        for held in _counted(pod, policy, told.get((pod.namespace, pod.name), 0))
    ]
    return Holding(by_index, [*nowhere.values(), *loose])


def _counted(pod: Pod, policy: Policy, told: int) -> Iterator[Held]:
    """What the pod has from the device plugin beyond the ``told`` devices that are named."""
    asked = requests(pod)
    for name, share in _devices_among(tuple(asked), policy.gpu_patterns):
        amount = asked[name]
        rest = amount - told
        told = max(told - amount, 0)
        if rest > 0:
            yield Held(
                pod.namespace,
                pod.name,
                class_of(pod, policy),
                resource=name,
                share=share,
                count=rest,
            )


@lru_cache(maxsize=1 << 10)
def _devices_among(
    names: tuple[str, ...], patterns: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """(resource, its MIG profile) of those that count devices: most pods ask for the same ones."""
    return tuple(
        (name, meaning.profile)
        for name in names
        if (meaning := gpus.means(name)) is not None
        and meaning.counts_devices
        and gpus.is_gpu(name, patterns)
    )


def claimed_on(cluster: Cluster, policy: Policy) -> Claimed:
    """Node -> the GPUs, and parts of them, that claims have been given, and who has them."""
    return {
        node: tuple((one, held) for one in devices for held in _holders(cluster, policy, one))
        for node, devices in held_on(cluster).items()
    }


def _holders(cluster: Cluster, policy: Policy, one: HeldDevice) -> Iterator[Held]:
    """Pods that the claim is reserved for; itself where there is none: it keeps the device."""
    claim, device = one.claim, one.device
    profile = device.attributes.get(f"{device.driver}/profile")
    for name in one.pods or ("(claim without a pod)",):
        known = cluster.get("Pod", claim.namespace, name)
        yield Held(
            claim.namespace,
            name,
            class_of(known, policy) if isinstance(known, Pod) else "",
            "dra",
            f"{claim.namespace}/{claim.name}",
            share=profile if isinstance(profile, str) else "",
        )


def class_of(pod: Pod, policy: Policy) -> str:
    """The workload class by the policy's signs; the owner's kind is a sign too."""
    owner = next((o.kind for o in pod.metadata.ownerReferences or () if o.controller), "")
    return policy.workload_class(pod, owner)
