"""Rule labels/required."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import TemplateChange
from kubectl_gpuadmit.policy.edits import operations
from kubectl_gpuadmit.policy.shape import nearest
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding, Remedy


@rule(
    "labels/required",
    reasons={
        "labels/missing": "A pod that uses GPUs lacks a label that the policy requires. "
        "Add it to the pod template: labels of the workload itself do not reach its pods."
    },
)
def labels_required(
    ask: Ask,
    cluster: Cluster,
    *,
    labels: tuple[str, ...] = ("team", "workload-type"),
    all_pods: bool = False,
) -> Iterator[Found]:
    """Pods that use GPUs must carry these labels, with a value.

    Who owns a GPU and what it is for decides where it may land and whom to call. A pod that does
    not say is refused, not waved through. Pods without GPUs are left alone unless ``allPods`` is
    set.
    """
    if not all_pods and not uses_gpus(ask.pod, ask.policy.gpu_patterns):
        return
    given = ask.pod.labels
    missing = [key for key in labels if not given.get(key)]
    if not missing:
        return
    evidence = tuple(
        Evidence("pod", f"label {key}", given.get(key), "any value", _similar(key, given))
        for key in missing
    )
    of_workload = (ask.workload.manifest.get("metadata") or {}).get("labels") or {}
    known = {key: of_workload[key] for key in missing if of_workload.get(key)}
    suggest = []
    if len(known) == len(missing):
        ops = operations(TemplateChange(labels=known), ask.group.template, ask.pod)
        if patch := ask.manifest_patch(ops):
            text = "the workload's own labels on its pods too"
            suggest.append(Remedy(text, patch=patch, cost=2))
    yield Finding(
        reason="labels/missing",
        detail=f"the pod lacks the label{'s' * (len(missing) > 1)} {', '.join(missing)}",
        evidence=evidence,
        field=ask.field("/metadata/labels") if given else ask.field("/metadata"),
        suggest=tuple(suggest),
    )


def _similar(key: str, given: dict[str, str]) -> str:
    near = nearest(key, [name for name in given if name != key])
    return f"the pod has {near}={given[near]}" if near else ""
