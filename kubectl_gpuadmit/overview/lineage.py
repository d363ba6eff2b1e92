"""From a pod to the silicon: claim or device-plugin assignment, device, UUID, PCI, NUMA, model.

Each step names the source that tells it; what none tells stays None.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.model import Claim
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pods import requests
from kubectl_gpuadmit.overview.holding import class_of
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.topology.maps import node_map
from kubectl_gpuadmit.topology.model import Gpu, Mig, NodeMap

MODEL_LABELS = (
    "gpu-admit.io/model",
    "serving.kserve.io/inferenceservice",
    "model",
    "app.kubernetes.io/name",
    "app",
)
ROUTER_LABELS = (
    "inference.networking.k8s.io/inference-pool",
    "inference.networking.x-k8s.io/inference-pool",
    "leaderworkerset.sigs.k8s.io/name",
    "llm-d.ai/role",
    "nvidia.com/dynamo-component",
    "ray.io/cluster",
    "istio.io/gateway-name",
)
"""Labels by which routers find their back ends, of the Gateway API inference extension, LWS, llm-d,
Dynamo, KubeRay and Istio."""


class Step(Struct, frozen=True):
    """One device that the pod has, as far as it is known."""

    via: str
    """``device-plugin`` or ``dra``."""
    resource: str
    """``nvidia.com/gpu``, or the claim with its request: ``team-a/llama-gpu · request gpu``."""
    device: str = ""
    """``gpu.nvidia.com/node-1/gpu-0`` of DRA, '' of the device plugin."""
    container: str = ""
    index: int | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    numa: int | None = None
    pcie_root: str | None = None
    product: str | None = None
    memory_mib: int | None = None
    profile: str = ""
    """MIG profile, '' for a whole GPU."""
    source: str = ""
    """What tells the device: ``agent``, ``slices``; '' where nobody does."""
    count: int = 1
    """More than one where only the number is known."""


class Lineage(Struct, frozen=True):
    namespace: str
    pod: str
    node: str
    """'' for a pod without a node: then only what it asks for is told."""
    phase: str
    workload_class: str
    labels: tuple[tuple[str, str], ...]
    """Labels that name the model or a router, as they stand."""
    images: tuple[tuple[str, str], ...]
    """(container, image)."""
    steps: tuple[Step, ...]


def lineage(cluster: Cluster, pod: Pod, policy: Policy, now: dt.datetime) -> Lineage:
    """Devices in the order of claims, then of the agent's list, then what is only counted."""
    node = pod.spec.nodeName or ""
    found = node_map(cluster, node, now) if node in cluster.nodes else None
    by_claims = tuple(_of_claims(cluster, pod, found))
    by_agent = tuple(_of_agent(pod, found)) if found is not None else ()
    told = {step.uuid for step in by_claims if step.uuid}
    by_agent = tuple(step for step in by_agent if step.uuid is None or step.uuid not in told)
    steps = (*by_claims, *by_agent, *_counted(pod, len(by_agent), policy))
    return Lineage(
        namespace=pod.namespace,
        pod=pod.name,
        node=node,
        phase=pod.status.phase or "",
        workload_class=class_of(pod, policy),
        labels=tuple(
            (key, pod.labels[key]) for key in (*MODEL_LABELS, *ROUTER_LABELS) if key in pod.labels
        ),
        images=tuple((c.name, c.image or "") for c in pod.spec.containers or ()),
        steps=steps,
    )


