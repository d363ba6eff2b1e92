"""What the benchmarks measure is what it claims to be; how fast it is, no test says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.__main__ import Measured, Row, measure, prepare, python, rows
from benchmarks.clusters import POOLS, STAMP, deployments, map_of, node, pod, write_cluster
from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.objects import Node, Pod
from kubectl_gpuadmit.kube.times import parse_instant
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.topology.maps import node_map
from tests.placement.build import GPU


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_same_size_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_cluster(tmp_path / name, 7, 50)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert deployments(9, replicas=2) == deployments(9, replicas=2)


def test_a_cluster_has_the_size_that_was_asked_and_every_kind_is_known(tmp_path: Path) -> None:
    write_cluster(tmp_path, 7, 50)
    cluster = load_snapshot(str(tmp_path)).cluster
    assert {kind: len(list(cluster.every(kind))) for kind in cluster.kinds()} == {
        "Namespace": 41,
        "Node": 7,
        "Pod": 50,
        "PriorityClass": 2,
        "ResourceQuota": 41,
        "ServiceAccount": 41,
    }
    assert cluster.knows("LimitRange")
    assert cluster.knows("PodDisruptionBudget")


def test_no_node_holds_more_than_it_has_and_some_room_is_left(tmp_path: Path) -> None:
    write_cluster(tmp_path, 30, 300)
    infos = load_snapshot(str(tmp_path)).cluster.nodes.values()
    assert {info.name for info in infos for r in info.used if info.free(r) < 0} == set()
    assert all(info.free(GPU) >= 2 for info in infos)


def test_an_agents_map_names_the_pods_that_hold_gpus_of_its_node() -> None:
    objects = [node(1), map_of(1, 6), *(pod(1 + 6 * turn, 6) for turn in range(5))]
    raw = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": objects})
    cluster = Cluster.of(*decode_bulk(raw, "bench.json"))
    found = node_map(cluster, node(1)["metadata"]["name"], parse_instant(STAMP))
    assert found is not None
    assert (found.problems, found.stale, len(found.gpus)) == ((), False, 8)
    asking = {pod.name for pod in cluster.pods() if pods.requests(pod).get(GPU)}
    assert {holder.pod for holder in found.holders or ()} == asking
    assert len(asking) == 4


@pytest.mark.parametrize("index", range(len(POOLS) * 2))
def test_objects_are_as_an_api_server_returns_them(index: int) -> None:
    raw = msgspec.json.encode(
        {"kind": "List", "apiVersion": "v1", "items": [node(index), pod(index, 6)]}
    )
    (first, second), known = decode_bulk(raw, "bench.json")
    assert isinstance(first, Node)
    assert isinstance(second, Pod)
    assert (second.spec.nodeName, known) == (first.name, {"Node", "Pod"})
    assert second.status.phase == "Running"


def test_deployments_are_read_as_many_as_asked_each_with_its_replicas() -> None:
    text = deployments(6, replicas=3, gpus=2)
    read = list(read_documents(text.encode(), "many.yaml"))
    made = [expand(document) for document in read if isinstance(document, Document)]
    found = [
        (w.ref.name, w.ref.namespace, w.groups[0].count) for w in made if isinstance(w, Workload)
    ]
    assert found == [(f"infer-{i}", f"team-{i:02d}", 3) for i in range(6)]
    teams = [w.groups[0].pod.labels["team"] for w in made if isinstance(w, Workload)]
    assert teams == ["", "team-01", "team-02", "", "team-04", "team-05"]
    assert 0.8 < len(deployments(1_000)) / 1_000_000 < 1.2, "about 0.95 kB each"


def test_a_process_is_measured_by_its_time_memory_and_exit_code() -> None:
    got = measure(python("import sys; b'x' * (1 << 26); sys.exit(3)"), 2)
    assert got.code == 3
    assert got.seconds > 0
    assert got.mebibytes > 64


def test_a_row_is_shown_as_a_multiple_of_its_reference() -> None:
    reference = Measured(0.5, 10, 0)
    assert str(Row("explain", Measured(1.25, 99.6, 1), "json.load", reference)) == (
        f"{'explain':<54}   1.250    100     1  2.50 × json.load"
    )
    assert str(Row("json.load", reference)) == f"{'json.load':<54}   0.500     10     0  "


def test_every_row_is_measured_on_clusters_of_any_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    sizes = {3: 9, 6: 20, 9: 40}
    prepare(tmp_path, sizes, 4, 2)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "3", "6", "9", "9-maps", "claim-fits.json", "claim-never.json", "devices-2x56.json",
        "devices-2x8.json", "many.yaml", "nothing.json", "one.yaml",
    ]  # fmt: skip
    assert capsys.readouterr().err.splitlines()[0] == "making a cluster of 3 nodes and 9 pods"
    prepare(tmp_path, sizes, 4, 2)
    assert capsys.readouterr().err == "", "what is there is kept"
    command = [sys.executable, "-m", "kubectl_gpuadmit.cli.main"]
    measured = list(rows(command, tmp_path, sizes, 4, 2, runs=1))
    assert [re.sub(r"\d+ MB", "N MB", row.name) for row in measured] == [
        "python -c pass",
        "--help",
        "explain 1 Deployment, examples/cluster",
        "json.load, 3 nodes, 9 pods, N MB",
        "explain 8 pods, 3 nodes, 9 pods",
        "json.load, 6 nodes, 20 pods, N MB",
        "explain 8 pods, 6 nodes, 20 pods",
        "json.load, 9 nodes, 40 pods, N MB",
        "explain 8 pods, 9 nodes, 40 pods",
        "json.load, 9 nodes and their maps, N MB",
        "topo, 9 nodes and their maps",
        "snapshot -o, 9 nodes",
        "diff of two with 6 nodes",
        "PyYAML C loader, 4 Deployments",
        "check 4 Deployments, 6 nodes",
        "check 4 Deployments, 6 nodes, with remedies",
        "check 4 Deployments, 9 nodes",
        "json.load, 2 nodes x 8 whole GPUs, N MB",
        "explain a claim that fits, 2 nodes x 8",
        "explain a claim that never fits, 2 nodes x 8",
        "json.load, 2 nodes x 56 MIG devices, N MB",
        "explain a claim that fits, 2 nodes x 56",
        "explain a claim that never fits, 2 nodes x 56",
    ]
    assert {row.got.code for row in measured} <= {0, 1}
    for row in measured:
        assert row.against == "" or row.reference is not None
