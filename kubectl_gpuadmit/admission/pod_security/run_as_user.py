"""Restricted: nobody sets user 0. From 1.35 on pods with own users may.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_runAsUser.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
    containers,
    context_of,
    has_own_users,
    named,
    setters,
    unless,
)
from kubectl_gpuadmit.kube.new_pods import NewPod

_WHAT = "securityContext.runAsUser"


def _run(pod: NewPod) -> Violation | None:
    places: list[Place] = []
    by_pod = context_of(pod).runAsUser == 0
    if by_pod:
        places.append(Place("/spec/securityContext/runAsUser", "pod", _WHAT, 0, None))
    bad: list[str] = []
    for at, one in containers(pod):
        if one.securityContext is not None and one.securityContext.runAsUser == 0:
            bad.append(one.name)
            pointer = f"{at}/securityContext/runAsUser"
            places.append(Place(pointer, named("container", [one.name]), _WHAT, 0, None))
    who = setters(bad, pod=by_pod)
    if not who:
        return None
    return Violation(
        "runAsUser=0",
        f"{who} must not set runAsUser=0",
        tuple(places),
        changes=tuple(Change(place.pointer, GONE) for place in places),
        loses="user 0",
    )


CHECK = Check(
    "runAsUser",
    "restricted",
    (Version(23, _run), Version(35, unless(has_own_users, _run))),
)
