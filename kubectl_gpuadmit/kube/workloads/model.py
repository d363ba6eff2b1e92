"""What a workload is once its kind is understood: groups of equal pods; knows no kind by itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.verdict import Finding, Ref, Unknown

DRAWN = "xxxxx"
"""Stands for the five characters that the API server or a controller draws."""


SUPPLIED_IMAGE = "supplied-by-the-controller"
"""Image of a container whose own image the controller or a runtime fills in."""


class PodGroup(Struct, frozen=True):
    """``count`` pods made from one template."""

    role: str
    """``''`` for one-template kinds, else the field's own name: ``worker``, ``leader``,
    ``decode``."""
    count: int
    template: dict[str, Any]
    """``{"metadata": …, "spec": …}`` as the user wrote it, plus what the controller adds for
    certain."""
    pod: Pod
    """The same, decoded; metadata.namespace set, metadata.name or generateName as the
    controller's."""
    pointer: str
    """RFC 6901 pointer from the manifest's root to the template, '' for a Pod, None-like '-'
    where the kind holds no template that a patch could address (resources under
    ``spec.resources`` only)."""
    scheduled_by_daemonset: bool = False
    """True: one pod for each matching node (``count`` is 1 until the engine has computed it)."""
    paths: tuple[tuple[str, str], ...] = ()
    """Where the kind spreads the template over fields of its own: (pointer inside the template,
    pointer inside the manifest), e.g. ``("/spec/containers/0/resources", "/spec/resources")``."""
    names: str = ""
    """How the controller names the pods: ``web-{index}``, ``lws-{group}-{member}``; '' where the
    end of the name is random (``pod.metadata.generateName`` is then its beginning)."""
    first: int = 0
    """What ``{index}`` and ``{member}`` start at."""
    members: int = 1
    """Pods for each ``{group}``."""

    def name(self, number: int) -> str:
        """Name of the pod with this number, from 0; the number stands for what is drawn."""
        if not self.names:
            return self.pod.name or f"{self.pod.metadata.generateName or ''}{number}"
        group, member = divmod(number, self.members)
        return (
            self.names.replace("{index}", str(self.first + number))
            .replace("{group}", str(group))
            .replace("{member}", str(self.first + member))
        )

    def in_manifest(self, path: str) -> str | None:
        """Pointer in the user's own manifest for a pointer in the template; None where it has none.

        Use it for every patch and every field that is shown: ``/spec/containers/0/resources`` of a
        NIMService is ``/spec/resources``.
        """
        for inside, outside in self.paths:
            if path == inside or path.startswith(f"{inside}/"):
                return outside + path[len(inside) :]
        return None if self.pointer == "-" else self.pointer + path


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
    """Queue or scheduler with the last word, e.g. ``Kueue LocalQueue team-a``; '' for the
    default."""
    findings: tuple[Finding, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    stored: bool = False
    """Whether it comes from a cluster instead of a file: then it has been let in already."""
    creates: tuple[tuple[str, int], ...] = ()
    """Objects charged by count quotas on the way, e.g. ``(("deployments.apps", 1),
    ("replicasets.apps", 1))``."""
