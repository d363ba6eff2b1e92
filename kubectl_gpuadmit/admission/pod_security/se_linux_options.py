"""Baseline: SELinux types are those of containers; user and role are not set.

Source: k8s.io/pod-security-admission v0.37.2 policy/check_seLinuxOptions.go.
"""

from __future__ import annotations

from kubectl_gpuadmit.admission.pod_security.check import (
    GONE,
    Change,
    Check,
    Place,
    Run,
    Version,
    Violation,
    containers,
    context_of,
    named,
    setters,
)
from kubectl_gpuadmit.kube.new_pods import NewPod, SELinuxOptions

_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_TYPES_31 = _TYPES | {"container_engine_t"}


def _allowing(types: frozenset[str]) -> Run:
    def run(pod: NewPod) -> Violation | None:
        places: list[Place] = []

        def valid(options: SELinuxOptions | None, at: str, subject: str) -> bool:
            if options is None:
                return True
            wrong = {"user": options.user, "role": options.role}
            wrong |= {"type": options.type} if options.type not in types else {}
            found = {name: value for name, value in wrong.items() if value}
            for name, value in found.items():
                pointer = f"{at}/securityContext/seLinuxOptions/{name}"
                what = f"securityContext.seLinuxOptions.{name}"
                wanted = ", ".join(sorted(types - {""})) if name == "type" else None
                places.append(Place(pointer, subject, what, value, wanted))
            return not found

        by_pod = not valid(context_of(pod).seLinuxOptions, "/spec", "pod")
        bad = [
            one.name
            for at, one in containers(pod)
            if one.securityContext is not None
            and not valid(one.securityContext.seLinuxOptions, at, named("container", [one.name]))
        ]
        who = setters(bad, pod=by_pod)
        if not who:
            return None
        found = {place.what.rsplit(".", 1)[1]: None for place in places}
        wrong_types = {str(p.observed) for p in places if p.what.endswith(".type")}
        data = [named("type", sorted(wrong_types))] if wrong_types else []
        data += [f"{name} may not be set" for name in ("user", "role") if name in found]
        return Violation(
            "seLinuxOptions",
            f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}",
            tuple(places),
            changes=tuple(Change(place.pointer, GONE) for place in places),
            loses="its own SELinux options",
        )

    return run


CHECK = Check(
    "seLinuxOptions",
    "baseline",
    (Version(0, _allowing(_TYPES)), Version(31, _allowing(_TYPES_31))),
)
