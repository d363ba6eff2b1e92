"""Baseline: no container is privileged.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_privileged.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    Change,
    Check,
    Place,
    Version,
    Violation,
    containers,
    named,
)
from kubectl_gpuadmit.kube.new_pods import NewPod


def _run(pod: NewPod) -> Violation | None:
    bad = [
        (at, one.name)
        for at, one in containers(pod)
        if one.securityContext is not None and one.securityContext.privileged
    ]
    if not bad:
        return None
    places = tuple(
        Place(
            f"{at}/securityContext/privileged",
            named("container", [name]),
            "securityContext.privileged",
            "true",
            "false",
        )
        for at, name in bad
    )
    return Violation(
        "privileged",
        f"{named('container', [name for _, name in bad])}"
        " must not set securityContext.privileged=true",
        places,
        changes=tuple(Change(place.pointer, False) for place in places),
        loses="privileged mode",
    )


CHECK = Check("privileged", "baseline", (Version(0, _run),))
