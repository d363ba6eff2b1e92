"""Seccomp: baseline forbids to switch it off, restricted (1.19 on) asks for it to be set.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_seccompProfile_{baseline,restricted}.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.field_errors import quoted as go_quoted
from kubectl_gpuadmit.admission.pod_security.check import (
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
    runs_windows,
    setters,
    unless,
)
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.pointers import token

_ALLOWED = ("RuntimeDefault", "Localhost")
_WHAT = "securityContext.seccompProfile.type"
_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


def _annotations(pod: NewPod) -> Violation | None:
    """Before 1.19 a profile was an annotation."""
    keys = [_POD_ANNOTATION, *(_CONTAINER_ANNOTATION + one.name for _, one in containers(pod))]
    places = [
        Place(
            f"/metadata/annotations/{token(key)}",
            "pod",
            f"annotation {key}",
            pod.annotations[key] or None,
            "runtime/default or localhost/…",
        )
        for key in dict.fromkeys(keys)
        if key in pod.annotations and not _annotation_allowed(pod.annotations[key])
    ]
    if not places:
        return None
    found = sorted(
        f"{key}={go_quoted(pod.annotations[key])}"
        for key in (place.what.removeprefix("annotation ") for place in places)
    )
    detail = f"forbidden {plural('annotation', len(found))} {', '.join(found)}"
    return Violation("seccompProfile", detail, tuple(places))


def _annotation_allowed(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def _set(pod: NewPod) -> Violation | None:
    return _fields(pod, required=False)


def _required(pod: NewPod) -> Violation | None:
    return _fields(pod, required=True)


def _fields(pod: NewPod, *, required: bool) -> Violation | None:
    places: list[Place] = []
    values: set[str] = set()
    profile = context_of(pod).seccompProfile
    by_pod = profile is not None and profile.type not in _ALLOWED
    pod_wide = "/spec/securityContext/seccompProfile"
    if profile is not None and by_pod:
        values.add(profile.type)
        places.append(
            Place(f"{pod_wide}/type", "pod", _WHAT, profile.type or None, "RuntimeDefault")
        )
    bad: list[str] = []
    silent: list[str] = []
    for at, one in containers(pod):
        own = one.securityContext.seccompProfile if one.securityContext else None
        subject = named("container", [one.name])
        if own is None:
            if required and profile is None:
                silent.append(one.name)
                places.append(Place(f"{pod_wide}/type", subject, _WHAT, None, "RuntimeDefault"))
        elif own.type not in _ALLOWED:
            bad.append(one.name)
            values.add(own.type)
            pointer = f"{at}/securityContext/seccompProfile/type"
            places.append(Place(pointer, subject, _WHAT, own.type or None, "RuntimeDefault"))
    who = setters(bad, pod=by_pod)
    if who:
        detail = f"{who} must not set {_WHAT} to {quoted(sorted(values))}"
    elif silent:
        detail = (
            f"pod or {named('container', silent)} must set {_WHAT}"
            ' to "RuntimeDefault" or "Localhost"'
        )
    else:
        return None
    pointers = dict.fromkeys(place.pointer.removesuffix("/type") for place in places)
    return Violation(
        "seccompProfile",
        detail,
        tuple(places),
        changes=tuple(Change(pointer, {"type": "RuntimeDefault"}) for pointer in pointers),
        loses="calls that RuntimeDefault forbids" if who else "",
    )


ID = "seccompProfile_baseline"
BASELINE = Check(ID, "baseline", (Version(0, _annotations), Version(19, _set)))
RESTRICTED = Check(
    "seccompProfile_restricted",
    "restricted",
    (Version(19, _required, (ID,)), Version(25, unless(runs_windows, _required), (ID,))),
)
