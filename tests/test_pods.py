"""What pods ask for: sums, sidecars, init steps, overhead, pod level, resizing, host ports."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.kube import pods
from kubectl_gpuadmit.kube.objects import Pod

Mi = 1024 * 1024


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return msgspec.convert({"kind": "Pod", "spec": spec, "status": status or {}}, Pod)


def asks(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


def named(name: str, **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


CASES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "containers add up": (
        {"containers": [asks(cpu="1", memory="1Mi"), asks(cpu="500m"), {"name": "none"}]},
        {"cpu": 1500, "memory": Mi},
    ),
    "a pod without containers asks nothing": ({}, {}),
    "a pod whose containers ask nothing asks nothing": ({"containers": [{"name": "a"}]}, {}),
    "fractions are summed before they are rounded up": (
        {"containers": [asks(cpu="500u"), asks(cpu="500u")]},
        {"cpu": 1},
    ),
    "the largest init step counts where it is larger": (
        {
            "containers": [asks(cpu="1", memory="1Mi")],
            "initContainers": [asks(cpu="2"), asks(cpu="500m", memory="3Mi")],
        },
        {"cpu": 2000, "memory": 3 * Mi},
    ),
    "a sidecar counts with the containers and with the init steps after it": (
        {
            "containers": [asks(cpu="1")],
            "initContainers": [
                asks(cpu="1500m"),
                {**asks(cpu="1"), "restartPolicy": "Always"},
                asks(cpu="1500m"),
            ],
        },
        {"cpu": 2500},
    ),
    "a GPU only in an init container is asked for": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(**{"nvidia.com/gpu": "2"})]},
        {"cpu": 1000, "nvidia.com/gpu": 2},
    ),
    "overhead is added": (
        {"containers": [asks(cpu="1")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
        {"cpu": 1250, "memory": 120 * Mi},
    ),
    "pod level replaces cpu, memory and hugepages, and nothing else": (
        {
            "containers": [asks(cpu="1", memory="1Mi", **{"nvidia.com/gpu": "4"})],
            "resources": {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}},
        },
        {"cpu": 3000, "memory": Mi, "hugepages-2Mi": 4 * Mi, "nvidia.com/gpu": 4},
    ),
    "pod level without a supported resource is ignored": (
        {"containers": [asks(cpu="1")], "resources": {"requests": {"nvidia.com/gpu": "9"}}},
        {"cpu": 1000},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_requests(name: str) -> None:
    spec, expected = CASES[name]
    assert pods.requests(pod(spec)) == expected


def running(
    spec_cpu: str,
    *,
    allocated: str = "",
    actuated: str = "",
    infeasible: bool = False,
    bound: bool = True,
) -> Pod:
    status: dict[str, Any] = {"name": "a"}
    if allocated:
        status["allocatedResources"] = {"cpu": allocated}
    if actuated:
        status["resources"] = {"requests": {"cpu": actuated}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return pod(
        {"nodeName": "n" if bound else None, "containers": [named("a", cpu=spec_cpu)]},
        {"containerStatuses": [status], "conditions": conditions if infeasible else []},
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (running("1"), 1000),
        (running("1", allocated="1", actuated="1"), 1000),
        (running("1", allocated="2"), 2000),
        (running("1", allocated="1", actuated="3"), 3000),
        (running("4", allocated="1", actuated="2"), 4000),
        (running("4", allocated="1", actuated="2", infeasible=True), 2000),
        (running("4", infeasible=True), 0),
        (running("1", allocated="2", bound=False), 1000),
    ],
)
def test_a_bound_pod_counts_the_largest_of_spec_allocated_and_actuated(
    asked: Pod, expected: int
) -> None:
    assert pods.requests(asked).get("cpu", 0) == expected


def test_two_containers_are_compared_with_their_statuses_by_name() -> None:
    both = pod(
        {"nodeName": "n", "containers": [named("a", cpu="1"), named("b", cpu="2")]},
        {
            "containerStatuses": [
                {"name": "b", "allocatedResources": {"cpu": "2"}},
                {"name": "a", "allocatedResources": {"cpu": "4"}},
            ]
        },
    )
    assert pods.requests(both) == {"cpu": 6000}


def test_pod_level_status_counts_for_a_bound_pod() -> None:
    resized = pod(
        {
            "nodeName": "n",
            "containers": [named("a", cpu="1")],
            "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
        },
        {
            "allocatedResources": {"cpu": "3"},
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "5"}},
        },
    )
    assert pods.requests(resized) == {"cpu": 3000}
    assert pods.limits(resized) == {"cpu": 5000}


def test_limits_add_overhead_only_where_there_is_a_limit() -> None:
    limited = pod(
        {
            "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "8"}}}
            ],
            "overhead": {"cpu": "250m", "memory": "1Mi"},
        }
    )
    assert pods.limits(limited) == {"cpu": 1250, "nvidia.com/gpu": 8}


def test_equal_pods_share_one_answer() -> None:
    first = pod({"containers": [asks(cpu="7", memory="9Mi")]})
    second = pod({"containers": [asks(cpu="7", memory="9Mi")]})
    assert pods.requests(first) is pods.requests(second)


def test_host_ports_of_containers_and_sidecars_only() -> None:
    port = {"containerPort": 1, "hostPort": 80}
    found = pods.host_ports(
        pod(
            {
                "containers": [{"name": "a", "ports": [port, {"containerPort": 2}]}],
                "initContainers": [
                    {"name": "a", "ports": [{"containerPort": 1, "hostPort": 81}]},
                    {
                        "name": "s",
                        "restartPolicy": "Always",
                        "ports": [
                            {
                                "containerPort": 1,
                                "hostPort": 82,
                                "hostIP": "10.0.0.1",
                                "protocol": "UDP",
                            }
                        ],
                    },
                ],
            }
        )
    )
    assert found == (("10.0.0.1", "UDP", 82), ("0.0.0.0", "TCP", 80))
