"""Rule model/scale-to-zero."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.policy import serving
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Mutation, ObjectEvent

_AT = "/spec/replicas"
_MOST = 1024
"""Bytes of an Event's message (k8s.io/kubernetes pkg/apis/core/validation/events.go)."""


@rule("model/scale-to-zero", reasons={}, stage="mutate", reads={"Node", "ConfigMap"}, level="warn")
def model_scale_to_zero(
    ask: Ask, cluster: Cluster, *, kinds: tuple[str, ...] = ("InferenceDeployment",)
) -> Iterator[Found]:
    """Scales an object to zero whose model fits no GPU that it could get, instead of refusing it.

    The object stays, its ``spec.replicas`` becomes 0, and an Event says why: no pod crash-loops and
    no autoscaler adds nodes for it. ``kinds`` are those that it is done to; each of them must have
    ``spec.replicas``. An object whose model is not known, or fits somewhere, is left alone.
    """
    spec = ask.workload.manifest.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if ask.workload.ref.kind not in kinds or not ask.first_group or replicas == 0:
        return
    found = serving.pod_fit(
        ask.workload,
        ask.group,
        ask.pod,
        cluster,
        ask.policy,
        now=ask.now,
        kubernetes=ask.kubernetes,
    )
    if found.standing() != "exceeds":
        return
    from kubectl_gpuadmit.policy import serving_words as words

    why = next(words.why(engine) for engine in found.engines if engine.standing() == "exceeds")
    message = f"scaled to zero: {why}"
    yield Mutation(
        ops=({"op": "add" if replicas is None else "replace", "path": _AT, "value": 0},),
        of="object",
        summary=message,
        event=ObjectEvent("Warning", "ModelDoesNotFit", _cut(message)),
    )


def _cut(text: str) -> str:
    raw = text.encode()
    return text if len(raw) <= _MOST else raw[: _MOST - 3].decode("utf-8", "ignore") + "..."
