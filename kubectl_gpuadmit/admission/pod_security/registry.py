"""Which checks a level and version of Pod Security asks, and in which order they speak.

Source: k8s.io/pod-security-admission v0.37.2 policy/registry.go.
"""

from __future__ import annotations

from functools import cache

from kubectl_gpuadmit.admission.pod_security import (
    allow_privilege_escalation,
    app_armor_profile,
    capabilities_baseline,
    capabilities_restricted,
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    privileged,
    proc_mount,
    restricted_volumes,
    run_as_non_root,
    run_as_user,
    se_linux_options,
    seccomp_profile,
    sysctls,
    windows_host_process,
)
from kubectl_gpuadmit.admission.pod_security.check import Check, Run, Violation
from kubectl_gpuadmit.admission.pod_security.levels import Asked
from kubectl_gpuadmit.kube.new_pods import NewPod

CHECKS: tuple[Check, ...] = (
    allow_privilege_escalation.CHECK,
    app_armor_profile.CHECK,
    capabilities_baseline.CHECK,
    capabilities_restricted.CHECK,
    host_namespaces.CHECK,
    host_path_volumes.CHECK,
    host_ports.CHECK,
    host_probes.CHECK,
    privileged.CHECK,
    proc_mount.BASELINE,
    proc_mount.RESTRICTED,
    restricted_volumes.CHECK,
    run_as_non_root.CHECK,
    run_as_user.CHECK,
    se_linux_options.CHECK,
    seccomp_profile.BASELINE,
    seccomp_profile.RESTRICTED,
    sysctls.CHECK,
    windows_host_process.CHECK,
)

NEWEST = max(version.since for check in CHECKS for version in check.versions)
"""Minor version after which nothing has changed: ``latest``, and every later version."""


@cache
def in_force(level: str, minor: int) -> tuple[Run, ...]:
    """Baseline checks by id, then restricted ones by id; overridden ones are left out."""
    if level == "privileged":
        return ()
    restricted = [c for c in CHECKS if c.level == "restricted"] if level == "restricted" else []
    found = {check.id: check.at(minor) for check in restricted}
    overridden = {name for version in found.values() if version for name in version.overrides}
    asked = [c for c in CHECKS if c.level == "baseline" and c.id not in overridden]
    ordered = (*sorted(asked, key=lambda c: c.id), *sorted(restricted, key=lambda c: c.id))
    return tuple(version.run for check in ordered if (version := check.at(minor)) is not None)


def violations(pod: NewPod, asked: Asked, *, newest: int = NEWEST) -> tuple[Violation, ...]:
    """What the pod violates, in the order of Kubernetes' text. ``newest`` is the minor version
    of the API server: to it ``latest`` is its own version, and a later one too."""
    cap = min(newest, NEWEST)
    minor = cap if asked.minor is None else min(asked.minor, cap)
    found = (run(pod) for run in in_force(asked.level, minor))
    return tuple(violation for violation in found if violation is not None)
