"""Hard spread constraints: what counts, what is included, what one more pod would break."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from tests.placement.build import ZONE, cluster, node, pod, told

FULL = "node(s) didn't match pod topology spread constraints"
WEB = {"app": "web"}


def spread(**more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    } | more


def zoned(*pods: Pod, **more: Any) -> Cluster:
    """a1, a2 in zone a; b1 in zone b; x1 in none."""
    return cluster(
        node("a1", labels={ZONE: "a"}, **more),
        node("a2", labels={ZONE: "a"}, **more),
        node("b1", labels={ZONE: "b"}, **more),
        node("x1"),
        *pods,
    )


def web(name: str, on: str, **more: Any) -> Pod:
    return pod(name, on=on, labels=WEB, **more)


def refusing(given: Cluster, asking: Pod) -> dict[str, str]:
    """Node -> reasons of the spread filter, without the common words."""
    return {
        name: ", ".join(
            reason.replace(FULL, "").strip() or subject for _, reason, _, subject in all_
        )
        for name, all_ in told(given, asking).items()
        if all_
    }


LABEL = {"x1": "(missing required label)"}

CASES: dict[str, tuple[Cluster, dict[str, Any], dict[str, str]]] = {
    "an empty cluster takes the first pod anywhere": (zoned(), spread(), LABEL),
    "the fuller zone refuses": (
        zoned(web("p", "a1")),
        spread(),
        {"a1": f"{ZONE}=a", "a2": f"{ZONE}=a", **LABEL},
    ),
    "a higher skew allows it": (zoned(web("p", "a1")), spread(maxSkew=2), LABEL),
    "pods of another namespace do not count": (
        zoned(web("p", "a1", namespace="other")),
        spread(),
        LABEL,
    ),
    "pods that are going do not count": (
        zoned(web("p", "a1", meta={"deletionTimestamp": "2026-11-29T12:00:00Z"})),
        spread(),
        LABEL,
    ),
    "soft constraints refuse nobody": (
        zoned(web("p", "a1")),
        spread(whenUnsatisfiable="ScheduleAnyway"),
        {},
    ),
    "an empty selector counts no running pod but the asking one": (
        zoned(web("p", "a1"), web("q", "a1")),
        spread(labelSelector={}),
        LABEL,
    ),
    "an absent selector counts nothing": (
        zoned(web("p", "a1"), web("q", "a1")),
        spread(labelSelector=None),
        LABEL,
    ),
    "too few domains make the least full one count as empty": (
        zoned(web("p", "a1"), web("q", "b1")),
        spread(minDomains=3),
        {"a1": f"{ZONE}=a", "a2": f"{ZONE}=a", "b1": f"{ZONE}=b", **LABEL},
    ),
    "enough domains": (zoned(web("p", "a1"), web("q", "b1")), spread(minDomains=2), LABEL),
    "matchLabelKeys narrow the selector by the pod's own label": (
        zoned(web("p", "a1")),
        spread(matchLabelKeys=["hash"]),
        LABEL,
    ),
    "matchLabelKeys that the pod lacks are ignored": (
        zoned(web("p", "a1")),
        spread(matchLabelKeys=["none"]),
        {"a1": f"{ZONE}=a", "a2": f"{ZONE}=a", **LABEL},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_constraint(name: str) -> None:
    given, constraint, expected = CASES[name]
    asking = pod(labels={**WEB, "hash": "1"}, topologySpreadConstraints=[constraint])
    assert refusing(given, asking) == expected


def test_nodes_that_the_pod_cannot_use_count_only_if_the_policy_says_so() -> None:
    """Zone b is out of reach by nodeSelector; counted, its emptiness would refuse zone a."""
    given = cluster(
        node("a1", labels={ZONE: "a", "pool": "inf"}),
        node("b1", labels={ZONE: "b"}),
        web("p", "a1"),
    )

    def reasons(policy: str | None) -> dict[str, str]:
        asking = pod(
            labels=WEB,
            nodeSelector={"pool": "inf"},
            topologySpreadConstraints=[spread(nodeAffinityPolicy=policy)],
        )
        return {n: r for n, r in refusing(given, asking).items() if n == "a1"}

    assert reasons(None) == {}
    assert reasons("Honor") == {}
    assert reasons("Ignore") == {"a1": f"{ZONE}=a"}


def test_tainted_nodes_count_unless_the_policy_honours_taints() -> None:
    given = cluster(
        node("a1", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}, taints=[{"key": "x", "effect": "NoSchedule"}]),
        web("p", "a1"),
    )

    def reasons(policy: str | None) -> dict[str, str]:
        constraint = spread(nodeTaintsPolicy=policy)
        asking = pod(labels=WEB, topologySpreadConstraints=[constraint])
        return {n: r for n, r in refusing(given, asking).items() if n == "a1"}

    assert reasons(None) == {"a1": f"{ZONE}=a"}
    assert reasons("Honor") == {}


def test_a_node_without_one_of_the_keys_counts_for_none_of_them() -> None:
    both = [spread(), spread(topologyKey="rack", maxSkew=5)]
    given = cluster(
        node("a1", labels={ZONE: "a", "rack": "1"}),
        node("b1", labels={ZONE: "b"}),
        web("p", "a1"),
    )
    asking = pod(labels=WEB, topologySpreadConstraints=both)
    # zone b is not a domain, so zone a is the only and least full one
    assert told(given, asking) == {
        "a1": [],
        "b1": [
            (
                "PodTopologySpread",
                f"{FULL} (missing required label)",
                True,
                "rack",
            )
        ],
    }
