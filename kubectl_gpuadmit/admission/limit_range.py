"""LimitRange: the defaults it puts into containers, and the minima, maxima and ratios it enforces.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/limitranger/admission.go and
pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem, for ranges that a run brings along).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_gpuadmit.admission import resource_lists
from kubectl_gpuadmit.admission.refusal import forbidden, refusal, stored_name
from kubectl_gpuadmit.admission.resource_lists import ResourceList, read
from kubectl_gpuadmit.kube.objects import (
    Container,
    LimitRange,
    LimitRangeItem,
    PersistentVolumeClaim,
    Pod,
    ResourceRequirements,
    Resources,
)
from kubectl_gpuadmit.kube.quantity import Quantity
from kubectl_gpuadmit.verdict import Evidence, Finding

ANNOTATION = "kubernetes.io/limit-ranger"
_MAX_MILLI = (2**63 - 1) // 1000
_POD_LEVEL = ("cpu", "memory")

REASONS = {
    "limit-range/min": "A container, pod or volume claim asks for less than a LimitRange allows."
    " Ask for at least the minimum.",
    "limit-range/max": "A container, pod or volume claim asks for more than a LimitRange allows, or"
    " names no limit where one is capped. Ask for at most the maximum.",
    "limit-range/ratio": "A limit is too many times its request for a LimitRange. Bring the two"
    " closer together.",
}


class Violation(Struct, frozen=True):
    """One constraint that does not hold. ``text`` is the plugin's own."""

    what: str
    """``min``, ``max`` or ``ratio``."""
    text: str
    resource: str
    observed: str | float | None
    wanted: str
    subject: str
    """``container main``, ``init container fetch``, ``pod``, ``volume claim``."""
    pointer: str


def item_defaults(item: LimitRangeItem) -> tuple[ResourceList, ResourceList]:
    """(limits, requests) that a Container item gives to containers that name none."""
    limits: Resources = {**(item.max or {}), **(item.default or {})}
    requests: Resources = {**(item.min or {}), **limits, **(item.defaultRequest or {})}
    return read(limits), read(requests)


def mutate(pod: Pod, ranges: list[LimitRange]) -> Pod:
    """Fills in defaults, one LimitRange after another; notes them in the plugin's annotation."""
    for limit_range in ranges:
        limits: ResourceList = {}
        requests: ResourceList = {}
        for item in limit_range.spec.limits or ():
            if item.type == "Container":
                more_limits, more_requests = item_defaults(item)
                limits.update(more_limits)
                requests.update(more_requests)
        if limits or requests:
            pod = _merge(pod, limits, requests)
    return pod


def _merge(pod: Pod, limits: ResourceList, requests: ResourceList) -> Pod:
    notes: list[str] = []

    def fill(container: Container, kind: str) -> Container:
        own = container.resources or ResourceRequirements()
        new_requests = {k: v for k, v in requests.items() if k not in (own.requests or {})}
        new_limits = {k: v for k, v in limits.items() if k not in (own.limits or {})}
        for new, word in ((new_requests, "request"), (new_limits, "limit")):
            if new:
                notes.append(f"{', '.join(sorted(new))} {word} for {kind} {container.name}")
        if not new_requests and not new_limits:
            return container
        filled = replace(
            own,
            requests={**(own.requests or {}), **resource_lists.written(new_requests)},
            limits={**(own.limits or {}), **resource_lists.written(new_limits)},
        )
        return replace(container, resources=filled)

    spec = pod.spec
    containers = tuple(fill(c, "container") for c in spec.containers or ())
    inits = tuple(fill(c, "init container") for c in spec.initContainers or ())
    if not notes:
        return pod
    note = "LimitRanger plugin set: " + "; ".join(notes)
    annotations = {**(pod.metadata.annotations or {}), ANNOTATION: note}
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=annotations),
        spec=replace(
            spec,
            containers=containers or spec.containers,
            initContainers=inits or spec.initContainers,
        ),
    )


def _same_scale(*amounts: Quantity) -> list[int]:
    """Whole units, or thousandths where none is too large for that."""
    whole = [amount.value() for amount in amounts]
    return [a.milli() for a in amounts] if max(whole) <= _MAX_MILLI else whole


def _below(
    kind: str, name: str, least: Quantity, req: Quantity | None, lim: Quantity | None
) -> str:
    r, m, floor = _same_scale(req or resource_lists.ZERO, lim or resource_lists.ZERO, least)
    head = f"minimum {name} usage per {kind} is {least}"
    if req is None:
        return f"{head}.  No request is specified"
    if r < floor:
        return f"{head}, but request is {req}"
    if lim is not None and m < floor:
        return f"{head}, but limit is {lim}"
    return ""


def _above(kind: str, name: str, most: Quantity, req: Quantity | None, lim: Quantity | None) -> str:
    r, m, cap = _same_scale(req or resource_lists.ZERO, lim or resource_lists.ZERO, most)
    head = f"maximum {name} usage per {kind} is {most}"
    if lim is None:
        return f"{head}.  No limit is specified"
    if m > cap:
        return f"{head}, but limit is {lim}"
    if req is not None and r > cap:
        return f"{head}, but request is {req}"
    return ""


