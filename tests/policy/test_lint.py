"""Lint says everything at once, and warns of what is sound but doubtful."""

from __future__ import annotations

import datetime as dt

import pytest

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    Node,
    NodeSpec,
    ObjectMeta,
    PriorityClass,
    Taint,
)
from kubectl_gpuadmit.policy.lint import lint
from kubectl_gpuadmit.policy.starter import STARTER
from tests.policy import texts

assert rules.__all__
NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
HEAD = "apiVersion: gpu-admit.io/v1\nkind: AdmissionPolicy\n"
EXAMPLE = (texts.ROOT / "examples/policy.yaml").read_text("utf-8")


def node(name: str, labels: dict[str, str], *taints: Taint) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints))


def warnings(body: str, cluster: Cluster | None = None) -> list[tuple[int, str, str]]:
    found = lint((HEAD + body).encode(), "p.yaml", now=NOW, cluster=cluster)
    assert {problem.severity for problem in found} <= {"warning"}
    return [(problem.line, problem.ref, f"{problem.message} | {problem.hint}") for problem in found]


@pytest.mark.parametrize("text", [STARTER, EXAMPLE, *texts.BLOCKS[:1], *texts.BLOCKS[2:]])
def test_what_we_write_ourselves_lints_clean(text: str) -> None:
    assert lint(text.encode(), "p.yaml", now=NOW) == []


def test_an_expired_exception_is_no_error_and_is_not_passed_over() -> None:
    body = (
        "exceptions:\n- {rules: [labels/*], match: {kinds: [Job]}, owner: ann, reason: r, "
        "expires: 2026-11-28}\n"
    )
    assert warnings(body) == [
        (
            4,
            "policy-exception-expired",
            "expired 12h ago and is no longer in force | remove it, or let ann renew it",
        )
    ]


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ("{resources: {nvidia.com/gpu: '<0'}}", "nvidia.com/gpu is never below 0"),
        (
            "{labels: {a: x}, matchExpressions: [{key: a, operator: NotIn, values: [x]}]}",
            "label a may have no value that it must have",
        ),
        (
            "{labels: {a: x}, matchExpressions: [{key: a, operator: In, values: [z]}]}",
            "label a would need two values at once",
        ),
        (
            "{matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}",
            "label a must be there and must not",
        ),
    ],
)
def test_a_match_that_contradicts_itself_is_named(match: str, why: str) -> None:
    body = f"static:\n- {{name: odd, match: {match}, deny: {{message: m}}}}\n"
    assert warnings(body) == [(4, "policy-never-matches", f"can never match: {why} | ")]


def test_pools_overlap_unless_a_label_tells_them_apart_or_the_nodes_do() -> None:
    body = "pools:\n  a: {nodeSelector: {x: '1'}}\n  b: {nodeSelector: {z: '1'}}\n"
    expected = (
        "policy-pools-overlap",
        "a node can belong to a and b; it counts for a | "
        "give both pools one label key with different values",
    )
    assert [found[1:] for found in warnings(body)] == [expected]
    apart = Cluster.of([node("n0", {"x": "1"}), node("n1", {"z": "1"})])
    assert warnings(body, apart) == []
    both = Cluster.of([node("n0", {"x": "1", "z": "1"})])
    assert "a node can belong to a and b: n0; it counts for a" in warnings(body, both)[0][2]
    assert (
        warnings(
            body.replace("z:", "x:").replace(
                "b: {nodeSelector: {x: '1'", "b: {nodeSelector: {x: '2'"
            )
        )
        == []
    )


def test_a_rule_that_asks_for_classes_needs_some() -> None:
    assert [w[1:] for w in warnings("rules: {labels/class: deny, partition/confine: off}\n")] == [
        ("policy-no-classes", "no classes are declared: every GPU pod is refused | ")
    ]


def test_a_policy_is_held_against_the_cluster() -> None:
    body = (
        "pools: {a: {nodeSelector: {gpu-partition: gold}}}\n"
        "classes: {c: {match: {labels: {x: z}}, priorityClass: urgent}}\n"
        "static:\n"
        "- name: route\n"
        "  match: {}\n"
        "  mutate: {nodeSelector: {nvidia.com/gpu.product: H100-SXM-80GB}}\n"
        "  requiredTaints: [{key: dedicated, value: gpu}, {key: gpu, operator: Exists}]\n"
    )
    cluster = Cluster.of(
        [
            node("n0", {"gpu-partition": "inf"}, Taint("gpu", "NoSchedule", "yes")),
            node("n1", {"gpu-partition": "train", "nvidia.com/gpu.product": "NVIDIA-L4"}),
            PriorityClass(metadata=ObjectMeta(name="calm")),
        ]
    )
    assert warnings(body, cluster) == [
        (
            3,
            "policy-pool-without-nodes",
            "no node carries gpu-partition=gold | nodes have gpu-partition: inf, train",
        ),
        (4, "policy-priority-class-absent", "the cluster has no priority class urgent | "),
        (
            8,
            "policy-selects-no-node",
            "no node carries nvidia.com/gpu.product=H100-SXM-80GB | "
            "nodes have nvidia.com/gpu.product: NVIDIA-L4",
        ),
        (9, "policy-taint-absent", "no node carries the taint dedicated=gpu | "),
    ]
    assert warnings(body, Cluster.of([])) == []


def test_a_doubt_about_an_older_form_stands_at_its_line() -> None:
    cluster = Cluster.of([node("n0", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})])
    found = lint(texts.FAVORITES.encode(), "p.yaml", cluster=cluster)
    assert [(p.line, p.ref, p.field) for p in found] == [
        (7, "policy-selects-no-node", "favorites[0].nodeSelector"),
        (11, "policy-taint-absent", "favorites[0].requiredTaints[0]"),
    ]
