"""What a waiting pod waits for: ends that are known, preemption, and nodes that come back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.place import place
from kubectl_gpuadmit.placement.waiting import clock, end_of
from tests.placement.build import KNOWN, NOW, cluster, decoded, node, pod

TTL = "gpu-admit.io/ttl"


def waits(given: Cluster, asking: Pod) -> tuple[str, ...]:
    answer = place(given, asking, 1, now=NOW, ttl_annotations=(TTL,))
    assert answer.placement == "waits"
    return answer.waits_for


def runs(name: str, on: str, gpus: int = 8, *, ttl: str = "", **more: Any) -> Pod:
    meta = {"creationTimestamp": "2026-11-29T10:20:00Z"}
    annotations = {"annotations": {TTL: ttl}} if ttl else {}
    return pod(name, gpus, on=on, meta=meta | annotations | more.pop("meta", {}), **more)


def job(name: str, ttl: str) -> KubeObject:
    return decoded(
        {
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {TTL: ttl},
                "creationTimestamp": "2026-11-29T09:00:00Z",
            },
        }
    )


OWNED = {"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]}
STARTED = {"startTime": "2026-11-29T11:30:00Z"}


def at(hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2026, 11, 29, hour, minute, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        (runs("p", "a"), None),
        (runs("p", "a", ttl="4h"), (at(14, 20), "TTL")),
        (runs("p", "a", ttl="2026-11-29T18:00:00Z"), (at(18), "TTL")),
        (runs("p", "a", ttl="soon"), None),
        (runs("p", "a", activeDeadlineSeconds=5400, status=STARTED), (at(13), "deadline")),
        (runs("p", "a", activeDeadlineSeconds=5400), None),
        (
            runs("p", "a", ttl="4h", activeDeadlineSeconds=5400, status=STARTED),
            (at(13), "deadline"),
        ),
        (
            runs("p", "a", meta={"deletionTimestamp": "2026-11-29T12:00:30Z"}),
            (at(12) + dt.timedelta(seconds=30), "terminating"),
        ),
        (runs("p", "a", meta=OWNED), (at(15), "TTL")),
    ],
)
def test_when_a_pod_ends(running: Pod, expected: tuple[dt.datetime, str] | None) -> None:
    assert end_of(running, cluster(job("train", "6h")), (TTL,)) == expected


def test_the_soonest_node_comes_first() -> None:
    given = cluster(
        node("a"),
        node("b"),
        node("c"),
        runs("x", "a"),
        runs("y", "b", ttl="4h"),
        runs("z", "c", ttl="3h"),
    )
    assert waits(given, pod(gpus=8)) == (
        "8 nvidia.com/gpu on c free when z ends (TTL 13:20 UTC)",
        "8 nvidia.com/gpu on b free when y ends (TTL 14:20 UTC)",
        "8 nvidia.com/gpu on a free when x ends",
    )


def test_only_as_many_pods_as_need_to_end_are_named() -> None:
    given = cluster(
        node("a"),
        runs("small", "a", 1, ttl="2h"),
        runs("middle", "a", 3, ttl="3h"),
        runs("large", "a", 4, ttl="4h"),
    )
    assert waits(given, pod(gpus=3)) == (
        "3 nvidia.com/gpu on a free when middle ends (TTL 13:20 UTC)",
    )
    assert waits(given, pod(gpus=5)) == (
        "5 nvidia.com/gpu on a free when middle and large end (TTL 14:20 UTC)",
    )


def test_preemption_is_told_beside_the_end() -> None:
    given = cluster(node("a"), runs("train-x", "a", ttl="4h", priority=100))
    assert waits(given, pod(gpus=8, priority=1000)) == (
        "8 nvidia.com/gpu on a free when train-x ends (TTL 14:20 UTC), or now by preempting it "
        "(priority 100 < 1000, PDB allows)",
    )


def test_a_victim_that_is_going_already_is_only_waited_for() -> None:
    going = {"deletionTimestamp": "2026-11-29T12:00:30Z"}
    given = cluster(node("a"), runs("train-x", "a", priority=100, meta=going))
    assert waits(given, pod(gpus=8, priority=1000)) == (
        "8 nvidia.com/gpu on a free when train-x ends (terminating)",
    )


def test_preemption_on_a_node_whose_pods_name_no_end() -> None:
    given = cluster(
        node("a"),
        *(runs(f"p{i}", "a", 2, priority=100 + i, namespace="other") for i in range(4)),
        known=tuple(k for k in KNOWN if k != "PodDisruptionBudget"),
    )
    assert waits(given, pod(gpus=8, priority=1000)) == (
        "8 nvidia.com/gpu on a free when other/p0, other/p1 and 2 more end, or now by preempting "
        "them (priority 103 < 1000, PDBs are not in the source)",
    )


def test_pods_of_daemonsets_are_not_waited_for() -> None:
    daemon = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
    given = cluster(node("a"), node("b"), runs("d", "a", meta=daemon), runs("x", "b"))
    assert waits(given, pod(gpus=8)) == ("8 nvidia.com/gpu on b free when x ends",)


def test_room_for_what_is_not_a_device() -> None:
    given = cluster(node("a"), pod("p", on="a", asks={"cpu": "60"}))
    assert waits(given, pod(asks={"cpu": "8"})) == ("room on a free when p ends",)


def test_nodes_that_come_back() -> None:
    unready = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]
    given = cluster(node("a", cordoned=True), node("b", taints=unready), node("c", taints=unready))
    assert waits(given, pod(gpus=8)) == (
        "a takes it once uncordoned",
        "2 nodes, first b, take it once the node is Ready",
    )


def test_a_full_node_that_is_cordoned_too_comes_last() -> None:
    given = cluster(node("a", cordoned=True), node("b"), runs("x", "a", ttl="2h"), runs("y", "b"))
    assert waits(given, pod(gpus=8)) == (
        "8 nvidia.com/gpu on b free when y ends",
        "8 nvidia.com/gpu on a free when x ends (TTL 12:20 UTC), once uncordoned",
    )


def test_the_clock_names_the_day_when_it_is_another() -> None:
    assert clock(at(14, 20), NOW) == "14:20 UTC"
    assert clock(at(14, 20) + dt.timedelta(days=1), NOW) == "2026-11-30 14:20 UTC"
