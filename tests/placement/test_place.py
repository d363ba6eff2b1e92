"""Replicas go one after another, onto the nodes that the model prefers; the origin stays."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.daemons import nodes_for, place_on_each
from kubectl_gpuadmit.placement.place import Placed, place
from kubectl_gpuadmit.verdict import NodeVerdict
from tests.placement.build import GPU, HOST, KNOWN, NOW, cluster, decoded, node, pod


def placed(given: Cluster, asking: Pod, count: int = 1, **more: Any) -> Placed:
    return place(given, asking, count, now=NOW, **more)


def preferring(key: str, weight: int) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    preferred = [{"weight": weight, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_pods_are_packed_and_ties_go_by_name() -> None:
    given = cluster(node("b"), node("a"), node("c"), pod("p", 4, on="c"))
    answer = placed(given, pod(gpus=2), 7)
    assert answer.places == ("c", "c", "a", "a", "a", "a", "b")
    assert (answer.placement, answer.findings, answer.asked) == ("fits", (), 7)
    assert answer.nodes == tuple(NodeVerdict(n, True) for n in ("a", "b", "c"))


def test_a_pod_without_gpus_leaves_gpu_nodes_alone() -> None:
    given = cluster(node("a", 8), node("b", None))
    assert placed(given, pod(asks={"cpu": "1"})).places == ("b",)


def test_soft_taints_then_preferences_come_before_packing() -> None:
    soft = [{"key": "slow", "effect": "PreferNoSchedule"}]
    given = cluster(
        node("a", 4),
        node("b", 8, labels={"fast": ""}),
        node("c", 2, labels={"fast": ""}, taints=soft),
    )
    assert placed(given, pod(gpus=1)).places == ("a",)
    assert placed(given, pod(gpus=1, affinity=preferring("fast", 5))).places == ("b",)
    tolerant = [{"key": "slow", "operator": "Exists"}]
    asking = pod(gpus=1, affinity=preferring("fast", 5), tolerations=tolerant)
    assert placed(given, asking).places == ("c",)


def test_the_fork_holds_the_pods_and_the_origin_does_not() -> None:
    given = cluster(node("a"))
    answer = placed(given, pod("web", 3), 2, names=("web-x", "web-y"))
    assert [p.name for p in answer.cluster.nodes["a"].pods] == ["web-x", "web-y"]
    assert answer.cluster.nodes["a"].free(GPU) == 2
    assert given.nodes["a"].pods == ()
    assert list(given.pods()) == []
    assert placed(answer.cluster, pod(gpus=3)).placement == "waits"
    assert placed(given, pod(gpus=3)).placement == "fits"


def test_placing_stops_at_the_first_that_finds_no_node() -> None:
    given = cluster(node("a"), node("b"), pod("p", 4, on="b"))
    answer = placed(given, pod(gpus=4), 4)
    assert answer.places == ("b", "a", "a")
    assert answer.placement == "waits"
    assert [(v.node, v.fits, [s.used for s in v.shortfalls]) for v in answer.nodes] == [
        ("a", False, [8]),
        ("b", False, [8]),
    ]


def test_more_replicas_than_could_ever_run_never_fit() -> None:
    given = cluster(node("a"), node("b"), pod("p", 4, on="b"))
    answer = placed(given, pod(gpus=4), 5)
    assert (answer.placement, answer.places) == ("never", ("b", "a", "a"))
    first = answer.findings[0]
    assert (first.reason, first.detail, first.permanent) == (
        "placement/too-many-replicas",
        "asks 5 pods: 3 fit now, 4 would if nothing else ran",
        True,
    )


def test_nothing_asked_is_nothing_wrong() -> None:
    answer = placed(cluster(node("a")), pod(gpus=9), 0)
    assert (answer.placement, answer.places, answer.findings) == ("fits", (), ())


def test_a_host_port_is_served_once_per_node() -> None:
    given = cluster(node("a"), node("b"))
    asking = pod(ports=[{"containerPort": 1, "hostPort": 80}])
    assert placed(given, asking, 2).places == ("a", "b")
    assert placed(given, asking, 3).placement == "never"


def test_replicas_that_avoid_each_other_take_one_node_each() -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    given = cluster(node("a"), node("b"))
    answer = placed(given, pod(labels={"app": "x"}, affinity=apart), 3)
    assert (answer.placement, answer.places) == ("never", ("a", "b"))


def test_replicas_are_spread_as_they_are_placed() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    given = cluster(node("a"), node("b"), node("c", 2))
    asking = pod(gpus=2, labels={"app": "x"}, topologySpreadConstraints=[constraint])
    answer = placed(given, asking, 6)
    assert (answer.places, answer.placement) == (("c", "a", "b", "a", "b"), "never")


def test_a_group_that_starts_together_stays_together() -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    given = cluster(node("a"), node("b"))
    answer = placed(given, pod(gpus=3, labels={"app": "x"}, affinity=near), 3)
    assert (answer.places, answer.placement) == (("a", "a"), "never")


def test_a_gated_pod_takes_no_place() -> None:
    given = cluster(node("a"))
    answer = placed(given, pod(gpus=1, schedulingGates=[{"name": "quota"}, {"name": "other"}]), 2)
    assert (answer.placement, answer.places) == ("waits", ())
    assert answer.cluster.nodes["a"].pods == ()
    assert [(f.reason, f.detail, f.permanent) for f in answer.findings] == [
        ("placement/gated", "held back by scheduling gates: quota, other", False)
    ]
    assert answer.waits_for == ("it is tried once its scheduling gates are removed: quota, other",)
    assert answer.message == "Scheduling is blocked due to non-empty scheduling gates"


def test_what_the_source_lacks_is_unknown_but_never_stays_never() -> None:
    given = cluster(node("a"), known=("Node",))
    assert placed(given, pod(gpus=8)).placement == "unknown"
    assert placed(given, pod(gpus=9)).placement == "never"
    nothing = placed(cluster(known=("Pod",)), pod())
    assert (nothing.placement, [u.missing for u in nothing.unknowns]) == (
        "unknown",
        ["Node objects: not in the source"],
    )
    empty = placed(cluster(), pod())
    assert (empty.placement, empty.message) == ("never", "no nodes available to schedule pods")


def test_a_claim_that_was_not_exported_makes_a_fit_unknown_and_leaves_a_refusal() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "x"}]
    given = cluster(node("a"), known=("Node", "Pod"))
    assert placed(given, pod(resourceClaims=claims)).placement == "unknown"
    assert placed(given, pod(gpus=9, resourceClaims=claims)).placement == "never"


def test_a_resource_that_cannot_be_read_is_unknown() -> None:
    answer = placed(cluster(node("a")), pod(asks={GPU: "many"}))
    assert answer.placement == "unknown"
    assert len(answer.unknowns) == 1


def test_another_scheduler_decides() -> None:
    given = cluster(node("a"))
    own = placed(given, pod(gpus=9, schedulerName="volcano"))
    assert (own.decided_by, {f.fidelity for f in own.findings}) == (
        "scheduler volcano",
        {"modelled"},
    )
    queue = placed(given, pod(gpus=1), decided_by="Kueue LocalQueue team-a")
    assert (queue.decided_by, queue.placement) == ("Kueue LocalQueue team-a", "fits")
    default = placed(given, pod(gpus=9, schedulerName="default-scheduler"))
    assert (default.decided_by, {f.fidelity for f in default.findings}) == ("", {"exact"})


def test_what_if_clusters_share_their_memory_without_mixing() -> None:
    """One board serves all forks: each sees its own pods however often they take turns."""
    given = cluster(node("a"), node("b"))
    left = placed(given, pod("l", 8)).cluster
    right = given.fork()
    right.apply(pod("r", 8, on="b"))
    for _ in range(2):
        assert placed(left, pod(gpus=8)).places == ("b",)
        assert placed(right, pod(gpus=8)).places == ("a",)
        assert placed(given, pod(gpus=8), 2).places == ("a", "b")


def test_a_changed_node_is_seen() -> None:
    given = cluster(node("a", 4))
    assert placed(given, pod(gpus=8)).placement == "never"
    larger = given.fork()
    larger.apply(node("a", 8))
    larger.apply(node("b", 8))
    assert placed(larger, pod(gpus=8), 2).places == ("a", "b")
    assert placed(given, pod(gpus=8)).placement == "never"
    larger.remove("Node", "", "a")
    assert placed(larger, pod(gpus=8)).places == ("b",)


# -- DaemonSets --------------------------------------------------------------------------------


def test_a_daemon_runs_on_cordoned_and_unready_nodes_too() -> None:
    def tainted(key: str, effect: str) -> list[dict[str, str]]:
        return [{"key": key, "effect": effect}]

    given = cluster(
        node("a"),
        node("b", cordoned=True, taints=tainted("node.kubernetes.io/unschedulable", "NoSchedule")),
        node("c", taints=tainted("node.kubernetes.io/not-ready", "NoExecute")),
        node("d", taints=tainted("dedicated", "NoSchedule")),
        node("e", taints=tainted("node.kubernetes.io/network-unavailable", "NoSchedule")),
    )
    assert nodes_for(given, pod()) == ("a", "b", "c")
    assert nodes_for(given, pod(hostNetwork=True)) == ("a", "b", "c", "e")
    answer = place_on_each(given, pod("d"), now=NOW)
    assert (answer.places, answer.placement, answer.asked) == (("a", "b", "c"), "fits", 3)
    assert [len(i.pods) for i in answer.cluster.nodes.values()] == [1, 1, 1, 0, 0]


def test_a_full_node_does_not_hold_up_a_daemons_other_pods() -> None:
    given = cluster(node("a"), node("b"), node("c"), pod("p", 8, on="b"))
    answer = place_on_each(given, pod("d", 1), now=NOW)
    assert (answer.places, answer.placement, answer.asked) == (("a", "c"), "waits", 3)
    assert [v.node for v in answer.nodes] == ["b"]
    assert answer.findings[0].detail == "needs 1 nvidia.com/gpu, b has 0 free of 8"


def test_a_daemon_without_nodes_asks_for_nothing() -> None:
    answer = place_on_each(cluster(node("a")), pod("d", 1, nodeSelector={"x": "y"}), now=NOW)
    assert (answer.places, answer.placement, answer.asked) == ((), "fits", 0)


def test_terminated_pods_of_the_snapshot_hold_nothing() -> None:
    ended = pod("p", 8, on="a", status={"phase": "Failed"})
    assert placed(cluster(node("a"), ended), pod(gpus=8)).placement == "fits"


def test_the_kinds_that_matter_are_known_by_default() -> None:
    assert {"Pod", "Node", "DeviceClass"} <= set(KNOWN)
    assert decoded({"kind": "DeviceClass", "metadata": {"name": "x"}}).kind == "DeviceClass"


def test_before_1_36_a_device_class_supplies_no_extended_resource() -> None:
    mapped = decoded(
        {
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.example.com"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        }
    )
    asking = pod(asks={"example.com/gpu": "1"})

    def answer(kubernetes: str) -> tuple[str, str]:
        placed = place(cluster(node("n", None), mapped), asking, 1, now=NOW, kubernetes=kubernetes)
        return placed.placement, placed.message

    refusal = "0/1 nodes are available: 1 Insufficient example.com/gpu."
    taken = "0/1 nodes are available: 1 cannot allocate all claims."
    assert answer("1.36")[1].startswith(taken)
    assert answer("1.35")[1].startswith(refusal)
