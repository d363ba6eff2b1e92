"""The index over API objects: what forks share, and which changes undo which memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import (
    Container,
    KubeObject,
    Namespace,
    ObjectMeta,
    Pod,
    ResourceRequirements,
)
from kubectl_gpuadmit.kube.quantity import QuantityError
from kubectl_gpuadmit.placement.place import node_verdicts
from tests.placement.build import GPU, cluster, node, pod


def names(pods: Any) -> list[str]:
    return [p.name for p in pods]


def state(of: Cluster) -> dict[str, Any]:
    """Everything that the index answers, as plain data."""
    return {
        "nodes": {n: (names(i.pods), i.used, i.allocatable, i.taints) for n, i in of.nodes.items()},
        "avoiding": {n: sorted(names(i.avoiding)) for n, i in of.nodes.items() if i.avoiding},
        "failed": sorted(names(of.failed_pods())),
        "advertised": sorted(of.advertised()),
        "objects": {k: [(o.namespace, o.name) for o in of.every(k)] for k in of.kinds()},
        "namespaces": {ns: names(of.pods_in(ns)) for ns in ("default", "a", "b")},
        "nominated": {n: names(pods) for n, pods in of.nominated.items() if pods},
        "known": [k for k in ("Node", "Pod", "Namespace", "Event") if of.knows(k)],
    }


def waiting(name: str, *, nominated: str = "", namespace: str = "default") -> Pod:
    status = {"phase": "Pending", **({"nominatedNodeName": nominated} if nominated else {})}
    return pod(name, 1, namespace=namespace, status=status)


def ended(name: str, on: str, *, phase: str = "Succeeded") -> Pod:
    return pod(name, 1, on=on, status={"phase": phase})


def alone(name: str, on: str) -> Pod:
    """A pod that lets no other of its app onto its node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod(name, 1, on=on, affinity=anti)


OBJECTS = (
    node("n1"),
    node("n0"),
    pod("x", 2, on="n0"),
    pod("y", 1, on="n0", namespace="a"),
    pod("lost", 1, on="gone"),
    ended("done", "n0"),
    waiting("w", nominated="n1"),
    ended("crashed", "n0", phase="Failed"),
    alone("z", "n1"),
)


def test_the_index_holds_live_pods_by_node_and_all_pods_by_namespace() -> None:
    amounts = {"cpu": 64_000, "memory": 256 << 30, "pods": 110, GPU: 8}
    assert state(Cluster.of(OBJECTS, ["Event"])) == {
        "nodes": {
            "n0": (["x", "y"], {GPU: 3}, amounts, ()),
            "n1": (["z"], {GPU: 1}, amounts, ()),
        },
        "avoiding": {"n1": ["z"]},
        "failed": ["crashed"],
        "advertised": ["cpu", "memory", GPU, "pods"],
        "objects": {
            "Node": [("", "n1"), ("", "n0")],
            "Pod": [
                ("default", "x"),
                ("a", "y"),
                ("default", "lost"),
                ("default", "done"),
                ("default", "w"),
                ("default", "crashed"),
                ("default", "z"),
            ],
        },
        "namespaces": {"default": ["x", "lost", "done", "w", "crashed", "z"], "a": ["y"], "b": []},
        "nominated": {"n1": ["w"]},
        "known": ["Node", "Pod", "Event"],
    }


def test_a_fork_and_its_origin_do_not_see_each_others_changes() -> None:
    origin = Cluster.of(OBJECTS)
    before = state(origin)
    twin, sibling = origin.fork(), origin.fork()
    twin.apply(pod("new", 4, on="n1"))
    twin.remove("Pod", "default", "x")
    twin.apply(node("n2"))
    twin.apply(Namespace(metadata=ObjectMeta(name="b")))
    twin.remove("Pod", "default", "w")
    changed = state(twin)
    assert (state(origin), state(sibling)) == (before, before)
    origin.apply(pod("other", 1, on="n0"))
    origin.remove("Node", "", "n1")
    grandchild = twin.fork()
    grandchild.remove("Node", "", "n0")
    assert (state(twin), state(sibling)) == (changed, before)
    assert (list(origin.nodes), list(grandchild.nodes)) == (["n0"], ["n1", "n2"])


