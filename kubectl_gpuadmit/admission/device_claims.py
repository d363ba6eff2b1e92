"""Object validation of ResourceClaims, their templates and DeviceClasses as they are created.

The API server validates by hand and by declaration, and says what is found by hand first. A value
that both find wrong is told once, in the words of the declaration. Fields of feature gates that are
off are dropped before, and who may use ``adminAccess`` is rule ``dra/admin-access``.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/validation/validation.go,
pkg/apis/resource/v1/zz_generated.validations.go, pkg/apis/resource/{v1,v1beta1}/defaults.go;
k8s.io/apimachinery v0.37.2 pkg/api/validate; limits of k8s.io/api v0.37.2 resource/v1/types.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kubectl_gpuadmit.admission import validation_scheduling
from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Where,
    duplicate,
    forbidden,
    invalid,
    message,
    quoted,
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
    DeviceSelector,
    DeviceToleration,
    ExactRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from kubectl_gpuadmit.kube.gates import DEFAULT, Gates
from kubectl_gpuadmit.kube.objects import KubeObject, ObjectMeta
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
_CONSTRAINT = "invalid/device-constraint"
_NAME = "invalid/name"
_MANY = "invalid/value"

MOST_REQUESTS = MOST_CONSTRAINTS = MOST_CONFIGURATIONS = MOST_SELECTORS = 32
MOST_ALTERNATIVES = 8
LONGEST_PARAMETERS = 10 * 1024
"""Bytes of an opaque configuration as JSON: OpaqueParametersMaxLength."""

_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule", "None")

One = TypeVar("One")


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
    """All complaints, in the API server's order."""
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


