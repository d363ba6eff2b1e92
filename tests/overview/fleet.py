"""A small fleet with everything that ``topo`` tells, as API objects."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from tests.placement.build import GPU, KNOWN, decoded, node, pod

Json = dict[str, Any]
KINDS = (*KNOWN, "GpuTopology")
PRODUCT = "NVIDIA H100 80GB HBM3"


def policy() -> Policy:
    return load_policy(
        b"apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
        b"pools:\n"
        b"  inf: {nodeSelector: {pool: inf}}\n"
        b"  train: {nodeSelector: {pool: train}}\n"
        b"classes:\n"
        b"  inference: {match: {labels: {class: inference}}}\n"
        b"  training: {match: {labels: {class: training}}}\n",
        "p.yaml",
    )


def hgx(name: str, *, pool: str = "inf", cordoned: bool = False) -> Any:
    return node(name, 8, labels={"pool": pool}, cordoned=cordoned)


def map_of(
    name: str,
    *,
    holders: dict[int, str] | None = None,
    residue: dict[int, int] | None = None,
    lost: tuple[int, ...] = (),
    down: dict[int, tuple[int, ...]] | None = None,
    as_of: str = "2026-11-29T11:59:48Z",
    lanes: int = 18,
    product: str = PRODUCT,
    **more: Any,
) -> Any:
    """An agent's report of eight H100 behind NVSwitch, four to a NUMA node. ``holders``: index ->
    ``namespace/pod``; ``down``: index -> numbers of dead links."""
    broken = down or {}

    def cell(a: int, b: int) -> str:
        dead = max(len(broken.get(a, ())), len(broken.get(b, ())))
        if a != b and (a in lost or b in lost):
            return "?"
        return "X" if a == b else f"NV{lanes - dead}"

    gpus = [
        {
            "index": i,
            "uuid": f"GPU-{name}-{i}",
            "pciBusID": f"0000:{16 * (i + 1):02x}:00.0",
            "product": product,
            "memoryMiB": 81559,
            "usedMiB": 4 + (residue or {}).get(i, 0),
            "residueMiB": (residue or {}).get(i, 0),
            "numaNode": i // 4,
            "nvlinks": {
                "active": lanes - len(broken.get(i, ())),
                "total": lanes,
                "down": list(broken.get(i, ())),
                **({"downSince": "2026-11-29T09:12:00Z"} if i in broken else {}),
            },
            "lost": i in lost,
        }
        for i in range(8)
    ]
    held = [
        {
            "device": f"GPU-{name}-{i}",
            "namespace": who.split("/")[0],
            "pod": who.split("/")[1],
            "container": "c",
            "via": "device-plugin",
            "resource": GPU,
        }
        for i, who in sorted((holders or {}).items())
    ]
    return decoded(
        {
            "apiVersion": "gpu-admit.io/v1alpha1",
            "kind": "GpuTopology",
            "metadata": {"name": name},
            "spec": {
                "schema": 2,
                "asOf": as_of,
                "heartbeatSeconds": 60,
                "source": "nvml",
                "gpus": gpus,
                "links": [" ".join(cell(a, b) for b in range(8)) for a in range(8)],
                "holders": held,
                **more,
            },
        }
    )


def runs(name: str, on: str, gpus: int, *, workload_class: str = "", namespace: str = "a") -> Any:
    labels = {"class": workload_class} if workload_class else {}
    return pod(name, gpus, on=on, namespace=namespace, labels=labels, meta={"uid": f"uid-{name}"})


def cluster(*objects: Any, known: tuple[str, ...] = KINDS) -> Cluster:
    return Cluster.of(objects, known=known)
