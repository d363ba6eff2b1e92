"""The tolerations that admission plugins add: node problems for 300 s, and extended resources.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/defaulttolerationseconds/admission.go (on by
default, 300 s unless the API server's flags say otherwise) and
plugin/pkg/admission/extendedresourcetoleration/admission.go (off by default).
"""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_gpuadmit.kube.objects import Pod, Toleration
from kubectl_gpuadmit.kube.resource_names import is_extended

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SECONDS = 300


def node_problems(pod: Pod) -> Pod:
    """Tolerates an unready or unreachable node for 300 s, unless the pod speaks of it."""
    own = pod.spec.tolerations or ()

    def spoken_of(key: str) -> bool:
        return any(
            (not t.key or t.key == key) and (not t.effect or t.effect == "NoExecute") for t in own
        )

    added = tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", tolerationSeconds=SECONDS)
        for key in (NOT_READY, UNREACHABLE)
        if not spoken_of(key)
    )
    return replace(pod, spec=replace(pod.spec, tolerations=own + added)) if added else pod


def extended_resources(pod: Pod) -> Pod:
    """Tolerates the NoSchedule taint named like each extended resource that is requested."""
    asked = sorted(
        {
            name
            for c in (*(pod.spec.containers or ()), *(pod.spec.initContainers or ()))
            if c.resources is not None
            for name in c.resources.requests or ()
            if is_extended(name)
        }
    )
    own = pod.spec.tolerations or ()
    for name in asked:
        wanted = Toleration(key=name, operator="Exists", effect="NoSchedule")
        same = [
            t
            for t in own
            if (t.key, t.operator, t.value or "", t.effect) == (name, "Exists", "", "NoSchedule")
        ]
        own = tuple(wanted if t in same else t for t in own) if same else (*own, wanted)
    if own == (pod.spec.tolerations or ()):
        return pod
    return replace(pod, spec=replace(pod.spec, tolerations=own))
