"""GPUs of pools, and their past: the mean of a window in which what is recent weighs more."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    Container,
    Generic,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from kubectl_gpuadmit.policy import Policy, Pool
from kubectl_gpuadmit.policy.usage import (
    Sample,
    Usage,
    decayed_percent,
    devices,
    history,
    pool_usage,
)

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
POLICY = Policy(pools=(Pool("inf", {"pool": "inf"}),))


def sample(seconds_ago: float, held: int) -> Sample:
    return Sample(NOW - dt.timedelta(seconds=seconds_ago), Usage(held, 100))


def mean(*samples: Sample, half_life: dt.timedelta = MINUTE) -> float | None:
    return decayed_percent(samples, now=NOW, window=2 * MINUTE, half_life=half_life)


def test_a_minute_ago_weighs_half_of_now() -> None:
    # older minute 1/2..1/4 of the weight, younger 1..1/2: integrals stand 1 to 2
    assert mean(sample(120, 0), sample(60, 90)) == pytest.approx(60)
    assert mean(sample(120, 90), sample(60, 0)) == pytest.approx(30)


def test_without_decay_it_is_the_plain_mean_over_time() -> None:
    assert mean(sample(500, 10), sample(90, 50), half_life=dt.timedelta(0)) == pytest.approx(40)


def test_a_past_that_does_not_reach_back_is_not_known() -> None:
    assert mean() is None
    assert mean(sample(119, 100)) is None


@given(
    st.lists(st.tuples(st.floats(0, 600), st.integers(0, 100)), max_size=8),
    st.integers(0, 100),
    st.integers(0, 600),
)
def test_the_mean_lies_within_its_samples(
    extra: list[tuple[float, int]], first: int, half_life: int
) -> None:
    samples = sorted([sample(700, first), *(sample(ago, held) for ago, held in extra)])
    found = mean(*samples, half_life=dt.timedelta(seconds=half_life))
    assert found is not None
    held = [one.usage.held for one in samples]
    assert min(held) - 1e-6 <= found <= max(held) + 1e-6


def pod(name: str, node: str, resources: dict[str, int]) -> Pod:
    container = Container(name="c", resources=ResourceRequirements(requests=dict(resources)))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="n"),
        spec=PodSpec(nodeName=node, containers=(container,)),
    )


def node(name: str, pool: str, gpus: int, *, cordoned: bool = False) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={"pool": pool}),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(allocatable={"nvidia.com/gpu": gpus, "cpu": 8}),
    )


def test_a_cordoned_node_counts_with_what_is_held_on_it() -> None:
    cluster = Cluster.of(
        [
            node("a", "inf", 8),
            node("b", "inf", 8, cordoned=True),
            node("c", "other", 8),
            pod("p", "a", {"nvidia.com/gpu": 2}),
            pod("q", "b", {"nvidia.com/gpu": 3, "cpu": 1}),
        ]
    )
    assert pool_usage(cluster, POLICY, "inf") == Usage(5, 11)
    assert pool_usage(cluster, POLICY, "") == Usage(5, 19)
    assert pool_usage(cluster, POLICY, "inf").free == 6


def test_shares_of_memory_are_no_devices() -> None:
    amounts = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000, "nvidia.com/mig-1g.5gb": 2}
    assert devices(amounts, POLICY.gpu_patterns) == 3


def test_a_sample_that_cannot_be_read_is_passed_over() -> None:
    samples = [
        {"time": "2026-11-29T11:59:00Z", "pool": "inf", "held": 2, "allocatable": 8},
        {"time": "2026-11-29T11:58:00Z", "pool": "inf", "held": 1, "allocatable": 8},
        {"time": "yesterday", "pool": "inf", "held": 1, "allocatable": 8},
        {"time": "2026-11-29T11:57:00Z", "pool": "inf", "held": "1", "allocatable": 8},
        {"time": "2026-11-29T11:56:00Z", "pool": "other", "held": 1, "allocatable": 8},
        "nonsense",
    ]
    objects = [
        Generic(
            metadata=ObjectMeta(name=name),
            realKind="GpuPoolHistory",
            document={"samples": listed},
        )
        for name, listed in (("a", samples), ("b", None))
    ]
    assert history(Cluster.of(objects), "inf") == [
        Sample(NOW - 2 * MINUTE, Usage(1, 8)),
        Sample(NOW - MINUTE, Usage(2, 8)),
    ]
