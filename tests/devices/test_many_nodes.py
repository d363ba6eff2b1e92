"""Nodes that are alike are searched once, and what was tried in vain is not tried again; neither
shows in what is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import allocator, normal
from kubectl_gpuadmit.devices.allocator import Allocator, State
from kubectl_gpuadmit.devices.allocator.search import Search
from kubectl_gpuadmit.devices.inventory import Inventory, published
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.dra import ResourceClaim
from kubectl_gpuadmit.kube.objects import KubeObject
from tests.devices.build import DRIVER, claim, device_class, exactly, gpu, held, slices
from tests.placement.build import Json, node

MINE = f'device.attributes["{DRIVER}"].uuid == "GPU-n7-1"'


def written(number: int, **more: Any) -> Json:
    """A slice as it comes out of a cluster: of two GPUs, each with a UUID of its own."""
    home = f"n{number}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{home}-a"},
        "spec": {
            "driver": DRIVER,
            "nodeName": home,
            "pool": {"name": home, "generation": 1, "resourceSliceCount": 1},
            "devices": [gpu(f"gpu-{i}", uuid=f"GPU-{home}-{i}", **more) for i in range(2)],
        },
    }


def alike(count: int, *others: KubeObject) -> Cluster:
    listed = {"apiVersion": "v1", "kind": "List", "items": [written(n) for n in range(count)]}
    found, known = decode_bulk(json.dumps(listed).encode(), "slices.json")
    nodes = [node(f"n{n}") for n in range(count)]
    return Cluster.of([*nodes, *found, device_class(), *others], known)


def answers(given: Cluster, *claims: KubeObject) -> dict[str, list[str] | None]:
    """Node -> devices of the claims, in order; None where it cannot serve them."""
    features = allocator.of("1.37")
    taken = [c.allocation for c in Inventory.of(given).claims.values() if c.allocation]
    asked = [normal.of_claim(one) for one in claims if isinstance(one, ResourceClaim)]
    stock = allocator.stock(published(given), kubernetes="1.37")
    asking = Allocator(stock, State.of(taken, features))
    told: dict[str, list[str] | None] = {}
    for info in given.nodes.values():
        found = asking.allocate(info, asked)
        told[info.name] = found and [
            str(one.device) for allocation in found.allocations for one in allocation.devices
        ]
    return told


def other(home: str) -> KubeObject:
    """A claim that has the first GPU of a node."""
    return claim(f"on-{home}", exactly(), status=held("gpu-0", pool=home))


def test_each_of_many_alike_nodes_gives_its_own_devices() -> None:
    assert answers(alike(9), claim("c", exactly(count=2))) == {
        f"n{n}": [f"{DRIVER}/n{n}/gpu-0", f"{DRIVER}/n{n}/gpu-1"] for n in range(9)
    }


def test_alike_nodes_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    original = Search.run

    def counting(self: Search) -> Any:
        searched.append(self)
        return original(self)

    monkeypatch.setattr(Search, "run", counting)
    answers(alike(30, other("n3"), other("n8")), claim("c", exactly()))
    assert len(searched) == 2, "nodes with both GPUs free, nodes without the first"


def test_a_node_with_a_device_in_use_is_not_like_the_others() -> None:
    told = answers(alike(9, other("n4")), claim("c", exactly(count=2)))
    assert [name for name, found in told.items() if found is None] == ["n4"]


def test_a_selector_that_reads_what_names_a_device_is_asked_on_every_node() -> None:
    told = answers(alike(9), claim("c", exactly("gpu", MINE)))
    assert {name: found for name, found in told.items() if found} == {"n7": [f"{DRIVER}/n7/gpu-1"]}


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_a_constraint_over_what_names_a_device_sees_each_nodes_own(kind: str) -> None:
    asked = claim("c", exactly(count=2), constraints=[{kind: f"{DRIVER}/uuid"}])
    told = answers(alike(4), asked)
    assert [found is None for found in told.values()] == [kind == "matchAttribute"] * 4


def powered(count: int, *, power: int) -> list[KubeObject]:
    """Devices that all draw on one counter, and each on one of its own: no two are of a kind."""
    devices = [
        gpu(
            f"gpu-{n:02}",
            consumesCounters=[
                {"counterSet": "power", "counters": {"watts": {"value": "1"}}},
                {"counterSet": f"own-{n}", "counters": {"slots": {"value": "1"}}},
            ],
        )
        for n in range(count)
    ]
    sets = [{"name": "power", "counters": {"watts": {"value": str(power)}}}]
    sets += [{"name": f"own-{n}", "counters": {"slots": {"value": "1"}}} for n in range(count)]
    return [
        slices("n0", *devices, count=2),
        slices("n0", name="n0-b", count=2, nodeName="n0", sharedCounters=sets),
    ]


def many_requests(*counts: int) -> KubeObject:
    return claim("c", *(exactly(f"r{number}", count=count) for number, count in enumerate(counts)))


def test_a_search_ends_where_counters_leave_too_little_for_the_rest() -> None:
    given = Cluster.of([node("n0"), device_class(), *powered(24, power=16)])
    assert answers(given, many_requests(8, 8, 1)) == {"n0": None}
    told = answers(given, many_requests(8, 7, 1))["n0"]
    assert told == [f"{DRIVER}/n0/gpu-{n:02}" for n in range(16)]
