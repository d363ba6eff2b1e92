"""The filters that look at one node: what each has against it, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.place import node_verdicts
from kubectl_gpuadmit.verdict import Shortfall
from tests.placement.build import GPU, Told, cluster, node, pod, told

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
DEDICATED = {"key": "dedicated", "value": "inf", "effect": "NoSchedule"}
TAINTED = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def expressed(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


CASES: dict[str, tuple[KubeObject, Pod, list[Told]]] = {
    "a plain pod fits a plain node": (node("n"), pod(gpus=1), []),
    "a pod that names another node": (
        node("n"),
        pod(nodeName="m"),
        [("NodeName", "node(s) didn't match the requested node name", True, "m")],
    ),
    "a pod that names this node": (node("n"), pod(nodeName="n"), []),
    "a cordoned node, whose controller also taints it": (
        node("n", cordoned=True, taints=[CORDON]),
        pod(),
        [
            ("NodeUnschedulable", "node(s) were unschedulable", True, "spec.unschedulable"),
            ("TaintToleration", TAINTED, True, "node.kubernetes.io/unschedulable:NoSchedule"),
        ],
    ),
    "a toleration of the cordon": (
        node("n", cordoned=True, taints=[CORDON]),
        pod(tolerations=[{"key": CORDON["key"], "operator": "Exists"}]),
        [],
    ),
    "each untolerated taint is told": (
        node(
            "n",
            taints=[DEDICATED, {"key": GPU, "effect": "NoExecute"}, {"key": "x", "effect": "No"}],
        ),
        pod(),
        [
            ("TaintToleration", TAINTED, True, "dedicated=inf:NoSchedule"),
            ("TaintToleration", TAINTED, True, "nvidia.com/gpu:NoExecute"),
        ],
    ),
    "PreferNoSchedule refuses nobody": (
        node("n", taints=[{"key": "x", "effect": "PreferNoSchedule"}]),
        pod(),
        [],
    ),
    "a toleration must have the value": (
        node("n", taints=[DEDICATED]),
        pod(tolerations=[{"key": "dedicated", "value": "train", "effect": "NoSchedule"}]),
        [("TaintToleration", TAINTED, True, "dedicated=inf:NoSchedule")],
    ),
    "each nodeSelector label that differs is told": (
        node("n", labels={"pool": "inf"}),
        pod(nodeSelector={"pool": "train", "disk": "ssd", "kubernetes.io/hostname": "n"}),
        [
            ("NodeAffinity", AFFINITY, True, "disk=ssd"),
            ("NodeAffinity", AFFINITY, True, "pool=train"),
        ],
    ),
    "required terms are alternatives": (
        node("n", labels={"slots": "5"}),
        pod(affinity=required(expressed("none", "Exists"), expressed("slots", "Gt", "4"))),
        [],
    ),
    "no required term matches": (
        node("n", labels={"slots": "5"}),
        pod(affinity=required(expressed("slots", "Lt", "5"), named("m"), {})),
        [("NodeAffinity", AFFINITY, True, "slots<5 or metadata.name=m or an empty term")],
    ),
    "a term that does not parse matches nothing": (
        node("n", labels={"slots": "5"}),
        pod(affinity=required(expressed("slots", "Gt", "x"))),
        [("NodeAffinity", AFFINITY, True, "slots>x")],
    ),
    "contradicting names refuse before any node is looked at": (
        node("n"),
        pod(
            affinity=required(
                {"matchFields": named("n")["matchFields"] + named("m")["matchFields"]}
            )
        ),
        [
            ("NodeAffinity", AFFINITY, True, "metadata.name=n, metadata.name=m"),
            ("NodeAffinity", "pod affinity terms conflict", True, ""),
        ],
    ),
    "every resource that lacks is told, in the scheduler's order": (
        node("n", 8, **{"ephemeral-storage": "1Gi"}),
        pod(
            gpus=9,
            asks={"cpu": "65", "memory": "300Gi", "ephemeral-storage": "2Gi", "amd.com/gpu": "1"},
        ),
        [
            ("NodeResourcesFit", "Insufficient cpu", True, "cpu"),
            ("NodeResourcesFit", "Insufficient memory", True, "memory"),
            ("NodeResourcesFit", "Insufficient ephemeral-storage", True, "ephemeral-storage"),
            ("NodeResourcesFit", "Insufficient amd.com/gpu", True, "amd.com/gpu"),
            ("NodeResourcesFit", "Insufficient nvidia.com/gpu", True, GPU),
        ],
    ),
    "a resource without a domain is not counted": (node("n"), pod(asks={"gpu": "1"}), []),
    "asking zero of what the node lacks is no obstacle": (
        node("n", None),
        pod(asks={GPU: "0"}),
        [],
    ),
    "a node that allows no pods": (
        node("n", pods="0"),
        pod(),
        [("NodeResourcesFit", "Too many pods", False, "pods")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_node(name: str) -> None:
    given, asking, expected = CASES[name]
    assert told(cluster(given), asking) == {"n": expected}


def test_used_resources_are_lacking_for_a_while() -> None:
    running = [pod(f"p{i}", 3, on="n", asks={"cpu": "20"}) for i in range(2)]
    (verdict,) = node_verdicts(cluster(node("n", 8), *running), pod(gpus=4, asks={"cpu": "30"}))
    assert verdict.shortfalls == (
        Shortfall(
            "NodeResourcesFit",
            "Insufficient cpu",
            "placement/insufficient",
            requested=30000,
            used=40000,
            capacity=64000,
            subject="cpu",
        ),
        Shortfall(
            "NodeResourcesFit",
            "Insufficient nvidia.com/gpu",
            "placement/insufficient",
            requested=4,
            used=6,
            capacity=8,
            subject=GPU,
        ),
    )


def test_pods_that_have_ended_use_nothing() -> None:
    ended = [
        pod("a", 8, on="n", status={"phase": "Succeeded"}),
        pod("b", 8, on="n", status={"phase": "Failed"}),
    ]
    assert told(cluster(node("n"), *ended), pod(gpus=8)) == {"n": []}


def test_host_ports_collide_by_address_protocol_and_number() -> None:
    def port(number: int, ip: str = "", protocol: str = "") -> dict[str, Any]:
        return {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}

    given = cluster(
        node("n"),
        pod("a", on="n", ports=[port(80), port(81, "10.0.0.1"), port(82, protocol="UDP")]),
    )
    taken = "node(s) didn't have free ports for the requested pod ports"

    def answer(*ports: dict[str, Any]) -> list[Told]:
        return told(given, pod(ports=list(ports)))["n"]

    assert answer(port(80)) == [("NodePorts", taken, False, "0.0.0.0:80/TCP")]
    assert answer(port(80, "10.0.0.9")) == [("NodePorts", taken, False, "10.0.0.9:80/TCP")]
    assert answer(port(81)) == [("NodePorts", taken, False, "0.0.0.0:81/TCP")]
    assert answer(port(81, "10.0.0.1")) == [("NodePorts", taken, False, "10.0.0.1:81/TCP")]
    assert answer(port(81, "10.0.0.2"), port(82), port(83)) == []


def test_a_device_class_supplies_what_no_device_plugin_advertises() -> None:
    from tests.placement.build import decoded

    mapped = decoded(
        {
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.example.com"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        }
    )
    with_plugin = node("plugin", None, **{"example.com/gpu": "1"})
    given = cluster(node("dra", None), with_plugin, mapped)
    lacking = ("NodeResourcesFit", "Insufficient example.com/gpu", True, "example.com/gpu")
    no_devices = ("DynamicResources", "cannot allocate all claims", True, "example.com/gpu")
    assert told(given, pod(asks={"example.com/gpu": "2"})) == {
        "dra": [no_devices],
        "plugin": [lacking],
    }
    gpus = decoded(
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "dra-a"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "dra",
                "pool": {"name": "dra", "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
            },
        }
    )
    given.apply(gpus)
    assert told(given, pod(asks={"example.com/gpu": "2"})) == {"dra": [], "plugin": [lacking]}
    implicit = "deviceclass.resource.kubernetes.io/gpu.example.com"
    missing = ("DynamicResources", "cannot allocate all claims", True, implicit)
    assert told(given, pod(asks={implicit: "2"})) == {"dra": [], "plugin": [missing]}
    assert told(cluster(with_plugin), pod(asks={implicit: "1"})) == {
        "plugin": [("NodeResourcesFit", f"Insufficient {implicit}", True, implicit)]
    }


def test_a_place_promised_to_a_pod_that_preempted_is_not_free() -> None:
    waiting = pod("waits", 8, priority=10, status={"nominatedNodeName": "n"})
    given = cluster(node("n"), waiting)
    assert told(given, pod(gpus=1, priority=10)) == {
        "n": [("NodeResourcesFit", "Insufficient nvidia.com/gpu", False, GPU)]
    }
    assert told(given, pod(gpus=1, priority=11)) == {"n": []}
    given.remove("Pod", "default", "waits")
    assert told(given, pod(gpus=1, priority=10)) == {"n": []}
