"""Models on devices that DRA claims bring, and on GPUs with memory that nobody holds."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

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


def alternatives(*wants: dict[str, Any]) -> dict[str, Any]:
    """A template of one request with several alternatives."""
    made = template()
    listed = [{"deviceClassName": "gpu.nvidia.com", **one} for one in wants]
    request = {"name": "gpu", "firstAvailable": listed}
    made["spec"]["spec"]["devices"]["requests"] = [request]
    return made


def of(product: str) -> list[dict[str, Any]]:
    text = f"device.attributes['gpu.nvidia.com'].productName == '{product}'"
    return [{"cel": {"expression": text}}]


def taken(on: str, *devices: str) -> dict[str, Any]:
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": on, "device": name}
        for name in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "other", "namespace": "default"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


BIG_OR_SMALL = alternatives(
    {"name": "big", "selectors": of("NVIDIA H100 80GB HBM3")},
    {"name": "small", "selectors": of("NVIDIA L40S")},
)


def test_of_alternatives_each_node_counts_with_the_one_that_it_would_give() -> None:
    found = judged(
        node("h"),
        node("l"),
        gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"),
        gpus("l", "NVIDIA L40S", "46068Mi"),
        CLASS,
        BIG_OR_SMALL,
    )
    assert [(o.devices.how, o.devices.nodes, o.fits) for o in found.on] == [
        ("alternative big", ("h",), "fits"),
        ("alternative small", ("l",), "exceeds"),
    ]
    assert found.standing(frozenset({"h"})) == "fits"
    assert found.standing(frozenset({"l"})) == "exceeds"


def test_the_alternative_that_is_left_is_the_one_that_counts() -> None:
    mixed = gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi", 1)
    small = gpus("h", "NVIDIA L40S", "46068Mi", 2)["spec"]["devices"][1]
    mixed["spec"]["devices"].append(small)
    known = [node("h"), mixed, CLASS, BIG_OR_SMALL]
    assert [(o.devices.how, o.fits) for o in judged(*known, taken("h")).on] == [
        ("alternative big", "fits")
    ]
    assert [(o.devices.how, o.fits) for o in judged(*known, taken("h", "gpu-0")).on] == [
        ("alternative small", "exceeds")
    ]
    # where all are taken it counts what would be given if they were not
    every = judged(*known, taken("h", "gpu-0", "gpu-1"))
    assert [(o.devices.how, o.fits) for o in every.on] == [("alternative big", "fits")]
    assert [(o.devices.how, o.fits) for o in every.alternatives] == [
        ("alternative big", "fits"),
        ("alternative small", "exceeds"),
    ]


def test_an_alternative_of_too_few_devices_for_the_engine_is_not_enough() -> None:
    pod = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0]["args"] += ["--tensor-parallel-size", "2"]
    found = judged(
        node("h"),
        gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"),
        CLASS,
        alternatives({"name": "two", "count": 2}, {"name": "one", "count": 1}),
        pod=pod,
    )
    assert [(o.devices.how, o.fits, o.too_few) for o in found.alternatives] == [
        ("alternative two", "fits", False),
        ("alternative one", "exceeds", True),
    ]
    assert (found.gpus, found.too_few) == (2, False)


def test_a_mig_device_by_claim_has_the_memory_of_its_slice() -> None:
    slices = gpus("h", "NVIDIA H100 80GB HBM3", "40448Mi")
    for device in slices["spec"]["devices"]:
        device["attributes"] |= {
            "type": {"string": "mig"},
            "profile": {"string": "3g.40gb"},
            "parentUUID": {"string": "GPU-x"},
        }
    (on,) = judged(node("h"), slices, CLASS, template()).on
    assert (on.devices.mib, on.devices.how, on.fits) == (40448, "MIG 3g.40gb", "exceeds")


def shares(amount: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A GPU of which claims take memory, and a template that takes so much."""
    slices = gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi", 1)
    slices["spec"]["devices"][0]["allowMultipleAllocations"] = True
    made = template()
    request = made["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    request["capacity"] = {"requests": {"memory": amount}}
    return slices, made


def test_a_share_that_is_too_small_for_the_weights_exceeds_whatever_the_driver_shows() -> None:
    slices, made = shares("20Gi")
    (on,) = judged(node("h"), slices, CLASS, made).on
    assert (on.devices.mib, on.devices.how, on.fits) == (
        20480,
        "a share of 81,559 MiB",
        "exceeds",
    )


def test_a_share_that_fits_only_if_the_process_sees_no_more_is_unknown() -> None:
    pod = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0]["args"][0] = "Qwen/Qwen3-8B"
    slices, made = shares("40Gi")
    (on,) = judged(node("h"), slices, CLASS, made, pod=pod).on
    assert (on.fits, on.unknown) == (
        "unknown",
        (
            "whether the driver shows the engine its share of 40,960 MiB alone, or the whole "
            "device of 81,559",
        ),
    )


