"""Laws of the whole: order of objects never matters, more room never refuses, forms are equal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonpatch
import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_gpuadmit.adapters.files import read_inputs
from kubectl_gpuadmit.adapters.snapshot import Snapshot, load_snapshot
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.objects import KubeObject
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.render.data import to_json, to_yaml
from kubectl_gpuadmit.render.junit import to_junit
from kubectl_gpuadmit.render.markdown import to_markdown
from kubectl_gpuadmit.render.sarif import to_sarif
from kubectl_gpuadmit.render.table import check
from kubectl_gpuadmit.render.text import explain
from kubectl_gpuadmit.verdict import Report, Source, Verdict
from tests.placement.build import GPU, KNOWN, node, pod
from tests.runs import QUIET, deployment, job, joined, outcomes, report, world

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples/workloads").iterdir())
POLICY_TEXT = (ROOT / "examples/policy.yaml").read_text()
names = [path.stem for path in EXAMPLES]


@cache
def snapshot() -> Snapshot:
    return load_snapshot(str(ROOT / "examples/cluster"))


@cache
def rules() -> Policy:
    return load_policy(POLICY_TEXT.encode(), "policy.yaml")


def objects() -> list[KubeObject]:
    cluster = snapshot().cluster
    return [obj for kind in cluster.kinds() for obj in cluster.every(kind)]


def judged(
    documents: Iterable[Document | BadManifest],
    cluster: Cluster | None = None,
    policy: Policy | None = None,
    *,
    remedies: bool = True,
) -> Report:
    return evaluate(
        documents,
        cluster or snapshot().cluster,
        policy or rules(),
        now=snapshot().as_of or dt.datetime(2026, 11, 29, tzinfo=dt.UTC),
        source=Source("snapshot", "examples/cluster"),
        with_remedies=remedies,
    )


def documents(path: Path) -> list[Document | BadManifest]:
    return [d for raw, name in read_inputs([str(path)]) for d in read_documents(raw, name)]


@cache
def answer(path: Path) -> Report:
    return judged(documents(path))


def shuffled(items: Iterable[Any], seed: int) -> list[Any]:
    mixed = list(items)
    Random(seed).shuffle(mixed)
    return mixed


# -- order -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_the_order_of_the_clusters_objects_changes_no_byte_of_the_answer(path: Path) -> None:
    known = [kind for kind in KNOWN if snapshot().cluster.knows(kind)]
    mixed = Cluster.of(shuffled(objects(), 7), known)
    assert to_json(judged(documents(path), mixed)) == to_json(answer(path))


def decided(made: Report) -> list[Any]:
    """What is decided; sentences list the policy's entries as the file has them."""
    return [
        (v.ref, v.outcome, v.blockers, v.patch, v.places, v.waits_for, v.gpus)
        for v in made.workloads
    ]


def test_the_order_of_the_policys_own_entries_decides_nothing() -> None:
    data = yaml.safe_load(POLICY_TEXT)
    for key in ("pools", "classes", "rules"):
        data[key] = dict(shuffled(data[key].items(), 3))
    mixed = load_policy(yaml.safe_dump(data, sort_keys=False).encode(), "policy.yaml")
    for path in EXAMPLES:
        found = judged(documents(path), policy=mixed, remedies=False)
        assert decided(found) == decided(answer(path)), path.name


def test_the_same_question_gives_the_same_bytes() -> None:
    for path in EXAMPLES:
        assert to_json(judged(documents(path))) == to_json(answer(path)), path.name


def test_a_run_leaves_cluster_and_policy_as_they_were() -> None:
    before = msgspec.json.encode(objects()), repr(rules())
    judged([d for path in EXAMPLES for d in documents(path)])
    assert (msgspec.json.encode(objects()), repr(rules())) == before


# -- forms of the input ----------------------------------------------------------------------------


def without_places(made: Report) -> list[Verdict]:
    """Verdicts without where their documents stand in a file."""
    return [structs.replace(verdict, location="") for verdict in made.workloads]


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_a_manifest_means_the_same_after_it_was_read_and_written_again(path: Path) -> None:
    read = [d for d in documents(path) if isinstance(d, Document)]
    as_yaml = yaml.safe_dump_all([d.data for d in read], sort_keys=False, allow_unicode=True)
    as_json = json.dumps({"apiVersion": "v1", "kind": "List", "items": [d.data for d in read]})
    expected = without_places(judged(read))
    for text in (as_yaml, as_json):
        again = list(read_documents(text.encode(), "again"))
        assert [d.data for d in again if isinstance(d, Document)] == [d.data for d in read]
        assert without_places(judged(again)) == expected


# -- remedies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_applying_a_printed_patch_gives_just_what_the_remedy_promises(path: Path) -> None:
    """Each workload after those before it in its file, as the remedy was tried."""
    read = [d for d in documents(path) if isinstance(d, Document)]
    tried = 0
    for index, document in enumerate(read):
        place = judged(read[: index + 1]).workloads
        mine = [v for v in place if v.location == document.location]
        for remedy in (r for v in mine for r in v.remedies if r.patch and not r.command):
            data = jsonpatch.apply_patch(document.data, list(remedy.patch))
            changed = [*read[:index], structs.replace(document, data=data)]
            after = judged(changed, remedies=False).workloads[-1]
            assert (remedy.summary, after.outcome) == (remedy.summary, remedy.result)
            tried += 1
    patches = [r for v in answer(path).workloads for r in v.remedies if r.patch and not r.command]
    assert tried == len(patches)


