"""Object validation of ResourceClaims, their templates and DeviceClasses as they are created.

The API server validates by hand and by declaration, and says what is found by hand first. A value
that both find wrong is told once, in the words of the declaration. Fields of feature gates that are
off are dropped before, and who may use ``adminAccess`` is rule ``dra/admin-access``.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/validation/validation.go,
pkg/apis/resource/v1/zz_generated.validations.go, pkg/apis/resource/{v1,v1beta1}/defaults.go;
k8s.io/apimachinery v0.37.2 pkg/api/validate; limits of k8s.io/api v0.37.2 resource/v1/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubectl_gpuadmit.admission.device_checks import (
    CONSTRAINT,
    MOST_CONFIGURATIONS,
    NAME,
    Checks,
    attribute,
    extended_resource,
)
from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Where,
    invalid,
    message,
    required,
    unsupported,
)
from kubectl_gpuadmit.admission.refusal import refusal, stored_name
from kubectl_gpuadmit.cel import dra as selectors
from kubectl_gpuadmit.devices import allocator
from kubectl_gpuadmit.devices.allocator import Features
from kubectl_gpuadmit.kube import names
from kubectl_gpuadmit.kube.dra import (
    DRA_GROUP,
    DerivedAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ExactRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from kubectl_gpuadmit.kube.gates import DEFAULT, Gates
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.verdict import Evidence, Finding

REASONS = {
    "invalid/selector": "A CEL selector that the API server refuses when the object is created:"
    " it does not compile, gives no bool, is too long or too complex. The text says where.",
    "invalid/device-request": "A request for devices that the API refuses. Ask for `exactly` one"
    " thing or list `firstAvailable` alternatives, each with a deviceClassName; a count goes with"
    " ExactCount alone.",
    "invalid/device-constraint": "A constraint or configuration of a claim that the API refuses:"
    " it names a request that is not there, or no attribute as `domain/name`.",
}

_REQUEST = "invalid/device-request"

MOST_REQUESTS = MOST_CONSTRAINTS = 32
MOST_ALTERNATIVES = 8

_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule", "None")


def judged(obj: KubeObject) -> bool:
    """Whether it is an object of a kind and version that is looked at here."""
    group, _, version = obj.apiVersion.partition("/")
    served = group == DRA_GROUP and not version.startswith("v1alpha")
    return served and isinstance(obj, ResourceClaim | ResourceClaimTemplate | DeviceClass)


def findings(
    obj: KubeObject,
    *,
    kubernetes: str = "1.37",
    stored: KubeObject | None = None,
    gates: Gates = DEFAULT,
) -> tuple[Finding, ...]:
    """One finding for each complaint; () for an object of another kind.

    ``stored`` is the object of that name which is there already.
    """
    if not judged(obj):
        return ()
    found = errors(obj, kubernetes=kubernetes, stored=stored, gates=gates)
    flat = obj.apiVersion.endswith("/v1beta1")
    name = stored_name(obj)
    kind = f"{obj.kind}.{DRA_GROUP}"
    return tuple(
        refusal(
            error.reason,
            f'{obj.kind} "{name}" is invalid: {_in_one_line(error.text)}',
            message(name, found, kind),
            evidence=(Evidence(f"{obj.kind} {name}", error.path, error.shown, None, error.detail),),
            field=error.pointer.replace("/exactly", "") if flat else error.pointer,
            # read from the source, not compared with it: the gate is alpha
            fidelity="modelled" if "derivedAttributes" in error.where else "exact",
        )
        for error in found
    )


def errors(
    obj: KubeObject,
    *,
    kubernetes: str = "1.37",
    stored: KubeObject | None = None,
    gates: Gates = DEFAULT,
) -> list[FieldError]:
    """All complaints, those found by hand first."""
    unchanged = stored is not None and _selecting(stored) == _selecting(obj)
    flat = obj.apiVersion.endswith("/v1beta1")
    check = _Check(kubernetes, allocator.of(kubernetes, gates), flat=flat, stored=unchanged)
    check.metadata(obj.metadata, namespaced=not isinstance(obj, DeviceClass))
    match obj:
        case ResourceClaim():
            check.claim(obj.spec.devices, ("spec", "devices"))
        case ResourceClaimTemplate():
            check.template_metadata(obj.spec.metadata, ("spec", "metadata"))
            check.claim(obj.spec.spec.devices, ("spec", "spec", "devices"))
        case DeviceClass():
            check.device_class(obj)
    return check.found()


def _selecting(obj: KubeObject) -> object:
    """The part of an object that is stored or new as a whole, with its selectors."""
    match obj:
        case ResourceClaim():
            return obj.spec
        case ResourceClaimTemplate():
            return obj.spec.spec
        case DeviceClass():
            return obj.spec.selectors
    return None


class _Check(Checks):
    """One object, whichever of the three."""

    def __init__(self, kubernetes: str, features: Features, *, flat: bool, stored: bool) -> None:
        super().__init__(kubernetes, features, flat=flat, stored=stored)
        self._joined: dict[str, set[str]] = {}
        """Request, '' for all of them -> attributes of the constraints that are about it."""

    # -- DeviceClass ---------------------------------------------------------------------------

    def device_class(self, obj: DeviceClass) -> None:
        self.selectors(obj.spec.selectors, *2 * (("spec", "selectors"),))
        self.each(obj.spec.config, MOST_CONFIGURATIONS, ("spec", "config"), self.configuration)
        name = obj.spec.extendedResourceName
        if name is not None:
            where: Where = ("spec", "extendedResourceName")
            self.declared += [invalid(NAME, where, name, t) for t in extended_resource(name)]

    # -- claims --------------------------------------------------------------------------------

    def claim(self, claim: DeviceClaim, at: Where) -> None:
        requests = claim.requests or ()
        parts = {one.name: [sub.name for sub in one.firstAvailable or ()] for one in requests}

        def known(name: str) -> bool:
            first, slash, second = name.partition("/")
            return first in parts and (not slash or second in parts[first])

        for constraint in claim.constraints or ():
            for name in constraint.requests or ("",):
                joined = constraint.matchAttribute or constraint.distinctAttribute or ""
                self._joined.setdefault(name, set()).add(joined)
        self.each(
            claim.requests, MOST_REQUESTS, (*at, "requests"), self._request, lambda one: one.name
        )
        self.each(
            claim.constraints,
            MOST_CONSTRAINTS,
            (*at, "constraints"),
            lambda one, where: self._constraint(one, where, known),
        )
        self.each(
            claim.config,
            MOST_CONFIGURATIONS,
            (*at, "config"),
            lambda one, where: self._claim_configuration(one, where, known),
        )

    def _request(self, one: DeviceRequest, at: Where) -> None:
        for text in names.dns_label(one.name):
            self.by_hand.append(invalid(NAME, (*at, "name"), one.name, text))
        exactly: ExactRequest | None = one.exactly
        if self.flat:
            exactly = one if _asks_anything(one) else None
        told = len(self.by_hand)
        if one.firstAvailable:
            self.each(
                one.firstAvailable,
                MOST_ALTERNATIVES,
                (*at, "firstAvailable"),
                lambda sub, where: self._alternative(sub, where, one.name),
                lambda sub: sub.name,
            )
        if exactly is not None:
            self._exactly(exactly, at, one.name)
        if one.firstAvailable and exactly is not None:
            del self.by_hand[told:]
            text = (
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are"
                " set"
            )
            self.by_hand.append(invalid(_REQUEST, at, None, text))
        elif not one.firstAvailable and exactly is None:
            text = "exactly one of `exactly` or `firstAvailable` is required"
            self.by_hand.append(required(_REQUEST, at, text))

    def _alternative(self, one: Any, at: Where, parent: str) -> None:
        for text in names.dns_label(one.name):
            self.by_hand.append(invalid(NAME, (*at, "name"), one.name, text))
        self._wanted(one, at, at, self.declared, f"{parent}/{one.name}")

    def _exactly(self, one: ExactRequest, at: Where, requested: str) -> None:
        inner: Where = (*at, "exactly")
        self._wanted(one, inner, at if self.flat else inner, self.by_hand, requested)

    def _wanted(
        self,
        one: ExactRequest,
        at: Where,
        declared_at: Where,
        of_class: list[FieldError],
        requested: str,
    ) -> None:
        where = (*at, "deviceClassName")
        words = names.long_name if of_class is self.declared else names.dns_subdomain
        if not one.deviceClassName:
            of_class.append(required("invalid/required", where))
        for text in words(one.deviceClassName) if one.deviceClassName else ():
            of_class.append(invalid(NAME, where, one.deviceClassName, text))
        self.selectors(one.selectors, (*at, "selectors"), (*declared_at, "selectors"))
        self._mode(one, at, declared_at)
        for i, derived in enumerate(one.derivedAttributes or ()):
            self._derived(derived, (*at, "derivedAttributes", i), requested)
        for i, toleration in enumerate(one.tolerations or ()):
            self._toleration(toleration, (*at, "tolerations", i), (*declared_at, "tolerations", i))

    def _derived(self, one: DerivedAttribute, at: Where, requested: str) -> None:
        """The cost of such expressions is not looked at."""
        parent = requested.partition("/")[0]
        if not one.name:
            self.declared.append(required("invalid/required", (*at, "name")))
        else:
            self.declared += attribute(one.name, (*at, "name"))
            if not any(one.name in self._joined.get(key, ()) for key in ("", requested, parent)):
                text = (
                    "must be referenced by at least one matchAttribute or distinctAttribute"
                    " constraint targeting this request"
                )
                self.by_hand.append(invalid(CONSTRAINT, (*at, "name"), one.name, text))
        if not one.expression:
            self.declared.append(required("invalid/required", (*at, "expression")))
            return
        found = selectors.derivation(
            one.expression,
            kubernetes=self._kubernetes,
            list_attributes=self.features.list_attributes,
            new=True,
        )
        self.expression(one.expression, found, (*at, "expression"))

    def _mode(self, one: ExactRequest, at: Where, declared_at: Where) -> None:
        defaulted = not self.flat or at[-1] != "exactly" or bool(one.deviceClassName)
        mode = one.allocationMode or ("ExactCount" if defaulted else "")
        count = one.count or (1 if mode == "ExactCount" and defaulted else 0)
        if mode == "All":
            if count:
                text = "must not be specified when allocationMode is 'All'"
                self.by_hand.append(invalid(_REQUEST, (*at, "count"), count, text))
        elif mode == "ExactCount":
            if count <= 0:
                text = "must be greater than zero"
                self.by_hand.append(invalid(_REQUEST, (*at, "count"), count, text))
        elif mode:
            where = (*declared_at, "allocationMode")
            self.declared.append(unsupported(_REQUEST, where, mode, _MODES))
        else:
            where = (*at, "allocationMode")
            self.by_hand.append(unsupported(_REQUEST, where, mode, _MODES))

    def _toleration(self, one: DeviceToleration, at: Where, declared_at: Where) -> None:
        reason = "invalid/toleration"
        for text in names.label_key(one.key) if one.key else ():
            self.declared.append(invalid(reason, (*declared_at, "key"), one.key, text))
        operator, value = one.operator or "Equal", one.value or ""
        if operator == "Exists":
            if value:
                text = "must be empty for operator `Exists`"
                self.by_hand.append(invalid(reason, (*at, "value"), value, text))
        elif operator == "Equal":
            for text in names.label_value(value):
                self.by_hand.append(invalid(reason, (*at, "value"), value, text))
        else:
            where = (*declared_at, "operator")
            self.declared.append(unsupported(reason, where, operator, _OPERATORS))
        if one.effect and one.effect not in _EFFECTS:
            where = (*declared_at, "effect")
            self.declared.append(unsupported(reason, where, one.effect, _EFFECTS))

    def _constraint(self, one: DeviceConstraint, at: Where, known: Callable[[str], bool]) -> None:
        self._references(one.requests, (*at, "requests"), known)
        for field in ("matchAttribute", "distinctAttribute"):
            name = getattr(one, field)
            if name is not None:
                self.declared += attribute(name, (*at, field))
        if one.matchAttribute is None and one.distinctAttribute is None:
            if not self.features.consumable_capacity:
                self.by_hand.append(required(CONSTRAINT, (*at, "matchAttribute")))
                return
            text = (
                'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple'
                " fields are set"
            )
            self.by_hand.append(required(CONSTRAINT, at, text))

    def _claim_configuration(
        self, one: DeviceConfiguration, at: Where, known: Callable[[str], bool]
    ) -> None:
        self._references(one.requests, (*at, "requests"), known)
        self.configuration(one, at)

    def _references(
        self, items: Sequence[str] | None, at: Where, known: Callable[[str], bool]
    ) -> None:
        def check(name: str, where: Where) -> None:
            text = (
                "must be the name of a request in the claim or the name of a request and a"
                " subrequest separated by '/'"
            )
            parts = name.split("/")
            if len(parts) <= 2:
                for part in parts:
                    for said in names.dns_label(part):
                        self.by_hand.append(invalid(NAME, where, part, said))
            if len(parts) > 2 or not known(name):
                self.by_hand.append(invalid(CONSTRAINT, where, name, text))

        self.each(items, MOST_REQUESTS, at, check, lambda name: name)


def _asks_anything(one: DeviceRequest) -> bool:
    """v1beta1: whether the request has any field of what v1 has under ``exactly``."""
    return bool(one.deviceClassName or one.allocationMode or one.count) or any(
        value is not None
        for value in (
            one.selectors,
            one.adminAccess,
            one.tolerations,
            one.capacity,
            one.derivedAttributes,
        )
    )


_PLACE = re.compile(r"ERROR: <input>:(\d+:\d+): ")
_EXCERPT = re.compile(r"\n \| .*")


def _in_one_line(text: str) -> str:
    """What CEL's compiler says, without the expression and an arrow on lines of their own."""
    return _PLACE.sub(r"at \1: ", _EXCERPT.sub("", text)).replace("\n", "; ")
