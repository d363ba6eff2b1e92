"""LimitRange defaults and limits, in the words of the plugin."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.admission import limit_range
from kubectl_gpuadmit.kube.objects import (
    LimitRange,
    PersistentVolumeClaim,
    Pod,
    ResourceRequirements,
)
from kubectl_gpuadmit.verdict import Evidence, Finding
from tests.admission.objects import container, gpus, obj, pod
from tests.admission.objects import limit_range as made


def ranges(*items: dict[str, Any]) -> list[LimitRange]:
    one = made(*items)
    assert isinstance(one, LimitRange)
    return [one]


def details(one: Pod | PersistentVolumeClaim, *items: dict[str, Any]) -> list[str]:
    return [finding.detail for finding in limit_range.findings(one, ranges(*items))]


def test_defaults_go_into_every_container_that_names_none_and_are_noted() -> None:
    one = pod(
        container("a", limits={"cpu": "1"}, requests={"cpu": "1"}),
        container("b"),
        initContainers=[container("i", requests={"nvidia.com/gpu": "2"})],
    )
    item = {
        "type": "Container",
        "default": {"nvidia.com/gpu": "1", "cpu": "2"},
        "defaultRequest": {"cpu": "500m", "nvidia.com/gpu": "1"},
    }
    after = limit_range.mutate(one, ranges(item))
    assert after.spec.containers and after.spec.initContainers
    assert [c.resources for c in (*after.spec.containers, *after.spec.initContainers)] == [
        ResourceRequirements(
            limits={"cpu": "1", "nvidia.com/gpu": "1"}, requests={"cpu": "1", "nvidia.com/gpu": "1"}
        ),
        ResourceRequirements(
            limits={"nvidia.com/gpu": "1", "cpu": "2"},
            requests={"cpu": "500m", "nvidia.com/gpu": "1"},
        ),
        ResourceRequirements(
            limits={"nvidia.com/gpu": "1", "cpu": "2"},
            requests={"nvidia.com/gpu": "2", "cpu": "500m"},
        ),
    ]
    assert after.annotations == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: nvidia.com/gpu request for container"
        " a; nvidia.com/gpu limit for container a; cpu, nvidia.com/gpu request for container b;"
        " cpu, nvidia.com/gpu limit for container b; cpu request for init container i;"
        " cpu, nvidia.com/gpu limit for init container i"
    }


def test_an_item_without_defaults_gets_them_from_its_max_and_min() -> None:
    item = {"type": "Container", "max": {"cpu": "4"}, "min": {"cpu": "1", "memory": "1Gi"}}
    after = limit_range.mutate(pod(), ranges(item))
    assert after.spec.containers
    assert after.spec.containers[0].resources == ResourceRequirements(
        limits={"cpu": "4"}, requests={"cpu": "4", "memory": "1Gi"}
    )


def test_nothing_is_copied_where_nothing_is_missing() -> None:
    one = pod(container(limits={"cpu": "1"}, requests={"cpu": "1"}))
    assert limit_range.mutate(one, ranges({"type": "Pod", "max": {"cpu": "1"}})) is one
    assert limit_range.mutate(one, ranges({"type": "Container", "default": {"cpu": "2"}})) is one


def test_a_violation_carries_the_numbers_and_the_whole_refusal() -> None:
    item = {"type": "Container", "max": {"nvidia.com/gpu": "2"}}
    one = pod(
        container("a", limits={"nvidia.com/gpu": "4"}, requests={"nvidia.com/gpu": "4"}),
        container("b"),
    )
    message = (
        'pods "p" is forbidden: [maximum nvidia.com/gpu usage per Container is 2, but limit is 4,'
        " maximum nvidia.com/gpu usage per Container is 2.  No limit is specified]"
    )
    said = Evidence("kube-apiserver", "message", message, None)
    assert limit_range.findings(one, ranges(item)) == (
        Finding(
            reason="limit-range/max",
            detail="container a: maximum nvidia.com/gpu usage per Container is 2, but limit is 4",
            evidence=(
                Evidence(
                    "LimitRange limits",
                    "nvidia.com/gpu of container a",
                    "4",
                    "2",
                    "spec.limits max",
                    "most",
                ),
                said,
            ),
            field="/spec/containers/0/resources",
        ),
        Finding(
            reason="limit-range/max",
            detail="container b: maximum nvidia.com/gpu usage per Container is 2."
            " No limit is specified",
            evidence=(
                Evidence(
                    "LimitRange limits",
                    "nvidia.com/gpu of container b",
                    None,
                    "2",
                    "spec.limits max",
                    "most",
                ),
                said,
            ),
            field="/spec/containers/1/resources",
        ),
    )


@pytest.mark.parametrize(
    ("bounds", "resources", "detail"),
    [
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "999m"}},
            "minimum cpu usage per Container is 1, but request is 999m",
        ),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but limit is 500m",
        ),
        (
            {"min": {"cpu": "1"}},
            {},
            "minimum cpu usage per Container is 1. No request is specified",
        ),
        ({"max": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}}, None),
        (
            {"max": {"cpu": "1"}},
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but request is 2",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "1500m"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "2"}},
            None,
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but no request is specified or"
            " request is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit"
            " is 0",
        ),
    ],
)
def test_boundaries_hold_to_the_last_thousandth(
    bounds: dict[str, Any], resources: dict[str, Any], detail: str | None
) -> None:
    found = details(pod(container(**resources)), {"type": "Container", **bounds})
    assert found == ([f"container main: {detail}"] if detail else [])


def test_pod_limits_count_sidecars_and_pod_level_cpu_but_no_overhead() -> None:
    one = pod(
        container(limits={"cpu": "1", "nvidia.com/gpu": "1"}, requests={"cpu": "1"}),
        initContainers=[
            container("side", limits={"nvidia.com/gpu": "1"}, restartPolicy="Always"),
        ],
        resources={"limits": {"cpu": "8"}},
        overhead={"nvidia.com/gpu": "7"},
    )
    item = {"type": "Pod", "max": {"nvidia.com/gpu": "1", "cpu": "4"}}
    assert details(one, item) == [
        "pod: maximum cpu usage per Pod is 4, but limit is 8",
        "pod: maximum nvidia.com/gpu usage per Pod is 1, but limit is 2",
    ]


def test_init_containers_are_held_to_container_limits_too() -> None:
    one = pod(container(limits={"cpu": "1"}), initContainers=[container("i", limits={"cpu": "9"})])
    assert details(one, {"type": "Container", "max": {"cpu": "4"}}) == [
        "init container i: maximum cpu usage per Container is 4, but limit is 9"
    ]


def test_volume_claims_are_held_to_their_requests() -> None:
    claim = obj(
        "PersistentVolumeClaim",
        "data",
        "team-a",
        spec={"resources": {"requests": {"storage": "1Ti"}}},
    )
    assert isinstance(claim, PersistentVolumeClaim)
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "500Gi"}, "min": {"storage": "2Ti"}}
    found = limit_range.findings(claim, ranges(item))
    assert [f.reason for f in found] == ["limit-range/min", "limit-range/max"]
    assert found[0].evidence[-1].observed == (
        'persistentvolumeclaims "data" is forbidden: [minimum storage usage per'
        " PersistentVolumeClaim is 2Ti, but request is 1Ti, maximum storage usage per"
        " PersistentVolumeClaim is 500Gi, but request is 1Ti]"
    )


def test_the_name_in_a_refusal_has_the_generated_suffix() -> None:
    found = limit_range.findings(
        gpus(4, generateName="web-7f9-"), ranges({"type": "Container", "max": {"cpu": "1"}})
    )
    assert str(found[0].evidence[-1].observed).startswith('pods "web-7f9-xxxxx" is forbidden: ')