def test_applying_a_pod_again_moves_it_and_never_counts_it_twice() -> None:
    given_ = Cluster.of(OBJECTS)
    given_.apply(pod("x", 5, on="n1"))
    assert {n: (names(i.pods), i.used) for n, i in given_.nodes.items()} == {
        "n0": (["y"], {GPU: 1}),
        "n1": (["z", "x"], {GPU: 6}),
    }
    given_.apply(ended("x", "n1"))
    assert (names(given_.nodes["n1"].pods), names(given_.pods_in("default"))) == (
        ["z"],
        ["lost", "done", "w", "crashed", "z", "x"],
    )


def test_a_pod_that_waits_for_its_victims_leaves_the_nominated_when_it_goes_or_is_bound() -> None:
    given_ = Cluster.of(OBJECTS)
    given_.apply(waiting("v", nominated="n1"))
    assert names(given_.nominated["n1"]) == ["w", "v"]
    given_.remove("Pod", "default", "w")
    given_.apply(pod("v", 1, on="n1"))
    assert (names(given_.nominated["n1"]), names(given_.nodes["n1"].pods)) == ([], ["z", "v"])


def test_a_node_that_comes_later_finds_the_pods_that_name_it() -> None:
    given_ = Cluster.of(OBJECTS)
    given_.apply(node("gone"))
    assert list(given_.nodes) == ["gone", "n0", "n1"]
    assert names(given_.nodes["gone"].pods) == ["lost"]
    given_.apply(node("n0", 16))
    assert (names(given_.nodes["n0"].pods), given_.nodes["n0"].free(GPU)) == (["x", "y"], 13)
    given_.remove("Node", "", "n0")
    given_.apply(node("n0", 4))
    assert (names(given_.nodes["n0"].pods), given_.nodes["n0"].free(GPU)) == (["x", "y"], 1)


def test_a_quantity_that_cannot_be_read_is_told_to_who_asks_for_its_node_alone() -> None:
    odd = msgspec.convert({"requests": {"cpu": "much"}}, ResourceRequirements)
    sound = pod("odd", 1, on="n0")
    container = Container(name="c", resources=odd)
    spec = msgspec.structs.replace(sound.spec, containers=(container,))
    given_ = Cluster.of([node("n0"), node("n1"), msgspec.structs.replace(sound, spec=spec)])
    assert given_.nodes["n1"].used == {}
    with pytest.raises(QuantityError, match="'much' is not a quantity"):
        _ = given_.nodes["n0"].used


def test_what_is_unknown_is_ignored_when_it_is_removed() -> None:
    given_ = Cluster.of(OBJECTS)
    before = state(given_)
    for key in (("Pod", "a", "x"), ("Node", "", "n9"), ("Widget", "", "w")):
        given_.remove(*key)
    assert state(given_) == before


def test_removing_the_last_object_leaves_its_kind_known() -> None:
    given_ = Cluster.of([node("n0")])
    given_.remove("Node", "", "n0")
    assert (given_.knows("Node"), given_.nodes) == (True, {})


def fits(on: Cluster, **spec: Any) -> dict[str, bool]:
    return {v.node: v.fits for v in node_verdicts(on, pod("asking", 1, **spec))}


