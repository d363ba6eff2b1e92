"""The allocator's choices, one feature each. Beside the conformance family ``dra``, which asks
Kubernetes itself, these say what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.devices import allocator, normal
from kubectl_gpuadmit.devices.allocator import Allocator, Fatal, NodeRefused, State
from kubectl_gpuadmit.devices.inventory import Inventory, published
from kubectl_gpuadmit.devices.model import Allocation
from kubectl_gpuadmit.kube.dra import ResourceClaim
from kubectl_gpuadmit.kube.objects import KubeObject
from tests.devices.build import DRIVER, claim, device_class, exactly, gpu, held, slices
from tests.placement.build import Json, cluster, decoded, node

A100 = f'device.attributes["{DRIVER}"].model == "a100"'
H100 = f'device.attributes["{DRIVER}"].model == "h100"'


def allocations(
    given: Cluster, *claims: KubeObject, on: str = "a", kubernetes: str = "1.37"
) -> tuple[Allocation, ...] | None:
    """What these claims get on a node, beside what the cluster's own claims have."""
    features = allocator.of(kubernetes)
    taken = [c.allocation for c in Inventory.of(given).claims.values() if c.allocation]
    asked = [normal.of_claim(one) for one in claims if isinstance(one, ResourceClaim)]
    stock = allocator.stock(published(given), kubernetes=kubernetes)
    info: NodeInfo = given.nodes[on]
    found = Allocator(stock, State.of(taken, features)).allocate(info, asked)
    return None if found is None else found.allocations


def names(found: tuple[Allocation, ...] | None) -> list[list[str]] | None:
    """Devices per claim."""
    if found is None:
        return None
    return [[one.device.device for one in allocation.devices] for allocation in found]


def machine(*devices: Json, **spec: Any) -> Cluster:
    return cluster(node("a"), device_class(), slices("a", *devices, **spec))


GPUS = [gpu(f"gpu-{i}", model="a100" if i < 2 else "h100", numa=i % 2, index=i) for i in range(4)]


def test_the_first_devices_that_match_are_taken_in_slice_order() -> None:
    given = machine(*GPUS)
    assert names(allocations(given, claim("c", exactly("gpu", H100), exactly("more")))) == [
        ["gpu-2", "gpu-0"]
    ]
    by_name = cluster(
        node("a"),
        device_class(),
        slices("a", gpu("z"), name="a-1", count=2),
        slices("a", gpu("y"), name="a-0", count=2),
    )
    assert names(allocations(by_name, claim())) == [["y"]]


def test_an_earlier_choice_is_taken_back_where_a_later_request_needs_it() -> None:
    given = machine(*GPUS[1:3])
    wanted = claim("c", exactly("any"), exactly("a100", A100))
    assert names(allocations(given, wanted)) == [["gpu-2", "gpu-1"]]


def test_claims_of_one_pod_share_the_devices_of_the_node() -> None:
    given = machine(*GPUS)
    assert names(allocations(given, claim("c", exactly(count=3)), claim("d"))) == [
        ["gpu-0", "gpu-1", "gpu-2"],
        ["gpu-3"],
    ]
    assert allocations(given, claim("c", exactly(count=3)), claim("d", exactly(count=2))) is None


def test_a_constraint_holds_over_the_requests_that_it_names() -> None:
    given = machine(*GPUS)
    numa = f"{DRIVER}/numa"
    match = claim("c", exactly(count=2), constraints=[{"matchAttribute": numa}])
    assert names(allocations(given, match)) == [["gpu-0", "gpu-2"]]
    distinct = claim("c", exactly(count=2), constraints=[{"distinctAttribute": numa}])
    assert names(allocations(given, distinct)) == [["gpu-0", "gpu-1"]]
    named = claim(
        "c",
        exactly("x"),
        exactly("y", count=2),
        constraints=[{"matchAttribute": numa, "requests": ["y"]}],
    )
    assert names(allocations(given, named)) == [["gpu-0", "gpu-1", "gpu-3"]]
    absent = claim("c", constraints=[{"matchAttribute": f"{DRIVER}/none"}])
    assert allocations(given, absent) is None


