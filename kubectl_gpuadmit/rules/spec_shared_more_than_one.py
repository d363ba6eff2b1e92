"""Rule spec/shared-more-than-one."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding


@rule(
    "spec/shared-more-than-one",
    reasons={
        "spec/shared-more-than-one": "Several places on shared GPUs are asked for, which gives no "
        "more memory or time than one and may be refused by the device plugin. Ask for one, or for "
        "whole GPUs."
    },
    level="warn",
)
def spec_shared_more_than_one(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """More than one unit of a time-sliced resource.

    With time-slicing, two places may well be on the same device; with
    ``failRequestsGreaterThanOne`` the device plugin refuses such a pod on the node
    (``UnexpectedAdmissionError``).
    """
    for name, amount in gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns).items():
        meaning = gpus.means(name)
        if amount < 2 or meaning is None or not name.endswith(".shared"):
            continue
        yield Finding(
            reason="spec/shared-more-than-one",
            detail=f"{amount} {name} are {amount} places on shared GPUs, perhaps on the same one",
            evidence=(Evidence("pod", name, amount, 1, "manifest"),),
            field=ask.field("/spec/containers"),
        )
