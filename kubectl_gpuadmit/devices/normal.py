"""From DRA's objects, as any served version writes them, to the one form of ``model``.

Defaults are the API server's (pkg/apis/resource/v1/defaults.go, v1.37.2): an absent mode is
ExactCount, its absent count 1, an absent toleration operator Equal. Objects of v1alpha versions are
not read, except the two kinds that had no other version for a while: ``outdated`` says so.
"""

from __future__ import annotations

from msgspec import structs

from kubectl_gpuadmit.devices.model import (
    Allocation,
    Allotted,
    Claim,
    Class,
    Configuration,
    Constraint,
    Device,
    DeviceId,
    Request,
    Slice,
    Taint,
    TaintRule,
    Toleration,
    Want,
)
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import KubeObject, QuantityText
from kubectl_gpuadmit.kube.quantity import Quantity, parse
from kubectl_gpuadmit.verdict import Finding

REASONS = {
    "dra/alpha-version": "A DRA object is in a v1alpha version, which Kubernetes 1.32 and later do"
    " not serve: it is not counted. Write it in resource.k8s.io/v1, or export it again from the"
    " cluster, which serves its objects in v1.",
}

_STILL_ALPHA = ("DeviceTaintRule", "ResourcePoolStatusRequest")
"""Kinds whose v1alpha3 has the shape of their later versions."""


def outdated(obj: KubeObject) -> Finding | None:
    """The finding on an object that is in a version too old to be read, None for all others."""
    group, _, version = obj.apiVersion.partition("/")
    if group != dra.DRA_GROUP or not version.startswith("v1alpha"):
        return None
    if obj.kind in _STILL_ALPHA and version == "v1alpha3":
        return None
    return Finding(
        reason="dra/alpha-version",
        detail=f"{obj.kind} {obj.name} is in {obj.apiVersion}, which Kubernetes 1.32 and later do"
        " not serve; write it in resource.k8s.io/v1",
        permanent=True,
        field="/apiVersion",
    )


def readable(obj: KubeObject) -> bool:
    """Whether the object's version has the shape that is read here."""
    return outdated(obj) is None


def of_slice(raw: dra.ResourceSlice, rules: tuple[TaintRule, ...] = ()) -> Slice:
    """A slice whose devices also carry the taints of ``rules``, in that order."""
    spec = raw.spec
    return Slice(raw, _devices, tuple(r for r in rules if r.concerns(spec.driver, spec.pool.name)))


def _devices(made: Slice) -> tuple[Device, ...]:
    devices = []
    for written in made.raw.spec.devices or ():
        content: dra.BasicDevice = written.basic or written
        own = content.taints
        taints = tuple(map(_taint, own)) if own else ()
        if made.rules:
            id = DeviceId(made.driver, made.pool, written.name)
            taints += tuple(rule.taint for rule in made.rules if rule.names(id))
        devices.append(Device(made, written.name, content, taints))
    return tuple(devices)


def of_class(raw: dra.DeviceClass) -> Class:
    return Class(
        raw.name,
        _selectors(raw.spec.selectors),
        _configurations(raw.spec.config),
        raw.spec.extendedResourceName or "",
        raw.metadata.creationTimestamp or "",
    )


def of_claim(raw: dra.ResourceClaim) -> Claim:
    """Raises QuantityError."""
    spec = raw.spec.devices
    return Claim(
        raw.namespace,
        raw.name,
        tuple(map(_request, spec.requests or ())),
        tuple(
            Constraint(one.matchAttribute or "", one.distinctAttribute or "", one.requests or ())
            for one in spec.constraints or ()
        ),
        _configurations(spec.config),
        allocation=_allocation(raw.status.allocation),
        raw=raw,
    )


def of_template(raw: dra.ResourceClaimTemplate) -> Claim:
    """What it would make, without a name. Raises QuantityError."""
    return of_claim(dra.ResourceClaim(metadata=raw.metadata, spec=raw.spec.spec))