def test_before_1_37_only_the_last_device_of_a_request_has_to_differ() -> None:
    given = machine(*(gpu(f"gpu-{i}", numa=i % 2) for i in range(4)))
    distinct = claim("c", exactly(count=3), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    assert allocations(given, distinct) is None
    assert names(allocations(given, distinct, kubernetes="1.36")) == [["gpu-0", "gpu-1", "gpu-2"]]


def test_all_takes_every_device_and_at_least_one() -> None:
    given = machine(*GPUS)
    every = exactly("gpu", A100, allocationMode="All")
    assert names(allocations(given, claim("c", every))) == [["gpu-0", "gpu-1"]]
    none = exactly("gpu", f'device.attributes["{DRIVER}"].model == "l4"', allocationMode="All")
    assert allocations(given, claim("c", none)) is None
    given.apply(claim("other", status=held("gpu-1")))
    assert allocations(given, claim("c", every)) is None
    broken = claim("c", every, constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    with pytest.raises(Fatal, match="because a claim constraint would not be satisfied"):
        allocations(machine(*GPUS), broken)


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    wanted = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "two", "deviceClassName": "gpu", "count": 3, "selectors": [_cel(H100)]},
            {"name": "one", "deviceClassName": "gpu", "selectors": [_cel(A100)]},
        ],
    }
    found = allocations(machine(*GPUS), claim("c", wanted))
    assert found is not None
    assert [(one.request, one.device.device) for one in found[0].devices] == [("gpu/one", "gpu-0")]


def _cel(expression: str) -> Json:
    return {"cel": {"expression": expression}}


def parts() -> Cluster:
    """A GPU that can be had whole or in two halves."""
    whole = {"counterSet": "set", "counters": {"slices": {"value": "2"}}}
    half = {"counterSet": "set", "counters": {"slices": {"value": "1"}}}
    devices = [
        gpu("gpu-0", consumesCounters=[whole]),
        gpu("half-0", consumesCounters=[half]),
        gpu("half-1", consumesCounters=[half]),
    ]
    counters = [{"name": "set", "counters": {"slices": {"value": "2"}}}]
    return cluster(
        node("a"),
        device_class(),
        slices("a", *devices, count=2),
        slices("a", name="a-b", count=2, nodeName="a", sharedCounters=counters),
    )


def test_partitions_and_the_whole_exclude_each_other() -> None:
    given = parts()
    assert names(allocations(given, claim())) == [["gpu-0"]]
    assert names(allocations(given, claim("c", exactly(count=2)))) == [["half-0", "half-1"]]
    assert allocations(given, claim("c", exactly(count=3))) is None
    given.apply(claim("other", status=held("half-0")))
    assert names(allocations(given, claim())) == [["half-1"]]
    assert allocations(parts(), claim(), kubernetes="1.35") is None


def test_shares_of_a_device_are_given_out_until_its_capacity_is_used_up() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    shared = gpu("gpu-0", allowMultipleAllocations=True)
    shared["allowMultipleAllocations"] = True
    del shared["attributes"]["allowMultipleAllocations"]
    shared["capacity"] = {"memory": {"value": "4Gi", "requestPolicy": policy}}
    given = machine(shared)
    asks = exactly("gpu", capacity={"requests": {"memory": "1500Mi"}})
    found = allocations(given, claim("c", asks), claim("d", asks))
    assert found is not None
    assert [
        {name: str(amount) for name, amount in (one.consumed or {}).items()}
        for allocation in found
        for one in allocation.devices
    ] == [{"memory": "2Gi"}, {"memory": "2Gi"}]
    assert allocations(given, claim("c", asks), claim("d", asks), claim("e")) is None
    unknown = exactly("gpu", capacity={"requests": {"bandwidth": "1"}})
    assert allocations(given, claim("c", unknown)) is None


def test_taints_keep_devices_from_those_who_do_not_tolerate_them() -> None:
    def tainted(effect: str) -> Json:
        return gpu("gpu-0", taints=[{"key": "lost", "value": "1", "effect": effect}])

    tolerating = exactly(tolerations=[{"key": "lost", "operator": "Exists"}])
    for effect in ("NoSchedule", "NoExecute"):
        assert allocations(machine(tainted(effect)), claim()) is None
        assert names(allocations(machine(tainted(effect)), claim("c", tolerating))) == [["gpu-0"]]
        assert names(allocations(machine(tainted(effect)), claim(), kubernetes="1.35"))
    assert names(allocations(machine(tainted("None")), claim())) == [["gpu-0"]]


