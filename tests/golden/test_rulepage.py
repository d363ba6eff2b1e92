"""A rule's page, a reason's page, and a name that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubectl_gpuadmit.errors import BadInput
from kubectl_gpuadmit.render.rulepage import rule_page
from kubectl_gpuadmit.rule import Rule
from kubectl_gpuadmit.verdict import Finding


def nothing(*_: object) -> Iterator[Finding]:
    yield from ()


RULES = {
    "labels/required": Rule(
        name="labels/required",
        family="labels",
        function=nothing,
        reasons={"labels/missing": "A required label is missing. Add it to the pod template."},
        needs=frozenset({"Namespace", "Node"}),
        stage="validate",
        fidelity="modelled",
        default_level="warn",
        documentation="Every pod carries the labels that reports and quotas are kept by.\n\n"
        "``labels`` names them:\n  - a key alone: any value\n  - ``key=value``: that one",
        settings={"labels": ("team", "class"), "ignore": None, "atMost": 3},
    )
}
CATALOGUE = {
    "labels/missing": "A required label is missing. Add it to the pod template.",
    "quota/exceeded": "The quota has less left than asked.",
}


def page(name: str) -> str:
    return rule_page(name, rules=RULES, catalogue=CATALOGUE).plain


def test_a_rule_prints_its_documentation_level_needs_settings_and_reasons() -> None:
    assert page("labels/required") == (
        "labels/required                                       rule · validate · modelled\n"
        "\n"
        "Every pod carries the labels that reports and quotas are kept by.\n"
        "\n"
        "``labels`` names them:\n"
        "  - a key alone: any value\n"
        "  - ``key=value``: that one\n"
        "\n"
        "Level     warn unless the policy says otherwise\n"
        "Needs     Namespace, Node\n"
        "Settings\n"
        "  labels: [team, class]\n"
        "  ignore: null\n"
        "  atMost: 3\n"
        "Reasons\n"
        "  labels/missing\n"
        "      A required label is missing. Add it to the pod template.\n"
    )


def test_a_reason_prints_its_meaning_and_the_rule_that_yields_it() -> None:
    assert page("labels/missing") == (
        "labels/missing                                                            reason\n"
        "\n"
        "A required label is missing. Add it to the pod template.\n"
        "\n"
        "Rule      labels/required\n"
    )
    assert page("quota/exceeded") == (
        "quota/exceeded                                                            reason\n"
        "\n"
        "The quota has less left than asked.\n"
    )


def test_an_unknown_name_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(BadInput) as problem:
        page("labels/require")
    assert problem.value.exit_code == 2
    assert str(problem.value) == (
        "--rule: there is no rule or reason 'labels/require' [unknown-rule]"
    )
    assert problem.value.hint == "did you mean labels/required or labels/missing"
