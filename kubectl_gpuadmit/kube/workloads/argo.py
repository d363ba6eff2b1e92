"""Argo Workflow and CronWorkflow: the pods that run at a time at the busiest moment.

Source: argoproj/argo-workflows docs/fields.md. Steps of one list item run together, list items
after each other; tasks of a DAG are taken as running together (an upper bound). Loops over values
that are only known at run time are unknown. Argo's own wait and init containers are not counted.
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.kube.workloads.reading import Reading

_POD_FIELDS = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "schedulerName",
    "priorityClassName",
    "serviceAccountName",
)


def workflow(reading: Reading) -> None:
    reading.suspended("/spec/suspend")
    _workflow(reading, "/spec")


def cron_workflow(reading: Reading) -> None:
    reading.suspended("/spec/suspend")
    reading.charge("workflows.argoproj.io")
    _workflow(reading, "/spec/workflowSpec")


def _workflow(reading: Reading, at: str) -> None:
    named = reading.text(f"{at}/workflowTemplateRef/name")
    if named:
        reading.unknown(
            f"WorkflowTemplate {named}: what it runs is not in this object",
            hint=(
                "give a Workflow with its templates inlined, e.g. of argo submit --dry-run -o yaml"
            ),
            level="deny",
        )
        return
    templates = {
        reading.text(f"{at}/templates/{i}/name"): i
        for i, _ in enumerate(reading.sequence(f"{at}/templates"))
    }
    entry = reading.text(f"{at}/entrypoint")
    if entry not in templates:
        reading.fail(f"{at}/entrypoint", f"no template is named {entry!r}", ref="missing-field")
    peak = _peak(reading, at, templates, entry, {})
    limit = reading.at(f"{at}/parallelism")
    if limit is not None and sum(peak.values()) > reading.count(f"{at}/parallelism", 1):
        reading.autoscaled(
            f"{at}/parallelism",
            start=sum(peak.values()),
            maximum=reading.count(f"{at}/parallelism", 1),
        )
    for name, count in peak.items():
        _leaf(reading, at, f"{at}/templates/{templates[name]}", name, count)


Peaks = dict[str, dict[str, int] | None]
"""Template -> its pods at the busiest moment; None while it is being worked out."""


def _peak(
    reading: Reading, at: str, templates: dict[str, int], name: str, known: Peaks
) -> dict[str, int]:
    """Leaf template -> pods of it at the busiest moment of one run of template ``name``."""
    if name in known:
        before = known[name]
        if before is None:
            reading.unknown(
                f"template {name}: it calls itself, so the number of pods is not bounded",
                level="deny",
            )
        return before or {}
    known[name] = None
    here = f"{at}/templates/{templates[name]}"
    peak: dict[str, int] = {}
    if reading.at(f"{here}/dag") is not None:
        peak = _together(reading, at, templates, f"{here}/dag/tasks", known)
    elif reading.at(f"{here}/steps") is not None:
        for index, _ in enumerate(reading.sequence(f"{here}/steps")):
            now = _together(reading, at, templates, f"{here}/steps/{index}", known)
            for leaf, count in now.items():
                peak[leaf] = max(peak.get(leaf, 0), count)
    elif _is_pod(reading.mapping(here)):
        peak = {name: 1}
    known[name] = peak
    return peak


def _is_pod(template: dict[str, Any]) -> bool:
    return any(template.get(kind) is not None for kind in ("container", "script", "containerSet"))


def _together(
    reading: Reading, at: str, templates: dict[str, int], pointer: str, known: Peaks
) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, _ in enumerate(reading.sequence(pointer)):
        step = f"{pointer}/{index}"
        called = reading.text(f"{step}/template")
        if called not in templates:
            reference = resolve(reading.at(step), "/templateRef/name")
            reading.unknown(
                f"template {called or reference or '(inline)'} that {step} calls: not in this "
                "object",
                hint="give a Workflow with its templates inlined",
                level="deny",
            )
            continue
        times = _times(reading, step)
        for leaf, count in _peak(reading, at, templates, called, known).items():
            found[leaf] = found.get(leaf, 0) + count * times
    return found


def _times(reading: Reading, step: str) -> int:
    """How often a loop runs its step."""
    if reading.at(f"{step}/withItems") is not None:
        return len(reading.sequence(f"{step}/withItems"))
    sequence = reading.mapping(f"{step}/withSequence")
    amount = sequence.get("count")
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    if isinstance(amount, str) and amount.isdecimal():
        return int(amount)
    if sequence or reading.at(f"{step}/withParam") is not None:
        reading.unknown(
            f"how often {step} runs: the loop is known at run time only; judged for once"
        )
    return 1


def _leaf(reading: Reading, at: str, here: str, name: str, count: int) -> None:
    own = reading.mapping(here)
    spec: dict[str, Any] = {}
    paths: list[tuple[str, str]] = []
    for field in _POD_FIELDS:
        level = here if own.get(field) is not None else at
        if reading.at(f"{level}/{field}") is not None:
            spec[field] = reading.at(f"{level}/{field}")
        paths.append((f"/spec/{field}", f"{level}/{field}"))
    volumes = [*reading.sequence(f"{at}/volumes"), *reading.sequence(f"{here}/volumes")]
    if volumes:
        spec["volumes"] = volumes
    kind = next((k for k in ("container", "script") if own.get(k) is not None), "")
    if kind:
        spec["containers"] = [
            {"name": "main", **reading.mapping(f"{here}/{kind}")},
            *reading.sequence(f"{here}/sidecars"),
        ]
        paths.append(("/spec/containers/0", f"{here}/{kind}"))
    else:
        spec["containers"] = reading.sequence(f"{here}/containerSet/containers")
        paths.append(("/spec/containers", f"{here}/containerSet/containers"))
    spec["initContainers"] = reading.sequence(f"{here}/initContainers") or None
    spec["restartPolicy"] = "Never"
    if (
        reading.at(f"{here}/podSpecPatch") is not None
        or reading.at(f"{at}/podSpecPatch") is not None
    ):
        reading.unknown(f"podSpecPatch of template {name}: what it changes is not applied here")
    reading.group(
        name,
        count,
        "-",
        template={"metadata": reading.mapping(f"{here}/metadata"), "spec": spec},
        paths=(*paths, ("/metadata", f"{here}/metadata")),
        labels={"workflows.argoproj.io/workflow": reading.base},
        generate=f"{reading.base}-{name}-",
    )
