"""Template changes are written once, over what is there, and hurt nothing else."""

from __future__ import annotations

from typing import Any

import jsonpatch
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.kube.objects import Pod, Toleration
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import applied, merged, operations, with_change

WORDS = st.sampled_from(["a", "b/c", "d~e", "f.g/h", "priority"])
PAIRS = st.dictionaries(WORDS, WORDS, max_size=3)
TOLERATIONS = st.builds(
    Toleration,
    key=WORDS,
    operator=st.sampled_from([None, "Equal", "Exists"]),
    value=st.none(),
    effect=st.sampled_from([None, "NoSchedule"]),
)
CHANGES = st.builds(
    TemplateChange,
    nodeSelector=PAIRS,
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
    labels=PAIRS,
    annotations=PAIRS,
    priorityClassName=st.sampled_from(["", "high"]),
    schedulingGates=st.lists(WORDS, max_size=2, unique=True).map(tuple),
)
MAPS = st.one_of(st.none(), PAIRS)
TEMPLATES = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"containers": st.just([{"name": "c"}])},
            optional={
                "nodeSelector": MAPS,
                "tolerations": st.lists(
                    TOLERATIONS.map(
                        lambda t: {k: v for k, v in msgspec.to_builtins(t).items() if v is not None}
                    ),
                    max_size=2,
                ),
                "priority": st.just(0),
                "preemptionPolicy": st.just("Never"),
                "priorityClassName": st.sampled_from(["low", "high"]),
                "schedulingGates": st.lists(WORDS.map(lambda n: {"name": n}), max_size=1),
            },
        )
    },
    optional={
        "metadata": st.one_of(
            st.none(),
            st.fixed_dictionaries({}, optional={"labels": MAPS, "annotations": MAPS}),
        )
    },
)


def pod(template: dict[str, Any]) -> Pod:
    plain = {key: value for key, value in template.items() if value is not None}
    return msgspec.convert({"apiVersion": "v1", "kind": "Pod", **plain}, Pod)


@given(TEMPLATES, CHANGES)
@settings(deadline=None)
def test_a_change_applied_twice_is_applied_once(
    template: dict[str, Any], change: TemplateChange
) -> None:
    ops = operations(change, template, pod(template))
    once = jsonpatch.apply_patch(template, list(ops), in_place=False)
    assert operations(change, once, pod(once)) == ()
    assert applied(template, ops) == once
    after, before = pod(once), with_change(pod(template), change)
    for field in ("nodeSelector", "priorityClassName", "priority", "preemptionPolicy"):
        assert (getattr(after.spec, field) or None) == (getattr(before.spec, field) or None)
    assert (after.labels, after.annotations) == (before.labels, before.annotations)
    assert set(after.spec.tolerations or ()) == set(before.spec.tolerations or ())
    assert set(after.spec.schedulingGates or ()) == set(before.spec.schedulingGates or ())
    assert change.nodeSelector.items() <= (after.spec.nodeSelector or {}).items()


@given(TEMPLATES, CHANGES)
@settings(deadline=None)
def test_adding_the_same_values_again_changes_nothing(
    template: dict[str, Any], change: TemplateChange
) -> None:
    ops = [op for op in operations(change, template, pod(template)) if op["op"] == "add"]
    once = jsonpatch.apply_patch(template, ops, in_place=False)
    assert jsonpatch.apply_patch(once, ops, in_place=False) == once


@given(TEMPLATES, CHANGES, CHANGES)
@settings(deadline=None)
def test_of_two_changes_the_first_decides_whatever_is_asked_again(
    template: dict[str, Any], first: TemplateChange, second: TemplateChange
) -> None:
    for change in (first, merged(first, second)):
        template = applied(template, operations(change, template, pod(template)))
    for change in (first, merged(first, second)):
        assert operations(change, template, pod(template)) == ()


def test_what_the_api_server_has_added_to_the_pod_is_not_repeated() -> None:
    template: dict[str, Any] = {"spec": {"containers": [{"name": "c"}]}}
    defaulted = with_change(pod(template), TemplateChange(nodeSelector={"a": "b"}))
    change = TemplateChange(nodeSelector={"a": "b", "c": "d"})
    assert operations(change, template, defaulted) == (
        {"op": "add", "path": "/spec/nodeSelector", "value": {"c": "d"}},
    )
