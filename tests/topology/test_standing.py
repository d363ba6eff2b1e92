"""Which GPUs are free: what a map, the pods on the node and the device plugin say together."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from kubectl_gpuadmit.topology.maps import node_map
from kubectl_gpuadmit.topology.standing import Standing, joined, standing
from tests.topology.objects import cluster, node, pod, rows, topology

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
PAIRS = ["X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"]


def stands(*documents: dict[str, Any], allocatable: int | None = None) -> Standing:
    known = cluster(node(), *documents)
    found = node_map(known, "a", NOW)
    assert found
    return standing(found, known.nodes["a"].pods, allocatable)


def test_a_holder_whose_pod_is_gone_holds_nothing() -> None:
    now = stands(topology(links=rows(4), held={0: "x", 1: "gone"}), pod("x"))
    assert (now.free, sorted(now.held), now.loose) == ((1, 2, 3), [0], 0)


def test_gpus_that_nobody_names_are_loose() -> None:
    now = stands(topology(links=rows(4), held={0: "x"}), pod("x"), pod("new", gpus=2))
    assert (now.free, now.loose, now.free_count) == ((1, 2, 3), 2, 1)


def test_without_holders_all_that_is_booked_is_loose() -> None:
    now = stands(topology(links=rows(4)), pod("x", gpus=3))
    assert (now.free, now.loose, now.free_count) == ((0, 1, 2, 3), 3, 1)


def test_what_the_device_plugin_does_not_offer_is_loose_too() -> None:
    assert stands(topology(links=rows(4), held={}), allocatable=3).free_count == 3


def test_residue_and_a_lost_gpu_are_not_free() -> None:
    gpus = {1: {"residueMiB": 3174}, 2: {"lost": True}}
    now = stands(topology(links=rows(4), held={}, gpus=gpus), allocatable=3)
    assert (now.free, now.unfree, now.loose) == (
        (0, 3),
        {1: "3.1 GiB in use by nobody", 2: "lost"},
        0,
    )


def test_a_process_past_any_allocation_holds_its_gpu() -> None:
    holders = [{"device": "GPU-a-1", "via": "process", "pid": 7, "usedMiB": 900}]
    assert stands(topology(links=rows(2), holders=holders)).free == (0,)


@pytest.mark.parametrize(
    ("held", "pods", "told"),
    [
        ({}, (), (2, 2)),
        ({0: "x"}, (pod("x"),), (1, 1)),
        (None, (pod("x", gpus=1),), (1, 1)),
        (None, (pod("x", gpus=2),), (0, 1)),
        ({0: "x", 2: "y"}, (pod("x"), pod("y")), (0, 0)),
    ],
)
def test_sets_that_are_free_for_certain_and_at_best(
    held: dict[int, str] | None, pods: tuple[dict[str, Any], ...], told: tuple[int, int]
) -> None:
    known = cluster(node(), topology(links=PAIRS, held=held), *pods)
    found = node_map(known, "a", NOW)
    assert found
    assert joined(found, standing(found, known.nodes["a"].pods, None), 2) == told