def test_a_taint_rule_means_the_devices_that_it_names_and_none_without_a_selector() -> None:
    def rule(selector: Json | None) -> KubeObject:
        spec: Json = {"taint": {"key": "k", "effect": "NoSchedule"}}
        if selector is not None:
            spec["deviceSelector"] = selector
        return decoded({"kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec})

    for selector, left in (
        ({"device": "gpu-0"}, [["gpu-1"]]),
        ({"pool": "elsewhere"}, [["gpu-0"]]),
        (None, [["gpu-0"]]),
        ({}, None),
    ):
        given = machine(*GPUS[:2])
        given.apply(rule(selector))
        assert names(allocations(given, claim())) == left
        assert names(allocations(given, claim(), kubernetes="1.36")) == [["gpu-0"]]


def test_admin_access_looks_past_who_holds_a_device() -> None:
    given = machine(GPUS[0])
    given.apply(claim("other", status=held("gpu-0")))
    assert allocations(given, claim()) is None
    watching = claim("c", exactly(adminAccess=True))
    assert names(allocations(given, watching)) == [["gpu-0"]]
    assert names(allocations(machine(GPUS[0]), claim("d"), watching)) == [["gpu-0"], ["gpu-0"]]
    assert allocations(machine(GPUS[0]), watching, claim("d")) is None, "as the scheduler has it"


def test_a_pool_of_many_nodes_serves_those_that_it_selects() -> None:
    racks = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
        ]
    }
    given = cluster(
        node("a", labels={"rack": "r1"}),
        node("b", labels={"rack": "r2"}),
        device_class(),
        slices("net", gpu("gpu-0"), nodeSelector=racks),
    )
    found = allocations(given, claim())
    assert found is not None
    assert found[0].node_selector is not None
    ((term),) = found[0].node_selector.nodeSelectorTerms or ()
    assert [(e.key, e.values) for e in term.matchExpressions or ()] == [("rack", ("r1",))]
    assert allocations(given, claim(), on="b") is None


def test_what_a_driver_publishes_wrong_is_not_used() -> None:
    double = machine(gpu("gpu-0"), gpu("gpu-0"))
    with pytest.raises(NodeRefused, match="invalid resource pools were encountered"):
        allocations(double, claim())
    with pytest.raises(Fatal, match=r"asks for all devices, but resource pool .* is currently inv"):
        allocations(double, claim("c", exactly(allocationMode="All")))
    half = machine(gpu("gpu-0"), count=2)
    assert allocations(half, claim()) is None
    with pytest.raises(Fatal, match="is currently being updated"):
        allocations(half, claim("c", exactly(allocationMode="All")))
    old = machine(gpu("gpu-0"))
    old.apply(slices("a", gpu("gpu-9"), name="a-new", generation=2))
    assert names(allocations(old, claim())) == [["gpu-9"]]


def test_more_than_32_devices_for_one_claim_is_an_error() -> None:
    with pytest.raises(Fatal, match="adding 33 devices exceeds the claim limit of 32, with 0"):
        allocations(machine(*GPUS), claim("c", exactly(count=33)))


def test_equal_devices_are_not_tried_one_after_another_in_vain() -> None:
    """16 of 24 equal devices and one that nobody has: without symmetry 735,471 ways."""
    devices = [gpu(f"gpu-{i:02}", model="a100") for i in range(24)]
    given = machine(*devices)
    assert allocations(given, claim("c", exactly(count=16), exactly("x", H100))) is None


def test_a_selector_is_asked_once_for_devices_that_it_cannot_tell_apart() -> None:
    from kubectl_gpuadmit.devices.selection import Selectors

    given = machine(*(gpu(f"gpu-{i}", model="a100", uuid=f"u{i}") for i in range(9)))
    selectors = Selectors()
    devices = list(Inventory.of(given).devices.values())
    assert all(selectors.matches(A100, device) for device in devices)
    assert len(selectors._answers) == 1
    odd = 'device.attributes.exists(d, d == "x")'
    assert not any(selectors.matches(odd, device) for device in devices)
    assert len(selectors._answers) == 1 + 9
