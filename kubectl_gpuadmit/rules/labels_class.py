"""Rule labels/class."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy.usage import uses_gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "labels/class",
    reasons={
        "labels/no-class": "Nothing about a pod that uses GPUs says which workload class it is of. "
        "Give it the label, annotation or priority class of one of the policy's classes.",
        "labels/contradictory-class": "A pod shows signs of more than one workload class. "
        "Take away the sign that is wrong.",
    },
)
def labels_class(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """A pod that uses GPUs must belong to exactly one of the policy's workload classes.

    Signs of a class are labels, annotations, the priority class and the kind of the workload, as
    the policy's ``classes`` name them. Other rules go by the strongest sign in that order, so a pod
    that says two things would be judged by half of what it says.
    """
    policy = ask.policy
    if not uses_gpus(ask.pod, policy.gpu_patterns):
        return
    signs = policy.signs(ask.pod, ask.workload.ref.kind)
    classes = sorted({sign.workload_class for sign in signs})
    if len(classes) == 1:
        return
    if not classes:
        known = (
            ", ".join(cls.name for cls in policy.classes) or "none: the policy declares no classes"
        )
        yield Finding(
            reason="labels/no-class",
            detail=f"nothing says which workload class the pod is of; classes: {known}",
            evidence=tuple(
                Evidence("pod", f"class {cls.name}", None, _how(cls.match))
                for cls in policy.classes
            ),
            field=ask.field("/metadata/labels") if ask.pod.labels else ask.field("/metadata"),
        )
        return
    yield Finding(
        reason="labels/contradictory-class",
        detail="the pod is of "
        + " and of ".join(f"class {sign.workload_class} by its {sign.text}" for sign in signs),
        evidence=tuple(
            Evidence("pod", "workload class", sign.workload_class, "one class", sign.text)
            for sign in signs
        ),
        field=ask.field("/metadata/labels") if ask.pod.labels else ask.field("/metadata"),
    )


def _how(match: object) -> str:
    """The simplest way to be recognised as a class."""
    for field, what in (
        ("labels", "label"),
        ("annotations", "annotation"),
        ("priorityClasses", "priority class"),
        ("ownerKinds", "kind"),
    ):
        value = getattr(match, field)
        if value:
            pairs = value.items() if isinstance(value, dict) else ()
            listed = ", ".join(f"{k}={v}" for k, v in pairs) or " or ".join(value)
            return f"{what} {listed}"
    return ""
