"""Baseline: AppArmor is not switched off, neither by a profile nor by the old annotations.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_appArmorProfile.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.field_errors import quoted as go_quoted
from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
    containers,
    context_of,
    named,
    plural,
    quoted,
    setters,
)
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.pointers import token

_ALLOWED = ("RuntimeDefault", "Localhost")
_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_WANTED = "RuntimeDefault or Localhost"


def _run(pod: NewPod) -> Violation | None:
    places: list[Place] = []
    changes: list[Change] = []
    values: set[str] = set()
    profile = context_of(pod).appArmorProfile
    by_pod = profile is not None and profile.type not in _ALLOWED
    bad: list[str] = []

    def note(at: str, subject: str, value: str) -> None:
        values.add(value)
        pointer = f"{at}/securityContext/appArmorProfile"
        what = "securityContext.appArmorProfile.type"
        places.append(Place(f"{pointer}/type", subject, what, value or None, _WANTED))
        changes.append(Change(pointer, {"type": "RuntimeDefault"}))

    if profile is not None and by_pod:
        note("/spec", "pod", profile.type)
    for at, one in containers(pod):
        own = one.securityContext.appArmorProfile if one.securityContext else None
        if own is not None and own.type not in _ALLOWED:
            bad.append(one.name)
            note(at, named("container", [one.name]), own.type)
    annotations = []
    for key, value in pod.annotations.items():
        if key.startswith(_PREFIX) and not _allowed(value):
            annotations.append(f"{key}={go_quoted(value)}")
            pointer = f"/metadata/annotations/{token(key)}"
            wanted = "runtime/default or localhost/…"
            places.append(Place(pointer, "pod", f"annotation {key}", value, wanted))
            changes.append(Change(pointer, GONE))
    who = setters(bad, pod=by_pod)
    listed = sorted(values) + sorted(annotations)
    if annotations:
        who = " and ".join(filter(None, (who, plural("annotation", len(annotations)))))
    if not who:
        return None
    return Violation(
        plural("forbidden AppArmor profile", len(listed)),
        f"{who} must not set AppArmor profile type to {quoted(listed)}",
        tuple(places),
        changes=tuple(changes),
        loses="its own AppArmor profile",
    )


def _allowed(annotation: str) -> bool:
    return annotation in ("", "runtime/default") or annotation.startswith("localhost/")


CHECK = Check("appArmorProfile", "baseline", (Version(0, _run),))
