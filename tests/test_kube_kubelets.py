"""Kubelets asked through the API server's node proxy, above a real wire; NUMA kinds that most
clusters do not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_gpuadmit.adapters.kube.connection import Access, Connection
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.kubelets import MOST
from kubectl_gpuadmit.adapters.kube.reading import Facts, read_cluster
from kubectl_gpuadmit.needs import ALIGNMENT, Need
from kubectl_gpuadmit.topology import kubelets
from tests.fakes.apiserver import ApiServer, Reply, forbidden, refusal

CONFIGZ = {
    "kubeletconfig": {
        "topologyManagerPolicy": "single-numa-node",
        "topologyManagerScope": "pod",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "None",
        "reservedSystemCPUs": "0-1",
        "systemReserved": {"cpu": "500m", "memory": "1Gi"},
        "kubeReserved": {"cpu": "1"},
        "featureGates": {"PodLevelResourceManagers": True},
        "clusterDomain": "corp.example",
    }
}
NODES = Need("Node")


@pytest.fixture
def connection(server: ApiServer, tmp_path: Path) -> Connection:
    file = server.kubeconfig(tmp_path)
    return connect(Access(kubeconfig=str(file)), sleep=lambda _: None)


def node(name: str, *, gpus: int = 8, ready: str = "True") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": "64", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def configz(name: str) -> str:
    return f"/api/v1/nodes/{name}/proxy/configz"


def read(connection: Connection) -> Facts:
    return read_cluster(connection, [NODES, *ALIGNMENT], homes=["team-a"])


def asked(server: ApiServer) -> list[str]:
    return sorted(path for path in server.paths() if "/proxy/" in path)


def test_gpu_nodes_that_are_ready_are_asked_for_their_configuration(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [
        *(node("inf-0"), node("inf-1"), node("web-0", gpus=0), node("sick", ready="Unknown"))
    ]
    for name in ("inf-0", "inf-1"):
        server.on(configz(name), Reply(CONFIGZ))
    cluster = read(connection).cluster
    assert asked(server) == [configz("inf-0"), configz("inf-1")]
    told = kubelets.told(cluster, "inf-1", None)
    assert told is not None
    assert (told.source, told.kubelet.topology_policy, told.kubelet.topology_scope) == (
        "kubelet /configz",
        "single-numa-node",
        "pod",
    )
    assert (told.kubelet.reserved_cpus, told.reserved_millis) == ("0-1", 1500)
    assert told.feature_gates == {"PodLevelResourceManagers": True}


@pytest.mark.parametrize(
    "reply",
    [
        forbidden("get", "nodes/proxy"),
        refusal(404, "not found"),
        Reply(b"<html>"),
        Reply({"kubeletconfig": "text"}),
    ],
)
def test_where_the_first_kubelet_does_not_answer_nobody_else_is_asked_and_nothing_is_said(
    server: ApiServer, connection: Connection, reply: Reply
) -> None:
    server.objects = [node("inf-0"), node("inf-1")]
    server.on(configz("inf-0"), reply)
    facts = read(connection)
    assert asked(server) == [configz("inf-0")]
    assert (facts.absences, list(facts.cluster.every(kubelets.KIND))) == ((), [])


def test_of_a_large_cluster_the_first_kubelets_are_asked(
    server: ApiServer, connection: Connection
) -> None:
    names = [f"inf-{n:03}" for n in range(MOST + 10)]
    server.objects = [node(name) for name in names]
    for name in names:
        server.on(configz(name), Reply(CONFIGZ))
    read(connection)
    assert asked(server) == [configz(name) for name in names[:MOST]]


def test_kinds_that_most_clusters_lack_may_be_refused_without_a_word(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [node("inf-0")]
    for group, version, plural in (
        ("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies"),
        ("gpu-admit.io", "v1alpha1", "gputopologies"),
    ):
        server.on(f"/apis/{group}/{version}/{plural}", forbidden("list", plural, group=group))
    facts = read(connection)
    assert facts.absences == ()
    assert not facts.cluster.knows("NodeResourceTopology")


def test_a_configuration_without_a_policy_is_a_kubelet_that_refuses_nothing(
    server: ApiServer, connection: Connection
) -> None:
    server.objects = [node("inf-0")]
    server.on(configz("inf-0"), Reply({"kubeletconfig": {"clusterDomain": "corp.example"}}))
    told = kubelets.told(read(connection).cluster, "inf-0", None)
    assert told is not None
    assert (told.kubelet.topology_policy, told.kubelet.cpu_policy) == ("none", "none")
