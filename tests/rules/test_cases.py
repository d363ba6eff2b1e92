"""Every rule answers its cases, and every rule, reason and folder has some."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.rule import REGISTRY
from tests.rules import cases as casebook
from tests.rules.cases import Case

EVERY = list(casebook.every())


@pytest.mark.parametrize(("name", "case"), EVERY, ids=[f"{r}: {c.name}" for r, c in EVERY])
def test_the_rule_says_what_its_case_says(name: str, case: Case) -> None:
    rule = REGISTRY[name]
    policy = casebook.policy_of(case, name)
    ask, cluster = casebook.ask_of(case, policy)
    found = list(rule.ask(ask, cluster, policy.settings(name)))
    findings, mutations, unknowns = casebook.split(found)
    assert casebook.compared(case.findings, findings) == case.findings
    assert casebook.compared(case.mutations, mutations) == case.mutations
    assert casebook.compared(case.unknowns, unknowns) == case.unknowns
    assert {f.reason for f in findings} <= set(rule.reasons)
    again = list(
        rule.ask(casebook.mutated(ask, cluster, found, rule), cluster, policy.settings(name))
    )
    in_force = [m for m in casebook.split(again)[1] if policy.level(m.rule or name) == "deny"]
    assert in_force == [], "a mutation that has been applied must not come back"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_rule_has_a_passing_and_a_failing_case(name: str) -> None:
    verdicts = {case.passes for case in casebook.cases(name)}
    assert verdicts == {True, False}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_reason_occurs_in_some_case(name: str) -> None:
    seen = {finding["reason"] for case in casebook.cases(name) for finding in case.findings}
    assert seen == set(REGISTRY[name].reasons)


def test_no_folder_is_without_its_rule() -> None:
    folders = {path for path in casebook.HERE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == {casebook.folder(name) for name in REGISTRY}


def test_reasons_begin_with_the_family_and_say_what_to_do() -> None:
    for name, rule in REGISTRY.items():
        for reason, meaning in rule.reasons.items():
            assert reason.startswith(rule.family + "/"), (name, reason)
            assert meaning.count(". ") >= 1, f"{reason}: its meaning, then what to do"


def test_case_names_are_sentences_of_their_own() -> None:
    names = [case.name for _, case in EVERY]
    assert [name for name in names if len(name.split()) < 4] == []
    assert len(names) == len(set(names))
