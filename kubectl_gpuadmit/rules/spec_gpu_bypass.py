"""Rule spec/gpu-bypass."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube import gpus
from kubectl_gpuadmit.rule import Ask, Found, rule
from kubectl_gpuadmit.verdict import Evidence, Finding

_HOW = {
    "visible-devices": "sets NVIDIA_VISIBLE_DEVICES={value}",
    "device-mount": "mounts {value}, by which the NVIDIA runtime hands out devices",
    "privileged-host-path": "is privileged and mounts {value} of the node",
    "cdi": "is annotated with the CDI device {value}",
    "runtime-class": "runs under runtimeClassName {value}",
}


@rule(
    "spec/gpu-bypass",
    reasons={
        "spec/gpu-bypass": "A container reaches GPUs that neither the scheduler nor a quota sees. "
        "Ask for them under resources.limits and take the way around out."
    },
    level="warn",
)
def spec_gpu_bypass(ask: Ask, cluster: Cluster) -> Iterator[Found]:
    """Pods that reach GPUs without booking them.

    The kubelet puts a pod's own variables after those of the device plugin, so
    ``NVIDIA_VISIBLE_DEVICES=all`` shows every GPU of the node, also to a container that has booked
    one. A privileged container with a device path of the node, a CDI annotation and the runtime's
    volume mounts do the same; ``runtimeClassName: nvidia`` without a request lets an image do it
    that sets the variable itself. Device plugins and exporters do this on purpose: give them an
    exception.
    """
    booked = gpus.pod_gpus(ask.pod, ask.policy.gpu_patterns)
    asks = ", ".join(f"{n} {name}" for name, n in booked.items()) or "no GPU"
    for way in gpus.bypasses(ask.pod, ask.policy.gpu_patterns):
        who = f"container {way.container}" if way.container else "the pod"
        yield Finding(
            reason="spec/gpu-bypass",
            detail=f"{who} {_HOW[way.how].format(value=way.value)} and books {asks}",
            evidence=(Evidence(who, way.how, way.value, None, "manifest"),),
            field=ask.field(way.pointer),
        )
