"""Restricted: pod or containers set runAsNonRoot. From 1.35 on pods with own users need not.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_runAsNonRoot.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
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

_WHAT = "securityContext.runAsNonRoot"
_POD = "/spec/securityContext/runAsNonRoot"


def _run(pod: NewPod) -> Violation | None:
    own = context_of(pod).runAsNonRoot
    places: list[Place] = []
    if own is False:
        places.append(Place(_POD, "pod", _WHAT, "false", "true"))
    denying: list[str] = []
    silent: list[str] = []
    for at, one in containers(pod):
        setting = one.securityContext.runAsNonRoot if one.securityContext else None
        subject = named("container", [one.name])
        if setting is False:
            denying.append(one.name)
            pointer = f"{at}/securityContext/runAsNonRoot"
            places.append(Place(pointer, subject, _WHAT, "false", "true"))
        elif setting is None and own is None:
            silent.append(one.name)
            places.append(Place(_POD, subject, _WHAT, None, "true"))
    who = setters(denying, pod=own is False)
    if who:
        detail = f"{who} must not set {_WHAT}=false"
    elif silent:
        detail = f"pod or {named('container', silent)} must set {_WHAT}=true"
    else:
        return None
    return Violation(
        "runAsNonRoot != true",
        detail,
        tuple(places),
        changes=tuple(
            Change(pointer, True) for pointer in dict.fromkeys(p.pointer for p in places)
        ),
    )


CHECK = Check(
    "runAsNonRoot",
    "restricted",
    (Version(0, _run), Version(35, unless(has_own_users, _run))),
)
