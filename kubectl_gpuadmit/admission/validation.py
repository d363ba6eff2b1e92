"""Object validation of a pod: the fields that GPU manifests get wrong, in the API server's words.

Fields that the structs do not hold (probes, security contexts, volume sources …) are not looked at,
so a pod that passes here may still be refused for one of those.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go (ValidatePodCreate and what
it calls), pkg/apis/apps/validation and pkg/apis/batch/validation (restartPolicy of templates).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.json import encode

from kubectl_gpuadmit.admission import validation_resources, validation_scheduling
from kubectl_gpuadmit.admission.defaults import APP_ARMOR
from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Key,
    Where,
    duplicate,
    forbidden,
    invalid,
    message,
    not_found,
    quoted,
    required,
    unsupported,
)
from kubectl_gpuadmit.admission.refusal import refusal, stored_name
from kubectl_gpuadmit.kube import names
from kubectl_gpuadmit.kube.objects import Container, Pod, ResourceRequirements, Volume
from kubectl_gpuadmit.verdict import Evidence, Finding

_WHERE_TO_LOOK = "The text names the field; correct it there."
REASONS = {
    "invalid/resource-name": "A resource name that the API refuses: no domain, or not allowed here."
    " GPUs are nvidia.com/gpu (or what the nodes advertise).",
    "invalid/quantity": "A quantity that the API refuses: unreadable, negative, or a fraction of"
    " something that comes in whole numbers. Write a whole number.",
    "invalid/requests-limits": "Requests and limits contradict each other. For GPUs set the limit"
    " and leave the request out, or make both equal.",
    "invalid/resource-claims": "resourceClaims, or a container's claims, are malformed or name"
    " something that the pod does not define. " + _WHERE_TO_LOOK,
    "invalid/name": "A name that the API refuses. " + _WHERE_TO_LOOK,
    "invalid/duplicate": "Two things in a list that need different names have the same."
    " Rename one.",
    "invalid/required": "A field that must be set is not. " + _WHERE_TO_LOOK,
    "invalid/value": "A value out of range. " + _WHERE_TO_LOOK,
    "invalid/restart-policy": "A restartPolicy that the API, or this kind of workload, does not"
    " allow. Deployments need Always, Jobs OnFailure or Never.",
    "invalid/labels": "A label or selector that the API refuses. " + _WHERE_TO_LOOK,
    "invalid/affinity": "An affinity term that the API refuses. " + _WHERE_TO_LOOK,
    "invalid/toleration": "A toleration that the API refuses. " + _WHERE_TO_LOOK,
    "invalid/topology-spread": "A topology spread constraint that the API refuses. "
    + _WHERE_TO_LOOK,
    "invalid/scheduling-gate": "Scheduling gates that the API refuses. " + _WHERE_TO_LOOK,
    "invalid/ports": "Container ports that the API refuses or that collide. " + _WHERE_TO_LOOK,
    "invalid/volumes": "A volume or volume mount that the API refuses. " + _WHERE_TO_LOOK,
}

_PORTS = "invalid/ports"
_NAME = "invalid/name"
_VOLUME = "invalid/volumes"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTARTS = ("Always", "OnFailure", "Never")

ALWAYS_RESTARTED = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"}
)


_SPECS: dict[bytes, tuple[FieldError, ...]] = {}
"""Complaints by the value of a spec: sister workloads and re-judged remedies share one."""
_SPECS_LIMIT = 1 << 12


def errors(pod: Pod) -> list[FieldError]:
    """All complaints in the API's order; the pod must be defaulted and its quantities readable."""
    key = encode(pod.spec)
    found = _SPECS.get(key)
    if found is None:
        if len(_SPECS) >= _SPECS_LIMIT:
            _SPECS.clear()
        found = _SPECS[key] = tuple(_spec(pod))
    return [*_metadata(pod), *found]


