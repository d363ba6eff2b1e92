"""Baseline: nothing runs as a process of a Windows node.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_windowsHostProcess.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    Check,
    Place,
    Version,
    Violation,
    containers,
    context_of,
    named,
    setters,
)
from kubectl_gpuadmit.kube.new_pods import NewPod, WindowsOptions

_WHAT = "securityContext.windowsOptions.hostProcess"


def _set(options: WindowsOptions | None) -> bool:
    return options is not None and options.hostProcess is True


def _run(pod: NewPod) -> Violation | None:
    by_pod = _set(context_of(pod).windowsOptions)
    found = [("/spec", "pod")] if by_pod else []
    bad: list[str] = []
    for at, one in containers(pod):
        if one.securityContext is not None and _set(one.securityContext.windowsOptions):
            bad.append(one.name)
            found.append((at, named("container", [one.name])))
    who = setters(bad, pod=by_pod)
    if not who:
        return None
    return Violation(
        "hostProcess",
        f"{who} must not set {_WHAT}=true",
        tuple(
            Place(f"{at}/{_WHAT.replace('.', '/')}", subject, _WHAT, "true", "false")
            for at, subject in found
        ),
    )


CHECK = Check("windowsHostProcess", "baseline", (Version(0, _run),))
