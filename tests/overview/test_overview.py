"""What ``topo`` tells of a fleet: states, holders, islands, placements left, alerts."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.overview.build import overview
from kubectl_gpuadmit.overview.model import Demand, Held, NodeView, Overview
from tests.overview.fleet import GPU, cluster, hgx, map_of, policy, runs
from tests.placement.build import KNOWN, NOW, decoded, node, pod


def seen(*objects: Any, **more: Any) -> Overview:
    given = cluster(*objects, **{k: v for k, v in more.items() if k == "known"})
    only = more.get("only", ())
    return overview(given, policy(), now=NOW, source="s", kind="snapshot", only=only)


def one(*objects: Any, **more: Any) -> NodeView:
    (found,) = seen(*objects, **more).nodes
    return found


def states(found: NodeView) -> str:
    """One letter a GPU: ``h`` held, ``f`` free, ``r`` unfree, ``x`` unhealthy, ``?`` unknown."""
    letters = {"held": "h", "free": "f", "unfree": "r", "unhealthy": "x", "unknown": "?"}
    return "".join(letters[view.state] for view in found.gpus)


HOLDERS = {0: "a/llama-0", 1: "a/llama-0", 5: "b/sweep-0"}


def agent_node() -> NodeView:
    return one(
        hgx("inf-0"),
        map_of("inf-0", holders=HOLDERS, residue={6: 3174}, lost=(7,)),
        runs("llama-0", "inf-0", 2, workload_class="inference"),
        runs("sweep-0", "inf-0", 1, workload_class="training", namespace="b"),
    )


def test_the_agents_word_says_who_has_which_gpu() -> None:
    found = agent_node()
    assert states(found) == "hhfffhrx"
    assert [view.holders for view in found.gpus[:2]] == [
        (Held("a", "llama-0", "inference", "device-plugin", GPU, "c"),),
        (Held("a", "llama-0", "inference", "device-plugin", GPU, "c"),),
    ]
    assert (found.total, found.held, found.free, found.unfree, found.unhealthy) == (8, 3, 3, 1, 1)
    assert found.islands == ((0, 1, 2, 3, 4, 5, 6),), "what joined the lost one is not known"
    assert found.split is True
    assert found.age_seconds == 12


def test_residue_and_broken_gpus_are_in_no_clean_placement() -> None:
    assert agent_node().clean == {1: 3, 2: 1, 4: 0, 8: 0}
    whole = one(hgx("inf-0"), map_of("inf-0"))
    assert whole.clean == {1: 8, 2: 4, 4: 2, 8: 1}
    assert (states(whole), whole.split) == ("ffffffff", False)


def test_a_pod_that_came_after_the_agent_looked_is_counted_and_not_placed() -> None:
    found = one(
        hgx("inf-0"),
        map_of("inf-0", holders={0: "a/llama-0"}),
        runs("llama-0", "inf-0", 1),
        runs("new-0", "inf-0", 2),
    )
    assert states(found) == "h???????"
    assert found.loose == (Held("a", "new-0", resource=GPU, count=2),)
    assert (found.held, found.free, found.clean, found.split) == (3, 5, None, None)


def test_a_pod_that_has_gone_since_the_agent_looked_holds_nothing() -> None:
    assert states(one(hgx("inf-0"), map_of("inf-0", holders={0: "a/gone-0"}))) == "ffffffff"


def test_without_an_agent_only_all_or_none_is_known() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    bare = node("inf-0", 8, labels={"pool": "inf", **labels})
    known = KNOWN
    empty = one(bare, known=known)
    assert (states(empty), empty.free) == ("ffffffff", 8)
    assert empty.map.source == "labels"
    assert empty.map.assumed != ""
    some = one(bare, runs("x", "inf-0", 3), known=known)
    assert (states(some), some.held, some.free, some.clean) == ("????????", 3, 5, None)
    full = one(bare, runs("x", "inf-0", 8), known=known)
    assert (states(full), full.free, full.clean) == ("hhhhhhhh", 0, {1: 0, 2: 0, 4: 0, 8: 0})


def test_shared_gpus_have_no_count_of_free_ones() -> None:
    labelled = decoded(
        {
            "kind": "Node",
            "metadata": {
                "name": "m",
                "labels": {
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
                    "nvidia.com/gpu.count": "1",
                },
            },
            "status": {"allocatable": {"nvidia.com/mig-1g.10gb": "7"}},
        }
    )
    held = pod("x", on="m", asks={"nvidia.com/mig-1g.10gb": "2"})
    found = one(labelled, held)
    assert (found.sharing, found.held, found.free, found.clean) == ("MIG", None, None, None)
    assert found.loose == (
        Held("default", "x", resource="nvidia.com/mig-1g.10gb", share="1g.10gb", count=2),
    )


def test_devices_of_claims_are_held_by_the_pods_they_are_reserved_for() -> None:
    slice_ = decoded(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": "dra-0",
                "pool": {"name": "dra-0", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"gpu-{i}",
                        "attributes": {
                            "type": {"string": "gpu"},
                            "uuid": {"string": f"GPU-{i}"},
                            "productName": {"string": "NVIDIA H100 80GB HBM3"},
                        },
                        "capacity": {"memory": {"value": "81559Mi"}},
                    }
                    for i in range(2)
                ],
            },
        }
    )
    claim = decoded(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "a", "uid": "u"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {}}]}},
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {
                                "request": "gpu",
                                "driver": "gpu.nvidia.com",
                                "pool": "dra-0",
                                "device": "gpu-1",
                            }
                        ]
                    }
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
            },
        }
    )
    found = one(
        node("dra-0", None), slice_, claim, runs("p", "dra-0", 0, workload_class="training")
    )
    assert (found.map.source, states(found)) == ("slices", "fh")
    assert found.gpus[1].holders == (Held("a", "p", "training", "dra", "a/c"),)


def test_pools_are_sums_and_tell_what_of_the_demand_can_be_placed() -> None:
    found = seen(
        hgx("inf-0"),
        map_of("inf-0", holders={0: "a/x-0"}),
        runs("x-0", "inf-0", 1),
        hgx("inf-1"),
        map_of("inf-1"),
        hgx("trn-0", pool="train", cordoned=True),
        map_of("trn-0"),
        pod("waits", 8, namespace="a", nodeSelector={"pool": "inf"}),
        pod("waits-too", 8, namespace="a", nodeSelector={"pool": "inf"}),
    )
    inf, train = found.pools
    assert (inf.name, inf.nodes, inf.total, inf.held, inf.free) == ("inf", 2, 16, 1, 15)
    assert inf.clean == {1: 15, 2: 7, 4: 3, 8: 1}
    assert (inf.split, inf.unclear) == (1, 0)
    assert inf.demand == (Demand(8, 2, 1, 1),)
    assert (train.free, train.clean) == (8, {1: 0, 2: 0, 4: 0, 8: 0}), "a cordoned node takes none"


def test_alerts_come_gravest_first_and_missing_facts_last() -> None:
    found = seen(
        hgx("inf-0"),
        map_of("inf-0", residue={6: 3174}, lost=(7,), down={2: (3, 4, 5, 6)}),
        hgx("inf-1", cordoned=True),
        map_of("inf-1", as_of="2026-11-29T11:19:00Z"),
    )
    assert [(a.code, a.severity, a.node, a.gpu) for a in found.alerts] == [
        ("gpu-lost", "alert", "inf-0", 7),
        ("link-down", "alert", "inf-0", 2),
        ("residue", "alert", "inf-0", 6),
        ("cordon", "alert", "inf-1", None),
        ("stale-map", "unknown", "inf-1", None),
    ]
    assert found.alerts[1].what == "GPU 2   NVLink 14 of 18 links up (down: 3, 4, 5, 6)"
    assert found.alerts[1].effect == "degraded since 09:12 UTC"
    assert found.alerts[2].what == "GPU 6   3.1 GiB in use by nobody (residue)"
    assert found.alerts[4].what == "map 41 min old, agent silent"


def test_a_stale_map_leaves_no_placement_known() -> None:
    found = one(hgx("inf-0"), map_of("inf-0", as_of="2026-11-29T11:19:00Z"))
    assert (found.map.stale, found.clean) == (True, None)


def test_a_node_in_both_modes_has_two_owners() -> None:
    slice_ = decoded(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": "inf-0",
                "pool": {"name": "inf-0", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"gpu-{i}",
                        "attributes": {
                            "type": {"string": "gpu"},
                            "uuid": {"string": f"GPU-inf-0-{i}"},
                        },
                    }
                    for i in range(8)
                ],
            },
        }
    )
    found = seen(hgx("inf-0"), map_of("inf-0"), slice_)
    assert [alert.code for alert in found.alerts] == ["two-owners"]


def test_unhealthy_devices_without_a_map_are_an_alert() -> None:
    sick = decoded(
        {
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {GPU: "6"}, "capacity": {GPU: "8"}},
        }
    )
    found = seen(sick, known=KNOWN)
    assert [(a.code, a.what) for a in found.alerts] == [
        (
            "missing-gpus",
            "2 GPUs in capacity and not in allocatable: unhealthy to the device plugin",
        )
    ]


def test_only_the_named_nodes_and_pools_are_looked_at() -> None:
    objects = (hgx("inf-0"), map_of("inf-0"), hgx("trn-0", pool="train"), map_of("trn-0"))
    assert [n.name for n in seen(*objects, only={"train"}).nodes] == ["trn-0"]
    assert [n.name for n in seen(*objects, only={"inf-0"}).nodes] == ["inf-0"]


def test_what_the_source_does_not_have_is_said() -> None:
    assert seen(hgx("inf-0"), known=("Node", "Pod")).unknowns == (
        "devices given by DRA: ResourceClaim objects: not in the source",
        "devices published for DRA: ResourceSlice objects: not in the source",
        "links, residue and holders of single GPUs: GpuTopology objects of the agent: not in the"
        " source",
    )
