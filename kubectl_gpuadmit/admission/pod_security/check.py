"""What a Pod Security check is, what it finds, and the wording that the checks share.

Source: k8s.io/pod-security-admission v0.37.2 policy/{checks,helpers,visitor}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.kube.new_pods import NewContainer, NewPod, PodSecurityContext

CheckedLevel = Literal["baseline", "restricted"]


class Place(Struct, frozen=True):
    """One field that a check objects to."""

    pointer: str
    """RFC 6901 into the pod; the field itself may be absent."""
    subject: str
    """``pod``, ``container "c"``, ``volume "v"``."""
    what: str
    """The field below its subject: ``securityContext.privileged``."""
    observed: str | int | None
    wanted: str | int | None


class Change(Struct, frozen=True):
    """One field set, or removed where ``value`` is GONE."""

    pointer: str
    value: Any


GONE = object()


class Violation(Struct, frozen=True):
    """``reason`` and ``detail`` are Kubernetes' own; ``reason (detail)`` is its text."""

    reason: str
    detail: str
    places: tuple[Place, ...]
    changes: tuple[Change, ...] | None = None
    """What would settle it, None where that depends on what the program needs."""
    loses: str = ""
    """What the program would have to do without after ``changes``."""

    @property
    def text(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Run = Callable[[NewPod], Violation | None]


class Version(Struct, frozen=True):
    """How a check works from minor version ``since`` on; ``overrides`` are ids of baseline
    checks that it replaces at level restricted."""

    since: int
    run: Run
    overrides: tuple[str, ...] = ()


class Check(Struct, frozen=True):
    id: str
    level: CheckedLevel
    versions: tuple[Version, ...]
    """By ``since``, ascending."""

    def at(self, minor: int) -> Version | None:
        """The version in force in Kubernetes 1.``minor``, None before there was one."""
        return next((v for v in reversed(self.versions) if v.since <= minor), None)


def containers(pod: NewPod) -> Iterator[tuple[str, NewContainer]]:
    """(pointer, container), init containers first. A new pod has no ephemeral ones."""
    for number, one in enumerate(pod.spec.initContainers or ()):
        yield f"/spec/initContainers/{number}", one
    for number, one in enumerate(pod.spec.containers or ()):
        yield f"/spec/containers/{number}", one


def context_of(pod: NewPod) -> PodSecurityContext:
    """The pod's security context; an empty one where there is none, which means the same."""
    return pod.spec.securityContext or PodSecurityContext()


def runs_windows(pod: NewPod) -> bool:
    return pod.spec.os is not None and pod.spec.os.name == "windows"


def has_own_users(pod: NewPod) -> bool:
    """Whether the pod runs in a user namespace: root there is nobody on the node."""
    return pod.spec.hostUsers is False


def unless(excused: Callable[[NewPod], bool], run: Run) -> Run:
    return lambda pod: None if excused(pod) else run(pod)


def quoted(names: Iterable[str]) -> str:
    """``"a", "b"``: nothing is escaped."""
    return ", ".join(f'"{name}"' for name in names)


def plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def named(word: str, names: Iterable[str]) -> str:
    """``container "a"`` or ``containers "a", "b"``."""
    every = list(names)
    return f"{plural(word, len(every))} {quoted(every)}"


def setters(names: list[str], *, pod: bool) -> str:
    """``pod and container "a"``: whoever sets something that must not be."""
    return " and ".join((["pod"] if pod else []) + ([named("container", names)] if names else []))


def shown(value: object) -> str | int | None:
    """A field's value as evidence holds it."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int) else ", ".join(map(str, value))  # type: ignore[call-overload]