def of_taint_rule(raw: dra.DeviceTaintRule) -> TaintRule:
    selector = raw.spec.deviceSelector
    taint = _taint(raw.spec.taint, raw.name)
    if selector is None:
        return TaintRule(raw.name, taint)
    return TaintRule(
        raw.name,
        taint,
        selects=True,
        driver=selector.driver,
        pool=selector.pool,
        device=selector.device,
        device_class=selector.deviceClassName,
        selectors=_selectors(selector.selectors),
    )


def _request(raw: dra.DeviceRequest) -> Request:
    if raw.firstAvailable:
        return Request(
            raw.name, first_available=tuple(_want(one.name, one) for one in raw.firstAvailable)
        )
    exactly = raw.exactly or (raw if raw.deviceClassName else None)
    return Request(raw.name, _want(raw.name, exactly) if exactly is not None else None)


def _want(name: str, raw: dra.ExactRequest) -> Want:
    mode = raw.allocationMode or "ExactCount"
    return Want(
        name,
        raw.deviceClassName,
        _selectors(raw.selectors),
        mode,
        (raw.count or 1) if mode == "ExactCount" else (raw.count or 0),
        raw.adminAccess,
        _tolerations(raw.tolerations),
        _quantities(raw.capacity.requests or {}) if raw.capacity is not None else None,
        bool(raw.derivedAttributes),
    )


def _allocation(raw: dra.AllocationResult | None) -> Allocation | None:
    if raw is None:
        return None
    return Allocation(
        tuple(map(_allotted, raw.devices.results or ())),
        raw.nodeSelector,
        raw.allocationTimestamp or "",
        _configurations(raw.devices.config),
    )


def _allotted(raw: dra.AllocatedDevice) -> Allotted:
    return Allotted(
        raw.request,
        DeviceId(raw.driver, raw.pool, raw.device),
        bool(raw.adminAccess),
        raw.shareID or "",
        None if raw.consumedCapacity is None else _quantities(raw.consumedCapacity),
        _tolerations(raw.tolerations),
        raw.bindingConditions or (),
        raw.bindingFailureConditions or (),
    )


def _quantities(written: dict[str, QuantityText]) -> dict[str, Quantity]:
    return {name: parse(amount) for name, amount in written.items()}


def _selectors(raw: tuple[dra.DeviceSelector, ...] | None) -> tuple[str | None, ...]:
    return tuple(one.cel.expression if one.cel is not None else None for one in raw or ())


def _configurations(raw: tuple[dra.DeviceConfiguration, ...] | None) -> tuple[Configuration, ...]:
    return tuple(
        Configuration(
            one.opaque.driver, one.opaque.parameters, one.requests or (), one.source or ""
        )
        for one in raw or ()
        if one.opaque is not None
    )


def _tolerations(raw: tuple[dra.DeviceToleration, ...] | None) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            one.key or "",
            one.operator or "Equal",
            one.value or "",
            one.effect or "",
            one.tolerationSeconds,
        )
        for one in raw or ()
    )


def _taint(raw: dra.DeviceTaint, rule: str = "") -> Taint:
    return Taint(raw.key, raw.value or "", raw.effect, raw.timeAdded or "", rule)


# -- back: what is allocated here goes into a cluster as the scheduler would write it --------------


def allocated(claim: dra.ResourceClaim, allocation: Allocation) -> dra.ResourceClaim:
    """The claim with this allocation."""
    results = tuple(
        dra.AllocatedDevice(
            one.request,
            one.device.driver,
            one.device.pool,
            one.device.device,
            True if one.admin_access else None,
            bindingConditions=one.binding_conditions or None,
            bindingFailureConditions=one.binding_failure_conditions or None,
            shareID=one.share or None,
            consumedCapacity=None
            if one.consumed is None
            else {name: amount.canonical() for name, amount in one.consumed.items()},
        )
        for one in allocation.devices
    )
    result = dra.AllocationResult(dra.AllocatedDevices(results), allocation.node_selector)
    return structs.replace(claim, status=structs.replace(claim.status, allocation=result))
