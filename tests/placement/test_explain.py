"""Findings: the permanent blocker first, folded, with the numbers of one node, and what to try."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.place import Placed, place
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Remedy
from tests.placement.build import GPU, HOST, NOW, ZONE, cluster, node, pod

PRESENT = [{"key": GPU, "value": "present", "effect": "NoSchedule"}]


def fleet(*pods: Pod) -> Cluster:
    """Three inference nodes, two tainted training nodes, eight GPUs each."""
    inference = [node(f"inf-{i}", labels={"gpu-partition": "inf"}) for i in range(3)]
    training = [
        node(f"trn-{i}", labels={"gpu-partition": "train"}, taints=PRESENT) for i in range(2)
    ]
    return cluster(*inference, *training, *pods)


def refused(given: Cluster, asking: Pod, count: int = 1) -> Placed:
    return place(given, asking, count, now=NOW)


def said(answer: Placed) -> list[tuple[Level, str, str]]:
    return [(f.level, f.reason, f.detail) for f in answer.findings]


def patches(answer: Placed) -> list[tuple[str, tuple[dict[str, Any], ...], int]]:
    return [(r.summary, r.patch, r.cost) for r in answer.findings[0].suggest]


TAINTED: tuple[Level, str, str] = (
    "audit",
    "placement/taint",
    "2 nodes: taint nvidia.com/gpu=present:NoSchedule",
)


def test_a_label_value_that_no_node_carries() -> None:
    answer = refused(fleet(), pod(gpus=1, nodeSelector={"gpu-partition": "trian"}))
    assert answer.placement == "never"
    assert answer.findings[0] == Finding(
        reason="placement/no-such-label",
        detail="no node carries gpu-partition=trian (known values: inf, train)",
        evidence=(Evidence("5 nodes", "gpu-partition", "inf, train", "trian", "metadata.labels"),),
        permanent=True,
        field="/spec/nodeSelector/gpu-partition",
        suggest=(
            Remedy(
                "nodeSelector gpu-partition: train instead of trian",
                (
                    {
                        "op": "replace",
                        "path": "/spec/nodeSelector/gpu-partition",
                        "value": "train",
                    },
                ),
                cost=0,
            ),
            Remedy(
                "nodeSelector gpu-partition: inf instead of trian",
                ({"op": "replace", "path": "/spec/nodeSelector/gpu-partition", "value": "inf"},),
                cost=10,
            ),
            Remedy(
                "no nodeSelector gpu-partition",
                ({"op": "remove", "path": "/spec/nodeSelector"},),
                cost=20,
            ),
        ),
        rule="placement",
        level="deny",
        fidelity="exact",
    )
    assert said(answer)[1:] == [TAINTED]


def test_a_label_key_that_no_node_carries() -> None:
    selector = {"gpu-partiton": "train", "kubernetes.io/hostname": "trn-0"}
    answer = refused(fleet(), pod(gpus=1, nodeSelector=selector))
    assert answer.findings[0].detail == (
        "no node carries a label gpu-partiton (did you mean gpu-partition?)"
    )
    assert patches(answer)[0] == (
        "nodeSelector gpu-partition instead of gpu-partiton",
        (
            {"op": "remove", "path": "/spec/nodeSelector/gpu-partiton"},
            {"op": "add", "path": "/spec/nodeSelector/gpu-partition", "value": "train"},
        ),
        0,
    )
    assert patches(answer)[1] == (
        "no nodeSelector gpu-partiton",
        ({"op": "remove", "path": "/spec/nodeSelector/gpu-partiton"},),
        20,
    )


def test_the_nodes_that_the_pod_selects_are_spoken_of() -> None:
    answer = refused(fleet(), pod(gpus=1, nodeSelector={"gpu-partition": "train"}))
    assert said(answer) == [
        ("deny", "placement/taint", "2 nodes: taint nvidia.com/gpu=present:NoSchedule"),
        ("audit", "placement/node-affinity", "3 nodes: labels do not match gpu-partition=train"),
    ]
    tolerate = {"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    assert patches(answer) == [
        (
            "tolerate nvidia.com/gpu:NoSchedule",
            ({"op": "add", "path": "/spec/tolerations", "value": [tolerate]},),
            15,
        ),
        ("no nodeSelector gpu-partition", ({"op": "remove", "path": "/spec/nodeSelector"},), 20),
    ]


def test_a_toleration_is_appended_to_those_that_are_there() -> None:
    others = [{"key": "x", "operator": "Exists"}]
    asking = pod(gpus=1, nodeSelector={"gpu-partition": "train"}, tolerations=others)
    (op,) = patches(refused(fleet(), asking))[0][1]
    assert (op["op"], op["path"]) == ("add", "/spec/tolerations/-")


def test_more_than_any_node_has() -> None:
    answer = refused(fleet(pod("p", 6, on="inf-0")), pod(gpus=16))
    first = answer.findings[0]
    assert (answer.placement, first.reason, first.detail) == (
        "never",
        "placement/no-node-large-enough",
        "asks 16 nvidia.com/gpu, the largest node has 8",
    )
    assert first.evidence == (
        Evidence("Node inf-1", GPU, "8", "16", "allocatable 8, 0 requested by 0 pods", "least"),
    )
    assert patches(answer) == [
        (
            "8 nvidia.com/gpu a pod instead of 16",
            (
                {
                    "op": "replace",
                    "path": "/spec/containers/0/resources/requests/nvidia.com~1gpu",
                    "value": "8",
                },
            ),
            40,
        )
    ]


def test_none_of_the_selected_nodes_has_the_resource() -> None:
    given = cluster(node("a", labels={"pool": "x"}), node("b", None, labels={"pool": "y"}))
    answer = refused(given, pod(gpus=1, nodeSelector={"pool": "y"}))
    assert said(answer) == [
        (
            "deny",
            "placement/no-node-large-enough",
            "asks 1 nvidia.com/gpu, no node that it may use has any",
        ),
        ("audit", "placement/node-affinity", "1 node: labels do not match pool=y"),
    ]


def test_a_resource_that_no_node_advertises() -> None:
    answer = refused(fleet(), pod(asks={"nvidia.com/gpuu": "1"}))
    assert said(answer)[0] == (
        "deny",
        "placement/no-such-resource",
        "no node advertises nvidia.com/gpuu (did you mean nvidia.com/gpu?)",
    )
    at = "/spec/containers/0/resources/requests/"
    assert patches(answer) == [
        (
            "nvidia.com/gpu instead of nvidia.com/gpuu",
            (
                {"op": "remove", "path": f"{at}nvidia.com~1gpuu"},
                {"op": "add", "path": f"{at}nvidia.com~1gpu", "value": "1"},
            ),
            0,
        )
    ]


def test_without_device_classes_in_the_source_the_name_may_still_be_right() -> None:
    given = cluster(node("a"), known=("Node", "Pod"))
    answer = place(given, pod(asks={"example.com/gpu": "1"}), 1, now=NOW)
    assert answer.placement == "never"
    assert [(u.level, u.missing) for u in answer.unknowns] == [
        ("audit", "DeviceClass objects: not in the source, one could supply example.com/gpu")
    ]


def test_enough_is_free_but_scattered() -> None:
    running = [pod(f"p{i}", 6, on=f"inf-{i}") for i in range(3)]
    answer = refused(fleet(*running), pod(gpus=4))
    first = answer.findings[0]
    assert (answer.placement, first.reason, first.permanent, first.detail) == (
        "waits",
        "placement/fragmented",
        False,
        "asks 4 nvidia.com/gpu on one node: 6 are free, at most 2 on one node",
    )
    assert first.evidence == (
        Evidence("3 nodes", f"{GPU} free in total", 6, None),
        Evidence("Node inf-0", GPU, "2", "4", "allocatable 8, 6 requested by 1 pod", "least"),
    )
    # the tainted nodes are free: a toleration is worth trying as well
    assert [summary for summary, _, _ in patches(answer)] == [
        "2 nvidia.com/gpu a pod instead of 4",
        "tolerate nvidia.com/gpu:NoSchedule",
    ]
    assert said(answer)[1:] == [TAINTED]


def test_a_place_kept_for_a_pod_that_preempted_others_is_not_told_as_free() -> None:
    promised = pod("serve", 8, priority=1000, status={"nominatedNodeName": "n"})
    (found,) = refused(cluster(node("n"), promised), pod(gpus=4)).findings
    assert found.detail == (
        "needs 4 nvidia.com/gpu, n has 0 free of 8, room there is kept for default/serve"
    )
    assert found.evidence[0].source == (
        "allocatable 8, 8 requested by 0 pods, room there is kept for default/serve"
    )


def test_all_that_lacks_is_told_of_one_node() -> None:
    """inf-0 lacks GPUs and cpu, inf-1 GPUs alone: the numbers are inf-1's, though it has fewer."""
    running = [
        pod("p0", 6, on="inf-0", asks={"cpu": "60"}),
        pod("p1", 7, on="inf-1"),
        pod("p2", 8, on="inf-2", asks={"cpu": "60"}),
    ]
    answer = refused(fleet(*running), pod(gpus=8, asks={"cpu": "8", "memory": "1Gi"}))
    assert answer.findings[0].detail == "needs 8 nvidia.com/gpu, inf-1 has 1 free of 8"
    assert answer.findings[0].evidence == (
        Evidence("Node inf-1", GPU, "1", "8", "allocatable 8, 7 requested by 1 pod", "least"),
    )


