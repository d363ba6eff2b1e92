"""Whether the API server takes the CEL selectors of a claim, a claim template or a device class.

Looks at selectors alone, and only where they are new: an object whose selectors are stored as they
are is not validated again. What is refused here is refused with every setting of the feature gates;
the words are those with their defaults.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/validation/validation.go
(validateCELExpression, validateSelector); k8s.io/api v0.37.2 resource/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Where,
    forbidden,
    invalid,
    message,
    required,
)
from kubectl_gpuadmit.admission.refusal import refusal, shown_name
from kubectl_gpuadmit.kube import dra
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.verdict import Evidence, Finding

KINDS = {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate"}

REASONS = {
    "dra/selector-too-complex": "A CEL selector may cost more than the API server allows. Bound"
    " what it goes through: fewer loops inside of loops, no join of values of unknown size.",
    "dra/selector-refused": "A CEL selector that the API server does not take: it does not compile,"
    " is too long or is missing. Correct the expression.",
}


class _Selector(Struct, frozen=True):
    expression: str | None
    where: Where
    """As the API server names the field."""
    pointer: str
    """Into the manifest, where a v1beta1 request has no ``exactly`` around it."""


def findings(obj: KubeObject, stored: KubeObject | None, *, kubernetes: str) -> tuple[Finding, ...]:
    """What is wrong with the selectors of a new or changed object.

    ``stored`` is the object of that name which is there already, ``kubernetes`` the API server's
    version (``1.37``).
    """
    known = list(_selectors(stored)) if stored is not None else None
    now = list(_selectors(obj))
    if known is not None and [one.expression for one in known] == [one.expression for one in now]:
        return ()
    errors = [
        (one, error) for one in now for error in [_refused(one, kubernetes)] if error is not None
    ]
    kind = f"{obj.kind}.{dra.DRA_GROUP}"
    whole = message(shown_name(obj), (error for _, error in errors), kind)
    return tuple(
        refusal(
            error.reason,
            f"{obj.kind} {shown_name(obj)}: {error.path}: {error.detail.partition(chr(10))[0]}",
            whole,
            evidence=(
                Evidence(
                    f"{obj.kind} {shown_name(obj)}", error.path, one.expression, None, error.detail
                ),
            ),
            field=one.pointer,
        )
        for one, error in errors
    )


def _refused(one: _Selector, kubernetes: str) -> FieldError | None:
    if one.expression is None:
        return required("dra/selector-refused", one.where[:-1])
    widest = _said(one.expression, one.where, kubernetes, lists=True, shared=True)
    if widest is None:
        return None
    return (
        _said(
            one.expression,
            one.where,
            kubernetes,
            lists=_is_on("DRAListTypeAttributes", kubernetes),
            shared=_is_on("DRAConsumableCapacity", kubernetes),
        )
        or widest
    )


def _is_on(gate: str, kubernetes: str) -> bool:
    from kubectl_gpuadmit.devices import gates, maturity

    [known] = [one for one in gates.GATES if (one.component, one.name) == (gates.KUBERNETES, gate)]
    step = maturity.step(known, maturity.release(kubernetes))
    return step is not None and step.on


def _said(
    expression: str, where: Where, kubernetes: str, *, lists: bool, shared: bool
) -> FieldError | None:
    from kubectl_gpuadmit.cel import dra as cel

    compiled = cel.compile(
        expression,
        kubernetes=kubernetes,
        list_attributes=lists,
        consumable_capacity=shared,
        new=True,
    )
    if isinstance(compiled, cel.Selector):
        said = compiled.too_complex
        return forbidden("dra/selector-too-complex", where, said) if said else None
    reason, said = "dra/selector-refused", compiled.message
    if compiled.kind == "too-long":
        return FieldError(reason, where, "Too long", None, said.removeprefix("Too long: "))
    if said.startswith("program instantiation failed"):
        return FieldError(reason, where, "Internal error", None, said)
    return invalid(reason, where, expression, said)


def _selectors(obj: KubeObject) -> Iterator[_Selector]:
    if isinstance(obj, dra.DeviceClass):
        yield from _listed(obj.spec.selectors, ("spec",), "/spec")
    elif isinstance(obj, dra.ResourceClaim):
        yield from _claimed(obj.spec, ("spec",))
    elif isinstance(obj, dra.ResourceClaimTemplate):
        yield from _claimed(obj.spec.spec, ("spec", "spec"))


def _claimed(spec: dra.ResourceClaimSpec, at: Where) -> Iterator[_Selector]:
    for number, request in enumerate(spec.devices.requests or ()):
        where: Where = (*at, "devices", "requests", number)
        pointer = "".join(f"/{step}" for step in where)
        if request.exactly is not None:
            inner = (*where, "exactly")
            yield from _listed(request.exactly.selectors, inner, f"{pointer}/exactly")
        elif not request.firstAvailable:
            yield from _listed(request.selectors, (*where, "exactly"), pointer)
        for place, sub in enumerate(request.firstAvailable or ()):
            inner = (*where, "firstAvailable", place)
            yield from _listed(sub.selectors, inner, f"{pointer}/firstAvailable/{place}")


def _listed(
    selectors: tuple[dra.DeviceSelector, ...] | None, at: Where, pointer: str
) -> Iterator[_Selector]:
    for number, one in enumerate(selectors or ()):
        where = (*at, "selectors", number, "cel", "expression")
        expression = one.cel.expression if one.cel is not None else None
        yield _Selector(expression, where, f"{pointer}/selectors/{number}/cel/expression")
