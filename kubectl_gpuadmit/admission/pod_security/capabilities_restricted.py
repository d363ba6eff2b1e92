"""Restricted: containers drop ALL capabilities and add none but NET_BIND_SERVICE.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_capabilities_restricted.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security import capabilities_baseline
from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
    containers,
    named,
    quoted,
    runs_windows,
    shown,
    unless,
)
from kubectl_gpuadmit.kube.new_pods import Capabilities, NewPod

_MAY_ADD = "NET_BIND_SERVICE"


def _run(pod: NewPod) -> Violation | None:
    keeping: list[str] = []
    adding: list[str] = []
    extra: set[str] = set()
    places: list[Place] = []
    changes: list[Change] = []
    for at, one in containers(pod):
        found = one.securityContext.capabilities if one.securityContext else None
        own = found or Capabilities()
        subject = named("container", [one.name])
        pointer = f"{at}/securityContext/capabilities"
        if "ALL" not in (own.drop or ()):
            keeping.append(one.name)
            what = "securityContext.capabilities.drop"
            places.append(Place(f"{pointer}/drop", subject, what, shown(own.drop), "ALL"))
            changes.append(Change(f"{pointer}/drop", ["ALL"]))
        forbidden = [name for name in own.add or () if name != _MAY_ADD]
        if forbidden:
            adding.append(one.name)
            extra.update(forbidden)
            what = "securityContext.capabilities.add"
            places.append(Place(f"{pointer}/add", subject, what, ", ".join(forbidden), None))
            kept = [name for name in own.add or () if name == _MAY_ADD]
            changes.append(Change(f"{pointer}/add", kept or GONE))
    details = []
    if keeping:
        who = named("container", keeping)
        details.append(f'{who} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        who = named("container", adding)
        details.append(
            f"{who} must not include {quoted(sorted(extra))} in securityContext.capabilities.add"
        )
    if not details:
        return None
    return Violation(
        "unrestricted capabilities",
        "; ".join(details),
        tuple(places),
        changes=tuple(changes),
        loses=capabilities_baseline.listed(extra),
    )


_INSTEAD = (capabilities_baseline.ID,)
CHECK = Check(
    "capabilities_restricted",
    "restricted",
    (Version(22, _run, _INSTEAD), Version(25, unless(runs_windows, _run), _INSTEAD)),
)
