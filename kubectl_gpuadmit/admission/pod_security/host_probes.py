"""Baseline from 1.34 on: probes and lifecycle hooks ask the pod itself and no other host.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_hostProbesAndhostLifecycle.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Version,
    Violation,
    containers,
    named,
    plural,
    quoted,
)
from kubectl_gpuadmit.kube.new_pods import Handler, NewContainer, NewPod


def _handlers(container: NewContainer) -> Iterator[tuple[str, Handler | None]]:
    yield "livenessProbe", container.livenessProbe
    yield "readinessProbe", container.readinessProbe
    yield "startupProbe", container.startupProbe
    if container.lifecycle is not None:
        yield "lifecycle/postStart", container.lifecycle.postStart
        yield "lifecycle/preStop", container.lifecycle.preStop


def _run(pod: NewPod) -> Violation | None:
    bad: set[str] = set()
    hosts: set[str] = set()
    places: list[Place] = []
    for at, one in containers(pod):
        for path, handler in _handlers(one):
            for action in ("httpGet", "tcpSocket"):
                asked = getattr(handler, action) if handler is not None else None
                if asked is not None and asked.host:
                    bad.add(one.name)
                    hosts.add(asked.host)
                    what = f"{path.replace('/', '.')}.{action}.host"
                    pointer = f"{at}/{path}/{action}/host"
                    subject = named("container", [one.name])
                    places.append(Place(pointer, subject, what, asked.host, None))
    if not bad:
        return None
    return Violation(
        "probe or lifecycle host",
        f"{named('container', sorted(bad))} {'uses' if len(bad) == 1 else 'use'}"
        f" {plural('probe or lifecycle host', len(hosts))} {quoted(sorted(hosts))}",
        tuple(places),
        changes=tuple(Change(place.pointer, GONE) for place in places),
        loses="probes of other hosts",
    )


CHECK = Check("hostProbesAndHostLifecycle", "baseline", (Version(34, _run),))
