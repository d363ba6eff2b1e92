"""Pods that name their node go past the scheduler: the kubelet's rules, and nobody waits."""

from __future__ import annotations

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.place import Placed, place
from tests.placement.build import GPU, NOW, cluster, node, pod


def told(given: Cluster, asking: Pod, count: int = 1) -> tuple[str, tuple[str, ...], list[str]]:
    found: Placed = place(given, asking, count, now=NOW)
    return found.placement, found.places, [f.reason for f in found.findings]


def test_a_taint_that_only_the_scheduler_heeds_does_not_stop_it() -> None:
    given = cluster(node("n", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]))
    assert told(given, pod(gpus=1, on="n")) == ("fits", ("n",), [])


def test_a_cordon_does_not_stop_it() -> None:
    assert told(cluster(node("n", cordoned=True)), pod(gpus=1, on="n")) == ("fits", ("n",), [])


def test_a_taint_that_executes_stops_it() -> None:
    given = cluster(node("n", taints=[{"key": "a", "effect": "NoExecute"}]))
    assert told(given, pod(gpus=1, on="n")) == ("never", (), ["placement/kubelet-refuses"])


def test_too_few_free_gpus_fail_it_and_it_does_not_wait() -> None:
    given = cluster(node("n", 8), pod("other", 6, on="n"))
    found = place(given, pod(gpus=4, on="n"), 1, now=NOW)
    assert found.placement == "never"
    (finding,) = found.findings
    assert finding.detail == (
        "the kubelet of n refuses it at once (OutOfnvidia.com/gpu), it does not wait"
    )
    assert [(e.subject, e.what, e.observed, e.wanted) for e in finding.evidence] == [
        ("Node n", GPU, 2, 4)
    ]


def test_the_replica_after_the_last_free_gpu_is_refused() -> None:
    assert told(cluster(node("n", 2)), pod(gpus=1, on="n"), 3) == (
        "never",
        ("n", "n"),
        ["placement/kubelet-refuses"],
    )


def test_a_node_that_does_not_exist_starts_nothing() -> None:
    found = place(cluster(node("n")), pod(gpus=1, on="ghost"), 1, now=NOW)
    assert (found.placement, [f.detail for f in found.findings]) == (
        "never",
        ["the pod names node ghost, which does not exist: nobody starts it"],
    )


def test_a_node_without_the_resource_starts_it_without() -> None:
    assert told(cluster(node("n", None)), pod(gpus=1, on="n")) == (
        "fits",
        ("n",),
        ["placement/node-without-resource"],
    )


def test_labels_that_do_not_match_are_refused_by_the_kubelet_too() -> None:
    asking = pod(gpus=1, on="n", nodeSelector={"zone": "a"})
    assert told(cluster(node("n")), asking) == ("never", (), ["placement/kubelet-refuses"])
