"""A pod with spec.nodeName: bound past the scheduler, judged by what the kubelet checks."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.place import Placed, place
from tests.placement.build import GPU, NOW, cluster, node, pod

TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}


def placed(given: Cluster, asking: Pod, count: int = 1) -> Placed:
    return place(given, asking, count, now=NOW)


def told(answer: Placed) -> list[tuple[str, str, str]]:
    return [(f.reason, f.detail, f.field) for f in answer.findings]


def test_taints_and_cordons_do_not_hold_back_a_pod_that_names_its_node() -> None:
    given = cluster(node("a", taints=[TAINT], cordoned=True), node("b"))
    answer = placed(given, pod(gpus=2, nodeName="a"), 2)
    assert (answer.places, answer.placement, answer.findings) == (("a", "a"), "fits", ())
    assert answer.decided_by == "the kubelet of a"
    assert [(v.node, v.fits) for v in answer.nodes] == [("a", True), ("b", False)]


def test_what_is_held_makes_the_kubelet_refuse_and_the_pod_fail() -> None:
    given = cluster(node("a"), node("b"), pod("other", 5, on="a"))
    answer = placed(given, pod(gpus=2, nodeName="a"), 2)
    assert (answer.places, answer.placement) == (("a",), "never")
    assert told(answer) == [
        (
            "placement/kubelet-refuses",
            "pod 2 of 2: spec.nodeName names a, whose kubelet would refuse it"
            f" (OutOf{GPU}): {GPU} asked 2 · used 7 · capacity 8",
            "/spec/nodeName",
        )
    ]
    assert [s.patch for f in answer.findings for s in f.suggest] == [
        ({"op": "remove", "path": "/spec/nodeName"},)
    ]


def test_a_taint_of_effect_no_execute_makes_the_kubelet_refuse() -> None:
    given = cluster(node("a", taints=[{"key": "down", "effect": "NoExecute"}]))
    answer = placed(given, pod(nodeName="a"))
    assert answer.placement == "never"
    assert told(answer) == [
        (
            "placement/kubelet-refuses",
            "spec.nodeName names a, whose kubelet would refuse it (TaintToleration):"
            " node(s) had untolerated taint(s)",
            "/spec/nodeName",
        )
    ]


def test_labels_that_do_not_match_make_the_kubelet_refuse() -> None:
    asking: dict[str, Any] = {"nodeName": "a", "nodeSelector": {"pool": "train"}}
    answer = placed(cluster(node("a")), pod(**asking))
    assert (answer.placement, [f.reason for f in answer.findings]) == (
        "never",
        ["placement/kubelet-refuses"],
    )


def test_the_kubelet_does_not_look_at_a_resource_that_the_node_does_not_list() -> None:
    assert placed(cluster(node("a", gpus=None)), pod(gpus=1, nodeName="a")).placement == "fits"
    assert placed(cluster(node("a", gpus=0)), pod(gpus=1, nodeName="a")).placement == "never"


def test_a_node_that_is_not_there_is_never() -> None:
    answer = placed(cluster(node("a")), pod(nodeName="gone"))
    assert (answer.placement, [f.reason for f in answer.findings]) == (
        "never",
        ["placement/no-such-node"],
    )
