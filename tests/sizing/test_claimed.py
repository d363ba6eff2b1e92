"""Models on devices that DRA claims bring, and on GPUs with memory that nobody holds."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import decode_object
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.sizing.fitting import EngineFit, Load, fit
from kubectl_gpuadmit.sizing.registry import NONE
from tests.topology.objects import topology

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)


def document(data: dict[str, Any]) -> Document:
    (read,) = read_documents(json.dumps(data).encode(), "case.json")
    assert isinstance(read, Document), read
    return read


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "32", "nvidia.com/gpu": "2"}},
    }


def gpus(node: str, product: str, memory: str, number: int = 2) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpu"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{n}",
                    "attributes": {"type": {"string": "gpu"}, "productName": {"string": product}},
                    "capacity": {"memory": {"value": memory}},
                }
                for n in range(number)
            ],
        },
    }


CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}


def template(count: int = 1, selector: str = "") -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "gpu.nvidia.com", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "chat"},
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
        "containers": [
            {
                "name": "vllm",
                "image": "vllm/vllm-openai:v0.11.0",
                "args": ["Qwen/Qwen3-32B", "--max-model-len", "8192"],
                "resources": {"claims": [{"name": "gpu"}]},
            }
        ],
    },
}


def judged(*objects: dict[str, Any], pod: dict[str, Any] = POD) -> EngineFit:
    cluster = Cluster.of(decode_object(document(one)) for one in objects)
    made = expand(document(pod))
    assert isinstance(made, Workload)
    (group,) = made.groups
    (engine,) = fit(made, group, group.pod, cluster, NONE, Load(), now=NOW).engines
    return engine


pytest.importorskip("cel_expr_python", reason="the extra cel is not installed")


def test_a_claim_brings_the_memory_that_its_device_states() -> None:
    found = judged(
        node("h"),
        node("l"),
        gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"),
        gpus("l", "NVIDIA L40S", "46068Mi"),
        CLASS,
        template(),
    )
    assert [(o.devices.product, o.devices.mib, o.devices.nodes, o.fits) for o in found.on] == [
        ("NVIDIA-H100-80GB-HBM3", 81559, ("h",), "fits"),
        ("NVIDIA-L40S", 46068, ("l",), "exceeds"),
    ]


def test_a_selector_of_the_claim_leaves_only_what_matches() -> None:
    found = judged(
        node("h"),
        node("l"),
        gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"),
        gpus("l", "NVIDIA L40S", "46068Mi"),
        CLASS,
        template(selector="device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L40S'"),
    )
    assert [(o.devices.nodes, o.fits) for o in found.on] == [(("l",), "exceeds")]


def test_nodes_with_fewer_devices_than_the_claim_counts_do_not_count() -> None:
    found = judged(node("h"), gpus("h", "NVIDIA H100", "81559Mi", 1), CLASS, template(count=2))
    assert found.missing == (
        "memory of claimed devices: no node that the pod may use has enough that match",
    )


def test_what_is_missing_to_know_a_claim_is_named() -> None:
    slices = gpus("h", "NVIDIA H100", "81559Mi")
    assert judged(node("h"), slices, CLASS).missing == (
        "ResourceClaimTemplate gpus: not in the source",
    )
    assert judged(node("h"), slices, template()).missing == (
        "DeviceClass gpu.nvidia.com: not in the source",
    )
    assert judged(node("h"), CLASS, template()).missing == (
        "memory of claimed devices: ResourceSlice objects are not in the source",
    )


def test_a_device_without_stated_memory_is_unknown() -> None:
    slices = gpus("h", "NVIDIA H100", "1Gi")
    for device in slices["spec"]["devices"]:
        del device["capacity"]
    (on,) = judged(node("h"), slices, CLASS, template()).on
    assert (on.fits, on.unknown) == (
        "unknown",
        ("GPU memory of NVIDIA-H100 on h: no label nvidia.com/gpu.memory",),
    )


def test_memory_that_nobody_holds_is_not_free_where_a_fresh_map_tells_of_it() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    left = topology("left", held={2: "other"}, gpus={1: {"residueMiB": 9000}, 2: {"residueMiB": 1}})
    objects = [
        *(node(name, **labels) for name in ("clean", "left", "silent")),
        topology("clean"),
        left,
        topology("silent", gpus={0: {"residueMiB": 50000}}, asOf="2026-11-29T09:00:00Z"),
    ]
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {
                    "name": "vllm",
                    "image": "vllm/vllm-openai:v0.11.0",
                    "args": ["Qwen/Qwen3-8B", "--max-model-len", "8192"],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ]
        },
    }
    found = judged(*objects, pod=plain)
    assert [(o.devices.nodes, o.devices.free_mib, o.devices.how, o.fits) for o in found.on] == [
        (("clean", "silent"), None, "", "fits"),
        (("left",), 72559, "9,000 MiB of it in use by nobody", "exceeds"),
    ]