def test_a_resource_that_a_class_backs_has_the_memory_of_the_devices_it_brings() -> None:
    bare = node("h")
    del bare["status"]["allocatable"]["nvidia.com/gpu"]
    backs = json.loads(json.dumps(CLASS))
    backs["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    pod = json.loads(json.dumps(POD))
    del pod["spec"]["resourceClaims"]
    one = {"nvidia.com/gpu": "1"}
    pod["spec"]["containers"][0]["resources"] = {"requests": one, "limits": one}
    plugged = node("l", **{"nvidia.com/gpu.product": "NVIDIA-L40S"})
    found = judged(bare, gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"), backs, plugged, pod=pod)
    assert [(o.devices.resource, o.devices.nodes, o.fits) for o in found.on] == [
        ("nvidia.com/gpu", ("l",), "exceeds"),
        ("claim", ("h",), "fits"),
    ]


def test_memory_that_nobody_holds_counts_for_the_very_device_that_a_claim_gets() -> None:
    slices = gpus("left", "NVIDIA H100 80GB HBM3", "81559Mi")
    for number, device in enumerate(slices["spec"]["devices"]):
        device["attributes"]["uuid"] = {"string": f"GPU-left-{number}"}
    known = [node("left"), slices, CLASS, template()]
    (on,) = judged(*known, topology("left", gpus={0: {"residueMiB": 50000}})).on
    assert (on.devices.free_mib, on.fits) == (31559, "exceeds")
    (on,) = judged(*known, topology("left", gpus={1: {"residueMiB": 50000}})).on
    assert (on.devices.free_mib, on.fits) == (None, "fits")


def test_a_claim_that_has_changed_is_judged_anew() -> None:
    """Remedies change templates in forks of one cluster, and the last answers are kept."""
    documents = [node("h"), gpus("h", "NVIDIA H100 80GB HBM3", "81559Mi"), CLASS, template(9)]
    cluster = Cluster.of(decode_object(document(one)) for one in documents)
    made = expand(document(POD))
    assert isinstance(made, Workload)
    (group,) = made.groups
    (before,) = fit(made, group, group.pod, cluster, NONE, Load(), now=NOW).engines
    fork = cluster.fork()
    fork.apply(decode_object(document(template(1))))
    (after,) = fit(made, group, group.pod, fork, NONE, Load(), now=NOW).engines
    assert (before.on, [one.fits for one in after.on]) == ((), ["fits"])


def lmdeploy(*more: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0] |= {
        "image": "openmmlab/lmdeploy:v0.7.3",
        "command": ["lmdeploy", "serve", "api_server"],
        "args": ["Qwen/Qwen3-32B", *more],
    }
    return pod


def test_of_lmdeploy_only_weights_that_are_too_large_are_certain() -> None:
    known = [node("l"), gpus("l", "NVIDIA L40S", "46068Mi"), CLASS, template(2)]
    (alone,) = judged(*known, pod=lmdeploy()).on
    assert (alone.fits, alone.by_weights) == ("exceeds", True)  # some 60 GiB on one GPU of 45
    (both,) = judged(*known, pod=lmdeploy("--tp", "2")).on
    assert (both.fits, both.unknown) == (
        "unknown",
        ("how lmdeploy uses the memory of a GPU",),
    )
    (stored,) = judged(*known, pod=lmdeploy("--model-format", "awq")).on
    assert stored.fits == "unknown"  # quantised by somebody: how much is left nobody says
