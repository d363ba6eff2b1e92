"""Rules that call themselves exact and have no family: held to the referee by tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.rules.quota_dead_key import dead
from tests.controlplane.binaries import Missing
from tests.controlplane.referee_client import Referee
from tests.placement.build import node
from tests.runs import QUIET, deployment, only, report, world

Json = dict[str, Any]
HOME = "team-a"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    try:
        running = Referee(build=False)
    except Missing as missing:
        pytest.skip(f"{missing}: {len(KEYS)} quota keys and {len(NAMES)} resources not asked about")
    with running:
        yield running


def made(kind: str, api: str, **body: Any) -> Json:
    return {
        "kind": kind,
        "apiVersion": api,
        "metadata": {"name": "x", "namespace": HOME},
        **body,
    }


def probes(resource: str) -> list[Json]:
    """One object of each kind that a quota can count, asking for something of everything."""
    limits = {resource: "1", "cpu": "1", "memory": "1Gi"}
    container = {"name": "c", "image": "x:1", "resources": {"limits": limits, "requests": limits}}
    storage = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    requests = [{"name": "r", "exactly": exactly}]
    balanced = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    claimed = {"accessModes": ["ReadWriteOnce"], **storage}
    return [
        made("Pod", "v1", spec={"containers": [container]}),
        made("PersistentVolumeClaim", "v1", spec=claimed),
        made("Service", "v1", spec=balanced),
        made("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": requests}}),
        made("ConfigMap", "v1"),
    ]


KEYS = (
    "nvidia.com/gpu",
    "requests.nvidia.com/gpu",
    "limits.nvidia.com/gpu",
    "request.nvidia.com/gpu",
    "requests/nvidia.com",
    "nvidia.com/mig-1g.10gb",
    "requests.nvidia.com/mig-1g.10gb",
    "requests.amd.com/gpu",
    "limits.amd.com/gpu",
    "example.com/requests.nvidia.com",
    "count/pods",
    "count/configmaps",
    "count/resourceclaims.resource.k8s.io",
    "count/services",
    "gpu.example.com.deviceclass.resource.k8s.io/devices",
    "gpu.example.com.deviceclass.resource.k8s.io/device",
    "requests.deviceclass.resource.kubernetes.io/gpu.example.com",
    "deviceclass.resource.kubernetes.io/gpu.example.com",
    "fast.storageclass.storage.k8s.io/requests.storage",
    "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
    "fast.storageclass.storage.k8s.io/storage",
    "fast.storageclass.storage.k8s.io/limits.storage",
)


@pytest.mark.parametrize("key", KEYS)
def test_a_quota_key_is_dead_where_kubernetes_refuses_nothing_by_it(
    referee: Referee, key: str
) -> None:
    around = [
        made("Namespace", "v1", metadata={"name": HOME}, status={"phase": "Active"}),
        made("ServiceAccount", "v1", metadata={"name": "default", "namespace": HOME}),
        made("DeviceClass", "resource.k8s.io/v1", metadata={"name": "gpu.example.com"}),
        made(
            "ResourceQuota",
            "v1",
            spec={"hard": {key: "0"}},
            status={"hard": {key: "0"}, "used": {key: "0"}},
        ),
    ]
    refused = []
    resource = next((name for name in NAMES if key.endswith(name)), GPU)
    for probe in probes(resource):
        question = "admission" if probe["kind"] == "Pod" else "object"
        answer = referee.ask([question], {"objects": around, "pod": probe})[question]
        assert answer["allowed"] or answer["check"] == "ResourceQuota", answer
        refused += [probe["kind"]] * (not answer["allowed"])
    assert dead(key) == (refused == []), refused


NAMES = (
    "nvidia.com/gpu",
    "nvidia.com/gpus",
    "nvidia.com/mig-1g.10gb",
    "amd.com/gpu",
    "example.com/fpga",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("advertised", [("nvidia.com/gpu",), ("amd.com/gpu", "example.com/fpga")])
def test_a_resource_is_unknown_where_no_node_could_ever_take_the_pod(
    referee: Referee, name: str, advertised: tuple[str, ...]
) -> None:
    """Held to the scheduler's own code: every node is unschedulable and unresolvable for it."""
    nodes = [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": f"n{i}", "labels": {"kubernetes.io/hostname": f"n{i}"}},
            "status": {
                "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110", other: "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for i, other in enumerate(advertised)
    ]
    asking = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "asking", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {name: "1"}}}]},
    }
    answer = referee.ask(["placement"], {"objects": nodes, "pod": asking})["placement"]
    codes = {name: one["code"] for name, one in answer["nodes"].items()}
    hopeless = set(codes.values()) == {"UnschedulableAndUnresolvable"}
    manifest = deployment("web", gpus=1).replace(GPU, name)
    given = world(*(node(f"n{i}", None, **{other: "8"}) for i, other in enumerate(advertised)))
    verdict = only(report(manifest, given, QUIET))
    found = {one.reason for one in verdict.findings}
    assert ("spec/unknown-resource" in found) == hopeless, codes
    assert (verdict.placement == "never") == hopeless


def test_every_exact_rule_is_held_to_kubernetes_somewhere() -> None:
    """A new rule that calls itself exact has to say here by what it is refereed."""
    exact = {name for name, one in REGISTRY.items() if one.fidelity == "exact"}
    assert exact == {
        "dra/admin-access",  # e2e/test_devices: a running API server refuses the claim, too
        "quota/dead-key",  # above
        "spec/unknown-resource",  # above
        "spec/nodes-without-gpu",  # placement family: such pods find no node
    }
