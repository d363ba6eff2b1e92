"""How a refusal of the API server is worded and carried in a Finding; what a pod is called in it.

Source: k8s.io/apiserver v0.37.2 pkg/admission/errors.go (NewForbidden), k8s.io/apimachinery v0.37.2
pkg/api/errors/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.verdict import Evidence, Fidelity, Finding, Remedy, Unknown

API_SERVER = "kube-apiserver"


class Admitted(Struct, frozen=True):
    """The pod as the API server would go on with, and what it found on the way.

    A pod with findings of level ``deny`` is returned as far as it could be changed, so that every
    reason can be told and not only the first.
    """

    pod: Pod
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()


def shown_name(obj: KubeObject) -> str:
    """metadata.name, else generateName, else ``Unknown``: the name is generated after admission."""
    return obj.metadata.name or obj.metadata.generateName or "Unknown"


def stored_name(obj: KubeObject) -> str:
    """The same after admission's mutating half: by then a random suffix follows generateName."""
    generated = obj.metadata.generateName
    if not obj.metadata.name and generated:
        return f"{generated[:58]}xxxxx"
    return shown_name(obj)


def forbidden(name: str, reason: str, resource: str = "pods") -> str:
    """The text of the 403 that an admission plugin's error becomes."""
    return f'{resource} "{name}" is forbidden: {reason}'


def said(message: str) -> Evidence:
    """The API server's own words beside the readable ones; always the last piece of evidence."""
    return Evidence(API_SERVER, "message", message, None)


def refusal(
    reason: str,
    detail: str,
    message: str,
    *,
    evidence: Sequence[Evidence] = (),
    permanent: bool = True,
    field: str = "",
    suggest: tuple[Remedy, ...] = (),
    fidelity: Fidelity = "exact",
) -> Finding:
    """A finding of the API server's built-in admission. ``field`` points into the pod template."""
    return Finding(
        reason=reason,
        detail=detail,
        evidence=(*evidence, said(message)),
        permanent=permanent,
        field=field,
        suggest=suggest,
        fidelity=fidelity,
    )
