"""What makes a group whole again: found, tried by the engine, and printed only then."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.render.data import document
from kubectl_gpuadmit.render.text import explain
from kubectl_gpuadmit.verdict import Verdict
from tests.placement.build import decoded
from tests.runs import home, only, policy, report, world
from tests.topology.objects import node, pod, rows, topology

PAIRS = ["X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"]
ISLANDS: Policy = policy("rules: {topology/island-integrity: {level: deny}}")
ASK = """\
apiVersion: v1
kind: Pod
metadata: {name: llm, namespace: default}
spec:
  containers:
  - {name: c, image: x, resources: {limits: {nvidia.com/gpu: "2"}}}
"""


def owned(document: dict[str, Any]) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": True}
    document["metadata"]["ownerReferences"] = [owner]
    return document


def verdict(*documents: dict[str, Any], by: Policy = ISLANDS) -> Verdict:
    fresh = [
        {**one, "spec": {**one["spec"], "asOf": "2026-11-29T12:00:00Z"}}
        if one["kind"] == "GpuTopology"
        else one
        for one in documents
    ]
    cluster = world(*home(), *map(decoded, fresh))
    return only(report(ASK, cluster, by, remedies=True))


def test_the_pod_that_stands_in_the_way_of_an_island_is_named_and_its_move_tried() -> None:
    found = verdict(
        node("a", 4),
        topology("a", PAIRS, held={0: "x", 2: "y"}),
        owned(pod("x", "a")),
        owned(pod("y", "a")),
        node("b", 1),
    )
    assert found.blockers == ("topology/no-island",)
    freed = [one for one in found.remedies if "island" in one.summary]
    assert [one.summary for one in freed] == [
        "move default/x from a to b: frees an NVLink island of a"
    ]
    assert freed[0].verified and freed[0].command == "kubectl -n default delete pod x"


def test_a_pod_that_nobody_makes_anew_is_stopped() -> None:
    found = verdict(
        node("a", 4), topology("a", PAIRS, held={0: "x", 2: "y"}), pod("x", "a"), pod("y", "a")
    )
    assert "stop default/x on a: frees an NVLink island of a" in [
        one.summary for one in found.remedies
    ]


def test_the_node_where_the_group_is_whole_is_offered_where_another_would_split_it() -> None:
    found = verdict(
        node("a", 4),
        topology("a", PAIRS, held={0: "x", 2: "y"}),
        pod("x", "a"),
        pod("y", "a"),
        node("b", 4),
        topology("b", rows(4), held={}),
    )
    assert found.blockers == ("topology/may-split",)
    assert found.remedies[0].summary == "only on b"
    assert found.remedies[0].verified


def test_the_mutator_pins_the_node_and_the_rule_agrees() -> None:
    both = policy(
        "rules: {topology/island-integrity: {level: deny}, topology/pin-node: {level: deny}}"
    )
    found = verdict(
        node("a", 4),
        topology("a", PAIRS, held={0: "x", 2: "y"}),
        pod("x", "a"),
        pod("y", "a"),
        node("b", 4),
        topology("b", rows(4), held={}),
        by=both,
    )
    assert (found.admission, found.placement, found.blockers) == ("mutated", "fits", ())
    assert [place.node for place in found.places] == ["b"]


def test_a_report_says_where_its_maps_are_from() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "4"}
    known = node("b", 4)
    known["metadata"]["labels"] |= labels
    stale = topology("c", rows(4), asOf="2026-11-29T11:00:00Z")
    fresh = topology("a", rows(4), asOf="2026-11-29T11:59:30Z", held={})
    cluster = world(*home(), *map(decoded, (node("a", 4), fresh, known, node("c", 4), stale)))
    made = report(ASK, cluster, ISLANDS)
    assert made.topology == (
        "agent maps of 1 node, 30 s old at most; stale agent maps of 1 node; GPU labels of 1 node "
        "(NVLink of 1 by the known machine)"
    )
    assert f"Topology {made.topology}" in " ".join(explain(made).plain.split())
    assert document(made)["topology"] == made.topology


def test_a_report_without_topology_rules_says_nothing_of_maps() -> None:
    cluster = world(*home(), *map(decoded, (node("a", 4), topology("a", rows(4), held={}))))
    made = report(ASK, cluster, policy("rules: {topology/island-integrity: {level: 'off'}}"))
    assert made.topology == ""
    assert "topology" not in document(made)
