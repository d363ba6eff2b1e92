"""Who would have to go: the dry run of DefaultPreemption and its choice among the nodes."""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.preemption import Preemption, dry_run
from tests.placement.build import HOST, NOW, cluster, decoded, node, pod


def tried(given: Cluster, asking: Pod) -> Preemption:
    cycle = Cycle(given, asking)
    return dry_run(cycle, cycle.verdicts(), now=NOW)


def victims(answer: Preemption) -> tuple[str, list[str], int] | None:
    """(node, names of the victims, violations) of the chosen candidate."""
    chosen = answer.candidate
    return (
        None
        if chosen is None
        else (
            chosen.node,
            [v.name for v in chosen.victims],
            chosen.violations,
        )
    )


def runs(name: str, on: str, gpus: int = 4, priority: int = 0, start: str = "", **more: Any) -> Pod:
    status = {"startTime": f"2026-11-29T{start}:00Z"} if start else {}
    return pod(name, gpus, on=on, priority=priority, status=status, **more)


def budget(name: str, allowed: int, **selector: str) -> KubeObject:
    return decoded(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": selector} if selector else {}},
            "status": {"disruptionsAllowed": allowed},
        }
    )


def asks(gpus: int = 4, priority: int = 1000, **more: Any) -> Pod:
    return pod("asking", gpus, priority=priority, **more)


def test_only_lower_priorities_go() -> None:
    given = cluster(node("a"), runs("same", "a", 4, 1000), runs("lower", "a", 4, 999))
    assert victims(tried(given, asks())) == ("a", ["lower"], 0)
    assert victims(tried(given, asks(8))) is None
    assert victims(tried(given, asks(priority=999))) is None


def test_what_need_not_go_stays_the_more_important_first() -> None:
    given = cluster(
        node("a"),
        runs("old", "a", 4, 10, "08:00"),
        runs("young", "a", 4, 10, "09:00"),
    )
    assert victims(tried(given, asks(4))) == ("a", ["young"], 0)
    given = cluster(node("a"), runs("low", "a", 4, 5, "08:00"), runs("high", "a", 4, 6, "09:00"))
    assert victims(tried(given, asks(4))) == ("a", ["low"], 0)
    assert victims(tried(given, asks(8))) == ("a", ["high", "low"], 0)


def test_pods_that_a_budget_protects_go_last() -> None:
    protected = runs("protected", "a", 4, 5, labels={"app": "x"})
    given = cluster(node("a"), protected, runs("bare", "a", 4, 6), budget("b", 0, app="x"))
    assert victims(tried(given, asks(4))) == ("a", ["bare"], 0)
    assert victims(tried(given, asks(8))) == ("a", ["bare", "protected"], 1)
    allowed = cluster(node("a"), protected, budget("b", 1, app="x"))
    assert victims(tried(allowed, asks(8))) == ("a", ["protected"], 0)


def test_a_budget_is_used_up_by_the_first_it_allows() -> None:
    both = [runs(f"p{i}", "a", 4, 5, f"0{i}:00", labels={"app": "x"}) for i in (8, 9)]
    given = cluster(node("a"), *both, budget("b", 1, app="x"))
    assert victims(tried(given, asks(8))) == ("a", ["p8", "p9"], 1)


def test_a_budget_without_selector_or_with_an_empty_one_protects_nobody() -> None:
    given = cluster(node("a"), runs("p", "a", 8, 5, labels={"app": "x"}), budget("b", 0))
    assert victims(tried(given, asks(8))) == ("a", ["p"], 0)


def test_the_node_is_chosen_in_the_schedulers_order() -> None:
    nodes = [node("a"), node("b")]

    def chosen(*pods: KubeObject) -> str | None:
        answer = tried(cluster(*nodes, *pods), asks(8))
        return answer.candidate.node if answer.candidate else None

    guarded = runs("g", "a", 8, 1, labels={"app": "x"})
    fewest_violations = (guarded, runs("p", "b", 8, 500), budget("b", 0, app="x"))
    assert chosen(*fewest_violations) == "b"
    assert chosen(runs("p", "a", 8, 6), runs("q", "b", 8, 5)) == "b"
    lower_sum = (
        runs("p", "a", 4, 5),
        runs("q", "a", 4, 5),
        runs("r", "b", 4, 5),
        runs("s", "b", 4, 4),
    )
    assert chosen(*lower_sum) == "b"
    assert chosen(runs("p", "a", 8, 5, "08:00"), runs("q", "b", 8, 5, "09:00")) == "b"
    assert chosen(runs("p", "a", 8, 5), runs("q", "b", 8, 5)) == "a"


def test_nodes_that_preemption_cannot_help_are_not_tried() -> None:
    given = cluster(
        node("large", 8),
        node("small", 4),
        node("tainted", 8, taints=[{"key": "x", "effect": "NoSchedule"}]),
        runs("p", "large", 8, 2000),
        runs("q", "tainted", 8, 0),
    )
    answer = tried(given, asks(8))
    assert (answer.candidates, answer.message) == (
        (),
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling.",
    )


def test_a_node_that_stays_too_full_says_why() -> None:
    given = cluster(node("a"), runs("low", "a", 2, 0), runs("high", "a", 4, 5000))
    assert tried(given, asks(8)).message == (
        "preemption: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )


def test_preemption_policy_never() -> None:
    given = cluster(node("a"), runs("p", "a", 8, 0))
    answer = tried(given, asks(8, preemptionPolicy="Never"))
    assert (answer.candidate, answer.message) == (
        None,
        "preemption: not eligible due to preemptionPolicy=Never.",
    )


def test_the_message_of_success() -> None:
    given = cluster(node("a"), runs("p", "a", 4, 0), runs("q", "a", 4, 0))
    assert tried(given, asks(8)).message == (
        "preemption: found a potential placement for pod on node a, preempting 2 victims"
    )


def test_whoever_refuses_by_anti_affinity_can_be_preempted() -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    given = cluster(
        node("a"),
        runs("avoided", "a", 0, 5, labels={"app": "x"}),
        runs("other", "a", 0, 5),
        runs("avoider", "a", 0, 6, affinity=apart),
    )
    asking = asks(0, labels={"app": "x"}, affinity=apart)
    assert victims(tried(given, asking)) == ("a", ["avoider", "avoided"], 0)


def test_the_spread_is_counted_without_the_victims() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    given = cluster(
        node("a"),
        node("b", taints=[{"key": "x", "effect": "NoSchedule"}]),
        runs("p", "a", 0, 5, "08:00", labels={"app": "x"}),
        runs("q", "a", 0, 5, "09:00", labels={"app": "x"}),
    )
    asking = asks(0, labels={"app": "x"}, topologySpreadConstraints=[constraint])
    assert victims(tried(given, asking)) == ("a", ["p", "q"], 0)