def findings(pod: Pod, *, owner: str = "Pod") -> tuple[Finding, ...]:
    """One finding for each complaint. ``owner``: the workload's kind, which may allow less."""
    found = errors(pod)
    name = stored_name(pod)
    return (
        *_restart(pod, owner),
        *(error.finding(name, found) for error in found),
    )


def unreadable(pod: Pod) -> tuple[Finding, ...]:
    """Quantities that stop the API server before anything else."""
    found = validation_resources.unreadable(pod)
    name = stored_name(pod)
    return tuple(error.finding(name, found) for error in found)


def _restart(pod: Pod, owner: str) -> Iterator[Finding]:
    """What the workload's own validation says about its template's restartPolicy."""
    policy = pod.spec.restartPolicy or "Always"
    where: Where = ("spec", "template", "spec", "restartPolicy")
    error: FieldError | None = None
    if owner in ALWAYS_RESTARTED and policy != "Always" and policy in _RESTARTS:
        error = unsupported("invalid/restart-policy", where, policy, ("Always",))
    elif owner == "Job" and policy == "Always":
        text = 'valid values: "OnFailure", "Never"'
        error = required("invalid/restart-policy", where, text)
    if error is not None:
        name = stored_name(pod)
        yield refusal(
            error.reason,
            f"{owner} is invalid: {error.text}",
            message(name, (error,), owner),
            evidence=(Evidence(owner, "restartPolicy", policy, None, error.detail),),
            field="/spec/restartPolicy",
        )


def _metadata(pod: Pod) -> Iterator[FieldError]:
    meta = pod.metadata
    if meta.generateName:
        for text in names.generate_name(meta.generateName):
            yield invalid(_NAME, ("metadata", "generateName"), meta.generateName, text)
    elif not meta.name:
        text = "name or generateName is required"
        yield required("invalid/required", ("metadata", "name"), text)
    if meta.name:
        for text in names.dns_subdomain(meta.name):
            yield invalid(_NAME, ("metadata", "name"), meta.name, text)
    for text in names.dns_label(meta.namespace) if meta.namespace else ():
        yield invalid(_NAME, ("metadata", "namespace"), meta.namespace, text)
    yield from validation_scheduling.labels(meta.labels, ("metadata", "labels"))
    for key in sorted(meta.annotations or {}):
        for text in names.label_key(key.lower()):
            yield invalid("invalid/labels", ("metadata", "annotations"), key, text)
    yield from _app_armor(pod)


def _app_armor(pod: Pod) -> Iterator[FieldError]:
    """ValidateAppArmorPodAnnotations: the deprecated annotations are checked all the same."""
    spec = pod.spec
    named = {c.name for c in (*(spec.initContainers or ()), *(spec.containers or ()))}
    for key, profile in sorted((pod.metadata.annotations or {}).items()):
        if not key.startswith(APP_ARMOR):
            continue
        where: Where = ("metadata", "annotations", Key(key))
        container = key.removeprefix(APP_ARMOR)
        if container not in named:
            yield invalid(_NAME, where, container, "container not found")
        known = profile in ("", "runtime/default", "unconfined")
        if not known and not profile.startswith("localhost/"):
            detail = f"invalid AppArmor profile name: {quoted(profile)}"
            yield invalid("invalid/value", where, profile, detail)


