"""What the API server checks alike in claims, templates and device classes: metadata, lists,
selectors, configurations, names of attributes and resources.

Source: as ``device_claims``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kubectl_gpuadmit.admission import validation_scheduling
from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Where,
    duplicate,
    forbidden,
    invalid,
    quoted,
    required,
)
from kubectl_gpuadmit.cel import dra as cel
from kubectl_gpuadmit.devices.allocator import Features
from kubectl_gpuadmit.kube import names
from kubectl_gpuadmit.kube.dra import (
    DeviceConfiguration,
    DeviceSelector,
)
from kubectl_gpuadmit.kube.objects import ObjectMeta

CONSTRAINT = "invalid/device-constraint"
NAME = "invalid/name"
MANY = "invalid/value"

MOST_CONFIGURATIONS = MOST_SELECTORS = 32
LONGEST_PARAMETERS = 10 * 1024
"""Bytes of an opaque configuration as JSON: OpaqueParametersMaxLength."""

One = TypeVar("One")


class Checks:
    """Complaints about one object. ``flat``: v1beta1, whose requests have no ``exactly``.

    ``stored``: its selectors stand in the cluster already, and are not looked at again.
    """

    def __init__(self, kubernetes: str, features: Features, *, flat: bool, stored: bool) -> None:
        self._kubernetes = kubernetes
        self.features = features
        self.flat = flat
        self._stored = stored
        self.by_hand: list[FieldError] = []
        self.declared: list[FieldError] = []

    def found(self) -> list[FieldError]:
        return [*self.by_hand, *self.declared]

    # -- metadata ------------------------------------------------------------------------------

    def metadata(self, meta: ObjectMeta, *, namespaced: bool) -> None:
        at: Where = ("metadata",)
        if not meta.name and not meta.generateName:
            text = "name or generateName is required"
            self.by_hand.append(required("invalid/required", (*at, "name"), text))
        if meta.name:
            into = self.by_hand if namespaced else self.declared
            for text in (names.dns_subdomain if namespaced else names.long_name)(meta.name):
                into.append(invalid(NAME, (*at, "name"), meta.name, text))
        if namespaced and meta.namespace:
            for text in names.dns_label(meta.namespace):
                self.by_hand.append(invalid(NAME, (*at, "namespace"), meta.namespace, text))
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
        self.by_hand.append(FieldError(MANY, where, "Forbidden", None, "cannot be set"))

    def _labelled(self, meta: ObjectMeta, at: Where, *, annotations_first: bool = False) -> None:
        labels = list(validation_scheduling.labels(meta.labels, (*at, "labels")))
        annotations = [
            invalid("invalid/labels", (*at, "annotations"), key, text)
            for key in sorted(meta.annotations or {})
            for text in names.label_key(key.lower())
        ]
        both = (annotations, labels) if annotations_first else (labels, annotations)
        self.by_hand += [*both[0], *both[1]]

    # -- what is in common ---------------------------------------------------------------------

    def each(
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
            self.declared.append(FieldError(MANY, at, "Too many", str(len(items)), text))
            return
        seen: set[str] = set()
        for i, item in enumerate(items):
            if key is not None:
                if key(item) in seen:
                    shown = key(item)
                    self.declared.append(duplicate("invalid/duplicate", (*at, i), shown))
                seen.add(key(item))
        for i, item in enumerate(items):
            check(item, (*at, i))

    def selectors(
        self, items: Sequence[DeviceSelector] | None, at: Where, declared_at: Where
    ) -> None:
        self.each(
            items, MOST_SELECTORS, declared_at, lambda item, w: self._selector(item, (*at, w[-1]))
        )

    def _selector(self, item: DeviceSelector, at: Where) -> None:
        if item.cel is None:
            self.by_hand.append(required("invalid/selector", (*at, "cel")))
            return
        if self._stored:
            return
        text = item.cel.expression
        found = cel.compile(
            text,
            kubernetes=self._kubernetes,
            list_attributes=self.features.list_attributes,
            consumable_capacity=self.features.consumable_capacity,
            new=True,
        )
        self.expression(text, found, (*at, "cel", "expression"))

    def expression(
        self,
        text: str,
        found: cel.Selector | cel.Derivation | cel.Problem,
        where: Where,
    ) -> None:
        if isinstance(found, cel.Derivation):
            return
        if isinstance(found, cel.Selector):
            if found.too_complex:
                self.by_hand.append(forbidden("invalid/selector", where, found.too_complex))
        elif found.kind == "too-long":
            limit = f"may not be more than {cel.LONGEST} bytes"
            self.by_hand.append(FieldError("invalid/selector", where, "Too long", None, limit))
        elif found.kind == "internal":
            self.by_hand.append(
                FieldError("invalid/selector", where, "Internal error", None, found.message)
            )
        else:
            self.by_hand.append(invalid("invalid/selector", where, text, found.message))

    def configuration(self, item: DeviceConfiguration, at: Where) -> None:
        if item.opaque is None:
            self.by_hand.append(required(CONSTRAINT, (*at, "opaque")))
            return
        self._driver(item.opaque.driver, (*at, "opaque", "driver"))
        self._parameters(item.opaque.parameters, (*at, "opaque", "parameters"))

    def _driver(self, name: str, where: Where) -> None:
        if not name:
            self.declared.append(required("invalid/required", where))
            return
        for text in names.long_name_caseless(name):
            self.declared.append(invalid(NAME, where, name, text))
        if len(name) > 63:
            self.declared.append(
                FieldError(NAME, where, "Too long", None, "may not be more than 63 characters")
            )

    def _parameters(self, value: Any, where: Where) -> None:
        if value is None:
            self.by_hand.append(required(CONSTRAINT, where))
        elif _json_bytes(value) > LONGEST_PARAMETERS:
            limit = f"may not be more than {LONGEST_PARAMETERS} bytes"
            self.by_hand.append(FieldError(CONSTRAINT, where, "Too long", None, limit))
        elif not isinstance(value, dict):
            text = "must be a valid JSON object"
            self.by_hand.append(
                FieldError(CONSTRAINT, where, "Invalid value", quoted("<value omitted>"), text)
            )


def _json_bytes(value: Any) -> int:
    """As kubectl sends it: no spaces, and ``<``, ``>`` and ``&`` escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode()) + 5 * sum(text.count(letter) for letter in "<>&")


