"""Required pod affinity and anti-affinity, the pod's own and that of pods that run."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import KubeObject, Pod
from kubectl_gpuadmit.placement.filters.inter_pod_affinity import merged_label_keys
from tests.placement.build import HOST, ZONE, cluster, decoded, node, pod, refused

NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"


def term(key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}} | more


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def db(name: str, on: str, namespace: str = "default", **more: Any) -> Pod:
    return pod(name, on=on, namespace=namespace, labels={"app": "db"}, **more)


def named(name: str, **labels: str) -> KubeObject:
    return decoded({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def zoned(*more: KubeObject) -> Cluster:
    """a1, a2 in zone a; b1 in zone b; x1 in none; namespaces default and data (team=a)."""
    return cluster(
        node("a1", labels={ZONE: "a"}),
        node("a2", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}),
        node("x1"),
        named("default"),
        named("data", team="a"),
        *more,
    )


def only(reason: str, *nodes: str) -> dict[str, list[str]]:
    return {name: [reason] for name in nodes}


CASES: dict[str, tuple[Cluster, dict[str, Any], dict[str, str], dict[str, list[str]]]] = {
    "nobody to be near": (zoned(), near(term()), {}, only(NEAR, "a1", "a2", "b1", "x1")),
    "near a pod of the zone": (zoned(db("p", "a1")), near(term()), {}, only(NEAR, "b1", "x1")),
    "near a pod of the node": (
        zoned(db("p", "a1")),
        near(term(HOST)),
        {},
        only(NEAR, "a2", "b1", "x1"),
    ),
    "one pod must match all terms": (
        zoned(db("p", "a1"), pod("q", on="b1", labels={"tier": "1"})),
        near(term(), term(labelSelector={"matchLabels": {"tier": "1"}})),
        {},
        only(NEAR, "a1", "a2", "b1", "x1"),
    ),
    "the first of a group may start where the labels exist": (
        zoned(),
        near(term()),
        {"app": "db"},
        only(NEAR, "x1"),
    ),
    "the second of a group must be near the first": (
        zoned(db("p", "b1")),
        near(term()),
        {"app": "db"},
        only(NEAR, "a1", "a2", "x1"),
    ),
    "a pod of another namespace is not near": (
        zoned(db("p", "a1", "data")),
        near(term()),
        {},
        only(NEAR, "a1", "a2", "b1", "x1"),
    ),
    "namespaces name others": (
        zoned(db("p", "a1", "data")),
        near(term(namespaces=["data"])),
        {},
        only(NEAR, "b1", "x1"),
    ),
    "a namespaceSelector finds others": (
        zoned(db("p", "a1", "data")),
        near(term(namespaceSelector={"matchLabels": {"team": "a"}})),
        {},
        only(NEAR, "b1", "x1"),
    ),
    "an empty namespaceSelector means all": (
        zoned(db("p", "a1", "data")),
        near(term(namespaceSelector={})),
        {},
        only(NEAR, "b1", "x1"),
    ),
    "a namespaceSelector leaves out the own namespace where it does not match": (
        zoned(db("p", "a1")),
        near(term(namespaceSelector={"matchLabels": {"team": "a"}})),
        {},
        only(NEAR, "a1", "a2", "b1", "x1"),
    ),
    "apart from a pod of the zone": (
        zoned(db("p", "a1")),
        apart(term()),
        {},
        only(APART, "a1", "a2"),
    ),
    "apart from a pod of the node": (
        zoned(db("p", "a1")),
        apart(term(HOST)),
        {},
        only(APART, "a1"),
    ),
    "a running pod refuses the newcomer": (
        zoned(pod("p", on="b1", affinity=apart(term()))),
        {},
        {"app": "db"},
        only(OTHERS, "b1"),
    ),
    "a running pod minds others only": (
        zoned(pod("p", on="b1", affinity=apart(term()))),
        {},
        {"app": "web"},
        {},
    ),
    "a running pod's namespaceSelector reads the newcomer's namespace": (
        zoned(
            named("default", team="b"),
            pod(
                "p",
                on="b1",
                namespace="data",
                affinity=apart(term(namespaceSelector={"matchLabels": {"team": "b"}})),
            ),
        ),
        {},
        {"app": "db"},
        only(OTHERS, "b1"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_pod(name: str) -> None:
    given, affinity, labels, expected = CASES[name]
    assert refused(given, pod(labels=labels, affinity=affinity)) == expected


def test_a_selector_that_does_not_parse_refuses_everywhere() -> None:
    broken = term(labelSelector={"matchExpressions": [{"key": "app", "operator": "Is"}]})
    from kubectl_gpuadmit.placement.place import node_verdicts

    (verdict,) = node_verdicts(cluster(node("n")), pod(affinity=near(broken)))
    assert "parsing pod: 'Is' is not a valid operator" in [s.reason for s in verdict.shortfalls]


def test_the_api_server_merges_label_keys_into_the_selector() -> None:
    """matchLabelKeys: near pods of the same revision only; mismatchLabelKeys: apart from others."""
    given = zoned(
        pod("old", on="a1", labels={"app": "db", "hash": "1"}),
        pod("new", on="b1", labels={"app": "db", "hash": "2"}),
    )
    labels = {"hash": "2"}
    asking = pod(labels=labels, affinity=near(term(matchLabelKeys=["hash", "none"])))
    assert refused(given, merged_label_keys(asking)) == only(NEAR, "a1", "a2", "x1")
    asking = pod(labels=labels, affinity=apart(term(mismatchLabelKeys=["hash"])))
    assert refused(given, merged_label_keys(asking)) == only(APART, "a1", "a2")
    assert merged_label_keys(given_pod := pod()) is given_pod
