"""Baseline: containers add no capabilities beyond those that a container has anyway.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_capabilities_baseline.go.
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
    quoted,
)
from kubectl_gpuadmit.kube.new_pods import NewPod

DEFAULTS = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)


def listed(names: set[str]) -> str:
    """``capability IPC_LOCK``, ``capabilities …`` or '' for none."""
    word = "capability" if len(names) == 1 else "capabilities"
    return f"{word} {', '.join(sorted(names))}" if names else ""


def _run(pod: NewPod) -> Violation | None:
    bad: list[str] = []
    extra: set[str] = set()
    places: list[Place] = []
    changes: list[Change] = []
    for at, one in containers(pod):
        own = one.securityContext.capabilities if one.securityContext else None
        added = own.add or () if own is not None else ()
        forbidden = [name for name in added if name not in DEFAULTS]
        if forbidden:
            bad.append(one.name)
            extra.update(forbidden)
            pointer = f"{at}/securityContext/capabilities/add"
            places.append(
                Place(
                    pointer,
                    named("container", [one.name]),
                    "securityContext.capabilities.add",
                    ", ".join(forbidden),
                    None,
                )
            )
            kept = [name for name in added if name in DEFAULTS]
            changes.append(Change(pointer, kept or GONE))
    if not bad:
        return None
    return Violation(
        "non-default capabilities",
        f"{named('container', bad)} must not include {quoted(sorted(extra))}"
        " in securityContext.capabilities.add",
        tuple(places),
        changes=tuple(changes),
        loses=listed(extra),
    )


ID = "capabilities_baseline"
CHECK = Check(ID, "baseline", (Version(0, _run),))