class _Check:
    """One object. ``flat``: v1beta1, whose requests have no ``exactly`` around what is asked.

    ``stored``: its selectors stand in the cluster already, and are not looked at again.
    """

    def __init__(self, kubernetes: str, features: Features, *, flat: bool, stored: bool) -> None:
        self._kubernetes = kubernetes
        self._features = features
        self._joined: dict[str, set[str]] = {}
        """Request, '' for all of them -> attributes of the constraints that are about it."""
        self._flat = flat
        self._stored = stored
        self._by_hand: list[FieldError] = []
        self._declared: list[FieldError] = []

    def found(self) -> list[FieldError]:
        return [*self._by_hand, *self._declared]

    # -- metadata ------------------------------------------------------------------------------

    def metadata(self, meta: ObjectMeta, *, namespaced: bool) -> None:
        at: Where = ("metadata",)
        if not meta.name and not meta.generateName:
            text = "name or generateName is required"
            self._by_hand.append(required("invalid/required", (*at, "name"), text))
        if meta.name:
            into = self._by_hand if namespaced else self._declared
            for text in (names.dns_subdomain if namespaced else names.long_name)(meta.name):
                into.append(invalid(_NAME, (*at, "name"), meta.name, text))
        if namespaced and meta.namespace:
            for text in names.dns_label(meta.namespace):
                self._by_hand.append(invalid(_NAME, (*at, "namespace"), meta.namespace, text))
        self._labelled(meta, at)

    def template_metadata(self, meta: ObjectMeta, at: Where) -> None:
        """Of the claims to be made: labels and annotations, nothing else."""
        self._labelled(meta, at, annotations_first=True)
        for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
            if getattr(meta, field):
                self._cannot_be_set((*at, field))
        for field in ("ownerReferences", "finalizers"):
            if getattr(meta, field) is not None:
                self._cannot_be_set((*at, field))

    def _cannot_be_set(self, where: Where) -> None:
        self._by_hand.append(FieldError(_MANY, where, "Forbidden", None, "cannot be set"))

    def _labelled(self, meta: ObjectMeta, at: Where, *, annotations_first: bool = False) -> None:
        labels = list(validation_scheduling.labels(meta.labels, (*at, "labels")))
        annotations = [
            invalid("invalid/labels", (*at, "annotations"), key, text)
            for key in sorted(meta.annotations or {})
            for text in names.label_key(key.lower())
        ]
        both = (annotations, labels) if annotations_first else (labels, annotations)
        self._by_hand += [*both[0], *both[1]]

    # -- what is in common ---------------------------------------------------------------------

    def _each(
        self,
        items: Sequence[One] | None,
        most: int,
        at: Where,
        check: Callable[[One, Where], None],
        key: Callable[[One], str] | None = None,
    ) -> None:
        """A list of at most so many, whose ``key`` is different for each."""
        if items is None:
            return
        if len(items) > most:
            text = f"must have at most {most} items"
            self._declared.append(FieldError(_MANY, at, "Too many", str(len(items)), text))
            return
        seen: set[str] = set()
        for i, item in enumerate(items):
            if key is not None:
                if key(item) in seen:
                    shown = key(item)
                    self._declared.append(duplicate("invalid/duplicate", (*at, i), shown))
                seen.add(key(item))
        for i, item in enumerate(items):
            check(item, (*at, i))

    def _selectors(
        self, items: Sequence[DeviceSelector] | None, at: Where, declared_at: Where
    ) -> None:
        self._each(
            items, MOST_SELECTORS, declared_at, lambda item, w: self._selector(item, (*at, w[-1]))
        )

    def _selector(self, item: DeviceSelector, at: Where) -> None:
        if item.cel is None:
            self._by_hand.append(required("invalid/selector", (*at, "cel")))
            return
        if self._stored:
            return
        text = item.cel.expression
        found = selectors.compile(
            text,
            kubernetes=self._kubernetes,
            list_attributes=self._features.list_attributes,
            consumable_capacity=self._features.consumable_capacity,
            new=True,
        )
        self._expression(text, found, (*at, "cel", "expression"))

    def _expression(
        self,
        text: str,
        found: selectors.Selector | selectors.Derivation | selectors.Problem,
        where: Where,
    ) -> None:
        if isinstance(found, selectors.Derivation):
            return
        if isinstance(found, selectors.Selector):
            if found.too_complex:
                self._by_hand.append(forbidden("invalid/selector", where, found.too_complex))
        elif found.kind == "too-long":
            limit = f"may not be more than {selectors.LONGEST} bytes"
            self._by_hand.append(FieldError("invalid/selector", where, "Too long", None, limit))
        elif found.kind == "internal":
            self._by_hand.append(
                FieldError("invalid/selector", where, "Internal error", None, found.message)
            )
        else:
            self._by_hand.append(invalid("invalid/selector", where, text, found.message))

    def _configuration(self, item: DeviceConfiguration, at: Where) -> None:
        if item.opaque is None:
            self._by_hand.append(required(_CONSTRAINT, (*at, "opaque")))
            return
        self._driver(item.opaque.driver, (*at, "opaque", "driver"))
        self._parameters(item.opaque.parameters, (*at, "opaque", "parameters"))

    def _driver(self, name: str, where: Where) -> None:
        if not name:
            self._declared.append(required("invalid/required", where))
            return
        for text in names.long_name_caseless(name):
            self._declared.append(invalid(_NAME, where, name, text))
        if len(name) > 63:
            self._declared.append(
                FieldError(_NAME, where, "Too long", None, "may not be more than 63 characters")
            )

    def _parameters(self, value: Any, where: Where) -> None:
        if value is None:
            self._by_hand.append(required(_CONSTRAINT, where))
        elif _json_bytes(value) > LONGEST_PARAMETERS:
            limit = f"may not be more than {LONGEST_PARAMETERS} bytes"
            self._by_hand.append(FieldError(_CONSTRAINT, where, "Too long", None, limit))
        elif not isinstance(value, dict):
            text = "must be a valid JSON object"
            self._by_hand.append(
                FieldError(_CONSTRAINT, where, "Invalid value", quoted("<value omitted>"), text)
            )

    # -- DeviceClass ---------------------------------------------------------------------------

    def device_class(self, obj: DeviceClass) -> None:
        self._selectors(obj.spec.selectors, *2 * (("spec", "selectors"),))
        self._each(obj.spec.config, MOST_CONFIGURATIONS, ("spec", "config"), self._configuration)
        name = obj.spec.extendedResourceName
        if name is not None:
            where: Where = ("spec", "extendedResourceName")
            self._declared += [invalid(_NAME, where, name, t) for t in _extended(name)]

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
        self._each(
            claim.requests, MOST_REQUESTS, (*at, "requests"), self._request, lambda one: one.name
        )
        self._each(
            claim.constraints,
            MOST_CONSTRAINTS,
            (*at, "constraints"),
            lambda one, where: self._constraint(one, where, known),
        )
        self._each(
            claim.config,
            MOST_CONFIGURATIONS,
            (*at, "config"),
            lambda one, where: self._claim_configuration(one, where, known),
        )

    def _request(self, one: DeviceRequest, at: Where) -> None:
        for text in names.dns_label(one.name):
            self._by_hand.append(invalid(_NAME, (*at, "name"), one.name, text))
        exactly: ExactRequest | None = one.exactly
        if self._flat:
            exactly = one if _asks_anything(one) else None
        told = len(self._by_hand)
        if one.firstAvailable:
            self._each(
                one.firstAvailable,
                MOST_ALTERNATIVES,
                (*at, "firstAvailable"),
                lambda sub, where: self._alternative(sub, where, one.name),
                lambda sub: sub.name,
            )
        if exactly is not None:
            self._exactly(exactly, at, one.name)
        if one.firstAvailable and exactly is not None:
            del self._by_hand[told:]
            text = (
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are"
                " set"
            )
            self._by_hand.append(invalid(_REQUEST, at, None, text))
        elif not one.firstAvailable and exactly is None:
            text = "exactly one of `exactly` or `firstAvailable` is required"
            self._by_hand.append(required(_REQUEST, at, text))

    def _alternative(self, one: Any, at: Where, parent: str) -> None:
        for text in names.dns_label(one.name):
            self._by_hand.append(invalid(_NAME, (*at, "name"), one.name, text))
        self._wanted(one, at, at, self._declared, f"{parent}/{one.name}")

    def _exactly(self, one: ExactRequest, at: Where, requested: str) -> None:
        inner: Where = (*at, "exactly")
        self._wanted(one, inner, at if self._flat else inner, self._by_hand, requested)

    def _wanted(
        self,
        one: ExactRequest,
        at: Where,
        declared_at: Where,
        of_class: list[FieldError],
        requested: str,
    ) -> None:
        where = (*at, "deviceClassName")
        words = names.long_name if of_class is self._declared else names.dns_subdomain
        if not one.deviceClassName:
            of_class.append(required("invalid/required", where))
        for text in words(one.deviceClassName) if one.deviceClassName else ():
            of_class.append(invalid(_NAME, where, one.deviceClassName, text))
        self._selectors(one.selectors, (*at, "selectors"), (*declared_at, "selectors"))
        self._mode(one, at, declared_at)
        for i, derived in enumerate(one.derivedAttributes or ()):
            self._derived(derived, (*at, "derivedAttributes", i), requested)
        for i, toleration in enumerate(one.tolerations or ()):
            self._toleration(toleration, (*at, "tolerations", i), (*declared_at, "tolerations", i))

    def _derived(self, one: DerivedAttribute, at: Where, requested: str) -> None:
        """The cost of such expressions is not looked at."""
        parent = requested.partition("/")[0]
        if not one.name:
            self._declared.append(required("invalid/required", (*at, "name")))
        else:
            self._declared += _attribute(one.name, (*at, "name"))
            if not any(one.name in self._joined.get(key, ()) for key in ("", requested, parent)):
                text = (
                    "must be referenced by at least one matchAttribute or distinctAttribute"
                    " constraint targeting this request"
                )
                self._by_hand.append(invalid(_CONSTRAINT, (*at, "name"), one.name, text))
        if not one.expression:
            self._declared.append(required("invalid/required", (*at, "expression")))
            return
        found = selectors.derivation(
            one.expression,
            kubernetes=self._kubernetes,
            list_attributes=self._features.list_attributes,
            new=True,
        )
        self._expression(one.expression, found, (*at, "expression"))

    def _mode(self, one: ExactRequest, at: Where, declared_at: Where) -> None:
        defaulted = not self._flat or at[-1] != "exactly" or bool(one.deviceClassName)
        mode = one.allocationMode or ("ExactCount" if defaulted else "")
        count = one.count or (1 if mode == "ExactCount" and defaulted else 0)
        if mode == "All":
            if count:
                text = "must not be specified when allocationMode is 'All'"
                self._by_hand.append(invalid(_REQUEST, (*at, "count"), count, text))
        elif mode == "ExactCount":
            if count <= 0:
                text = "must be greater than zero"
                self._by_hand.append(invalid(_REQUEST, (*at, "count"), count, text))
        elif mode:
            where = (*declared_at, "allocationMode")
            self._declared.append(unsupported(_REQUEST, where, mode, _MODES))
        else:
            where = (*at, "allocationMode")
            self._by_hand.append(unsupported(_REQUEST, where, mode, _MODES))

    def _toleration(self, one: DeviceToleration, at: Where, declared_at: Where) -> None:
        reason = "invalid/toleration"
        for text in names.label_key(one.key) if one.key else ():
            self._declared.append(invalid(reason, (*declared_at, "key"), one.key, text))
        operator, value = one.operator or "Equal", one.value or ""
        if operator == "Exists":
            if value:
                text = "must be empty for operator `Exists`"
                self._by_hand.append(invalid(reason, (*at, "value"), value, text))
        elif operator == "Equal":
            for text in names.label_value(value):
                self._by_hand.append(invalid(reason, (*at, "value"), value, text))
        else:
            where = (*declared_at, "operator")
            self._declared.append(unsupported(reason, where, operator, _OPERATORS))
        if one.effect and one.effect not in _EFFECTS:
            where = (*declared_at, "effect")
            self._declared.append(unsupported(reason, where, one.effect, _EFFECTS))

    def _constraint(self, one: DeviceConstraint, at: Where, known: Callable[[str], bool]) -> None:
        self._references(one.requests, (*at, "requests"), known)
        for field in ("matchAttribute", "distinctAttribute"):
            name = getattr(one, field)
            if name is not None:
                self._declared += _attribute(name, (*at, field))
        if one.matchAttribute is None and one.distinctAttribute is None:
            if not self._features.consumable_capacity:
                self._by_hand.append(required(_CONSTRAINT, (*at, "matchAttribute")))
                return
            text = (
                'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple'
                " fields are set"
            )
            self._by_hand.append(required(_CONSTRAINT, at, text))

    def _claim_configuration(
        self, one: DeviceConfiguration, at: Where, known: Callable[[str], bool]
    ) -> None:
        self._references(one.requests, (*at, "requests"), known)
        self._configuration(one, at)

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
                        self._by_hand.append(invalid(_NAME, where, part, said))
            if len(parts) > 2 or not known(name):
                self._by_hand.append(invalid(_CONSTRAINT, where, name, text))

        self._each(items, MOST_REQUESTS, at, check, lambda name: name)


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


