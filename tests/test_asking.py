"""How the policy has rules asked: levels, exceptions, changes that build on each other, faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.rule import Ask, Found, Rule
from kubectl_gpuadmit.verdict import (
    Finding,
    Mutation,
    Unknown,
)
from tests.placement.build import KNOWN, node
from tests.runs import (
    QUIET,
    deployment,
    home,
    job,
    judged,
    only,
    policy,
    report,
    world,
)


def made_rule(name: str, function: Any, *, stage: Any = "validate", needs: Any = ()) -> Rule:
    return Rule(
        name=name,
        family=name.split("/")[0],
        function=function,
        reasons={},
        needs=frozenset(needs),
        stage=stage,
        fidelity="modelled",
        default_level="deny",
        documentation="",
        settings={},
    )


def the_job() -> Workload:
    (document,) = read_documents(job("j").encode(), "m.yaml")
    assert isinstance(document, Document)
    workload = expand(document)
    assert isinstance(workload, Workload)
    return workload


def raising(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    yield Finding("test/before", "found before it broke")
    raise LookupError("no such thing")


def finds(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    yield Finding("test/found", "found")


def mutates(*ops: dict[str, Any]) -> Any:
    def function(ask: Ask, cluster: Cluster) -> Iterator[Found]:
        yield Mutation(ops)

    return function


def leveled(**levels: str) -> Policy:
    """A policy that levels made-up rules, each ``test_NAME`` standing for ``test/NAME``."""
    config = next(iter(policy("rules: {labels/class: deny}\n").rules.values()))
    named = {f"test/{n}": structs.replace(config, level=level) for n, level in levels.items()}
    return structs.replace(QUIET, rules=named, default_if_missing="deny")


def test_a_rule_that_raises_is_unknown_at_its_level_and_takes_nobody_with_it() -> None:
    rules = (made_rule("test/raises", raising), made_rule("test/finds", finds))
    verdict = judged(the_job(), world(node("n0")), *rules, by=leveled(raises="warn", finds="audit"))
    assert [(f.reason, f.rule, f.level) for f in verdict.findings] == [
        ("test/before", "test/raises", "warn"),
        ("test/found", "test/finds", "audit"),
    ]
    assert verdict.unknowns == (
        Unknown("test/raises", "the rule raised LookupError('no such thing')", "deny"),
    )
    assert (verdict.admission, verdict.placement) == ("unknown", "fits")


def test_a_rule_whose_kinds_are_not_in_the_source_is_unknown_and_not_asked() -> None:
    rule = made_rule("test/raises", raising, needs=("Widget", "Gadget"))
    verdict = judged(the_job(), world(node("n0")), rule, by=leveled(raises="deny"))
    assert (verdict.findings, verdict.unknowns) == (
        (),
        (
            Unknown(
                "test/raises",
                "Gadget, Widget objects: not in the source",
                "deny",
                "kubectl get gadgets,widgets -A -o json",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("level", "told", "admission"),
    [
        ("off", [], "admitted"),
        ("audit", ["audit"], "admitted"),
        ("warn", ["warn"], "admitted"),
        ("deny", ["deny"], "denied"),
    ],
)
def test_a_finding_is_as_severe_as_the_policy_says(
    level: str, told: list[str], admission: str
) -> None:
    verdict = judged(
        the_job(), world(node("n0")), made_rule("test/finds", finds), by=leveled(finds=level)
    )
    assert ([f.level for f in verdict.findings], verdict.admission) == (told, admission)
    assert verdict.blockers == (("test/found",) if level == "deny" else ())


ADD = {"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "gold"}}


@pytest.mark.parametrize(
    ("level", "admission", "placement", "patch"),
    [
        ("audit", "admitted", "fits", ()),
        ("warn", "admitted", "fits", ()),
        ("deny", "mutated", "never", (ADD,)),
    ],
)
def test_a_mutation_below_deny_is_told_and_not_made(
    level: Any, admission: str, placement: str, patch: tuple[Any, ...]
) -> None:
    rule = made_rule("test/routes", mutates(ADD), stage="mutate")
    verdict = judged(the_job(), world(node("n0")), rule, by=leveled(routes=level))
    assert verdict.mutations == (
        Mutation(ops=(ADD,), rule="test/routes", level=level, at="/spec/template"),
    )
    assert (verdict.admission, verdict.placement, verdict.patch) == (admission, placement, patch)


def test_a_mutation_that_is_off_is_not_even_told() -> None:
    rule = made_rule("test/routes", mutates(ADD), stage="mutate")
    verdict = judged(the_job(), world(node("n0")), rule, by=leveled(routes="off"))
    assert (verdict.mutations, verdict.admission) == ((), "admitted")


def test_the_second_of_two_mutating_rules_builds_on_the_first() -> None:
    more = {"op": "add", "path": "/spec/nodeSelector/zone", "value": "a"}
    other = {"op": "replace", "path": "/spec/nodeSelector/pool", "value": "silver"}
    rules = (
        made_rule("test/a", mutates(ADD), stage="mutate"),
        made_rule("test/b", mutates(more, other), stage="mutate"),
    )
    good = node("n0", labels={"pool": "silver", "zone": "a"})
    verdict = judged(the_job(), world(good), *rules, by=leveled(a="deny", b="deny"))
    assert (verdict.patch, verdict.admission, verdict.placement) == (
        (ADD, more, other),
        "mutated",
        "fits",
    )
    assert verdict.mutations[1].before == {"/spec/nodeSelector/pool": "gold"}


def test_a_rule_is_levelled_by_the_pool_into_which_an_earlier_one_put_the_pod() -> None:
    pools = policy("pools: {gold: {nodeSelector: {pool: gold}}}\n").pools
    by = leveled(a="deny", b="warn")
    by = structs.replace(
        by,
        pools=pools,
        rules={
            **by.rules,
            "test/b": structs.replace(by.rules["test/b"], pools={"gold": "deny"}),
        },
    )
    label = {"op": "add", "path": "/metadata/labels", "value": {"told": "yes"}}
    rules = (
        made_rule("test/a", mutates(ADD), stage="mutate"),
        made_rule("test/b", mutates(label), stage="mutate"),
    )
    verdict = judged(the_job(), world(node("n0")), *rules, by=by)
    assert [(m.rule, m.level) for m in verdict.mutations] == [
        ("test/a", "deny"),
        ("test/b", "deny"),
    ]


@pytest.mark.parametrize(
    "op",
    [
        {"op": "add", "path": "/spec/no/such", "value": 1},
        {"op": "remove", "path": "/spec/nodeSelector"},
        {"op": "add", "path": "/spec/nodeSelector", "value": {"pool": 7}},
        {"op": "add", "path": "/spec/containers/0/name/x", "value": "y"},
    ],
)
def test_a_change_that_does_not_apply_is_unknown_and_leaves_the_pod_as_it_was(op: Any) -> None:
    rule = made_rule("test/routes", mutates(op), stage="mutate")
    verdict = judged(the_job(), world(node("n0")), rule, by=leveled(routes="deny"))
    (unsure,) = verdict.unknowns
    assert (unsure.rule, unsure.level, verdict.admission) == ("test/routes", "deny", "unknown")
    assert unsure.missing.startswith("its change does not apply to the pod template: ")
    assert (verdict.mutations, verdict.patch, verdict.placement) == ((), (), "fits")


def test_a_validating_rule_that_wants_to_change_the_pod_is_our_fault_and_unknown() -> None:
    verdict = judged(
        the_job(),
        world(node("n0")),
        made_rule("test/routes", mutates(ADD)),
        by=leveled(routes="warn"),
    )
    assert [u.missing for u in verdict.unknowns] == [
        "the rule raised TypeError('it validates, yet wants to change the pod')"
    ]


def test_an_exception_in_force_turns_a_refusal_into_a_record_and_an_expired_one_does_nothing() -> (
    None
):
    def by(expires: str) -> Policy:
        return policy(
            "rules:\n  labels/required: {level: deny, settings: {labels: [team]}}\n"
            "  spec/rollout-surge: off\n"
            "exceptions:\n- {rules: [labels/*], match: {names: [web]}, owner: ann, reason: old,"
            f" expires: {expires}}}\n"
        )

    cluster = world(node("n0"))
    kept = only(report(deployment("web"), cluster, by("2026-11-29")))
    gone = only(report(deployment("web"), cluster, by("2026-11-28")))
    other = only(report(deployment("other"), cluster, by("2026-11-29")))
    assert [(v.admission, [f.level for f in v.findings]) for v in (kept, gone, other)] == [
        ("admitted", ["audit"]),
        ("denied", ["deny"]),
        ("denied", ["deny"]),
    ]
    assert kept.findings[0].detail.endswith("(excepted until 2026-11-29T23:59:59Z by ann: old)")


def test_findings_of_the_expansion_take_the_level_of_their_own_name_and_may_be_off() -> None:
    suspended = job("j", lines="suspend: true")
    by = {
        level: only(
            report(
                suspended,
                world(node("n0")),
                structs.replace(QUIET, rules=levels_of("spec/suspended", level)),
            )
        )
        for level in ("off", "audit", "deny")
    }
    told = {level: [(f.reason, f.level) for f in v.findings] for level, v in by.items()}
    assert told == {
        "off": [],
        "audit": [("spec/suspended", "audit")],
        "deny": [("spec/suspended", "deny")],
    }
    assert [v.admission for v in by.values()] == ["admitted", "admitted", "denied"]


def levels_of(name: str, level: Any) -> Any:
    config = next(iter(policy("rules: {labels/class: deny}\n").rules.values()))
    return {name: structs.replace(config, level=level)}


def test_permanent_blockers_come_first_whatever_the_order_of_stages() -> None:
    gated = deployment("web", gpus=2, spec="schedulingGates: [{name: g}]")
    by = policy(
        "rules: {spec/rollout-surge: off, spec/shared-memory: off}\n"
        "static: [{name: stop, match: {}, deny: {message: stop}}]\n"
    )
    made = only(report(gated, world(node("n0", 1)), by))
    assert [(f.reason, f.permanent) for f in made.findings] == [
        ("static/denied", True),
        ("placement/gated", False),
        ("placement/no-node-large-enough", True),
    ]
    assert made.blockers == ("static/denied", "placement/no-node-large-enough", "placement/gated")


def test_the_report_names_the_rules_that_the_policy_names_and_did_not_switch_off() -> None:
    by = policy(
        "rules: {labels/class: off, labels/required: {level: off, namespaces: {team: warn}},"
        " capacity/burst: audit}\n"
        "static: [{name: s, match: {}, deny: {message: stop}, level: warn}]\n"
    )
    cluster = Cluster.of([*home("default", "team"), node("n0")], KNOWN)
    here = report(deployment("web"), cluster, by).asked
    there = report(deployment("web"), cluster, by, namespace="team").asked
    assert (here, there) == (
        ("capacity/burst", "static/s"),
        ("capacity/burst", "labels/required", "static/s"),
    )
    assert report("", cluster, by).asked == ()
