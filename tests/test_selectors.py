"""Selectors, node terms and tolerations match as Kubernetes matches them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.kube import selectors
from kubectl_gpuadmit.kube.objects import LabelSelector, NodeSelectorTerm, Taint, Toleration


def selector(document: dict[str, Any] | None) -> selectors.Selector:
    if document is None:
        return selectors.label_selector(None)
    return selectors.label_selector(msgspec.convert(document, LabelSelector))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


LABELS = {"app": "web", "tier": "1"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "2"}}, False),
        ({"matchExpressions": [expression("app", "In", "db", "web")]}, True),
        ({"matchExpressions": [expression("none", "In", "db")]}, False),
        ({"matchExpressions": [expression("app", "NotIn", "db")]}, True),
        ({"matchExpressions": [expression("none", "NotIn", "db")]}, True),
        ({"matchExpressions": [expression("app", "Exists")]}, True),
        ({"matchExpressions": [expression("app", "DoesNotExist")]}, False),
        ({"matchExpressions": [expression("none", "DoesNotExist")]}, True),
    ],
)
def test_label_selectors(document: dict[str, Any] | None, expected: bool) -> None:
    assert selector(document).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (expression("app", "Is", "web"), "'Is' is not a valid operator"),
        (expression("app", "Gt", "1"), "'Gt' is not a valid operator"),
        (expression("app", "In"), "app: In needs at least one value"),
        (expression("app", "Exists", "web"), "app: Exists takes no values"),
        (expression("-app", "Exists"), "'-app' is not a label key"),
        (expression("app", "In", "a b"), "app: 'a b' is not a label value"),
    ],
)
def test_a_broken_label_selector_matches_nothing_and_says_why(
    document: dict[str, Any], error: str
) -> None:
    broken = selector({"matchExpressions": [document]})
    assert (broken.error, broken.nothing, broken.matches(LABELS)) == (error, True, False)


def test_absent_and_empty_selectors_are_told_apart() -> None:
    absent, empty = selector(None), selector({})
    assert (absent.nothing, absent.everything) == (True, False)
    assert (empty.nothing, empty.everything) == (False, True)


def test_equal_selectors_are_compiled_once() -> None:
    first = selector({"matchLabels": {"a": "1", "b": "2"}})
    assert first is selector({"matchLabels": {"b": "2", "a": "1"}})


NODE = {"slots": "5", "odd": "abc", "pool": "inf"}


def test_node_terms() -> None:
    def matches(document: dict[str, Any], name: str = "n0") -> bool:
        return selectors.term_matches(msgspec.convert(document, NodeSelectorTerm), NODE, name)

    table = {
        "an empty term matches nothing": (matches({}), False),
        "Gt compares integers": (
            matches({"matchExpressions": [expression("slots", "Gt", "4")]}),
            True,
        ),
        "Gt is strict": (matches({"matchExpressions": [expression("slots", "Gt", "5")]}), False),
        "Lt compares integers": (
            matches({"matchExpressions": [expression("slots", "Lt", "6")]}),
            True,
        ),
        "a label that is no integer fails Gt": (
            matches({"matchExpressions": [expression("odd", "Gt", "0")]}),
            False,
        ),
        "a missing label fails Lt": (
            matches({"matchExpressions": [expression("none", "Lt", "9")]}),
            False,
        ),
        "a negative bound does not parse as a label value": (
            matches({"matchExpressions": [expression("slots", "Gt", "-1")]}),
            False,
        ),
        "two values for Gt do not parse": (
            matches({"matchExpressions": [expression("slots", "Gt", "1", "2")]}),
            False,
        ),
        "a field matches the name": (
            matches({"matchFields": [expression("metadata.name", "In", "n0")]}),
            True,
        ),
        "NotIn over the name": (
            matches({"matchFields": [expression("metadata.name", "NotIn", "n0")]}),
            False,
        ),
        "an unknown field is empty": (
            matches({"matchFields": [expression("metadata.uid", "In", "n0")]}),
            False,
        ),
        "fields take exactly one value": (
            matches({"matchFields": [expression("metadata.name", "In", "n0", "n1")]}),
            False,
        ),
        "expressions and fields must both hold": (
            matches(
                {
                    "matchExpressions": [expression("pool", "In", "inf")],
                    "matchFields": [expression("metadata.name", "In", "n1")],
                }
            ),
            False,
        ),
    }
    assert {k: got for k, (got, _) in table.items()} == {k: want for k, (_, want) in table.items()}


TAINT = Taint(key="gpu", value="present", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "present"}, True),
        ({"key": "gpu", "value": "absent"}, False),
        ({"key": "gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"value": "present"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
        ({"key": "gpu", "operator": "Is"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert selectors.tolerates(msgspec.convert(toleration, Toleration), TAINT) is expected


@pytest.mark.parametrize(
    ("operator", "value", "taint", "expected"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "-6", True),
        ("Lt", "05", "4", False),
        ("Lt", "x", "4", False),
    ],
)
def test_comparing_tolerations_need_their_gate(
    operator: str, value: str, taint: str, expected: bool
) -> None:
    toleration = Toleration(key="gpu", operator=operator, value=value)
    tainted = Taint(key="gpu", value=taint, effect="NoSchedule")
    assert selectors.tolerates(toleration, tainted, comparison=True) is expected
    assert selectors.tolerates(toleration, tainted) is False


def test_requirements_read_as_kubectl_writes_them() -> None:
    assert str(selector({"matchLabels": {"a": "1"}})) == "a=1"
    assert [
        selectors.describe("a", op, values)
        for op, values in (
            ("In", ("1", "2")),
            ("NotIn", ("1",)),
            ("NotIn", ("1", "2")),
            ("Exists", ()),
            ("DoesNotExist", ()),
            ("Gt", ("3",)),
            ("Lt", ("3",)),
        )
    ] == ["a in (1, 2)", "a!=1", "a notin (1, 2)", "a", "!a", "a>3", "a<3"]
