"""What the agent wrote is what a snapshot and a live question read, from either place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_gpuadmit.adapters.kube.connection import Access
from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
from kubectl_gpuadmit.adapters.kube.node_maps import ConfigMaps
from kubectl_gpuadmit.adapters.kube.reading import read_cluster
from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.gpu_topology_object import document
from kubectl_gpuadmit.needs import Need
from kubectl_gpuadmit.topology.observe import observe
from kubectl_gpuadmit.topology.reported import from_object
from tests.agent.node import Node
from tests.fakes.apiserver import ApiServer, forbidden

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n-0", "uid": "u-1"},
}


@pytest.fixture
def made(h100: Node) -> dict[str, Any]:
    spec, _ = observe(h100.sources.look(), now="2026-11-29T10:00:00Z")
    assert spec is not None
    return document("n-0", spec, uid="u-1")


@pytest.fixture
def packed(h100: Node, tmp_path: Path) -> dict[str, Any]:
    """The same inside a ConfigMap, as the agent puts it there."""
    spec, _ = observe(h100.sources.look(), now="2026-11-29T10:00:00Z")
    assert spec is not None
    with ApiServer([NODE]) as server:
        connection = connect(Access(kubeconfig=str(server.kubeconfig(tmp_path))))
        ConfigMaps(connection, "gpu-admit").write("n-0", spec)
        return {**server.objects[-1], "metadata": {**server.objects[-1]["metadata"]}}


def maps(cluster: Cluster) -> list[Any]:
    return [from_object(one) for one in cluster.every("GpuTopology")]


def test_a_snapshot_reads_either_alike(
    tmp_path: Path, made: dict[str, Any], packed: dict[str, Any]
) -> None:
    read = []
    for name, one in (("crd", made), ("configmap", packed)):
        folder = tmp_path / name
        folder.mkdir()
        listed = {"apiVersion": "v1", "kind": "List", "items": [NODE, one]}
        (folder / "all.json").write_text(json.dumps(listed))
        cluster = load_snapshot(str(folder)).cluster
        assert cluster.knows("GpuTopology")
        read.append(maps(cluster))
    assert read[0] == read[1]
    (first,) = read[0]
    assert (first.node, first.source, first.count, first.problems) == ("n-0", "agent", 8, ())
    assert {link.type for link in first.links} == {"NV18"}


def test_another_config_map_is_left_as_it_is(tmp_path: Path, packed: dict[str, Any]) -> None:
    packed["metadata"].pop("labels")
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": [NODE, packed]}))
    cluster = load_snapshot(str(tmp_path)).cluster
    assert not cluster.knows("GpuTopology")
    assert [one.kind for one in cluster.every("ConfigMap")] == ["ConfigMap"]


def test_a_text_that_is_cut_is_no_map(tmp_path: Path, packed: dict[str, Any]) -> None:
    packed["data"]["object"] = packed["data"]["object"][:-30]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": [NODE, packed]}))
    assert list(load_snapshot(str(tmp_path)).cluster.every("GpuTopology")) == []


def live(server: ApiServer, folder: Path) -> Cluster:
    connection = connect(Access(kubeconfig=str(server.kubeconfig(folder))))
    need = Need("GpuTopology", optional=True)
    return read_cluster(connection, [need], homes=["default"]).cluster


def test_a_live_question_reads_either_alike(
    tmp_path: Path, made: dict[str, Any], packed: dict[str, Any]
) -> None:
    packed["metadata"]["namespace"] = "gpu-admit"
    read = []
    for one in (made, packed):
        with ApiServer([one]) as server:
            read.append(maps(live(server, tmp_path)))
    assert read[0] == read[1]
    assert [one.count for one in read[0]] == [8]


def test_config_maps_that_may_not_be_listed_leave_the_map_unknown(tmp_path: Path) -> None:
    with ApiServer() as server:
        path = "/api/v1/namespaces/gpu-admit/configmaps"
        server.on(path, forbidden("list", "configmaps"))
        assert not live(server, tmp_path).knows("GpuTopology")
