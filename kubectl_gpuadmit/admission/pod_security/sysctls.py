"""Baseline: only kernel settings that concern the pod alone; newer versions permit more of them.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_sysctls.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    Check,
    Place,
    Run,
    Version,
    Violation,
    context_of,
)
from kubectl_gpuadmit.kube.new_pods import NewPod

_SINCE: dict[int, str] = {
    0: "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies"
    " net.ipv4.ping_group_range net.ipv4.ip_unprivileged_port_start",
    27: "net.ipv4.ip_local_reserved_ports",
    29: "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl"
    " net.ipv4.tcp_keepalive_probes",
    32: "net.ipv4.tcp_rmem net.ipv4.tcp_wmem",
    37: "net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_notsent_lowat",
}


def _at(minor: int) -> Run:
    allowed = {name for since, names in _SINCE.items() if since <= minor for name in names.split()}

    def run(pod: NewPod) -> Violation | None:
        bad = [
            (number, sysctl.name)
            for number, sysctl in enumerate(context_of(pod).sysctls or ())
            if sysctl.name not in allowed
        ]
        if not bad:
            return None
        return Violation(
            "forbidden sysctls",
            ", ".join(name for _, name in bad),
            tuple(
                Place(
                    f"/spec/securityContext/sysctls/{number}",
                    "pod",
                    "securityContext.sysctls",
                    name or None,
                    None,
                )
                for number, name in bad
            ),
        )

    return run


CHECK = Check("sysctls", "baseline", tuple(Version(since, _at(since)) for since in _SINCE))