def test_answers_about_nodes_are_forgotten_when_a_node_changes_and_on_that_side_only() -> None:
    origin = cluster(node("n0"), node("n1", cordoned=True))
    wanted = {"nodeSelector": {"pool": "gold"}}
    assert (fits(origin), fits(origin, **wanted)) == (
        {"n0": True, "n1": False},
        {"n0": False, "n1": False},
    )
    twin = origin.fork()
    twin.apply(node("n1", labels={"pool": "gold"}))
    twin.apply(node("n2", labels={"pool": "gold"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    assert (fits(twin), fits(twin, **wanted)) == (
        {"n0": True, "n1": True, "n2": False},
        {"n0": False, "n1": True, "n2": False},
    )
    assert (fits(origin), fits(origin, **wanted)) == (
        {"n0": True, "n1": False},
        {"n0": False, "n1": False},
    )
    twin.remove("Node", "", "n1")
    assert fits(twin, **wanted) == {"n0": False, "n2": False}


def test_what_pods_take_is_never_remembered_across_a_change_of_pods() -> None:
    given_ = cluster(node("n0", 1), node("n1", 1))
    assert fits(given_) == {"n0": True, "n1": True}
    given_.apply(pod("x", 1, on="n0"))
    assert fits(given_) == {"n0": False, "n1": True}
    given_.remove("Pod", "default", "x")
    assert fits(given_) == {"n0": True, "n1": True}


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.sampled_from("abc"),
            st.sampled_from(("", "n0", "n1", "n9")),
            st.sampled_from(("default", "a")),
            st.sampled_from(("runs", "failed", "avoids")),
        ),
        st.tuples(st.just("node"), st.sampled_from(("n0", "n1", "n9")), st.integers(0, 4)),
        st.tuples(st.just("no pod"), st.sampled_from("abc"), st.sampled_from(("default", "a"))),
        st.tuples(st.just("no node"), st.sampled_from(("n0", "n1", "n9"))),
        st.tuples(st.just("fork")),
    ),
    max_size=12,
)


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_an_index_that_was_changed_is_one_that_was_built(steps: list[tuple[Any, ...]]) -> None:
    """Whatever the steps and forks, the answers are those of an index over what is left."""
    grown = Cluster.of([node("n0"), pod("a", 1, on="n0")])
    left: dict[tuple[str, str, str], KubeObject] = {
        (o.kind, o.namespace, o.name): o for k in grown.kinds() for o in grown.every(k)
    }
    for step in steps:
        match step:
            case ("pod", name, on, namespace, how):
                made = {"runs": pod(name, 1, on=on), "avoids": alone(name, on)}
                made["failed"] = ended(name, on, phase="Failed")
                meta = msgspec.structs.replace(made[how].metadata, namespace=namespace)
                obj: KubeObject = msgspec.structs.replace(made[how], metadata=meta)
                left.pop(("Pod", namespace, name), None)
                left[("Pod", namespace, name)] = obj
                grown.apply(obj)
            case ("node", name, gpus):
                left[("Node", "", name)] = obj = node(name, gpus)
                grown.apply(obj)
            case ("no pod", name, namespace):
                left.pop(("Pod", namespace, name), None)
                grown.remove("Pod", namespace, name)
            case ("no node", name):
                left.pop(("Node", "", name), None)
                grown.remove("Node", "", name)
            case _:
                grown = grown.fork()
        for info in grown.nodes.values():
            assert info.used is not None  # computed, so that what is kept of it is put to the test
    built = Cluster.of(left.values(), ["Node", "Pod"])
    assert unordered(state(grown)) == unordered(state(built))


def unordered(data: dict[str, Any]) -> Any:
    """Pods of a node in any order; kinds without an object left out."""
    plain = msgspec.to_builtins(data)
    nodes = {n: (sorted(pods), *rest) for n, (pods, *rest) in plain["nodes"].items()}
    objects = {k: sorted(v) for k, v in plain["objects"].items() if v}
    spaces = {ns: sorted(pods) for ns, pods in plain["namespaces"].items()}
    rest = {key: plain[key] for key in ("avoiding", "failed", "advertised")}
    return {"nodes": nodes, "order": list(nodes), "objects": objects, "namespaces": spaces, **rest}
