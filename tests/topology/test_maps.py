"""Which source a node's map comes from, what it can tell, and which objects are refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from kubectl_gpuadmit.topology.islands import islands
from kubectl_gpuadmit.topology.maps import age_seconds, node_map
from kubectl_gpuadmit.topology.model import Fabric, Holder, Link, Nic, NodeMap
from tests.topology.objects import cluster, node, rows, topology

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
H100 = {"nvidia_com__gpu.product": "NVIDIA-H100-80GB-HBM3"}


def labelled(gpus: int = 8, **labels: str) -> dict[str, Any]:
    found = node(gpus=gpus)
    found["metadata"]["labels"] |= {f"nvidia.com/gpu.{k}": v for k, v in labels.items()}
    return found


def the_map(*documents: dict[str, Any], now: dt.datetime = NOW) -> NodeMap:
    found = node_map(cluster(*documents), "a", now)
    assert found is not None
    return found


def slices(count: int = 2, **pool: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a-gpu"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": [
                {
                    "name": f"gpu-{n}",
                    "attributes": {
                        "type": {"string": "gpu"},
                        "uuid": {"string": f"GPU-{n}"},
                        "productName": {"string": "NVIDIA H100 80GB HBM3"},
                        "resource.kubernetes.io/pciBusID": {"string": f"0000:{9 - n}0:00.0"},
                        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:0{n}"},
                        "resource.kubernetes.io/numaNode": {"int": n % 2},
                    },
                    "capacity": {"memory": {"value": "85520809984"}},
                }
                for n in range(count)
            ],
        },
    }


# -- which source --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "source"),
    [
        ((labelled(product="NVIDIA-H100-80GB-HBM3"), slices(), topology()), "agent"),
        ((labelled(product="NVIDIA-H100-80GB-HBM3"), slices()), "slices"),
        ((labelled(product="NVIDIA-H100-80GB-HBM3"),), "labels"),
        ((node(),), "allocatable"),
    ],
)
def test_the_best_source_is_taken_and_named(
    documents: tuple[dict[str, Any], ...], source: str
) -> None:
    assert the_map(*documents).source == source


def test_a_node_without_gpus_has_no_map() -> None:
    assert node_map(cluster(node(gpus=0)), "a", NOW) is None
    assert node_map(cluster(node()), "nowhere", NOW) is None


def test_allocatable_counts_tell_a_number_and_nothing_else() -> None:
    found = the_map(node(gpus=4))
    assert (found.count, found.gpus, found.links, found.holders) == (4, (), None, None)


def test_a_known_machine_fills_in_links_and_is_named() -> None:
    found = the_map(labelled(product="NVIDIA-H100-80GB-HBM3", count="8"))
    assert found.assumed == "HGX H100 8-GPU: NVLink as its maker builds it"
    assert [gpu.numa for gpu in found.gpus] == [None] * 8
    (island,) = islands(found) or ()
    assert (len(island.gpus), island.mesh, island.lanes) == (8, "all-to-all", 18)


def test_numa_is_assumed_only_of_a_machine_known_by_its_own_name() -> None:
    found = the_map(
        labelled(product="NVIDIA-A100-SXM4-80GB", count="8", machine="DGXA100-920-23687-2530-000")
    )
    assert found.assumed == "DGX A100: NVLink as its maker builds it and NUMA as its maker sets it"
    assert [gpu.numa for gpu in found.gpus] == [3, 3, 1, 1, 7, 7, 5, 5]


@pytest.mark.parametrize(
    ("product", "count", "wires"),
    [
        ("NVIDIA-L40S", 4, {"PCIe"}),
        ("NVIDIA-A10", 2, {"PCIe"}),
        ("Tesla-T4", 4, {"PCIe"}),
        ("NVIDIA-GB200", 4, {"NV18"}),
        ("NVIDIA-A100-SXM4-40GB", 4, {"NV4"}),
        ("Tesla-V100-SXM3-32GB", 16, {"NV6"}),
        ("NVIDIA-A100-80GB-PCIe", 4, None),
        ("NVIDIA-H100-NVL", 2, None),
        ("NVIDIA-H100-80GB-HBM3", 6, None),
        ("NVIDIA-X9", 8, None),
    ],
)
def test_links_are_assumed_of_machines_that_leave_no_choice(
    product: str, count: int, wires: set[str] | None
) -> None:
    found = the_map(labelled(gpus=count, product=product, count=str(count)))
    assert (None if found.links is None else {link.type for link in found.links}) == wires
    assert bool(found.assumed) == (wires is not None)


def test_replicas_of_a_shared_gpu_are_no_gpus() -> None:
    found = the_map(
        labelled(
            gpus=16,
            product="NVIDIA-L40S-SHARED",
            count="4",
            replicas="4",
            **{"sharing-strategy": "time-slicing"},
        )
    )
    assert found.count == 4
    assert {(gpu.sharing, gpu.replicas) for gpu in found.gpus} == {("time-slicing", 4)}


def test_slices_of_mig_strategy_single_do_not_tell_how_many_gpus_there_are() -> None:
    found = the_map(labelled(gpus=56, product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", count="56"))
    assert (found.count, found.gpus) == (0, ())
    assert found.problems == ("MIG strategy single: labels and resources count slices, not GPUs",)


def test_slices_tell_identity_numa_and_root_but_no_links() -> None:
    found = the_map(node(), slices(3))
    assert found.links is None
    assert [(g.index, g.uuid, g.pcie_root, g.numa, g.memory_mib) for g in found.gpus] == [
        (0, "GPU-2", "pci0000:02", 0, 81559),
        (1, "GPU-1", "pci0000:01", 1, 81559),
        (2, "GPU-0", "pci0000:00", 0, 81559),
    ]


def test_a_pool_that_is_not_all_there_is_a_problem() -> None:
    found = the_map(node(), slices(2, resourceSliceCount=2))
    assert found.problems == ("1 of 2 ResourceSlices of the node's pool are there",)


def test_the_clique_label_stands_in_where_the_map_does_not_tell() -> None:
    found = the_map(labelled(product="NVIDIA-GB200", count="4", clique="abc.7"))
    assert found.fabric == Fabric("abc.7")


# -- age -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "heartbeat", "stale"),
    [(1, None, False), (6, None, True), (6, 180, False), (10, 180, True), (-3, None, False)],
)
def test_a_map_is_stale_after_five_minutes_or_three_heartbeats(
    minutes: int, heartbeat: int | None, stale: bool
) -> None:
    as_of = (NOW - dt.timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    found = the_map(node(), topology(asOf=as_of, heartbeatSeconds=heartbeat))
    assert found.stale is stale
    assert age_seconds(found, NOW) == max(minutes * 60, 0)


def test_the_same_map_is_stale_later() -> None:
    known = cluster(node(), topology())
    first = node_map(known, "a", NOW)
    later = node_map(known, "a", NOW + dt.timedelta(hours=1))
    assert first and later and (first.stale, later.stale) == (False, True)


# -- the agent's object --------------------------------------------------------------------------


def test_links_nics_holders_and_fabric_are_read() -> None:
    found = the_map(
        node(),
        topology(
            links=["X NV16 PIX", "NV16 X SYS"],
            held={0: "p"},
            gpus={
                0: {"nvlinks": {"active": 16, "total": 18, "down": [3, 7]}},
                1: {"nvlinks": {"active": 18, "total": 18}},
            },
            nics=[{"name": "mlx5_0", "linkLayer": "InfiniBand", "state": "Active"}],
            fabric={"clusterUUID": "u", "cliqueID": 3, "state": "completed", "healthy": True},
            problems=["Xid history: permission denied"],
        ),
    )
    assert found.links == (Link(0, 1, "NV16", 16, 18),)
    assert found.links[0].degraded
    assert found.gpus[0].nvlinks_down == (3, 7)
    assert found.nics == (
        Nic("mlx5_0", link_layer="InfiniBand", state="Active", levels={0: "PIX", 1: "SYS"}),
    )
    assert found.holders == (Holder(0, "default", "p"),)
    assert found.fabric == Fabric("u.3", "completed", True)
    assert found.problems == ("Xid history: permission denied",)


@pytest.mark.parametrize(
    ("links", "kept", "problems"),
    [
        (["X NV4", "NV2 X"], (), ("links contradict each other for GPU 0 and 1",)),
        (["X ?", "NV4 X"], (Link(0, 1, "NV4", 4),), ()),
        (["X NV4", "NV4"], None, ("links is not a matrix of 2 rows and 2 columns",)),
    ],
)
def test_a_matrix_that_contradicts_itself_tells_nothing(
    links: list[str], kept: tuple[Link, ...] | None, problems: tuple[str, ...]
) -> None:
    found = the_map(node(), topology(links=links))
    assert (found.links, found.problems) == (kept, problems)


def test_a_holder_of_a_device_that_is_not_there_is_a_problem() -> None:
    holders = [{"device": "GPU-gone", "namespace": "default", "pod": "p"}]
    found = the_map(node(), topology(holders=holders))
    assert found.holders == ()
    assert found.problems == ("default/p holds GPU-gone, which is none of the node's GPUs",)


def test_the_schema_before_is_read_from_the_text_of_nvidia_smi() -> None:
    matrix = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
    matrix += "GPU0\t X \tNV4\t0-23\t0\nGPU1\tNV4\t X \t0-23\t0\n"
    found = the_map(node(), topology(schema=1, matrix=matrix, gpus={}, links=["X"]))
    assert (found.source, found.count, found.links) == ("agent", 2, (Link(0, 1, "NV4", 4),))
    assert [gpu.numa for gpu in found.gpus] == [0, 0]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (topology(schema=3), "GpuTopology a has schema 3, this program reads 2 and 1"),
        (topology(schema=0), "GpuTopology a does not say its schema"),
        (
            topology(version="v2"),
            "GpuTopology a is of gpu-admit.io/v2, this program reads gpu-admit.io/v1alpha1",
        ),
        (
            topology(schema=1, matrix="nothing"),
            "GpuTopology a: no matrix of nvidia-smi topo -m is in this text",
        ),
        (
            topology(asOf="yesterday"),
            "GpuTopology a: 'yesterday' is not a time such as 2026-12-31T18:00:00Z",
        ),
        (topology(gpus={1: {"index": 0}}), "GpuTopology a names a GPU index twice"),
    ],
)
def test_an_object_that_cannot_be_used_is_a_problem_of_the_next_best_map(
    document: dict[str, Any], problem: str
) -> None:
    found = the_map(labelled(product="NVIDIA-H100-80GB-HBM3"), document)
    assert found.source == "labels"
    assert found.problems == (problem,)


def test_a_fork_with_another_map_does_not_see_the_old_one() -> None:
    known = cluster(node(), topology())
    assert node_map(known, "a", NOW)
    twin = known.fork()
    (obj,) = cluster(topology(links=rows(8, "NV12"))).every("GpuTopology")
    twin.apply(obj)
    ours, theirs = node_map(known, "a", NOW), node_map(twin, "a", NOW)
    assert ours and theirs and ours.links and theirs.links
    assert (ours.links[0].type, theirs.links[0].type) == ("NV18", "NV12")