# -- more room -------------------------------------------------------------------------------------

SIZES = st.sampled_from((1, 2, 4, 8))
NODES = st.lists(st.tuples(SIZES, st.booleans()), min_size=1, max_size=4)
RUNNING = st.lists(st.tuples(st.integers(0, 3), SIZES), max_size=4)
ASKED = st.lists(st.tuples(st.sampled_from("dj"), st.integers(1, 3), SIZES), min_size=1, max_size=3)


def cluster_of(
    nodes: list[tuple[int, bool]], running: list[tuple[int, int]], more: list[int]
) -> Cluster:
    """Nodes of some GPUs, cordoned or not, with pods where they fit; ``more`` nodes are free."""
    made: list[KubeObject] = []
    free = {}
    for number, (gpus, cordoned) in enumerate(nodes):
        made.append(node(f"n{number}", gpus, cordoned=cordoned))
        free[number] = gpus
    for number, (at, gpus) in enumerate(running):
        if free.get(at, 0) >= gpus:
            free[at] -= gpus
            made.append(pod(f"p{number}", gpus, on=f"n{at}"))
    made += [node(f"z{number}", gpus) for number, gpus in enumerate(more)]
    return world(*made)


def manifests(asked: list[tuple[str, int, int]]) -> str:
    return joined(
        *(
            deployment(f"w{number}", replicas=count, gpus=gpus)
            if kind == "d"
            else job(f"w{number}", gpus=gpus)
            for number, (kind, count, gpus) in enumerate(asked)
        )
    )


@given(
    nodes=NODES, running=RUNNING, asked=ASKED.map(lambda a: a[:1]), more=st.lists(SIZES, max_size=2)
)
@settings(max_examples=80, deadline=None)
def test_more_nodes_never_refuse_what_was_admitted_and_placed(
    nodes: list[tuple[int, bool]],
    running: list[tuple[int, int]],
    asked: list[tuple[str, int, int]],
    more: list[int],
) -> None:
    text = manifests(asked)
    (before,) = report(text, cluster_of(nodes, running, []), QUIET).workloads
    (after,) = report(text, cluster_of(nodes, running, more), QUIET).workloads
    if before.placement == "fits":
        assert (after.admission, after.placement) == (before.admission, "fits")
    order = ("never", "waits", "fits")
    assert order.index(after.placement) >= order.index(before.placement)
    assert len(after.places) >= len(before.places)


@given(nodes=NODES, running=RUNNING, asked=ASKED)
@settings(max_examples=80, deadline=None)
def test_no_node_is_ever_given_more_than_it_has_and_what_fits_is_placed_whole(
    nodes: list[tuple[int, bool]],
    running: list[tuple[int, int]],
    asked: list[tuple[str, int, int]],
) -> None:
    cluster = cluster_of(nodes, running, [])
    made = report(manifests(asked), cluster, QUIET, remedies=True)
    free = {name: info.free(GPU) for name, info in cluster.nodes.items() if not info.unschedulable}
    for (_, _, gpus), verdict in zip(asked, made.workloads, strict=True):
        assert (verdict.placement == "fits") == (len(verdict.places) == verdict.pods)
        for place in verdict.places:
            free[place.node] -= gpus
        assert all(
            r.verified and r.result and r.result.placement == "fits" for r in verdict.remedies
        )
        assert not verdict.remedies or verdict.placement != "fits"
    assert min(free.values(), default=0) >= 0


@given(nodes=NODES, running=RUNNING, asked=ASKED, seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_the_order_of_a_generated_clusters_objects_never_matters(
    nodes: list[tuple[int, bool]],
    running: list[tuple[int, int]],
    asked: list[tuple[str, int, int]],
    seed: int,
) -> None:
    first = cluster_of(nodes, running, [])
    every = [obj for kind in first.kinds() for obj in first.every(kind)]
    second = Cluster.of(shuffled(every, seed), KNOWN)
    text = manifests(asked)
    assert report(text, first, QUIET, remedies=True) == report(text, second, QUIET, remedies=True)
    assert outcomes(report(text, first, QUIET)) == outcomes(report(text, first, QUIET))


# -- every form of the output ----------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=names)
def test_every_verdict_can_be_shown_in_every_form(path: Path) -> None:
    made = answer(path)
    shown = {
        "json": to_json(made),
        "yaml": to_yaml(made),
        "sarif": to_sarif(made, version="0", catalogue={}),
        "junit": to_junit(made),
        "markdown": to_markdown(made),
        "explain": explain(made, width=80).plain,
        "details": explain(made, width=80, details=True, ascii=True).plain,
        "check": check(made, width=80).plain,
    }
    for form in shown.keys() - {"sarif", "check"}:  # these two leave out what is well
        missing = [v.ref.name for v in made.workloads if v.ref.name not in shown[form]]
        assert missing == [], form
    refused = [v.ref.name for v in made.workloads if v.blockers]
    assert [name for name in refused if name not in shown["sarif"] + shown["check"]] == []
    assert json.loads(shown["json"]) == yaml.safe_load(shown["yaml"])
    assert shown["details"].isascii()
