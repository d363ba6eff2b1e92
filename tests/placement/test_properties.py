"""Laws that hold for every cluster: order never matters, memory never changes an answer."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.cluster import Cluster, NodeInfo
from kubectl_gpuadmit.kube import pods as podlib
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement import static
from kubectl_gpuadmit.placement.filters import (
    RANK,
    inter_pod_affinity,
    node_ports,
    pod_topology_spread,
    resources_fit,
)
from kubectl_gpuadmit.placement.place import node_verdicts, place
from kubectl_gpuadmit.verdict import Shortfall
from tests.placement.build import GPU, HOST, NOW, ZONE, cluster, node, pod

APPS = ("web", "db")
POOLS = ("inf", "train", "gold")


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from((GPU, "dedicated", "node.kubernetes.io/not-ready")),
            "effect": st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")),
        }
    ),
    max_size=2,
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from((GPU, "dedicated")), "operator": st.just("Exists")}
    ),
    max_size=2,
)
selectors = st.fixed_dictionaries(
    {"matchLabels": st.dictionaries(st.just("app"), st.sampled_from(APPS), max_size=1)}
)
topologies = st.sampled_from((HOST, ZONE))
terms = st.lists(
    st.fixed_dictionaries({"topologyKey": topologies, "labelSelector": selectors}), max_size=1
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> KubeObject:
    labels = {"pool": draw(st.sampled_from(POOLS[:2]))}
    zone = draw(maybe(st.sampled_from(("a", "b"))))
    if zone:
        labels[ZONE] = zone
    return node(
        name,
        draw(maybe(st.integers(0, 8))),
        labels=labels,
        taints=draw(taints),
        cordoned=draw(st.booleans()) and draw(st.booleans()),
        pods=draw(st.sampled_from(("2", "110"))),
    )


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> Pod:
    affinity: dict[str, Any] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        required = draw(terms) if draw(st.integers(0, 2)) == 0 else []
        if required:
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if draw(st.booleans()):
        expression = {"key": "pool", "operator": "In", "values": [draw(st.sampled_from(POOLS))]}
        term = {"weight": draw(st.integers(1, 9)), "preference": {"matchExpressions": [expression]}}
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "maxSkew": st.integers(1, 2),
                    "topologyKey": topologies,
                    "whenUnsatisfiable": st.just("DoNotSchedule"),
                    "labelSelector": selectors,
                    "minDomains": maybe(st.integers(1, 3)),
                    "nodeTaintsPolicy": maybe(st.sampled_from(("Honor", "Ignore"))),
                    "nodeAffinityPolicy": maybe(st.sampled_from(("Honor", "Ignore"))),
                }
            ),
            max_size=1,
        )
    )
    port = {"containerPort": 1, "hostPort": 80}
    return pod(
        name,
        draw(st.integers(0, 4)),
        on=on,
        asks={"cpu": draw(st.sampled_from(("0", "1", "40")))},
        labels={"app": draw(st.sampled_from(APPS))},
        priority=draw(st.sampled_from((0, 5))),
        nodeSelector=draw(st.dictionaries(st.just("pool"), st.sampled_from(POOLS), max_size=1)),
        tolerations=draw(tolerations),
        affinity=affinity or None,
        topologySpreadConstraints=spread,
        ports=[port] if draw(st.integers(0, 4)) == 0 else [],
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[KubeObject], Pod]:
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    objects = [draw(nodes(name)) for name in names]
    for i in range(draw(st.integers(0, 5))):
        objects.append(draw(pods(f"p{i}", draw(st.sampled_from(names)))))
    return objects, draw(pods("asking"))


def naive(given: Cluster, asking: Pod, info: NodeInfo) -> tuple[Shortfall, ...]:
    """Every filter asked on its own, without boards, groups or running counts."""
    spread = pod_topology_spread.Spread.of(given, asking)
    other = inter_pod_affinity.InterPod(given, asking)
    found = (
        *static.judge(asking, info),
        *node_ports.judge(podlib.host_ports(asking), info),
        *resources_fit.judge(resources_fit.asked(asking), info),
        *(spread.judge(info) if spread else ()),
        *other.judge(info),
    )
    return tuple(sorted(found, key=lambda s: RANK[s.filter]))


@settings(max_examples=150, deadline=None)
@given(worlds(), st.integers(1, 4))
def test_memory_changes_no_answer(world: tuple[list[KubeObject], Pod], count: int) -> None:
    """What a run remembers while replicas come and go is what a fresh look would say."""
    objects, asking = world
    used = cluster(*objects)
    answer = place(used, asking, count, now=NOW)
    place(used, asking, 1, now=NOW)
    assert [v.shortfalls for v in node_verdicts(used, asking)] == [
        naive(used, asking, info) for info in used.nodes.values()
    ]
    after = answer.cluster
    fresh = Cluster.of([o for kind in after.kinds() for o in after.every(kind)], ("Pod", "Node"))
    assert [v.shortfalls for v in node_verdicts(after, asking)] == [
        naive(fresh, asking, info) for info in fresh.nodes.values()
    ]
    if answer.placement != "fits":
        assert answer.nodes == node_verdicts(fresh, asking)


@settings(max_examples=100, deadline=None)
@given(worlds(), st.randoms(use_true_random=False), st.integers(1, 3))
def test_the_order_of_objects_never_matters(
    world: tuple[list[KubeObject], Pod], random: Any, count: int
) -> None:
    objects, asking = world
    shuffled = list(objects)
    random.shuffle(shuffled)
    one = place(cluster(*objects), asking, count, now=NOW)
    two = place(cluster(*shuffled), asking, count, now=NOW)
    assert (one.places, one.nodes, one.placement, one.findings, one.message) == (
        two.places,
        two.nodes,
        two.placement,
        two.findings,
        two.message,
    )


@settings(max_examples=100, deadline=None)
@given(worlds(), st.integers(1, 8))
def test_more_free_gpus_never_refuse(world: tuple[list[KubeObject], Pod], more: int) -> None:
    """A node that takes the pod still does when it has more GPUs."""
    objects, asking = world
    given_ = cluster(*objects)
    before = {v.node for v in node_verdicts(given_, asking) if v.fits}
    larger = given_.fork()
    for info in given_.nodes.values():
        gpus = info.allocatable.get(GPU, 0) + more
        larger.apply(
            node(
                info.name,
                gpus,
                labels=info.labels,
                taints=[{"key": t.key, "effect": t.effect} for t in info.taints],
                cordoned=info.unschedulable,
                pods=str(info.allocatable["pods"]),
            )
        )
    assert before <= {v.node for v in node_verdicts(larger, asking) if v.fits}


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(1, 4))
def test_placing_leaves_the_origin_as_it_was(
    world: tuple[list[KubeObject], Pod], count: int
) -> None:
    objects, asking = world
    origin = cluster(*objects)
    before = (dict(origin.nodes), list(origin.pods()), node_verdicts(origin, asking))
    answer = place(origin, asking, count, now=NOW)
    assert (dict(origin.nodes), list(origin.pods()), node_verdicts(origin, asking)) == before
    assert len(list(answer.cluster.pods())) == len(before[1]) + len(answer.places)
    assert [answer.cluster.nodes[n].name for n in answer.places] == list(answer.places)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_never_means_that_an_empty_cluster_would_not_help(
    world: tuple[list[KubeObject], Pod],
) -> None:
    """Pods that go away turn no ``never`` into a fit, unless the pod must be near one that came."""
    objects, asking = world
    answer = place(cluster(*objects), asking, 1, now=NOW)
    empty = place(cluster(*(o for o in objects if o.kind == "Node")), asking, 1, now=NOW)
    if answer.placement == "never":
        assert empty.placement == "never"
    if answer.placement == "waits":
        assert answer.findings
        assert not answer.findings[0].permanent
