"""A selector that reads what a device does not have: said so, and corrected by a remedy tried."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.render.nodes import folded
from tests.devices.test_funnel import MACHINES, exactly, judged, spec

H100 = "NVIDIA H100 80GB HBM3"


ANY = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "any"},
    "spec": {},
}


def reads(expression: str) -> tuple[str, list[str]]:
    verdict = judged(spec(exactly("gpu.nvidia.com", expression)))
    (found,) = [f for f in verdict.findings if f.reason == "placement/attribute-missing"]
    assert (verdict.placement, found.permanent) == ("never", True)
    assert all(remedy.verified for remedy in verdict.remedies)
    return found.detail, [remedy.summary for remedy in verdict.remedies]


@pytest.mark.parametrize(
    ("expression", "detail", "remedy"),
    [
        (
            f"device.attributes['gpu.nvidia.com'].productNam == '{H100}'",
            "selector 1 of request r0 reads productNam, which device gpu.nvidia.com/h100-0/gpu-0"
            " does not have (did you mean productName?): the scheduler gives"
            " the pod up with an error",
            "in ResourceClaimTemplate t: productName instead of productNam",
        ),
        (
            f"device.attributes['gpu.nvidia.con'].productName == '{H100}'",
            "selector 1 of request r0 reads productName, which device gpu.nvidia.com/h100-0/gpu-0"
            " does not have (did you mean gpu.nvidia.com?): the scheduler"
            " gives the pod up with an error",
            "in ResourceClaimTemplate t: gpu.nvidia.com instead of gpu.nvidia.con",
        ),
    ],
)
def test_a_misspelt_name_is_told_with_the_one_that_was_meant(
    expression: str, detail: str, remedy: str
) -> None:
    assert reads(expression) == (detail, [remedy])


def test_a_name_that_only_some_devices_have_is_to_be_guarded() -> None:
    expression = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
    verdict = judged(spec(exactly("any", expression)), *MACHINES, ANY)
    assert verdict.blockers == ("placement/attribute-missing",)
    assert [(r.summary, r.verified) for r in verdict.remedies] == [
        (
            'in ResourceClaimTemplate t: .?profile.orValue("") instead of .profile: some devices do'
            " not have it",
            True,
        )
    ]


def test_another_error_of_a_selector_keeps_the_schedulers_words() -> None:
    verdict = judged(spec(exactly("gpu.nvidia.com", "1 / 0 == 1")))
    assert verdict.findings[0].detail == (
        "the scheduler gives up with an error: claim ml/d-gpu-xxxxx: selector #0: CEL runtime"
        " error: division by zero"
    )


def test_nodes_on_which_the_same_selector_fails_are_folded_whatever_the_device() -> None:
    expression = "device.attributes['gpu.nvidia.com'].x == 1"
    verdict = judged(spec(exactly("any", expression)), *MACHINES, ANY)
    assert folded(verdict.nodes) == [
        "2 claim ml/d-gpu-xxxxx: selector #0: CEL runtime error: no such key: x"
    ]
