"""Selectors of claims and classes that the API server refuses, in its own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_gpuadmit.admission import device_claims
from kubectl_gpuadmit.verdict import Finding
from tests.placement.build import decoded
from tests.runs import QUIET, report, world

CHEAP = 'device.attributes["gpu.example.com"].model == "H100"'
COSTLY = (
    "device.attributes.exists(a, device.attributes.exists(b, device.attributes.exists(c,"
    " device.attributes.exists(d, a == b && c == d))))"
)
FIELD = "spec.selectors[{}].cel.expression"
TOO_COMPLEX = "Forbidden: too complex, exceeds cost limit"


def device_class(*expressions: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": one}} for one in expressions]},
    }


def claim(request: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "team"},
        "spec": {"devices": {"requests": [request]}},
    }


def asked(manifest: dict[str, Any], stored: dict[str, Any] | None = None) -> tuple[Finding, ...]:
    before = decoded(stored) if stored is not None else None
    return device_claims.findings(decoded(manifest), stored=before)


def said(manifest: dict[str, Any]) -> str:
    [found] = asked(manifest)
    return str(found.evidence[-1].observed)


def wanted(expression: str) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}


def test_a_class_with_a_cheap_selector_is_taken() -> None:
    assert asked(device_class(CHEAP)) == ()


def test_a_class_whose_selector_may_cost_too_much_is_refused_with_its_field() -> None:
    [found] = asked(device_class(CHEAP, COSTLY))
    assert found.reason == "invalid/selector"
    assert found.field == "/spec/selectors/1/cel/expression"
    assert found.detail == (
        'DeviceClass "gpu" is invalid: spec.selectors[1].cel.expression: Forbidden: too complex,'
        " exceeds cost limit"
    )
    assert found.evidence[-1].observed == (
        f'DeviceClass.resource.k8s.io "gpu" is invalid: {FIELD.format(1)}: {TOO_COMPLEX}'
    )


@pytest.mark.parametrize(
    ("manifest", "path", "pointer"),
    [
        (
            claim({"name": "r", "exactly": wanted(COSTLY)}),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            "/spec/devices/requests/0/exactly/selectors/0/cel/expression",
        ),
        (
            claim({"name": "r", "firstAvailable": [{"name": "a", **wanted(COSTLY)}]}),
            "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression",
            "/spec/devices/requests/0/firstAvailable/0/selectors/0/cel/expression",
        ),
        (
            claim({"name": "r", **wanted(COSTLY)}, "v1beta1"),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            "/spec/devices/requests/0/selectors/0/cel/expression",
        ),
    ],
)
def test_a_claim_is_refused_where_the_selector_stands(
    manifest: dict[str, Any], path: str, pointer: str
) -> None:
    [found] = asked(manifest)
    assert found.field == pointer
    assert said(manifest) == f'ResourceClaim.resource.k8s.io "c" is invalid: {path}: {TOO_COMPLEX}'


def test_a_template_is_refused_as_its_claims_would_be() -> None:
    inner = claim({"name": "r", "exactly": wanted(COSTLY)})
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "team"},
        "spec": {"spec": inner["spec"]},
    }
    assert said(template) == (
        'ResourceClaimTemplate.resource.k8s.io "t" is invalid:'
        f" spec.spec.devices.requests[0].exactly.selectors[0].cel.expression: {TOO_COMPLEX}"
    )


def test_an_expression_that_does_not_compile_or_is_too_long_is_refused_too() -> None:
    [found] = asked(device_class("device.drivr == 'x'"))
    assert found.reason == "invalid/selector"
    assert said(device_class("device.drivr == 'x'")).startswith(
        f'DeviceClass.resource.k8s.io "gpu" is invalid: {FIELD.format(0)}: Invalid value:'
        " \"device.drivr == 'x'\": compilation failed: ERROR: <input>:1:7: undefined field"
    )
    assert said(device_class(f"'{'ü' * 5200}' == 'x'")) == (
        f'DeviceClass.resource.k8s.io "gpu" is invalid: {FIELD.format(0)}: Too long: may not be'
        " more than 10240 bytes"
    )


def test_several_faults_are_one_message() -> None:
    found = asked(device_class(COSTLY, COSTLY))
    assert [one.field for one in found] == [
        "/spec/selectors/0/cel/expression",
        "/spec/selectors/1/cel/expression",
    ]
    assert found[0].evidence[-1].observed == (
        'DeviceClass.resource.k8s.io "gpu" is invalid:'
        f" [spec.selectors[0].cel.expression: {TOO_COMPLEX},"
        f" spec.selectors[1].cel.expression: {TOO_COMPLEX}]"
    )


def test_what_is_stored_as_it_is_stays() -> None:
    assert asked(device_class(COSTLY), device_class(COSTLY)) == ()
    [found] = asked(device_class(CHEAP, COSTLY), device_class(COSTLY))
    assert found.field == "/spec/selectors/1/cel/expression"


def test_a_refused_class_that_a_run_brings_along_is_denied_and_not_applied() -> None:
    found = report(json.dumps(device_class(COSTLY)), world(), QUIET)
    refused = next(one for one in found.workloads if one.ref.kind == "DeviceClass")
    assert (refused.admission, refused.blockers) == ("denied", ("invalid/selector",))
    assert "DeviceClass" not in [one.ref.kind for one in found.skipped if one.ref is not None]
