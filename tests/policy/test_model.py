"""What a policy answers: levels, pools, classes, exceptions."""

from __future__ import annotations

import datetime as dt

import pytest

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.kube.objects import (
    Affinity,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodSpec,
)
from kubectl_gpuadmit.policy import (
    ClassMatch,
    ExceptionMatch,
    Policy,
    PolicyException,
    Pool,
    RuleConfig,
    Sign,
    WorkloadClass,
)
from kubectl_gpuadmit.policy.entries import parse_comparison
from kubectl_gpuadmit.verdict import Ref

assert rules.__all__
POLICY = Policy(
    pools=(
        Pool("inference", {"gpu-partition": "inf"}),
        Pool("gold", {"gpu-partition": "inf", "tier": "gold"}),
        Pool("train", {"gpu-partition": "train"}),
    ),
    classes=(
        WorkloadClass(
            "live",
            ClassMatch(labels={"type": "live*", "team": "*"}, priorityClasses=("urgent",)),
            "inference",
        ),
        WorkloadClass(
            "train", ClassMatch(annotations={"kind": "train"}, ownerKinds=("*Job",)), "train"
        ),
    ),
    rules={
        "labels/class": RuleConfig(
            level="deny",
            ifMissing="audit",
            namespaces={"research-*": "audit", "research-gold-*": "off", "research-x": "deny"},
            pools={"train": "warn"},
        ),
        "labels/required": RuleConfig(),
    },
    default_level="warn",
)


@pytest.mark.parametrize(
    ("namespace", "pool", "level"),
    [
        ("team-a", "", "deny"),
        ("team-a", "train", "warn"),
        ("team-a", "inference", "deny"),
        ("research-1", "train", "audit"),
        ("research-gold-1", "train", "off"),
        ("research-x", "", "deny"),
    ],
)
def test_the_most_specific_level_counts(namespace: str, pool: str, level: str) -> None:
    assert POLICY.level("labels/class", namespace=namespace, pool=pool) == level


def test_a_rule_without_a_level_takes_the_default_and_an_unnamed_one_its_own() -> None:
    assert POLICY.level("labels/required") == "warn"
    assert POLICY.level("capacity/burst") == "off"
    assert POLICY.level("static/deny") == "deny"
    assert POLICY.level("quota/exceeded") == "deny"
    assert POLICY.level("quota/exceeded", default="audit") == "audit"
    assert Policy.default().level("labels/required") == "off"


def test_a_missing_fact_has_the_level_of_its_rule_or_the_default() -> None:
    assert POLICY.if_missing("labels/class") == "audit"
    assert POLICY.if_missing("labels/required") == "warn"


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        ({"gpu-partition": "inf"}, "inference"),
        ({"gpu-partition": "inf", "tier": "gold"}, "gold"),
        ({"gpu-partition": "train", "tier": "gold"}, "train"),
        ({"tier": "gold"}, ""),
    ],
)
def test_a_node_counts_for_the_pool_that_asks_for_most(labels: dict[str, str], pool: str) -> None:
    assert POLICY.pool_of_node(labels) == pool


def pod(
    selector: dict[str, str] | None = None, *terms: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Pod:
    required = NodeSelector(
        tuple(
            NodeSelectorTerm(tuple(LabelSelectorRequirement(*one) for one in term))
            for term in terms
        )
    )
    affinity = Affinity(nodeAffinity=NodeAffinity(required)) if terms else None
    return Pod(spec=PodSpec(nodeSelector=selector, affinity=affinity))


INF = ("gpu-partition", "In", ("inf",))
GOLD = ("tier", "In", ("gold",))


@pytest.mark.parametrize(
    ("asked", "pool"),
    [
        (pod({"gpu-partition": "inf"}), "inference"),
        (pod({"gpu-partition": "inf", "tier": "gold"}), "gold"),
        (pod({"gpu-partition": "inf"}, (GOLD,)), "gold"),
        (pod(None, (INF,), (INF, GOLD)), "inference"),
        (pod(None, (INF,), (GOLD,)), ""),
        (pod(None, (INF,), ()), "inference"),  # a term without requirements matches no node
        (pod(None, (("gpu-partition", "In", ("inf", "train")),)), ""),
        (pod(None, (("gpu-partition", "NotIn", ("train",)),)), ""),
        (pod({"zone": "a"}), ""),
        (pod(), ""),
    ],
)
def test_a_pod_is_bound_to_the_pool_that_it_cannot_leave(asked: Pod, pool: str) -> None:
    assert POLICY.pool_of_pod(asked) == pool


def test_signs_are_given_strongest_first_and_all_pairs_of_one_must_hold() -> None:
    asked = Pod(
        metadata=ObjectMeta(labels={"type": "live-2", "team": "a"}, annotations={"kind": "train"}),
        spec=PodSpec(priorityClassName="urgent"),
    )
    assert POLICY.signs(asked, "PyTorchJob") == (
        Sign("live", "label type=live-2, team=a"),
        Sign("train", "annotation kind=train"),
        Sign("live", "priority class urgent"),
        Sign("train", "kind PyTorchJob"),
    )
    assert POLICY.workload_class(asked, "PyTorchJob") == "live"
    half = Pod(metadata=ObjectMeta(labels={"type": "live"}))
    assert POLICY.signs(half, "Deployment") == ()
    assert POLICY.workload_class(half) == ""


def test_an_exception_holds_for_what_it_names_until_it_expires() -> None:
    end = dt.datetime(2026, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    granted = PolicyException(
        ("labels/*", "quota/exceeded"),
        ExceptionMatch(namespaces=("r-*",), kinds=("Job",), labels={"team": "a*"}),
        "ann",
        "why",
        end,
    )
    policy = Policy(exceptions=(granted,))
    job = Ref("batch/v1", "Job", "r-1", "j")
    labels = {"team": "ann"}

    def found(rule: str, reason: str, ref: Ref, now: dt.datetime) -> PolicyException | None:
        return policy.exception_for(rule, reason, ref, now, labels=labels)

    assert found("labels/class", "labels/no-class", job, end) is granted
    assert found("", "quota/exceeded", job, end) is granted
    assert found("labels/class", "labels/no-class", job, end + dt.timedelta(seconds=1)) is None
    assert found("static/x", "static/denied", job, end) is None
    assert found("labels/class", "", Ref("batch/v1", "Job", "team", "j"), end) is None
    assert found("labels/class", "", Ref("apps/v1", "Deployment", "r-1", "j"), end) is None
    assert policy.exception_for("labels/class", "", job, end) is None


@pytest.mark.parametrize(
    ("text", "amount", "holds"),
    [
        (">40", 40, False),
        (">40", 40.1, True),
        (" >= 4 ", 4, True),
        ("<1", 0, True),
        ("<=0.5", 0.5, True),
        ("!=3", 3, False),
        ("8", 8, True),
        (8, 7, False),
        ("==8", 8, True),
    ],
)
def test_a_comparison_holds_as_written(text: str | int, amount: float, holds: bool) -> None:
    assert parse_comparison(text).holds(amount) is holds


@pytest.mark.parametrize("text", ["", ">", "=>4", "4G", "-1", "four", ">4 <8", "٤"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a comparison"):
        parse_comparison(text)
