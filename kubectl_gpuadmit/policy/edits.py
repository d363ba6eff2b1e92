"""A template change as RFC 6902 operations: only what is still missing, nothing twice.

Rules of this module
1. Operations are written against the template as it stands (earlier mutations applied), but a value
   counts as missing only if the *pod* lacks it: what the API server adds itself is not repeated.
2. A list is written whole, a map key by key: applying the same operations again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubectl_gpuadmit.kube.objects import Pod, PodSchedulingGate, Toleration
from kubectl_gpuadmit.kube.pointers import steps, token
from kubectl_gpuadmit.policy.entries import TemplateChange

Op = dict[str, Any]


def operations(change: TemplateChange, template: Mapping[str, Any], pod: Pod) -> tuple[Op, ...]:
    """What turns the template into one that has the change; empty where it has it already.

    Setting a priority class takes ``priority`` and ``preemptionPolicy`` out: the Priority admission
    plugin, asked again after a mutation, refuses a number that is not the class's own
    (kubernetes v1.37.2 plugin/pkg/admission/priority/admission.go).
    """
    metadata = template.get("metadata")
    spec = template.get("spec") or {}
    found: list[Op] = []
    for field, wanted, actual in (
        ("labels", change.labels, pod.labels),
        ("annotations", change.annotations, pod.annotations),
    ):
        if not isinstance(metadata, dict):
            needed = {k: v for k, v in wanted.items() if actual.get(k) != v}
            if needed:
                metadata = {field: needed}
                found.append({"op": "add", "path": "/metadata", "value": metadata})
            continue
        found += _map_ops(f"/metadata/{field}", wanted, actual, metadata.get(field))
    selector = spec.get("nodeSelector")
    found += _map_ops("/spec/nodeSelector", change.nodeSelector, pod.spec.nodeSelector, selector)
    if missing := [t for t in change.tolerations if not _has(pod.spec.tolerations or (), t)]:
        listed = [*(spec.get("tolerations") or ()), *(msgspec.to_builtins(t) for t in missing)]
        value = [{k: v for k, v in t.items() if v is not None} for t in listed]
        found.append({"op": "add", "path": "/spec/tolerations", "value": value})
    priority = change.priorityClassName
    if priority and pod.spec.priorityClassName != priority:
        found += (
            {"op": "remove", "path": f"/spec/{field}"}
            for field in ("priority", "preemptionPolicy")
            if field in spec
        )
        found.append({"op": "add", "path": "/spec/priorityClassName", "value": priority})
    gates = {gate.name for gate in pod.spec.schedulingGates or ()}
    if closed := [name for name in change.schedulingGates if name not in gates]:
        value = [*(spec.get("schedulingGates") or ()), *({"name": name} for name in closed)]
        found.append({"op": "add", "path": "/spec/schedulingGates", "value": value})
    return tuple(found)


def applied(template: Mapping[str, Any], ops: Iterable[Op]) -> dict[str, Any]:
    """A copy of the template after such operations (only ``add`` and ``remove`` in maps)."""
    result = dict(template)
    for op in ops:
        *parents, last = steps(op["path"])
        at = result
        for step in parents:
            at[step] = dict(at.get(step) or {})
            at = at[step]
        if op["op"] == "add":
            at[last] = op["value"]
        else:
            at.pop(last, None)
    return result


def with_change(pod: Pod, change: TemplateChange) -> Pod:
    """The pod as it is once the change is made."""
    replace = msgspec.structs.replace
    metadata, spec = pod.metadata, pod.spec
    if change.labels:
        metadata = replace(metadata, labels={**pod.labels, **change.labels})
    if change.annotations:
        metadata = replace(metadata, annotations={**pod.annotations, **change.annotations})
    if change.nodeSelector:
        spec = replace(spec, nodeSelector={**(spec.nodeSelector or {}), **change.nodeSelector})
    if missing := [t for t in change.tolerations if not _has(spec.tolerations or (), t)]:
        spec = replace(spec, tolerations=(*(spec.tolerations or ()), *missing))
    if change.priorityClassName and spec.priorityClassName != change.priorityClassName:
        name = change.priorityClassName
        spec = replace(spec, priorityClassName=name, priority=None, preemptionPolicy=None)
    gates = spec.schedulingGates or ()
    if names := [n for n in change.schedulingGates if n not in {gate.name for gate in gates}]:
        spec = replace(spec, schedulingGates=(*gates, *(PodSchedulingGate(n) for n in names)))
    return replace(pod, metadata=metadata, spec=spec)


def without_conflicts(change: TemplateChange, pod: Pod) -> TemplateChange:
    """The part of a change that contradicts nothing that the pod says itself."""
    chosen = pod.spec.nodeSelector or {}
    return msgspec.structs.replace(
        change,
        nodeSelector={k: v for k, v in change.nodeSelector.items() if chosen.get(k, v) == v},
        priorityClassName="" if pod.spec.priorityClassName else change.priorityClassName,
    )


def merged(first: TemplateChange, second: TemplateChange) -> TemplateChange:
    """Both changes; where they set the same key the first one counts."""
    return TemplateChange(
        nodeSelector={**second.nodeSelector, **first.nodeSelector},
        tolerations=(*first.tolerations, *second.tolerations),
        labels={**second.labels, **first.labels},
        annotations={**second.annotations, **first.annotations},
        priorityClassName=first.priorityClassName or second.priorityClassName,
        schedulingGates=(*first.schedulingGates, *second.schedulingGates),
    )


def summary(ops: tuple[Op, ...]) -> str:
    """``sets nodeSelector, tolerations``."""
    fields = dict.fromkeys(
        op["path"].split("/")[2] if op["path"] != "/metadata" else next(iter(op["value"]))
        for op in ops
        if op["op"] == "add"
    )
    return "sets " + ", ".join(fields)


def _map_ops(
    path: str, wanted: Mapping[str, str], actual: Mapping[str, str] | None, listed: Any
) -> list[Op]:
    needed = {k: v for k, v in wanted.items() if (actual or {}).get(k) != v}
    if not needed:
        return []
    if not isinstance(listed, dict):
        return [{"op": "add", "path": path, "value": needed}]
    return [{"op": "add", "path": f"{path}/{token(k)}", "value": v} for k, v in needed.items()]


def _has(given: tuple[Toleration, ...], wanted: Toleration) -> bool:
    return any(_plain(one) == _plain(wanted) for one in given)


def _plain(toleration: Toleration) -> tuple[Any, ...]:
    return (
        toleration.key or "",
        toleration.operator or "Equal",
        toleration.value or "",
        toleration.effect or "",
        toleration.tolerationSeconds,
    )
