"""The scheduler's own sentence, put together from the verdicts as FitError.Error() does."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.message import first_refusal, scheduler_message
from kubectl_gpuadmit.placement.place import node_verdicts
from tests.placement.build import GPU, cluster, node, pod


def message(given: Cluster, asking: Pod) -> str:
    return scheduler_message(node_verdicts(given, asking), asking)


def named(*names: str) -> dict[str, Any]:
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in names
    ]
    selector = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def test_the_first_filter_speaks_for_its_node_and_counts_sort_as_text() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    given = cluster(
        *(node(f"t{i}", 1, taints=taints) for i in range(10)),
        *(node(f"s{i}", 1) for i in range(2)),
        node("c", 1, cpu="1"),
    )
    assert message(given, pod(gpus=2, asks={"cpu": "2"})) == (
        "0/13 nodes are available: 1 Insufficient cpu, 10 node(s) had untolerated taint(s), "
        "3 Insufficient nvidia.com/gpu."
    )


def test_no_nodes_and_a_node_that_fits() -> None:
    assert message(cluster(), pod()) == "no nodes available to schedule pods"
    assert message(cluster(node("a")), pod()) == ""


def test_nodes_that_prefilter_leaves_out_are_counted_by_plugin() -> None:
    given = cluster(node("a", 1), node("b"), node("c"))
    assert message(given, pod(gpus=2, affinity=named("a"))) == (
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert message(given, pod(nodeName="x")) == (
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeName]."
    )
    assert message(given, pod(nodeName="b", affinity=named("a"))) == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] "
        "simultaneously."
    )


def test_what_refuses_before_nodes_are_looked_at_is_said_once() -> None:
    field = {"key": "metadata.name", "operator": "In"}
    both = [field | {"values": ["a"]}, field | {"values": ["b"]}]
    selector = {"nodeSelectorTerms": [{"matchFields": both}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    assert message(cluster(node("a"), node("b")), pod(affinity=affinity)) == (
        "0/2 nodes are available: pod affinity terms conflict."
    )


def test_all_lacking_resources_of_a_node_are_said() -> None:
    (verdict,) = node_verdicts(cluster(node("a", 1)), pod(gpus=2, asks={"cpu": "65"}))
    assert first_refusal(verdict.shortfalls) == (
        "NodeResourcesFit",
        ("Insufficient cpu", f"Insufficient {GPU}"),
        True,
    )
    assert first_refusal(()) == ("", (), False)