def _spec(pod: Pod) -> Iterator[FieldError]:
    spec = pod.spec
    at: Where = ("spec",)
    mounts: set[str] = set()
    yield from _volumes(spec.volumes or (), (*at, "volumes"), mounts)
    claims = frozenset(claim.name for claim in spec.resourceClaims or () if claim.name)
    yield from validation_resources.pod_claims(spec.resourceClaims or (), (*at, "resourceClaims"))
    yield from _containers(spec.containers or (), claims, mounts)
    yield from _init_containers(spec.initContainers or (), spec.containers or (), claims, mounts)
    yield from validation_resources.pod_level(pod, claims)
    if spec.hostNetwork:
        for i, container in enumerate(spec.containers or ()):
            for j, port in enumerate(container.ports or ()):
                if (port.hostPort or 0) != port.containerPort:
                    text = "must match `containerPort` when `hostNetwork` is true"
                    where = (*at, "containers", i, "ports", j, "hostPort")
                    yield invalid(_PORTS, where, port.hostPort or 0, text)
    policy = spec.restartPolicy or "Always"
    if policy not in _RESTARTS:
        yield unsupported("invalid/restart-policy", (*at, "restartPolicy"), policy, _RESTARTS)
    yield from validation_scheduling.labels(spec.nodeSelector, (*at, "nodeSelector"))
    yield from validation_scheduling.affinity(spec.affinity, (*at, "affinity"))
    gates = spec.schedulingGates or ()
    yield from validation_scheduling.scheduling_gates(gates, (*at, "schedulingGates"))
    yield from validation_scheduling.topology_spread(
        spec.topologySpreadConstraints or (), (*at, "topologySpreadConstraints")
    )
    for field, name in (
        ("serviceAccountName", spec.serviceAccountName),
        ("nodeName", spec.nodeName),
    ):
        for text in names.dns_subdomain(name) if name else ():
            yield invalid(_NAME, (*at, field), name, text)
    yield from validation_scheduling.deadline(
        spec.activeDeadlineSeconds, (*at, "activeDeadlineSeconds")
    )
    yield from validation_scheduling.tolerations(spec.tolerations or (), (*at, "tolerations"))
    for field, name in (
        ("priorityClassName", spec.priorityClassName),
        ("runtimeClassName", spec.runtimeClassName),
    ):
        if name or (field == "runtimeClassName" and name is not None):
            for text in names.dns_subdomain(name):
                yield invalid(_NAME, (*at, field), name, text)
    preemption = spec.preemptionPolicy
    if preemption and preemption not in ("PreemptLowerPriority", "Never"):
        every = ("PreemptLowerPriority", "Never")
        yield unsupported("invalid/value", (*at, "preemptionPolicy"), preemption, every)
    if spec.overhead:
        yield from validation_resources.requirements(
            ResourceRequirements(limits=spec.overhead), frozenset(), (*at, "overhead")
        )
    for field, many in (
        ("containers", spec.containers),
        ("initContainers", spec.initContainers),
    ):
        for i, container in enumerate(many or ()):
            image = container.image or ""
            if image != image.strip():
                text = "must not have leading or trailing whitespace"
                yield invalid("invalid/value", ("spec", field, i, "image"), image, text)
    if spec.nodeName and spec.schedulingGates:
        text = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("invalid/scheduling-gate", ("spec", "nodeName"), text)


def _volumes(own: tuple[Volume, ...], where: Where, legal: set[str]) -> Iterator[FieldError]:
    """Names alone; ``legal`` collects those that a mount may use."""
    for i, volume in enumerate(own):
        at = (*where, i, "name")
        complaints = list(names.dns_label(volume.name)) if volume.name else []
        if not volume.name:
            yield required(_VOLUME, at)
        for text in complaints:
            yield invalid(_VOLUME, at, volume.name, text)
        if volume.name in legal:
            yield duplicate(_VOLUME, at, volume.name)
        elif volume.name and not complaints:
            legal.add(volume.name)


