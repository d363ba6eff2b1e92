"""Restricted: every container sets allowPrivilegeEscalation to false.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_allowPrivilegeEscalation.go.
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
    runs_windows,
    shown,
    unless,
)
from kubectl_gpuadmit.kube.new_pods import NewPod


def _run(pod: NewPod) -> Violation | None:
    bad: list[str] = []
    places: list[Place] = []
    for at, one in containers(pod):
        own = one.securityContext
        if own is None or own.allowPrivilegeEscalation is not False:
            bad.append(one.name)
            places.append(
                Place(
                    pointer=f"{at}/securityContext/allowPrivilegeEscalation",
                    subject=named("container", [one.name]),
                    what="securityContext.allowPrivilegeEscalation",
                    observed=shown(own.allowPrivilegeEscalation if own else None),
                    wanted="false",
                )
            )
    if not bad:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{named('container', bad)} must set securityContext.allowPrivilegeEscalation=false",
        tuple(places),
        changes=tuple(Change(place.pointer, False) for place in places),
    )


CHECK = Check(
    "allowPrivilegeEscalation",
    "restricted",
    (Version(8, _run), Version(25, unless(runs_windows, _run))),
)
