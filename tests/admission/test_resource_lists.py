"""Sums and maxima of what a pod asks for, with exact amounts and the formats of the API."""

from __future__ import annotations

from kubectl_gpuadmit.admission import resource_lists
from tests.admission.objects import container, pod


def shown(amounts: resource_lists.ResourceList) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def test_containers_and_sidecars_add_up_and_a_larger_init_step_wins() -> None:
    one = pod(
        container("a", requests={"cpu": "500m", "nvidia.com/gpu": "1"}),
        container("b", requests={"cpu": "500m", "memory": "1Gi"}),
        initContainers=[
            container("side", requests={"cpu": "250m"}, restartPolicy="Always"),
            container("load", requests={"cpu": "2", "memory": "512Mi"}),
        ],
    )
    assert shown(resource_lists.of_containers(one, "requests")) == {
        "cpu": "2250m",
        "memory": "1Gi",
        "nvidia.com/gpu": "1",
    }


def test_a_sidecar_does_not_count_for_init_containers_before_it() -> None:
    one = pod(
        container("a", requests={"cpu": "1"}),
        initContainers=[
            container("load", requests={"cpu": "1200m"}),
            container("side", requests={"cpu": "100m"}, restartPolicy="Always"),
        ],
    )
    assert shown(resource_lists.of_pod(one, "requests")) == {"cpu": "1200m"}


def test_overhead_is_added_to_requests_and_to_limits_that_exist() -> None:
    one = pod(
        container("a", requests={"cpu": "1"}, limits={"memory": "1Gi"}),
        overhead={"cpu": "250m", "memory": "120Mi"},
    )
    assert shown(resource_lists.of_pod(one, "requests")) == {"cpu": "1250m", "memory": "120Mi"}
    assert shown(resource_lists.of_pod(one, "limits")) == {"memory": "1144Mi"}


def test_pod_level_resources_replace_the_sum_and_keep_extended_ones() -> None:
    one = pod(
        container("a", requests={"cpu": "1", "nvidia.com/gpu": "2"}),
        resources={"requests": {"cpu": "3", "hugepages-2Mi": "4Mi"}},
    )
    assert shown(resource_lists.of_pod(one, "requests")) == {
        "cpu": "3",
        "hugepages-2Mi": "4Mi",
        "nvidia.com/gpu": "2",
    }


def test_a_running_resize_counts_the_most_of_asked_allocated_and_in_force() -> None:
    status = {
        "containerStatuses": [
            {
                "name": "main",
                "allocatedResources": {"cpu": "3"},
                "resources": {"requests": {"cpu": "2"}},
            }
        ]
    }
    one = pod(container(requests={"cpu": "1"}), status=status)
    assert shown(resource_lists.of_pod(one, "requests")) == {"cpu": "3"}
    refused = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    two = pod(container(requests={"cpu": "9"}), status=status | refused)
    assert shown(resource_lists.of_pod(two, "requests")) == {"cpu": "3"}


def test_amounts_finer_than_a_thousandth_are_rounded_up_away_from_zero() -> None:
    assert [str(resource_lists.read_one(text)) for text in ("100u", "1.0001", "-100u", 2)] == [
        "1m",
        "1001m",
        "-1m",
        "2",
    ]


def test_a_sum_keeps_the_first_format_that_is_not_zero() -> None:
    into = resource_lists.read({"memory": "0", "cpu": "1"})
    resource_lists.add(into, resource_lists.read({"memory": "1Gi", "cpu": "500m"}))
    resource_lists.add(into, resource_lists.read({"memory": "1G"}))
    assert shown(into) == {"cpu": "1500m", "memory": "2073741824"}