def _json_bytes(value: Any) -> int:
    """As kubectl sends it: no spaces, and ``<``, ``>`` and ``&`` escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode()) + 5 * sum(text.count(letter) for letter in "<>&")


def _extended(name: str) -> Iterator[str]:
    """What is wrong with the name of an extended resource (validate.ExtendedResourceName)."""
    if "/" not in name:
        yield "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    elif "kubernetes.io/" in name:
        yield 'must not have "kubernetes.io/" domain'
    if name.startswith("requests."):
        yield 'must not have "requests." prefix'
    yield from names.label_key(f"requests.{name}")


def _attribute(name: str, where: Where) -> Iterable[FieldError]:
    """What is wrong with a fully qualified name (validate.ResourceFullyQualifiedName)."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _identifier(parts[0], where)
    elif len(parts) == 2:
        domain, last = parts
        if not domain:
            yield invalid(_CONSTRAINT, where, "", "prefix must not be empty")
        else:
            if len(domain.encode()) > 63:
                limit = "may not be more than 63 bytes"
                yield FieldError(_CONSTRAINT, where, "Too long", None, limit)
            for text in names.long_name(domain):
                yield invalid(_CONSTRAINT, where, domain, f"prefix: {text}")
        if not last:
            yield invalid(_CONSTRAINT, where, "", "name must not be empty")
        else:
            yield from _identifier(last, where)
    if len(parts) == 1:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(_CONSTRAINT, where, name, text)


def _identifier(name: str, where: Where) -> Iterator[FieldError]:
    if len(name.encode()) > 32:
        limit = "may not be more than 32 bytes"
        yield FieldError(_CONSTRAINT, where, "Too long", None, limit)
    for text in names.c_identifier(name):
        yield invalid(_CONSTRAINT, where, name, text)
