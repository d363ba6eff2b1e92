"""Lint says everything at once, and warns of what is sound but doubtful."""

from __future__ import annotations

import datetime as dt

import pytest

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.cli.catalogue import found_by_judging
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    Generic,
    Node,
    NodeSpec,
    ObjectMeta,
    PriorityClass,
    Taint,
)
from kubectl_gpuadmit.policy.lint import lint
from kubectl_gpuadmit.policy.load import load_policy
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


@pytest.mark.parametrize(
    "text", [STARTER, EXAMPLE, *(b for b in texts.BLOCKS if "kind: GpuPoolHistory" not in b)]
)
def test_what_we_write_ourselves_lints_clean(text: str) -> None:
    assert lint(text.encode(), "p.yaml", now=NOW, catalogue=found_by_judging) == []


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


def test_a_tenant_is_not_allowed_what_the_api_server_would_refuse() -> None:
    nested = "device.attributes.all({0}, ".format
    costly = f"{nested('a')}{nested('b')}{nested('c')}{nested('d')}a != b || c != d))))"
    body = (
        "tenants:\n- name: a\n  namespaces: [a]\n  selectors:\n"
        "  - device.driver == 'gpu.nvidia.com'\n"
        f"  - {costly}\n"
        "  - device.drivr == 'x'\n"
    )
    hint = "correct the expression: no claim can be stored with it"
    refuses = "the API server refuses a claim with this selector: "
    assert warnings(body) == [
        (8, "policy-selector-refused", f"{refuses}too complex, exceeds cost limit | {hint}"),
        (9, "policy-selector-refused", f"{refuses}1:7: undefined field 'drivr' | {hint}"),
    ]


def test_a_rule_that_asks_for_classes_needs_some() -> None:
    assert [w[1:] for w in warnings("rules: {labels/class: deny, partition/confine: off}\n")] == [
        ("policy-no-classes", "no classes are declared: every GPU pod is refused | ")
    ]


def test_a_rule_that_names_classes_names_those_of_the_policy() -> None:
    classes = "classes: {serve: {match: {labels: {x: a}}}, train: {match: {labels: {x: b}}}}\n"
    rule = "rules: {topology/splits-island: {level: deny, settings: {training: [train]}}}\n"
    assert warnings(classes + rule) == [
        (
            4,
            "policy-class-absent",
            "inference: no class is called inference | "
            "set inference to names of this policy's classes",
        )
    ]
    whole = rule.replace("[train]", "[train], inference: [serve]")
    assert warnings(classes + whole) == []
    odd = rule.replace("[train]", "[tran], inference: [serve]")
    assert [w[1:] for w in warnings(classes + odd)] == [
        (
            "policy-class-absent",
            "training: no class is called tran | set training to names of this policy's classes",
        )
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


POOL = """\
pools:
  inference:
    nodeSelector: {gpu-partition: inf}
    kubelet: {topologyManagerPolicy: single-numa-node}
"""


def test_a_declared_kubelet_that_the_nodes_contradict() -> None:
    def says(name: str, policy: str) -> Generic:
        return Generic(
            metadata=ObjectMeta(name=name),
            realKind="KubeletConfiguration",
            document={"topologyManagerPolicy": policy},
        )

    inf = {"gpu-partition": "inf"}
    nodes = [node("inf-0", inf), node("inf-1", inf), node("inf-2", inf), node("web", {})]
    said = [says("inf-0", "single-numa-node"), says("inf-1", "none"), says("web", "restricted")]
    assert warnings(POOL, Cluster.of([*nodes, *said])) == [
        (
            6,
            "policy-kubelet-differs",
            "inf-1 has none, says kubelet /configz: that counts, not the declaration"
            " | write none, or leave the pool's kubelet out",
        )
    ]
    assert warnings(POOL, Cluster.of([*nodes, said[0]])) == []


@pytest.mark.parametrize(
    ("kubelet", "ref", "words"),
    [
        ("{topologyManagerScope: pod}", "policy-missing-key", "topologyManagerPolicy"),
        ("{topologyManagerPolicy: strict}", "policy-bad-value", "strict"),
        ("{topologyManagerPolicy: none, scope: pod}", "policy-unknown-key", "scope"),
        (
            "{topologyManagerPolicy: restricted,"
            " topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}}",
            "policy-bad-value",
            "4 is below 8, and no kubelet starts so",
        ),
        (
            "{topologyManagerPolicy: single-numa-node, cpuManagerPolicy: static,"
            " cpuManagerPolicyOptions: {align-by-socket: 'true'}}",
            "policy-bad-value",
            "no kubelet starts with align-by-socket and single-numa-node together",
        ),
        (
            "{topologyManagerPolicy: none, reservedSystemCPUs: all}",
            "policy-bad-value",
            "all",
        ),
    ],
)
def test_what_no_kubelet_would_take_is_an_error_with_its_place(
    kubelet: str, ref: str, words: str
) -> None:
    body = f"pools:\n  a:\n    nodeSelector: {{pool: a}}\n    kubelet: {kubelet}\n"
    (problem,) = lint((HEAD + body).encode(), "p.yaml", now=NOW)
    assert (problem.severity, problem.ref, problem.line) == ("error", ref, 6)
    assert words in problem.message


def test_a_switch_may_be_written_without_quotes() -> None:
    options = "cpuManagerPolicyOptions: {full-pcpus-only: true}"
    body = POOL.replace("single-numa-node}", f"restricted, cpuManagerPolicy: static, {options}}}")
    assert warnings(body) == []
    (pool,) = load_policy((HEAD + body).encode(), "p.yaml").pools
    assert pool.kubelet is not None
    assert pool.kubelet.cpuManagerPolicyOptions == {"full-pcpus-only": "true"}