def test_cpu_and_memory_are_told_in_their_own_units() -> None:
    given = cluster(node("a"), pod("p", on="a", asks={"cpu": "60500m", "memory": "100Gi"}))
    answer = refused(given, pod(asks={"cpu": "4", "memory": "200Gi"}))
    assert [f.detail for f in answer.findings] == [
        "needs 4 cpu, a has 3500m free of 64",
        "needs 200Gi memory, a has 156Gi free of 256Gi",
    ]
    assert answer.findings[0].evidence == (
        Evidence(
            "Node a", "cpu", "3500m", "4", "allocatable 64, 60500m requested by 1 pod", "least"
        ),
        Evidence(
            "Node a",
            "memory",
            "156Gi",
            "200Gi",
            "allocatable 256Gi, 100Gi requested by 1 pod",
            "least",
        ),
    )


def test_a_cordon_is_waited_for_and_told_once() -> None:
    unschedulable = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    given = cluster(node("a", cordoned=True, taints=unschedulable), node("b", 4))
    answer = refused(given, pod(gpus=8))
    assert answer.placement == "waits"
    assert said(answer) == [
        ("deny", "placement/cordoned", "1 node cordoned"),
        ("audit", "placement/insufficient", "1 node: too little nvidia.com/gpu"),
    ]
    assert answer.waits_for == ("a takes it once uncordoned",)


