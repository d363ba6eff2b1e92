"""Pseudonyms change names and no verdict, and let no name through."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.adapters.snapshot import load_snapshot
from kubectl_gpuadmit.devices import ownership
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.snapshots import trim
from kubectl_gpuadmit.snapshots.redact import Keep, Redactor
from tests.snapshots.clusters import (
    KINDS,
    WORKLOADS,
    as_documents,
    cluster,
    documents,
    example,
    example_policy,
    policy_data,
    verdicts,
    worlds,
)

Items = list[dict[str, Any]]


def renamed(answer: Any, redactor: Redactor) -> str:
    """The answer with every word replaced that has a pseudonym: sentences hold words of both."""
    return redactor.name(msgspec.json.encode(answer).decode())


def both(
    docs: list[Document], items: Items, known: list[str], policy: Policy, keep: Keep | None
) -> tuple[str, str]:
    """The answers to one question before and after redaction, in the words of after."""
    redactor = Redactor.of([*items, *(d.data for d in docs)], keep)
    hidden = [Document(d.file, d.index, d.line, redactor.object(d.data)) for d in docs]
    before = verdicts(docs, cluster(items, known), policy)
    after = verdicts(hidden, cluster([redactor.object(i) for i in items], known), policy)
    return renamed(before, redactor), renamed(after, redactor)


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_the_example_under_pseudonyms_gives_the_same_verdicts(path: Path) -> None:
    items, known = trim.items(example()), trim.known_kinds(example())
    docs = documents(path)
    before, after = both(docs, items, known, Policy.default(), None)
    assert before == after
    before, after = both(docs, items, known, example_policy(), Keep.named_in(policy_data()))
    assert before == after


CLAIMS = sorted((Path(__file__).parents[2] / "examples/claims").glob("[!p]*.yaml"))


@pytest.mark.parametrize("path", CLAIMS, ids=lambda p: p.stem)
def test_devices_and_claims_under_pseudonyms_give_the_same_verdicts(path: Path) -> None:
    """Claims of others, a tenant's class, quota and annotation, a driver's sharing strategy."""
    taken = load_snapshot(str(path.parents[1] / "devices")).cluster
    items, known = trim.items(taken), trim.known_kinds(taken)
    before, after = both(documents(path), items, known, Policy.default(), None)
    assert before == after
    redactor = Redactor.of([*items, *(d.data for d in documents(path))])
    hidden = msgspec.json.encode([redactor.object(d.data) for d in documents(path)]).decode()
    assert "team-a" not in hidden
    states = [one.state for one in ownership.of_cluster(taken)]
    assert states == ["leaked", "in-use"]
    again = cluster([redactor.object(item) for item in items], known)
    assert [one.state for one in ownership.of_cluster(again)] == states


@settings(max_examples=80, deadline=None)
@given(worlds(), st.booleans())
def test_any_cluster_under_pseudonyms_gives_the_same_verdicts(
    world: tuple[Items, Items], with_policy: bool
) -> None:
    items, manifests = world
    whole = cluster(items, KINDS)
    policy = example_policy() if with_policy else Policy.default()
    keep = Keep.named_in(policy_data()) if with_policy else None
    before, after = both(as_documents(manifests), trim.items(whole), KINDS, policy, keep)
    assert before == after


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_no_name_is_left(world: tuple[Items, Items]) -> None:
    items = trim.items(cluster(world[0], KINDS))
    redactor = Redactor.of(items)
    text = msgspec.json.encode([redactor.object(item) for item in items]).decode()
    words = set(re.findall(r"[A-Za-z0-9_]+", text))
    assert words & {"llama", "team", "prod", "7d9f", "web", "registry", "hunter2"} == set()
    assert set(re.findall(r"[^\"]*acme[^\"]*", text)) <= {"acme.com/owner"}, "keys of labels stay"


def test_words_keep_their_order_and_their_relations() -> None:
    items = [
        {"kind": "Pod", "metadata": {"name": name, "namespace": space}}
        for name, space in (
            ("llama-8b-7d9f-0", "kube-system"),
            ("llama-8b-7d9f-1", "default"),
            ("alpha", "team-a"),
            ("zeta", "team-b"),
        )
    ]
    redactor = Redactor.of(items)
    names = [redactor.name(i["metadata"]["name"]) for i in items]  # type: ignore[index]
    spaces = [redactor.name(i["metadata"]["namespace"]) for i in items]  # type: ignore[index]
    assert names[0][:-1] == names[1][:-1]
    assert (names[0][-2:], names[1][-2:]) == ("-0", "-1")
    assert sorted(names) == [names[2], names[0], names[1], names[3]]
    assert spaces[:2] == ["kube-system", "default"]
    assert spaces[2].split("-")[0] == spaces[3].split("-")[0]
    assert sorted(spaces) == [spaces[1], spaces[0], spaces[2], spaces[3]]


@given(st.lists(st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True), max_size=30))
def test_different_names_stay_different_and_are_stable(names: list[str]) -> None:
    items = [{"kind": "Pod", "metadata": {"name": name}} for name in names]
    redactor, again = Redactor.of(items), Redactor.of(items[::-1])
    hidden = [redactor.name(name) for name in names]
    assert len(set(hidden)) == len(set(names))
    assert hidden == [again.name(name) for name in names]


def test_what_a_policy_names_stays() -> None:
    keep = Keep.named_in(
        {
            "pools": {"a": {"nodeSelector": {"acme.com/pool": "fast"}}},
            "rules": {"labels/class": {"namespaces": {"team-*": "audit"}}},
        }
    )
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job-x", "namespace": "team-a"},
        "spec": {
            "nodeSelector": {"acme.com/pool": "fast", "acme.com/rack": "fast"},
            "tolerations": [{"key": "acme.com/pool", "operator": "Exists"}],
        },
    }
    hidden = Redactor.of([item], keep).object(item)
    assert hidden["metadata"]["namespace"] == "team-a"
    assert hidden["metadata"]["name"] not in ("job-x", "")
    assert hidden["spec"]["nodeSelector"]["acme.com/pool"] == "fast"
    assert hidden["spec"]["nodeSelector"]["acme.com/rack"] != "fast"
    assert hidden["spec"]["tolerations"] == [{"key": "acme.com/pool", "operator": "Exists"}]
