"""The kubelet's gate by hand on small machines; the whole of it is compared with the kubelet's own
code in tests/differential (family ``numa``)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.placement.kubelet import asks, settings
from kubectl_gpuadmit.placement.kubelet.gate import Gate, Outcome
from kubectl_gpuadmit.placement.kubelet.hints import TooMany, subsets
from kubectl_gpuadmit.placement.kubelet.machine import (
    Core,
    Device,
    Machine,
    Zone,
    ids,
    listed,
    parsed,
)
from kubectl_gpuadmit.placement.kubelet.merge import merged
from kubectl_gpuadmit.placement.kubelet.settings import Refused, Settings

GPU = "nvidia.com/gpu"
GI = 1 << 30
NO_LOCALITY = "Resources cannot be allocated with Topology locality"


def machine(zones: int = 2, *, cpus: int = 8, gpus: int = 2, memory: int = 8) -> Machine:
    """``gpus`` and ``cpus`` on each NUMA node; two hardware threads a core, (n, n + all/2)."""
    half = zones * cpus // 2
    return Machine(
        zones=tuple(
            Zone(
                zone,
                tuple(
                    Core((n, n + half), zone)
                    for n in range(zone * cpus // 2, (zone + 1) * cpus // 2)
                ),
                {"memory": memory * GI},
                tuple(10 if other == zone else 20 for other in range(zones)),
            )
            for zone in range(zones)
        ),
        sockets=zones,
        devices={GPU: tuple(Device(f"g{n}", (n // gpus,)) for n in range(zones * gpus))},
    )


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> asks.PodAsk:
    """Containers as limits, ``c0`` … in order; a limit is the request."""
    made = [{"name": f"c{n}", "resources": {"limits": c}} for n, c in enumerate(containers)]
    document = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"containers": made, **spec},
    }
    return asks.of(msgspec.convert(document, Pod))


def gpus(count: int, cpu: str = "2", memory: str = "1Gi") -> dict[str, Any]:
    return {GPU: str(count), "cpu": cpu, "memory": memory}


def single(**more: Any) -> Settings:
    return Settings(policy="single-numa-node", **more)


STATIC: dict[str, Any] = {"static_cpus": True, "reserved_count": 2}


def test_four_gpus_two_on_each_numa_node_are_refused_although_four_are_free() -> None:
    gate = Gate(machine(), single())
    assert gate.admit(pod("a", gpus(4))) == Outcome(
        False, "TopologyAffinityError", NO_LOCALITY, container="c0"
    )
    assert gate.admit(pod("b", gpus(2))).devices == {"c0": {GPU: frozenset({"g0", "g1"})}}


def test_the_pod_scope_wants_all_containers_on_one_numa_node() -> None:
    two = pod("a", gpus(1), gpus(2))
    by_container = Gate(machine(), single())
    assert by_container.admit(two).devices == {
        "c0": {GPU: frozenset({"g0"})},
        "c1": {GPU: frozenset({"g2", "g3"})},
    }
    by_pod = Gate(machine(), single(scope="pod"))
    assert by_pod.admit(two) == Outcome(False, "TopologyAffinityError", NO_LOCALITY)


def test_restricted_takes_two_numa_nodes_only_where_one_could_never_do() -> None:
    gate = Gate(machine(), Settings(policy="restricted"))
    gate.admit(pod("one", gpus(1)))
    assert gate.admit(pod("three", gpus(3))).admitted  # of four: one NUMA node has but two
    gate.remove("three")
    gate.devices.hold("other", "c", GPU, ["g2"])
    assert not gate.admit(pod("two", gpus(2))).admitted  # one NUMA node could, were it free


def test_cpus_count_only_for_whole_cpus_of_guaranteed_pods() -> None:
    gate = Gate(machine(), single(**STATIC))
    assert not gate.admit(pod("pinned", gpus(1, cpu="9"))).admitted  # 6 and 8 are free
    assert gate.admit(pod("fraction", gpus(1, cpu="8500m"))).admitted
    burstable = {"requests": {"cpu": "1"}, "limits": gpus(1, cpu="9")}
    document = {
        "kind": "Pod",
        "metadata": {"name": "b", "namespace": "d", "uid": "b"},
        "spec": {"containers": [{"name": "c", "resources": burstable}]},
    }
    assert gate.admit(asks.of(msgspec.convert(document, Pod))).admitted


def test_reserved_cpus_are_taken_from_the_lowest_cores_and_never_given_away() -> None:
    gate = Gate(machine(), single(**STATIC))
    assert gate.cpus is not None
    assert listed(gate.cpus.reserved) == "0,8"
    outcome = gate.admit(pod("a", gpus(1, cpu="6")))
    assert {name: listed(held) for name, held in outcome.cpus.items()} == {"c0": "1-3,9-11"}


def test_an_init_container_hands_its_devices_on_and_a_sidecar_keeps_its_own() -> None:
    init = {"name": "i", "resources": {"limits": gpus(2)}}
    sidecar = {**init, "name": "s", "restartPolicy": "Always"}
    gate = Gate(machine(), single(**STATIC))
    reused = gate.admit(pod("a", gpus(2), initContainers=[init]))
    assert reused.devices["c0"] == reused.devices["i"] == {GPU: frozenset({"g0", "g1"})}
    gate = Gate(machine(), single(**STATIC))
    kept = gate.admit(pod("b", gpus(2), initContainers=[sidecar]))
    assert kept.devices == {
        "s": {GPU: frozenset({"g0", "g1"})},
        "c0": {GPU: frozenset({"g2", "g3"})},
    }


def test_an_ended_pod_gives_back_all_that_it_had() -> None:
    gate = Gate(
        machine(), single(**STATIC, static_memory=True, reserved_memory={0: {"memory": GI}})
    )
    assert gate.admit(pod("a", gpus(2, memory="7Gi"))).admitted
    assert gate.admit(pod("b", gpus(2, memory="7Gi"))).admitted
    assert not gate.admit(pod("c", gpus(2))).admitted
    gate.remove("a")
    again = gate.admit(pod("d", gpus(2, memory="7Gi")))
    assert (again.devices, again.memory) == (
        {"c0": {GPU: frozenset({"g0", "g1"})}},
        {"c0": {"memory": 0b01}},
    )


def test_a_pod_whose_memory_spans_numa_nodes_keeps_single_ones_away() -> None:
    reserved = {0: {"memory": GI}}
    policy = Settings(policy="best-effort", static_memory=True, reserved_memory=reserved)
    gate = Gate(machine(), policy)
    assert gate.admit(pod("wide", {"cpu": "1", "memory": "12Gi"})).memory == {
        "c0": {"memory": 0b11}
    }
    assert gate.admit(pod("narrow", {"cpu": "1", "memory": "2Gi"})).memory == {
        "c0": {"memory": 0b11}
    }


def test_full_cores_only_refuses_odd_cpus_by_its_own_reason() -> None:
    options = frozenset({settings.FULL_CORES})
    gate = Gate(machine(), single(**STATIC, cpu_options=options))
    assert gate.admit(pod("odd", gpus(1, cpu="3"))) == Outcome(
        False,
        "SMTAlignmentError",
        "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
        container="c0",
    )


def test_pod_level_resources_are_not_aligned_unless_their_gate_is_on() -> None:
    amounts = {"cpu": "9", "memory": "1Gi"}
    level = pod("a", {GPU: "1"}, resources={"limits": amounts, "requests": amounts})
    assert Gate(machine(), single(**STATIC, scope="pod")).admit(level).admitted
    on = Gate(machine(), single(**STATIC, scope="pod", pod_level=True))
    assert on.admit(level) == Outcome(
        False,
        "TopologyAffinityError",
        "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager",
    )


def test_a_choice_among_devices_of_different_numa_nodes_is_told_as_unsure() -> None:
    gate = Gate(machine(), Settings(policy="none"))
    assert gate.admit(pod("a", gpus(4))).admitted
    assert not gate.unsure  # all of them: nothing to choose
    gate = Gate(machine(), Settings(policy="none"))
    gate.admit(pod("a", gpus(1)))
    assert gate.unsure


def test_the_closest_numa_nodes_win_where_that_is_asked_for() -> None:
    distances = {0: (10, 32, 20), 1: (32, 10, 32), 2: (20, 32, 10)}
    wide = [(0b011, True), (0b101, True), (0b110, True)]
    narrowest = Settings(policy="restricted")
    closest = Settings(policy="restricted", prefer_closest=True)
    assert merged(narrowest, (0, 1, 2), [wide], distances) == ((0b011, True), True)
    assert merged(closest, (0, 1, 2), [wide], distances) == ((0b101, True), True)


def test_best_effort_takes_as_many_numa_nodes_as_the_neediest_resource_needs() -> None:
    best_effort = Settings(policy="best-effort")
    hints = [[(0b01, True)], [(0b10, True), (0b11, False)]]
    assert merged(best_effort, (0, 1), hints, {}) == ((0b01, False), True)
    assert merged(best_effort, (0, 1), [[]], {}) == ((0b11, False), True)


@pytest.mark.parametrize(
    ("policy", "options", "nodes", "words"),
    [
        ("restricted", {}, 9, "unsupported on machines with more than 8 NUMA Nodes"),
        ("single", {}, 2, 'unknown policy: "single"'),
        (
            "restricted",
            {"max-allowable-numa-nodes": "4"},
            2,
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
        ("restricted", {"x": "true"}, 2, 'unknown Topology Manager Policy option: "x"'),
    ],
)
def test_settings_with_which_no_kubelet_starts_are_refused_in_its_words(
    policy: str, options: dict[str, str], nodes: int, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        settings.topology(policy, "container", options, numa_nodes=nodes)
    assert str(refused.value) == words


def test_more_numa_nodes_than_can_be_enumerated_are_an_error_and_not_a_wait() -> None:
    assert len(subsets(tuple(range(8)))) == 255
    with pytest.raises(TooMany):
        subsets(tuple(range(36)))


@pytest.mark.parametrize("text", ["", "0", "0-3", "0-3,8", "1,3,5-7"])
def test_a_list_of_cpus_is_read_as_it_is_printed(text: str) -> None:
    assert listed(parsed(text)) == text
    assert sorted(ids(parsed(text))) == list(ids(parsed(text)))


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "99999999"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|is no range of CPU IDs"):
        parsed(text)
