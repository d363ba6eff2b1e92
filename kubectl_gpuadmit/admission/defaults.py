"""The fields that the API server fills in by itself, as far as they change a verdict.

``decode`` is what happens when the request is read, ``prepare`` what happens after the mutating
admission plugins and webhooks, just before validation. Nothing is copied where nothing changes.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go (SetDefaults_Pod,
SetDefaults_PodSpec), pkg/api/pod/util.go (DefaultPodLevelResources),
pkg/registry/core/pod/strategy.go (PrepareForCreate).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from kubectl_gpuadmit.admission import resource_lists
from kubectl_gpuadmit.kube.new_pods import (
    ContainerSecurityContext,
    NewContainer,
    NewPod,
    NewVolume,
    Profile,
)
from kubectl_gpuadmit.kube.objects import (
    Container,
    EmptyDirSource,
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from kubectl_gpuadmit.kube.resource_names import is_hugepages, is_pod_level, may_overcommit

T = TypeVar("T")


def each(items: tuple[T, ...] | None, change: Callable[[T], T]) -> tuple[T, ...] | None:
    """The items changed, or the very same tuple where no item changed."""
    if not items:
        return items
    after = tuple(change(item) for item in items)
    return items if all(a is b for a, b in zip(after, items, strict=True)) else after


def _container(container: Container, host_network: bool) -> Container:
    own = container.resources
    if own is not None and own.limits:
        missing = {k: v for k, v in own.limits.items() if not own.requests or k not in own.requests}
        if missing:
            filled = replace(own, requests={**(own.requests or {}), **missing})
            container = replace(container, resources=filled)
    if container.ports and any(
        not p.protocol or (host_network and not p.hostPort) for p in container.ports
    ):
        ports = tuple(
            replace(
                p,
                protocol=p.protocol or "TCP",
                hostPort=p.containerPort if host_network and not p.hostPort else p.hostPort,
            )
            for p in container.ports
        )
        container = replace(container, ports=ports)
    return container


def _volume(volume: Volume) -> Volume:
    """A volume of no type is an emptyDir."""
    sources = volume.__struct_fields__
    if not isinstance(volume, NewVolume) or any(
        getattr(volume, name) is not None for name in sources if name != "name"
    ):
        return volume
    return replace(volume, emptyDir=EmptyDirSource())


def decode(pod: Pod, *, kubernetes: str = "1.37") -> Pod:
    """Defaults of reading: requests from limits, protocol and host ports, restartPolicy, scheduler.

    Before 1.37 pod-level requests were filled in here too, from 1.37 on by ``prepare``.
    """
    spec = pod.spec
    host = bool(spec.hostNetwork)
    containers = each(spec.containers, lambda c: _container(c, host))
    inits = each(spec.initContainers, lambda c: _container(c, host))
    volumes = each(spec.volumes, _volume)
    grace = spec.terminationGracePeriodSeconds
    if (
        containers is not spec.containers
        or inits is not spec.initContainers
        or volumes is not spec.volumes
        or not spec.restartPolicy
        or not spec.schedulerName
        or grace is None
        or grace < 0
    ):
        spec = replace(
            spec,
            containers=containers,
            initContainers=inits,
            volumes=volumes,
            restartPolicy=spec.restartPolicy or "Always",
            schedulerName=spec.schedulerName or "default-scheduler",
            terminationGracePeriodSeconds=30 if grace is None else 1 if grace < 0 else grace,
        )
        pod = replace(pod, spec=spec)
    if version(kubernetes) < (1, 37):
        pod = _pod_level(pod, limits=False)
    return pod


def version(text: str) -> tuple[int, int]:
    """``v1.36.2`` or ``1.36`` -> (1, 36)."""
    major, _, rest = text.lstrip("v").partition(".")
    minor = rest.split(".", 1)[0].rstrip("+") or "0"
    return int(major), int(minor)


def prepare(pod: Pod, *, kubernetes: str = "1.37") -> Pod:
    """Defaults of storing: matchLabelKeys become selector terms, pod-level resources complete."""
    spec = pod.spec
    labels = pod.metadata.labels or {}
    affinity = spec.affinity
    if affinity is not None:
        both = _affinity(affinity.podAffinity, labels), _affinity(affinity.podAntiAffinity, labels)
        if both[0] is not affinity.podAffinity or both[1] is not affinity.podAntiAffinity:
            affinity = replace(affinity, podAffinity=both[0], podAntiAffinity=both[1])
    spread = each(spec.topologySpreadConstraints, lambda c: _spread(c, labels))
    if affinity is not spec.affinity or spread is not spec.topologySpreadConstraints:
        pod = replace(pod, spec=replace(spec, affinity=affinity, topologySpreadConstraints=spread))
    if isinstance(pod, NewPod) and pod.metadata.annotations:
        pod = _app_armor(pod, pod.metadata.annotations)
    return _pod_level(pod, limits=True) if version(kubernetes) >= (1, 37) else pod


APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def _app_armor(pod: NewPod, annotations: dict[str, str]) -> NewPod:
    """Where only the deprecated annotation of a container names a profile, its field follows."""
    spec = pod.spec
    if spec.os is not None and spec.os.name == "windows":
        return pod
    wide = spec.securityContext.appArmorProfile if spec.securityContext is not None else None

    def filled(container: NewContainer) -> NewContainer:
        own = container.securityContext or ContainerSecurityContext()
        kind = _profile_type(annotations.get(APP_ARMOR + container.name, ""))
        if own.appArmorProfile is not None or not kind or (wide is not None and wide.type == kind):
            return container
        return replace(container, securityContext=replace(own, appArmorProfile=Profile(kind)))

    containers, inits = each(spec.containers, filled), each(spec.initContainers, filled)
    if containers is spec.containers and inits is spec.initContainers:
        return pod
    return replace(pod, spec=replace(spec, containers=containers, initContainers=inits))


def _profile_type(annotation: str) -> str:
    """'' for what is no profile; such an annotation stays alone."""
    if annotation.startswith("localhost/") and annotation.removeprefix("localhost/").strip():
        return "Localhost"
    return {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}.get(annotation, "")


def _merged(
    selector: LabelSelector, keys: tuple[str, ...], operator: str, labels: dict[str, str]
) -> LabelSelector:
    """Appended without a look at what is there: validation refuses a key that occurs twice."""
    terms = tuple(LabelSelectorRequirement(k, operator, (labels[k],)) for k in keys if k in labels)
    if not terms:
        return selector
    return replace(selector, matchExpressions=(selector.matchExpressions or ()) + terms)


def _term(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    selector = term.labelSelector
    if selector is None or not (term.matchLabelKeys or term.mismatchLabelKeys):
        return term
    after = _merged(selector, term.matchLabelKeys or (), "In", labels)
    after = _merged(after, term.mismatchLabelKeys or (), "NotIn", labels)
    return term if after is selector else replace(term, labelSelector=after)


def _affinity(affinity: PodAffinity | None, labels: dict[str, str]) -> PodAffinity | None:
    if affinity is None:
        return None
    must = affinity.requiredDuringSchedulingIgnoredDuringExecution
    should = affinity.preferredDuringSchedulingIgnoredDuringExecution
    after_must = each(must, lambda t: _term(t, labels))

    def weighted(item: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        after = _term(item.podAffinityTerm, labels)
        return item if after is item.podAffinityTerm else replace(item, podAffinityTerm=after)

    after_should = each(should, weighted)
    if after_must is must and after_should is should:
        return affinity
    return replace(
        affinity,
        requiredDuringSchedulingIgnoredDuringExecution=after_must,
        preferredDuringSchedulingIgnoredDuringExecution=after_should,
    )


def _spread(
    constraint: TopologySpreadConstraint, labels: dict[str, str]
) -> TopologySpreadConstraint:
    selector = constraint.labelSelector
    if selector is None or not constraint.matchLabelKeys:
        return constraint
    after = _merged(selector, constraint.matchLabelKeys, "In", labels)
    return constraint if after is selector else replace(constraint, labelSelector=after)


def _pod_level(pod: Pod, *, limits: bool) -> Pod:
    """Completes spec.resources from the containers, only where it is set at least in part.

    1. huge page limits := sum of the containers', 2. requests := sum of the containers', else the
    limit, 3. (1.37, ``limits``) limits := sum of the containers' limits if every container has one,
    but no less than the request.
    """
    own = pod.spec.resources
    if own is None or not (own.requests or own.limits):
        return pod
    wanted = dict(own.requests or {})
    capped = dict(own.limits or {})
    container_limits = resource_lists.of_containers(pod, "limits")
    for name, amount in container_limits.items():
        if is_hugepages(name) and name not in wanted and name not in capped:
            capped[name] = str(amount)
    if limits or capped:
        for name, amount in resource_lists.of_containers(pod, "requests").items():
            if name not in wanted and is_pod_level(name) and may_overcommit(name):
                wanted[name] = str(amount)
        for name, text in capped.items():
            if name not in wanted and is_pod_level(name):
                wanted[name] = text
    if limits:
        for name in [n for n in wanted if is_pod_level(n) and n not in capped]:
            if all(_limits(c, name) for c in _all(pod.spec)) and name in container_limits:
                asked = resource_lists.read_one(wanted[name])
                capped[name] = str(max(container_limits[name], asked, key=lambda q: q.nano))
    if wanted == (own.requests or {}) and capped == (own.limits or {}):
        return pod
    after = ResourceRequirements(
        limits=capped or own.limits, requests=wanted or own.requests, claims=own.claims
    )
    return replace(pod, spec=replace(pod.spec, resources=after))


def _limits(container: Container, name: str) -> bool:
    return name in (resource_lists.side(container.resources, "limits") or {})


def _all(spec: PodSpec) -> tuple[Container, ...]:
    return (*(spec.containers or ()), *(spec.initContainers or ()))
