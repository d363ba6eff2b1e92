"""Workload kinds -> the pods that their controllers would create."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Finding, Ref, Unknown


class PodGroup(Struct, frozen=True):
    """``count`` pods made from one template."""

    role: str
    """``''`` for one-template kinds, else the field's own name: ``worker``, ``leader``, ``decode``."""
    count: int
    template: dict[str, Any]
    """``{"metadata": …, "spec": …}`` as the user wrote it, plus what the controller adds for certain."""
    pod: Pod
    """The same, decoded; metadata.namespace set, metadata.name or generateName as the controller's."""
    pointer: str
    """RFC 6901 pointer from the manifest's root to the template, '' for a Pod, None-like '-' where the
    kind holds no template that a patch could address (resources under ``spec.resources`` only)."""
    scheduled_by_daemonset: bool = False
    """True: one pod for each matching node (``count`` is then computed by the engine)."""


class Workload(Struct, frozen=True):
    """One input object that makes pods."""

    ref: Ref
    location: str
    """``file:line`` of the document, or ``live``."""
    manifest: dict[str, Any]
    groups: tuple[PodGroup, ...]
    gang: bool = False
    """All or nothing by its controller or queue (LWS, JobSet, PodGroup, Volcano, Kueue …)."""
    queue: str = ""
    """Queue or scheduler with the last word, e.g. ``Kueue LocalQueue team-a``; '' for the default."""
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    creates: tuple[tuple[str, int], ...] = ()
    """Objects charged by count quotas on the way, e.g. ``(("deployments.apps", 1), ("replicasets.apps", 1))``."""
