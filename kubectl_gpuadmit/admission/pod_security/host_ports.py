"""Baseline: no container takes a port of the node.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_hostPorts.go.
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
    named,
    plural,
)
from kubectl_gpuadmit.kube.new_pods import NewPod


def _run(pod: NewPod) -> Violation | None:
    bad: list[str] = []
    ports: set[str] = set()
    places: list[Place] = []
    for at, one in containers(pod):
        taken = [(n, port.hostPort) for n, port in enumerate(one.ports or ()) if port.hostPort]
        if taken:
            bad.append(one.name)
        for number, port in taken:
            ports.add(str(port))
            pointer = f"{at}/ports/{number}/hostPort"
            places.append(
                Place(pointer, named("container", [one.name]), "ports.hostPort", port, None)
            )
    if not bad:
        return None
    listed = ", ".join(sorted(ports))
    return Violation(
        "hostPort",
        f"{named('container', bad)} {'uses' if len(bad) == 1 else 'use'}"
        f" {plural('hostPort', len(ports))} {listed}",
        tuple(places),
        changes=tuple(Change(place.pointer, GONE) for place in places),
        loses=f"{plural('host port', len(ports))} {listed}",
    )


CHECK = Check("hostPorts", "baseline", (Version(0, _run),))