def _ratio(
    kind: str, name: str, most: Quantity, req: Quantity | None, lim: Quantity | None
) -> tuple[str, float | None]:
    r, m, _ = _same_scale(req or resource_lists.ZERO, lim or resource_lists.ZERO, most)
    head = f"{name} max limit to request ratio per {kind} is {most}, but"
    if req is None or r == 0:
        return f"{head} no request is specified or request is 0", None
    if lim is None or m == 0:
        return f"{head} no limit is specified or limit is 0", None
    ratio = m / r
    if most.value() <= _MAX_MILLI:
        over = ratio * 1000 > float(most.milli())
    else:
        over = ratio > float(most.value())
    return (f"{head} provided ratio is {ratio:f}", ratio) if over else ("", ratio)


def _check(
    item: LimitRangeItem, requests: ResourceList, limits: ResourceList, subject: str, pointer: str
) -> Iterator[Violation]:
    for what, bounds in (
        ("min", item.min),
        ("max", item.max),
        ("ratio", item.maxLimitRequestRatio),
    ):
        for name, bound in sorted(read(bounds).items()):
            req, lim = requests.get(name), limits.get(name)
            observed: str | float | None = None
            if what == "min":
                text = _below(item.type, name, bound, req, lim)
                seen = lim if text.endswith(f"limit is {lim}") else req
            elif what == "max":
                text = _above(item.type, name, bound, req, lim)
                seen = req if text.endswith(f"request is {req}") else lim
            else:
                text, observed = _ratio(item.type, name, bound, req, lim)
                seen = None
            if text:
                if what != "ratio":
                    observed = None if seen is None else str(seen)
                yield Violation(what, text, name, observed, str(bound), subject, pointer)


def of_pod(limit_range: LimitRange, pod: Pod) -> list[Violation]:
    """All violations by one LimitRange, as its plugin joins them into one refusal."""
    found: list[Violation] = []
    spec = pod.spec
    for item in limit_range.spec.limits or ():
        if item.type == "Container":
            for field, kind, many in (
                ("containers", "container", spec.containers),
                ("initContainers", "init container", spec.initContainers),
            ):
                for i, container in enumerate(many or ()):
                    own = container.resources or ResourceRequirements()
                    found += _check(
                        item,
                        read(own.requests),
                        read(own.limits),
                        f"{kind} {container.name}",
                        f"/spec/{field}/{i}/resources",
                    )
        elif item.type == "Pod":
            found += _check(item, _pod(pod, "requests"), _pod(pod, "limits"), "pod", "/spec")
    return found


def _pod(pod: Pod, which: resource_lists.Side) -> ResourceList:
    """The plugin's own sum: no overhead, and only cpu and memory of pod-level resources."""
    total = resource_lists.of_containers(pod, which)
    for name, amount in read(resource_lists.side(pod.spec.resources, which)).items():
        if name in _POD_LEVEL:
            total[name] = amount
    return total


def of_claim(limit_range: LimitRange, claim: PersistentVolumeClaim) -> list[Violation]:
    """A volume claim is held to the minima and maxima of its requests alone."""
    asked = claim.spec.resources
    requests = read(asked.requests if asked else None)
    found: list[Violation] = []
    for item in limit_range.spec.limits or ():
        if item.type == "PersistentVolumeClaim":
            bounded = LimitRangeItem(type=item.type, min=item.min)
            found += _check(bounded, requests, {}, "volume claim", "/spec/resources")
            for name, most in sorted(read(item.max).items()):
                text = _claim_above(name, most, requests.get(name))
                if text:
                    seen = requests.get(name)
                    observed = None if seen is None else str(seen)
                    found.append(
                        Violation(
                            "max",
                            text,
                            name,
                            observed,
                            str(most),
                            "volume claim",
                            "/spec/resources",
                        )
                    )
    return found


def _claim_above(name: str, most: Quantity, req: Quantity | None) -> str:
    head = f"maximum {name} usage per PersistentVolumeClaim is {most}"
    if req is None:
        return f"{head}.  No request is specified"
    asked, cap = _same_scale(req, most)
    return f"{head}, but request is {req}" if asked > cap else ""


def joined(texts: list[str]) -> str:
    """One text alone, several different ones as the API server lists them."""
    once = list(dict.fromkeys(texts))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def findings(obj: Pod | PersistentVolumeClaim, ranges: list[LimitRange]) -> tuple[Finding, ...]:
    """Every violation of every LimitRange. The API server itself stops at the first LimitRange."""
    resource = "pods" if isinstance(obj, Pod) else "persistentvolumeclaims"
    found = []
    for limit_range in ranges:
        broken = of_pod(limit_range, obj) if isinstance(obj, Pod) else of_claim(limit_range, obj)
        if not broken:
            continue
        message = forbidden(stored_name(obj), joined([v.text for v in broken]), resource)
        for v in broken:
            evidence = Evidence(
                f"LimitRange {limit_range.name}",
                f"{v.resource} of {v.subject}",
                v.observed,
                v.wanted,
                f"spec.limits {_FIELDS[v.what]}",
                bound="least" if v.what == "min" else "most",
            )
            found.append(
                refusal(
                    f"limit-range/{v.what}",
                    f"{v.subject}: {' '.join(v.text.split())}",
                    message,
                    evidence=(evidence,),
                    field=v.pointer,
                )
            )
    return tuple(found)


_FIELDS = {"min": "min", "max": "max", "ratio": "maxLimitRequestRatio"}
