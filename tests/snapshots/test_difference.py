"""Two snapshots by verdict: what flipped, and the change that did it."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import jsonschema
import pytest

from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.render import difference as rendered
from kubectl_gpuadmit.snapshots import trim
from kubectl_gpuadmit.snapshots.difference import Difference, Side, of_manifests, of_running
from kubectl_gpuadmit.snapshots.running import running
from kubectl_gpuadmit.verdict import Source
from tests.snapshots.clusters import NOW, ROOT, cluster, documents, example, example_policy

Change = Callable[[list[dict[str, Any]]], None]


def side(
    change: Change = lambda items: None, *, hours: int = 0, policy: Policy | None = None
) -> Side:
    items = copy.deepcopy(trim.items(example()))
    change(items)
    return Side(
        cluster(items, trim.known_kinds(example())),
        NOW + dt.timedelta(hours=hours),
        policy or example_policy(),
        Source("snapshot", "after" if change.__name__ != "<lambda>" else "before"),
    )


def one(items: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(i for i in items if i["kind"] == kind and i["metadata"]["name"] == name)


def node_gone(items: list[dict[str, Any]]) -> None:
    items.remove(one(items, "Node", "inf-0"))


def quota_lowered(items: list[dict[str, Any]]) -> None:
    quota = next(
        i for i in items if i["kind"] == "ResourceQuota" and i["metadata"]["namespace"] == "team-a"
    )
    for part in ("spec", "status"):
        quota[part]["hard"] = {**quota[part]["hard"], "requests.nvidia.com/gpu": "3"}


def noise(items: list[dict[str, Any]]) -> None:
    """What every cluster does all day."""
    for item in items:
        item["metadata"]["resourceVersion"] = "1" + str(item["metadata"].get("resourceVersion"))
        if item["kind"] == "Node":
            item["metadata"].setdefault("labels", {})["acme.com/seen"] = "yes"


def in_short(found: Difference) -> list[tuple[str, str, str, list[tuple[str, str]], bool]]:
    """(workload, before, after, causes, minimal)."""
    return [
        (
            str(flip.after.ref),
            f"{flip.before.admission}, {flip.before.placement}",
            f"{flip.after.admission}, {flip.after.placement}",
            [(cause.what, str(cause.ref) if cause.ref else "") for cause in flip.causes],
            flip.minimal,
        )
        for flip in found.flips
    ]


def compared(after: Side) -> Difference:
    return of_running(side(), after, kubernetes="1.37")


def test_a_cluster_does_not_differ_from_itself() -> None:
    found = compared(side())
    assert (found.flips, found.changes, found.appeared, found.gone) == ((), 0, (), ())
    assert found.compared == 18


def test_noise_flips_nothing() -> None:
    found = compared(side(noise))
    assert (found.flips, found.changes) == ((), 13)


def test_of_many_changes_the_one_is_named_that_makes_the_difference() -> None:
    def changed(items: list[dict[str, Any]]) -> None:
        noise(items)
        node_gone(items)
        quota_lowered(items)

    assert in_short(compared(side(changed))) == [
        ("deployment/llama-70b", "admitted, fits", "admitted, waits",
         [("removed", "node/inf-0")], True),
        ("deployment/mixtral-8x22b", "admitted, fits", "denied, fits",
         [("changed", "resourcequota/gpus")], True),
    ]  # fmt: skip


def test_time_alone_is_a_cause() -> None:
    found = compared(side(hours=4))
    assert in_short(found) == [
        ("job/llama-ft", "admitted, fits", "denied, fits", [("time", "")], True)
    ]
    assert [finding.reason for finding in found.flips[0].appeared] == ["ephemeral/ttl-past"]


def test_a_policy_is_a_cause() -> None:
    before = side(policy=Policy.default())
    found = of_running(before, side(), kubernetes="1.37")
    assert in_short(found)[0] == (
        "job/quick-try", "admitted, fits", "denied, fits", [("policy", "")], True
    )  # fmt: skip


def test_a_kind_that_is_not_exported_any_more_is_a_cause() -> None:
    before, after = side(), side()
    known = [k for k in trim.known_kinds(example()) if k != "Node"]
    items = [i for i in trim.items(after.cluster) if i["kind"] != "Node"]
    after = Side(cluster(items, known), NOW, example_policy(), after.source)
    flips = of_running(before, after, kubernetes="1.37").flips
    assert len(flips) == 18
    assert {cause.what for flip in flips for cause in flip.causes} <= {"exported", "removed"}


def test_a_workload_that_asks_for_more_is_its_own_cause() -> None:
    def grown(items: list[dict[str, Any]]) -> None:
        pod = next(i for i in items if i["metadata"]["name"].startswith("mixtral-8x22b-"))
        for amounts in pod["spec"]["containers"][0]["resources"].values():
            amounts["nvidia.com/gpu"] = "9"

    found = compared(side(grown))
    assert in_short(found) == [
        ("deployment/mixtral-8x22b", "admitted, fits", "denied, never",
         [("workload", "deployment/mixtral-8x22b")], True),
    ]  # fmt: skip


def test_workloads_that_come_and_go_are_listed_and_are_no_flips() -> None:
    def gone(items: list[dict[str, Any]]) -> None:
        items[:] = [i for i in items if not i["metadata"]["name"].startswith("mixtral-8x22b-")]

    found = compared(side(gone))
    assert ([str(ref) for ref in found.gone], found.flips) == (["deployment/mixtral-8x22b"], ())
    back = of_running(side(gone), side(), kubernetes="1.37")
    assert [str(verdict.ref) for verdict in back.appeared] == ["deployment/mixtral-8x22b"]


def test_manifests_are_judged_each_alone() -> None:
    docs = [
        doc
        for name in ("fits", "quota-third-replica", "waits-for-preemption")
        for doc in documents(ROOT / f"examples/workloads/{name}.yaml")
    ]
    found = of_manifests(docs, side(), side(quota_lowered), namespace="default", kubernetes="1.37")
    assert found.compared == 3
    assert in_short(found) == [
        ("deployment/summariser", "admitted, fits", "denied, fits",
         [("changed", "resourcequota/gpus")], True),
        ("deployment/mixtral-long", "admitted, waits", "denied, waits",
         [("changed", "resourcequota/gpus")], True),
    ]  # fmt: skip
    fields = [(c.field, c.before, c.after) for c in found.flips[0].causes[0].fields]
    assert fields == [
        ("/spec/hard/requests.nvidia.com~1gpu", "8", "3"),
        ("/status/hard/requests.nvidia.com~1gpu", "8", "3"),
    ]


@pytest.mark.parametrize("change", [noise, node_gone, quota_lowered])
def test_the_json_form_is_what_its_schema_says(change: Change) -> None:
    text = resources.files("kubectl_gpuadmit").joinpath("schema/diff-v1.json").read_text()
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(rendered.to_json(compared(side(change)))), schema)


def test_a_person_reads_before_after_finding_and_cause() -> None:
    assert rendered.text(compared(side(quota_lowered)), width=80).plain == (
        "deployment/mixtral-8x22b · team-a · 1 pod × 4 nvidia.com/gpu   ADMITTED → DENIED\n"
        "\n"
        "  was         ✓ admitted, fits\n"
        "  is          ✗ denied, fits   by quota/exceeded\n"
        "  + quota/exceeded\n"
        "      ResourceQuota gpus: requests.nvidia.com/gpu asked 4 · used 0 · limit 3\n"
        "  because     ResourceQuota team-a/gpus was changed\n"
        "                  spec.hard[\"requests.nvidia.com/gpu\"]: '8' → '3'\n"
        "                  status.hard[\"requests.nvidia.com/gpu\"]: '8' → '3'\n"
        "\n"
        "18 workloads compared · 1 object differs · 1 verdict changed, 1 no longer\n"
        "admitted and placed\n"
        "Rests on  before of 2026-11-29T14:00:00Z → after of 2026-11-29T14:00:00Z\n"
    )


def test_running_workloads_are_put_together_from_their_pods() -> None:
    found = running(example(), example_policy())
    counts = {
        str(ref): [group.count for group in one.workload.groups] for ref, one in found.items()
    }
    assert counts["deployment/llama-70b"] == [2]
    assert counts["statefulset/sweep"] == [1, 1]
    assert counts["pytorchjob/ranker"] == [1, 1]
    assert not any(ref.kind in ("DaemonSet", "ReplicaSet", "Pod") for ref in found)
