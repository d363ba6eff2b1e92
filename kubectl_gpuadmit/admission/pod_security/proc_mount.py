"""Baseline: /proc stays masked. From 1.35 on only restricted asks that of pods with own users.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_procMount_{baseline,restricted}.go.
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
    has_own_users,
    named,
    quoted,
    unless,
)
from kubectl_gpuadmit.kube.new_pods import NewPod


def _run(pod: NewPod) -> Violation | None:
    bad: list[str] = []
    types: set[str] = set()
    places: list[Place] = []
    for at, one in containers(pod):
        mount = one.securityContext.procMount if one.securityContext else None
        if mount is not None and mount != "Default":
            bad.append(one.name)
            types.add(mount)
            subject = named("container", [one.name])
            pointer, what = f"{at}/securityContext/procMount", "securityContext.procMount"
            places.append(Place(pointer, subject, what, mount or None, "Default"))
    if not bad:
        return None
    return Violation(
        "procMount",
        f"{named('container', bad)} must not set securityContext.procMount to"
        f" {quoted(sorted(types))}",
        tuple(places),
        changes=tuple(Change(place.pointer, GONE) for place in places),
        loses="the unmasked /proc",
    )


ID = "procMount"
BASELINE = Check(ID, "baseline", (Version(0, _run), Version(35, unless(has_own_users, _run))))
RESTRICTED = Check("procMount_restricted", "restricted", (Version(35, _run, (ID,)),))
