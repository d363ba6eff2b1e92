"""Turns what the checks would change into one patch of the pod, for the engine to verify.

There is a patch only where every violation has a change that does not depend on what the program
does with the node; what the program has to do without is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins

from kubectl_gpuadmit.admission.pod_security.check import GONE, Change, Violation
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.pointers import key_of
from kubectl_gpuadmit.verdict import Remedy

HARDENING, WITHOUT = 12, 45
"""Costs: settings alone, and a program that loses something."""


def remedies(pod: NewPod, violations: Iterable[Violation]) -> tuple[Remedy, ...]:
    """At most one remedy, with operations that start at the pod (``/spec/…``)."""
    every = tuple(violations)
    if any(violation.changes is None for violation in every):
        return ()
    changes = [change for violation in every for change in violation.changes or ()]
    patch = _patch({"spec": to_builtins(pod.spec), "metadata": to_builtins(pod.metadata)}, changes)
    if not patch:
        return ()
    loses = list(dict.fromkeys(violation.loses for violation in every if violation.loses))
    summary = "set the securityContext that the namespace asks for"
    if loses:
        summary += f", without {' and '.join(loses)}"
    if any(violation.reason.startswith("runAsNonRoot") for violation in every):
        summary += "; the image must name a user other than root"
    return (Remedy(summary=summary, patch=patch, cost=WITHOUT if loses else HARDENING),)


def _patch(pod: Any, changes: list[Change]) -> tuple[dict[str, Any], ...]:
    """RFC 6902. Objects that are missing on the way come whole, each once."""
    after = _present(pod)
    before = _present(pod)
    roots: dict[str, None] = {}
    for change in changes:
        steps = change.pointer.split("/")[1:]
        roots.setdefault(_first_missing(before, steps))
        _apply(after, steps, change.value)
    ops = []
    for pointer in roots:
        steps = pointer.split("/")[1:]
        old, new = _at(before, steps), _at(after, steps)
        if old is None and new is not None:
            ops.append({"op": "add", "path": pointer, "value": new})
        elif new is None and old is not None:
            ops.append({"op": "remove", "path": pointer})
        elif old is not None:
            ops.append({"op": "replace", "path": pointer, "value": new})
    return tuple(ops)


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _present(item) for key, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list | tuple) else value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return value[int(step)]
    return value.get(key_of(step)) if isinstance(value, dict) else None


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        value = _step(value, step)
    return value


def _first_missing(value: Any, steps: list[str]) -> str:
    """The shortest part of the pointer that is not there, the whole of it if all is."""
    for count, step in enumerate(steps, start=1):
        value = _step(value, step)
        if value is None:
            return "/" + "/".join(steps[:count])
    return "/" + "/".join(steps)


def _apply(value: Any, steps: list[str], setting: Any) -> None:
    for step in steps[:-1]:
        following = _step(value, step)
        if following is None:
            following = value[key_of(step)] = {}
        value = following
    last = key_of(steps[-1])
    if setting is GONE:
        value.pop(last, None)
    else:
        value[last] = setting
