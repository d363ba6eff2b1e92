"""Template changes of a policy as mutations of a MutatingAdmissionPolicy.

Labels and annotations are merged in by an apply configuration; node selectors and tolerations are
one unit for server-side apply, so that JSON Patches write them. Nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube.objects import Toleration
from kubectl_gpuadmit.policy.entries import TemplateChange
from kubectl_gpuadmit.policy.expressions import text

Json = dict[str, Any]


def keys(change: TemplateChange) -> Iterator[str]:
    """What a change sets, so that two changes of one thing are found."""
    yield from (f"label {one}" for one in change.labels)
    yield from (f"annotation {one}" for one in change.annotations)
    yield from (f"nodeSelector {one}" for one in change.nodeSelector)
    if change.priorityClassName:
        yield "priorityClassName"


def mutations(change: TemplateChange) -> list[Json]:
    """The ``mutations`` of the policy's spec."""
    found: list[Json] = []
    parts = [
        f"{field}: {_map(values)}"
        for field, values in (("labels", change.labels), ("annotations", change.annotations))
        if values
    ]
    if parts:
        expression = f"Object{{metadata: Object.metadata{{{', '.join(parts)}}}}}"
        found.append(
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": expression},
            }
        )
    patches = list(_patches(change))
    if patches:
        joined = " + ".join(patches)
        found.append({"patchType": "JSONPatch", "jsonPatch": {"expression": joined}})
    return found


def _map(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{text(key)}: {text(one)}" for key, one in values.items()) + "}"


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'


def _patches(change: TemplateChange) -> Iterator[str]:
    if change.nodeSelector:
        single = ", ".join(
            _add(f'"/spec/nodeSelector/" + jsonpatch.escapeKey({text(key)})', text(value))
            for key, value in change.nodeSelector.items()
        )
        whole = _add('"/spec/nodeSelector"', _map(change.nodeSelector))
        yield f"(has(object.spec.nodeSelector) ? [{single}] : [{whole}])"
    if change.tolerations:
        whole = ", ".join(_toleration(one) for one in change.tolerations)
        each = " + ".join(
            f"(object.spec.tolerations.exists(t, {_same(one)}) ? [] :"
            f" [{_add(text('/spec/tolerations/-'), _toleration(one))}])"
            for one in change.tolerations
        )
        first = _add(text("/spec/tolerations"), f"[{whole}]")
        yield f"(has(object.spec.tolerations) ? {each} : [{first}])"
    if change.priorityClassName:
        wanted = text(change.priorityClassName)
        removed = " + ".join(
            f'(has(object.spec.{field}) ? [JSONPatch{{op: "remove", path: "/spec/{field}"}}] : [])'
            for field in ("priority", "preemptionPolicy")
        )
        same = f'object.spec.?priorityClassName.orValue("") == {wanted}'
        added = _add('"/spec/priorityClassName"', wanted)
        yield f"({same} ? [] : {removed} + [{added}])"
    if change.schedulingGates:
        whole = ", ".join(_gate(name) for name in change.schedulingGates)
        each = " + ".join(
            f"(object.spec.schedulingGates.exists(g, g.name == {text(name)}) ? [] :"
            f" [{_add(text('/spec/schedulingGates/-'), _gate(name))}])"
            for name in change.schedulingGates
        )
        first = _add(text("/spec/schedulingGates"), f"[{whole}]")
        yield (
            "(has(object.spec.nodeName) ? [] : has(object.spec.schedulingGates) ?"
            f" {each} : [{first}])"
        )


def _gate(name: str) -> str:
    return f"Object.spec.schedulingGates{{name: {text(name)}}}"


def _toleration(one: Toleration) -> str:
    fields = []
    for field in ("key", "operator", "value", "effect"):
        value = getattr(one, field)
        if value:
            fields.append(f"{field}: {text(value)}")
    if one.tolerationSeconds is not None:
        fields.append(f"tolerationSeconds: {one.tolerationSeconds}")
    return f"Object.spec.tolerations{{{', '.join(fields)}}}"


def _same(one: Toleration) -> str:
    parts = [
        f't.?{field}.orValue("{default}") == {text(getattr(one, field) or default)}'
        for field, default in (("key", ""), ("operator", "Equal"), ("value", ""), ("effect", ""))
    ]
    seconds = "-1" if one.tolerationSeconds is None else str(one.tolerationSeconds)
    parts.append(f"t.?tolerationSeconds.orValue(-1) == {seconds}")
    return " && ".join(parts)
