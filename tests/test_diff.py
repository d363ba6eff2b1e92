"""A mutation as the lines of a diff of the user's own YAML."""

from __future__ import annotations

from kubectl_gpuadmit.render.diff import DiffLine, lines
from kubectl_gpuadmit.verdict import Mutation

OWN = {"key": "nvidia.com/gpu", "operator": "Exists"}
ADDED = {"key": "dedicated", "operator": "Exists"}


def test_of_a_list_that_is_written_whole_only_its_new_end_is_marked() -> None:
    op = {"op": "add", "path": "/spec/tolerations", "value": [OWN, ADDED]}
    mutation = Mutation((op,), before={"/spec/tolerations": [OWN]})
    assert lines(mutation, width=80) == [
        DiffLine(" ", "spec:"),
        DiffLine(" ", "  tolerations:"),
        DiffLine("+", "    - {key: dedicated, operator: Exists}"),
    ]


def test_a_list_that_was_not_there_is_new_as_a_whole() -> None:
    op = {"op": "add", "path": "/spec/tolerations", "value": [ADDED]}
    assert lines(Mutation((op,)), width=80) == [
        DiffLine(" ", "spec:"),
        DiffLine("+", "  tolerations: [{key: dedicated, operator: Exists}]"),
    ]


def test_a_list_that_says_something_else_is_shown_as_it_will_be() -> None:
    op = {"op": "add", "path": "/spec/tolerations", "value": [ADDED]}
    mutation = Mutation((op,), before={"/spec/tolerations": [OWN]})
    assert lines(mutation, width=80)[1:] == [
        DiffLine("+", "  tolerations: [{key: dedicated, operator: Exists}]"),
    ]