def test_free_gpus_of_a_cordoned_node_are_not_counted_as_scattered() -> None:
    given = cluster(node("a"), node("b"), node("c", cordoned=True), pod("p", 7, on="a"))
    given.apply(pod("q", 8, on="b"))
    answer = refused(given, pod(gpus=2))
    assert said(answer) == [
        ("deny", "placement/cordoned", "1 node cordoned"),
        ("deny", "placement/insufficient", "needs 2 nvidia.com/gpu, a has 1 free of 8"),
    ]


def test_a_node_condition_is_waited_for() -> None:
    given = cluster(
        node("a", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    )
    answer = refused(given, pod(gpus=8))
    assert (answer.placement, [f.detail for f in answer.findings]) == (
        "waits",
        ["1 node: taint node.kubernetes.io/not-ready:NoSchedule (until the node is Ready)"],
    )
    assert answer.findings[0].suggest == ()


def test_domains_of_one_topology_key_are_told_together() -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    running = [pod(f"p{i}", on=f"n{i}", labels={"app": "x"}) for i in range(3)]
    answer = refused(cluster(*(node(f"n{i}") for i in range(3)), *running), pod(affinity=apart))
    assert (answer.placement, [f.detail for f in answer.findings]) == (
        "waits",
        ["3 nodes: a pod that it avoids runs there (app=x in kubernetes.io/hostname)"],
    )


def test_a_hard_spread_may_be_softened() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    asking = pod(labels={"app": "x"}, topologySpreadConstraints=[constraint])
    answer = refused(cluster(node("a")), asking)
    assert (answer.placement, answer.findings[0].detail) == (
        "never",
        "1 node: no label topology.kubernetes.io/zone to spread over",
    )
    assert patches(answer) == [
        (
            "spread over topology.kubernetes.io/zone only where possible",
            (
                {
                    "op": "replace",
                    "path": "/spec/topologySpreadConstraints/0/whenUnsatisfiable",
                    "value": "ScheduleAnyway",
                },
            ),
            35,
        )
    ]


def test_a_missing_claim_is_told_in_the_schedulers_words() -> None:
    asking = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    answer = refused(fleet(), asking)
    assert answer.placement == "never"
    assert said(answer) == [
        ("deny", "placement/volume-missing", 'persistentvolumeclaim "data" not found')
    ]
    assert answer.message == (
        '0/5 nodes are available: persistentvolumeclaim "data" not found. not found'
    )


def test_fewer_replicas_are_judged_by_what_fits_now_and_ever() -> None:
    answer = refused(fleet(), pod(gpus=8), 5)
    assert said(answer) == [
        (
            "deny",
            "placement/too-many-replicas",
            "asks 5 pods: 3 fit now, 3 would if nothing else ran",
        ),
        ("audit", "placement/insufficient", "needs 8 nvidia.com/gpu, inf-0 has 0 free of 8"),
        TAINTED,
    ]
    assert [summary for summary, _, _ in patches(answer)] == ["tolerate nvidia.com/gpu:NoSchedule"]
    assert {f.fidelity for f in answer.findings} == {"modelled"}
