"""PodResources v1 over a real gRPC socket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters.kubelet import MESSAGES, PodResources
from kubectl_gpuadmit.errors import Unanswerable
from kubectl_gpuadmit.topology.readings import (
    ClaimGrant,
    ContainerGrant,
    DeviceGrant,
    Grants,
    MemoryGrant,
)
from tests.fakes.kubelet import Kubelet, devices, pod

PROTO = "kubelet@v0.37.2/pkg/apis/podresources/v1/api.proto"
MODULES = Path.home() / "go/pkg/mod/k8s.io"


@pytest.fixture
def kubelet(short: Path) -> Iterator[Kubelet]:
    with Kubelet(short / "k.sock") as made:
        yield made


def asked(kubelet: Kubelet) -> PodResources:
    return PodResources(str(kubelet.socket), seconds=5)


def test_devices_claims_cpus_and_memory_of_each_container(kubelet: Kubelet) -> None:
    part = {
        "driver_name": "gpu.nvidia.com",
        "pool_name": "n-0",
        "device_name": "gpu-3",
        "cdi_devices": [{"name": "k8s.gpu.nvidia.com/device=gpu-3"}],
    }
    claim = {"claim_name": "big", "claim_namespace": "team-a", "claim_resources": [part]}
    memory = {"memory_type": "memory", "size": 1 << 30, "topology": {"nodes": [{"ID": 1}]}}
    kubelet.pods = [
        pod(
            "team-a", "web", devices=devices("nvidia.com/gpu", "GPU-b", "GPU-a", numa=[1, 0]),
            cpu_ids=[9, 8], memory=[memory], dynamic_resources=[claim],
        ),
        pod("team-b", "idle"),
    ]  # fmt: skip
    kubelet.allocatable = {"devices": devices("nvidia.com/gpu", "GPU-a"), "memory": [memory]}
    assert asked(kubelet).read() == Grants(
        containers=(
            ContainerGrant(
                "team-a",
                "web",
                "main",
                devices=(DeviceGrant("nvidia.com/gpu", ("GPU-a", "GPU-b"), (0, 1)),),
                claims=(
                    ClaimGrant(
                        "team-a", "big", "gpu.nvidia.com", "n-0", "gpu-3",
                        ("k8s.gpu.nvidia.com/device=gpu-3",),
                    ),
                ),
                cpus=(8, 9),
                memory=(MemoryGrant("memory", 1 << 30, (1,)),),
            ),
            ContainerGrant("team-b", "idle", "main"),
        ),
        allocatable=(DeviceGrant("nvidia.com/gpu", ("GPU-a",)),),
        memory=(MemoryGrant("memory", 1 << 30, (1,)),),
    )  # fmt: skip


def test_an_old_kubelet_that_tells_no_allocatable_devices_still_tells_the_rest(
    kubelet: Kubelet,
) -> None:
    kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", "GPU-a"))]
    read = asked(kubelet).read()
    assert (read.allocatable, len(read.containers)) == (None, 1)


def test_one_pod_by_name(kubelet: Kubelet) -> None:
    kubelet.pods = [pod("a", "b"), pod("a", "c", cpu_ids=[4])]
    assert asked(kubelet).of_pod("a", "c") == (ContainerGrant("a", "c", "main", cpus=(4,)),)
    with pytest.raises(Unanswerable) as told:
        asked(kubelet).of_pod("a", "d")
    assert told.value.ref == "kubelet-silent"


def test_a_kubelet_that_restarts_is_found_again_by_the_next_look(kubelet: Kubelet) -> None:
    source = asked(kubelet)
    assert source.read() == Grants()
    kubelet.stop()
    with pytest.raises(Unanswerable, match="unavailable") as told:
        source.read()
    assert told.value.ref == "kubelet-silent"
    kubelet.pods = [pod("a", "b")]
    kubelet.start()
    assert source.read() == Grants((ContainerGrant("a", "b", "main"),))


def test_there_may_be_no_socket_at_all(short: Path) -> None:
    with pytest.raises(Unanswerable, match="does not answer on"):
        PodResources(str(short / "none.sock"), seconds=2).read()


def test_the_table_of_messages_is_that_of_the_kubelets_own_file() -> None:
    proto = MODULES / PROTO
    if not proto.is_file():
        pytest.skip(f"k8s.io/{PROTO} is not in the Go module cache")
    text = re.sub(r"//.*", "", proto.read_text())
    found = {}
    for name, body in re.findall(r"message (\w+) \{(.*?)\}", text, re.DOTALL):
        fields = re.findall(r"(repeated |optional )?(\w+) (\w+) = (\d+);", body)
        found[name] = {
            (label, int(number), f"{'*' if rule.strip() == 'repeated' else ''}{kind}")
            for rule, kind, label, number in fields
        }
    assert set(MESSAGES) == set(found)
    for name, fields in MESSAGES.items():
        assert set(fields) <= found[name], name
    assert found["ClaimResource"] - set(MESSAGES["ClaimResource"]) == {("share_id", 5, "string")}
