"""The overview as text, data, drawing and page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from kubectl_gpuadmit.overview.build import overview
from kubectl_gpuadmit.overview.difference import difference
from kubectl_gpuadmit.overview.lineage import lineage
from kubectl_gpuadmit.overview.model import Overview
from kubectl_gpuadmit.render.encoding import as_json
from kubectl_gpuadmit.render.topology import data, drawing, html, text
from kubectl_gpuadmit.render.topology import difference as difference_text
from kubectl_gpuadmit.render.topology import lineage as lineage_text
from kubectl_gpuadmit.render.topology.colours import inks
from tests.overview.fleet import cluster, hgx, map_of, policy, runs
from tests.placement.build import NOW, node

EVIL = '<script>alert("x")</script>'
SCHEMA = json.loads(
    resources.files("kubectl_gpuadmit").joinpath("schema/topology-v1.json").read_text()
)


def fleet(*, moved: bool = False) -> Overview:
    holders = {0: "a/llama-0", 1: "a/llama-0", 5: "b/sweep-0"} | ({2: "b/late-0"} if moved else {})
    objects = [
        hgx("inf-0"),
        map_of("inf-0", holders=holders, residue={6: 3174}, down={2: (3, 4, 5, 6)}),
        runs("llama-0", "inf-0", 2, workload_class="inference"),
        runs("sweep-0", "inf-0", 1, workload_class="training", namespace="b"),
        hgx("trn-0", pool="train"),
        map_of("trn-0", lost=(3,) if moved else ()),
        node("old-0", 4),
        runs("x", "old-0", 1),
    ]
    if moved:
        objects.append(runs("late-0", "inf-0", 1, workload_class="training", namespace="b"))
    given = cluster(*objects)
    return overview(given, policy(), now=NOW, source="snapshot s", kind="snapshot")


def valid(document: Any) -> None:
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_summary_has_pools_then_alerts_then_what_it_rests_on() -> None:
    assert text.summary(fleet()).plain.rstrip("\n").splitlines() == [
        "POOL       NODES   GPUS   held   free  unfree  clean placements left   islands",
        "inf            1      8      3      4       1  1:4  2:2  4:0  8:0      1 split",
        "train          1      8      0      8       0  1:8  2:4  4:2  8:1      whole",
        "(no pool)      1      4      1      3       0  1:0  2:0  4:0  8:0      1 ?",
        "",
        "! inf-0  GPU 2   NVLink 14 of 18 links up (down: 3, 4, 5, 6) · degraded since",
        "         09:12 UTC",
        "! inf-0  GPU 6   3.1 GiB in use by nobody (residue) · unfree until reset",
        "",
        "Rests on  snapshot s · as of 2026-11-29 12:00:00 UTC",
        "topo NODE for the matrix · --watch · -o html",
    ]


def test_a_node_is_told_as_its_matrix_with_holders() -> None:
    found = fleet()
    shown = text.node(Overview("s", "snapshot", NOW, (), (), found.nodes[:1])).plain
    assert shown.rstrip("\n").splitlines() == [
        "inf-0  8 × NVIDIA H100 80GB HBM3 · NVLink, 1 island of 8 · 2 NUMA nodes",
        "  agent map 12 s old",
        "      0    1    2    3    4    5    6    7     NUMA  holder",
        "┌  0  ·    NV18 NV14 NV18 NV18 NV18 NV18 NV18     0  a/llama-0 inference",
        "│  1  NV18 ·    NV14 NV18 NV18 NV18 NV18 NV18     0  a/llama-0 inference",
        "│  2  NV14 NV14 ·    NV14 NV14 NV14 NV14 NV14     0  free",
        "│  3  NV18 NV18 NV14 ·    NV18 NV18 NV18 NV18     0  free",
        "│  4  NV18 NV18 NV14 NV18 ·    NV18 NV18 NV18     1  free",
        "│  5  NV18 NV18 NV14 NV18 NV18 ·    NV18 NV18     1  b/sweep-0 training",
        "│  6  NV18 NV18 NV14 NV18 NV18 NV18 ·    NV18     1  (3.1 GiB residue)",
        "│  7  NV18 NV18 NV14 NV18 NV18 NV18 NV18 ·        1  free",
        "free: 4 whole GPUs · clean for 2: 2 placements · for 4: none",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for shown in (
        text.summary(fleet(), width=width, details=True),
        text.node(fleet(), width=width),
    ):
        assert all(len(line) <= width for line in shown.plain.splitlines())


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert text.summary(fleet(), ascii=True, details=True).plain.isascii()


def test_the_data_keeps_to_its_schema() -> None:
    document = json.loads(as_json(data.to_json(fleet())))
    valid(document)
    first = document["nodes"][0]
    assert (first["source"], first["ageSeconds"], first["islands"]) == (
        "agent",
        12,
        [list(range(8))],
    )
    assert first["cleanPlacements"] == {"1": 4, "2": 2, "4": 0, "8": 0}
    assert first["gpus"][5]["holder"]["pod"] == "sweep-0"
    assert {"a": 0, "b": 2, "type": "NV14", "lanes": 14, "lanesTotal": 18} in first["links"]
    unclear = document["nodes"][2]
    assert (unclear["free"], unclear["cleanPlacements"], unclear["links"]) == (3, None, None)


def test_a_drawing_is_sound_xml_that_names_every_gpu() -> None:
    found = fleet()
    svg = drawing.document(found.nodes[0], inks(found.nodes))
    root = ElementTree.fromstring(svg)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert [t.split(" · ")[0] for t in titles[1:]] == [f"GPU {i}" for i in range(8)]
    assert "GPU 6 · unfree: 3.1 GiB residue" in titles[7]
    broken = [e for e in root.iter() if e.get("class") == "down"]
    assert len(broken) == 7, "a GPU with dead links is drawn to each of the others"


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "line", "rect", "path"):
            self.open.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "action", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def test_the_page_needs_nothing_else_and_runs_nothing() -> None:
    page = html.page(fleet())
    parser = Seen()
    parser.feed(page)
    assert parser.links == []
    assert not {"script", "link", "img", "iframe", "form"} & set(parser.tags)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert parser.tags.count("svg") == 3, "the hatching, and a drawing of each node with named GPUs"


def test_names_of_the_cluster_are_text_in_page_and_drawing() -> None:
    evil = hgx("inf-0")
    found = overview(
        cluster(evil, map_of("inf-0", product=EVIL, problems=[EVIL])),
        policy(),
        now=NOW,
        source=EVIL,
        kind="snapshot",
    )
    page = html.page(found)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_large_cluster_is_drawn_only_where_there_is_something_to_say() -> None:
    objects: list[Any] = []
    for number in range(150):
        name = f"inf-{number:03}"
        objects += [hgx(name), map_of(name, residue={1: 500} if number == 7 else {})]
    found = overview(cluster(*objects), policy(), now=NOW, source="s", kind="snapshot")
    page = html.page(found)
    assert page.count('<svg viewBox="0 0') == 1
    assert page.count('class="strip"') == 149
    assert "149 more nodes" in page


def test_classes_keep_their_colour_and_never_share_a_letter() -> None:
    found = inks(fleet().nodes)
    assert [(name, ink.letter) for name, ink in found.items()] == [
        ("inference", "I"),
        ("training", "T"),
        ("", "-"),
    ]


def test_what_changed_between_two_overviews() -> None:
    found = difference(fleet(), fleet(moved=True))
    assert found.worse
    assert [(a.code, a.node) for a in found.new_alerts] == [("gpu-lost", "trn-0")]
    assert found.ended_alerts == ()
    told = [(c.node, c.gpu, c.what, c.before, c.after, c.worse) for c in found.changes]
    assert told == [
        ("inf-0", None, "clean placements", "1:4 2:2 4:0 8:0", "1:3 2:1 4:0 8:0", True),
        ("inf-0", 2, "holder", "free", "b/late-0", None),
        ("trn-0", None, "islands", "8", "7", None),
        ("trn-0", None, "clean placements", "1:8 2:4 4:2 8:1", "1:7 2:3 4:1 8:0", True),
        ("trn-0", 3, "holder", "free", "unhealthy", True),
    ]
    valid(json.loads(as_json(difference_text.to_json(found))))
    shown = difference_text.text(found).plain
    assert "✗ new   trn-0" in shown
    assert "  GPU 2 holder       free → b/late-0" in shown.splitlines()
    same = difference(fleet(), fleet())
    assert (same.worse, same.changes) == (False, ())
    assert "nothing differs" in difference_text.text(same).plain


def test_the_way_from_a_pod_to_its_devices() -> None:
    objects = (
        hgx("inf-0"),
        map_of("inf-0", holders={0: "a/llama-0"}),
        runs("llama-0", "inf-0", 2, workload_class="inference"),
    )
    given = cluster(*objects)
    pod = next(p for p in given.pods() if p.name == "llama-0")
    found = lineage(given, pod, policy(), NOW)
    named, counted = found.steps
    assert (named.uuid, named.pci_bus_id, named.numa, named.source) == (
        "GPU-inf-0-0",
        "0000:10:00.0",
        0,
        "agent",
    )
    assert (counted.resource, counted.count, counted.uuid) == ("nvidia.com/gpu", 1, None)
    shown = lineage_text.text(found).plain
    assert "    UUID          GPU-inf-0-0" in shown.splitlines()
    assert "    which one     not known" in shown.splitlines()
    valid({"schemaVersion": data.SCHEMA_VERSION, "lineage": [lineage_text.to_json(found)]})
