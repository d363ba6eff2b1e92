"""Nodes, pods and GpuTopology objects for tests of maps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import decode_bulk


def cluster(*documents: Mapping[str, Any], known: Sequence[str] = ("Pod",)) -> Cluster:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    objects, kinds = decode_bulk(json.dumps(listed).encode(), "test.json")
    return Cluster.of(objects, {*kinds, *known})


def node(name: str = "a", gpus: int = 8, **labels: str) -> dict[str, Any]:
    labels = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            name: {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
            for name in ("allocatable", "capacity")
        },
    }


def rows(count: int, cell: str = "NV18") -> list[str]:
    return [" ".join("X" if a == b else cell for b in range(count)) for a in range(count)]


def topology(
    name: str = "a",
    links: Sequence[str] = (),
    *,
    held: Mapping[int, str] | None = None,
    gpus: Mapping[int, Mapping[str, Any]] | None = None,
    version: str = "v1alpha1",
    **spec: Any,
) -> dict[str, Any]:
    """``held``: GPU -> pod of namespace default; None for holders that nobody told."""
    links = links or rows(8)
    whole = [
        {
            "index": index,
            "uuid": f"GPU-{name}-{index}",
            "product": "NVIDIA H100 80GB HBM3",
            "residueMiB": 0,
            **((gpus or {}).get(index) or {}),
        }
        for index in range(len(links))
    ]
    found: dict[str, Any] = {
        "schema": 2,
        "asOf": "2026-11-29T11:59:30Z",
        "source": "nvml",
        "gpus": whole,
        "links": list(links),
    }
    if held is not None:
        found["holders"] = [
            {"device": f"GPU-{name}-{index}", "namespace": "default", "pod": pod}
            for index, pod in held.items()
        ]
    return {
        "apiVersion": f"gpu-admit.io/{version}",
        "kind": "GpuTopology",
        "metadata": {"name": name},
        "spec": {**found, **spec},
    }


def pod(name: str, on: str = "a", gpus: int = 1, **labels: str) -> dict[str, Any]:
    amount = {"nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "resources": {"requests": amount, "limits": amount}}],
        },
        "status": {"phase": "Running"},
    }