def _common(
    container: Container, at: Where, claims: frozenset[str], mounts: set[str]
) -> Iterator[FieldError]:
    if not container.name:
        yield required("invalid/required", (*at, "name"))
    for text in names.dns_label(container.name) if container.name else ():
        yield invalid(_NAME, (*at, "name"), container.name, text)
    if not container.image:
        yield required("invalid/required", (*at, "image"))
    yield from _ports(container, (*at, "ports"))
    for i, variable in enumerate(container.env or ()):
        spot = (*at, "env", i, "name")
        if not variable.name:
            yield required(_NAME, spot)
        for text in names.variable(variable.name):
            yield invalid(_NAME, spot, variable.name, text)
    seen: set[str] = set()
    for i, mount in enumerate(container.volumeMounts or ()):
        spot = (*at, "volumeMounts", i)
        if not mount.name:
            yield required(_VOLUME, (*spot, "name"))
        if mount.name not in mounts:
            yield not_found(_VOLUME, (*spot, "name"), mount.name)
        if not mount.mountPath:
            yield required(_VOLUME, (*spot, "mountPath"))
        if mount.mountPath in seen:
            yield invalid(_VOLUME, (*spot, "mountPath"), mount.mountPath, "must be unique")
        seen.add(mount.mountPath)
    if container.resources is not None:
        yield from validation_resources.requirements(
            container.resources, claims, (*at, "resources")
        )


def _ports(container: Container, where: Where) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, port in enumerate(container.ports or ()):
        at = (*where, i)
        if port.name:
            complaints = names.port_name(port.name)
            for text in complaints:
                yield invalid(_PORTS, (*at, "name"), port.name, text)
            if not complaints and port.name in seen:
                yield duplicate(_PORTS, (*at, "name"), port.name)
            elif not complaints:
                seen.add(port.name)
        if not port.containerPort:
            yield required(_PORTS, (*at, "containerPort"))
        for field, number in (("containerPort", port.containerPort), ("hostPort", port.hostPort)):
            if number and not 1 <= number <= 65535:
                text = "must be between 1 and 65535, inclusive"
                yield invalid(_PORTS, (*at, field), number, text)
        if not port.protocol:
            yield required(_PORTS, (*at, "protocol"))
        elif port.protocol not in _PROTOCOLS:
            yield unsupported(_PORTS, (*at, "protocol"), port.protocol, _PROTOCOLS)


def _host_ports(many: tuple[Container, ...], where: Where) -> Iterator[FieldError]:
    taken: set[str] = set()
    for i, container in enumerate(many):
        for j, port in enumerate(container.ports or ()):
            if not port.hostPort:
                continue
            key = f"{port.protocol or 'TCP'}/{port.hostIP or ''}/{port.hostPort}"
            if key in taken:
                yield duplicate(_PORTS, (*where, i, "ports", j, "hostPort"), key)
            taken.add(key)


def _containers(
    own: tuple[Container, ...], claims: frozenset[str], mounts: set[str]
) -> Iterator[FieldError]:
    where: Where = ("spec", "containers")
    if not own:
        yield required("invalid/required", where)
        return
    seen: set[str] = set()
    for i, container in enumerate(own):
        at = (*where, i)
        yield from _common(container, at, claims, mounts)
        if container.name in seen:
            yield duplicate("invalid/duplicate", (*at, "name"), container.name)
        seen.add(container.name)
        yield from _container_restart(container, at)
    yield from _host_ports(own, where)


def _init_containers(
    own: tuple[Container, ...],
    regular: tuple[Container, ...],
    claims: frozenset[str],
    mounts: set[str],
) -> Iterator[FieldError]:
    where: Where = ("spec", "initContainers")
    seen = {container.name for container in regular}
    for i, container in enumerate(own):
        at = (*where, i)
        yield from _common(container, at, claims, mounts)
        yield from _container_restart(container, at)
        if container.name in seen:
            yield duplicate("invalid/duplicate", (*at, "name"), container.name)
        elif container.name:
            seen.add(container.name)
        yield from _host_ports((container,), where)


def _container_restart(container: Container, at: Where) -> Iterator[FieldError]:
    """Any of the three since 1.35 (ContainerRestartRules), for every kind of container."""
    policy = container.restartPolicy
    if policy is not None and policy not in _RESTARTS:
        where = (*at, "restartPolicy")
        yield unsupported("invalid/restart-policy", where, policy, sorted(_RESTARTS))