def _of_claims(cluster: Cluster, pod: Pod, found: NodeMap | None) -> Iterator[Step]:
    inventory = Inventory.of(cluster)
    for claim in _claims(inventory, pod):
        if claim.allocation is None:
            for request in claim.requests:
                resource = f"{claim.namespace}/{claim.name} · request {request.name}"
                yield Step("dra", f"{resource} · not allocated")
            continue
        for allotted in claim.allocation.devices:
            device = inventory.devices.get(allotted.device)
            attributes = device.attributes if device is not None else {}
            driver = allotted.device.driver

            own = {
                name: value
                for name in ("uuid", "parentUUID", "productName", "profile")
                if isinstance(value := attributes.get(f"{driver}/{name}"), str)
            }
            parent = own.get("parentUUID") or own.get("uuid")
            gpus_there = found.gpus if found is not None else ()
            gpu = next((g for g in gpus_there if parent and g.uuid == parent), None)
            step = Step(
                via="dra",
                resource=f"{claim.namespace}/{claim.name} · request {allotted.request}",
                device=str(allotted.device),
                uuid=own.get("uuid"),
                pci_bus_id=_standard(attributes, "pciBusID") or (gpu.pci_bus_id if gpu else None),
                numa=_number(attributes, "numaNode", gpu),
                pcie_root=_standard(attributes, "pcieRoot") or (gpu.pcie_root if gpu else None),
                product=own.get("productName") or (gpu.product if gpu else None),
                memory_mib=gpu.memory_mib if gpu and not own.get("profile") else None,
                profile=own.get("profile", ""),
                source="slices" if device is not None else "",
                index=gpu.index if gpu else None,
            )
            yield step


def _claims(inventory: Inventory, pod: Pod) -> Iterator[Claim]:
    """Claims that are reserved for the pod, or that its status names."""
    named = {
        str(entry.get("resourceClaimName"))
        for entry in pod.status.resourceClaimStatuses or ()
        if entry.get("resourceClaimName")
    }
    named |= {
        one.resourceClaimName for one in pod.spec.resourceClaims or () if one.resourceClaimName
    }
    extended = (pod.status.extendedResourceClaimStatus or {}).get("resourceClaimName")
    if extended:
        named.add(str(extended))
    for (namespace, name), claim in inventory.claims.items():
        if namespace == pod.namespace and (
            name in named or any(one.uid == pod.metadata.uid for one in claim.reserved_for)
        ):
            yield claim


def _standard(attributes: Mapping[str, object], name: str) -> str | None:
    value = attributes.get(f"resource.kubernetes.io/{name}")
    return value if isinstance(value, str) else None


def _number(attributes: Mapping[str, object], name: str, gpu: Gpu | None) -> int | None:
    value = attributes.get(f"resource.kubernetes.io/{name}")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return gpu.numa if gpu is not None else None


def _of_agent(pod: Pod, found: NodeMap) -> Iterator[Step]:
    for holder in found.holders or ():
        if (holder.namespace, holder.pod) != (pod.namespace, pod.name) or holder.via == "process":
            continue
        gpu = found.gpu(holder.gpu)
        mig = _instance(gpu, holder.mig)
        yield Step(
            via=holder.via,
            resource=holder.resource,
            container=holder.container,
            index=holder.gpu,
            uuid=mig.uuid if mig else gpu.uuid if gpu else None,
            pci_bus_id=gpu.pci_bus_id if gpu else None,
            numa=gpu.numa if gpu else None,
            pcie_root=gpu.pcie_root if gpu else None,
            product=gpu.product if gpu else None,
            memory_mib=mig.memory_mib if mig else gpu.memory_mib if gpu else None,
            profile=mig.profile if mig else "",
            source=found.source,
        )


def _instance(gpu: Gpu | None, uuid: str | None) -> Mig | None:
    if gpu is None or uuid is None:
        return None
    return next((one for one in gpu.mig if one.uuid == uuid), None)


def _counted(pod: Pod, told: int, policy: Policy) -> Iterator[Step]:
    for name, amount in requests(pod).items():
        meaning = gpus.means(name)
        if not gpus.is_gpu(name, policy.gpu_patterns) or meaning is None:
            continue
        rest = amount - told
        told = max(told - amount, 0)
        if rest > 0:
            yield Step("device-plugin", name, profile=meaning.profile, count=rest)