def extended_resource(name: str) -> Iterator[str]:
    """What is wrong with the name of an extended resource (validate.ExtendedResourceName)."""
    if "/" not in name:
        yield "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
    elif "kubernetes.io/" in name:
        yield 'must not have "kubernetes.io/" domain'
    if name.startswith("requests."):
        yield 'must not have "requests." prefix'
    yield from names.label_key(f"requests.{name}")


def attribute(name: str, where: Where) -> Iterable[FieldError]:
    """What is wrong with a fully qualified name (validate.ResourceFullyQualifiedName)."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _identifier(parts[0], where)
    elif len(parts) == 2:
        domain, last = parts
        if not domain:
            yield invalid(CONSTRAINT, where, "", "prefix must not be empty")
        else:
            if len(domain.encode()) > 63:
                limit = "may not be more than 63 bytes"
                yield FieldError(CONSTRAINT, where, "Too long", None, limit)
            for text in names.long_name(domain):
                yield invalid(CONSTRAINT, where, domain, f"prefix: {text}")
        if not last:
            yield invalid(CONSTRAINT, where, "", "name must not be empty")
        else:
            yield from _identifier(last, where)
    if len(parts) == 1:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(CONSTRAINT, where, name, text)


def _identifier(name: str, where: Where) -> Iterator[FieldError]:
    if len(name.encode()) > 32:
        limit = "may not be more than 32 bytes"
        yield FieldError(CONSTRAINT, where, "Too long", None, limit)
    for text in names.c_identifier(name):
        yield invalid(CONSTRAINT, where, name, text)
