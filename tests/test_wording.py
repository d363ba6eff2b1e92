"""Words, numbers and widths, from whatever a cluster's users may have written."""

from __future__ import annotations

import json
import unicodedata
import xml.etree.ElementTree as ET

import pytest
import yaml
from golden.verdicts import DENIED, WAITS
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kubectl_gpuadmit.render import wording
from kubectl_gpuadmit.render.data import to_json, to_yaml
from kubectl_gpuadmit.render.junit import to_junit
from kubectl_gpuadmit.render.markdown import code_span, to_markdown
from kubectl_gpuadmit.render.nodes import folded
from kubectl_gpuadmit.render.sarif import artifact, place, to_sarif
from kubectl_gpuadmit.render.table import check
from kubectl_gpuadmit.render.text import explain
from kubectl_gpuadmit.verdict import (
    Evidence,
    Finding,
    Group,
    NodeVerdict,
    Ref,
    Report,
    Shortfall,
    Source,
    Verdict,
)

anything = st.text(st.characters())


@given(anything)
def test_cleaned_text_is_one_line_without_control_or_direction_characters(text: str) -> None:
    for ascii in (False, True):
        line = wording.clean(text, ascii=ascii)
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in line)
        assert not any(
            unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "RLI") for c in line
        )
        assert wording.clean(line, ascii=ascii) == line
        assert line.isascii() or not ascii


@given(anything, st.integers(0, 40))
def test_a_cut_name_holds_its_columns(text: str, width: int) -> None:
    text = wording.clean(text)
    for ascii in (False, True):
        assert wording.cells(wording.cut(text, width, ascii=ascii)) <= max(width, 0)


@given(anything, st.integers(8, 60))
def test_wrapping_holds_its_columns_and_loses_no_word(text: str, width: int) -> None:
    text = wording.clean(text)
    lines = wording.wrap(text, width)
    assert all(wording.cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", ["plain", "资源配额", "é", "e\u0301", "✓ ✗ · × →", "한글"])
def test_columns_are_counted_as_the_terminal_library_counts_them(text: str) -> None:
    assert wording.cells(text) == cell_len(text)


@given(anything, anything, anything, anything)
def test_any_text_goes_through_every_renderer(one: str, two: str, three: str, four: str) -> None:
    verdict = Verdict(
        Ref(one, two, three, four), f"{two}:3", 1, {one: 1}, "denied", "never", "not-a-model",
        blockers=(f"a/{one}",),
        findings=(Finding(f"a/{one}", two, (Evidence(three, four, one, two, three),), rule=four),),
        nodes=(NodeVerdict(one, False, (Shortfall(two, three, "p/q", 1, 2, 3, subject=four),)),),
        waits_for=(one,), decided_by=two,
    )  # fmt: skip
    report = Report("2026-03-01T12:00:00Z", Source("snapshot", three), (verdict,), policy=four)
    for text in (explain(report, details=True).plain, check(report).plain):
        assert all(wording.cells(line) <= 80 for line in text.splitlines())
    document = json.loads(to_json(report))
    assert yaml.safe_load(to_yaml(report)) == document
    assert json.loads(to_sarif(report, version="1", catalogue={}))
    assert ET.fromstring(to_junit(report)) is not None
    assert to_markdown(report).count("\n") > 3


@pytest.mark.parametrize(
    ("resource", "number", "said"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 16000, "16"),
        ("memory", 64 << 30, "64 GiB"),
        ("memory", 81559 << 20, "79.6 GiB"),
        ("ephemeral-storage", 512, "512 B"),
        ("hugepages-2Mi", 2 << 20, "2 MiB"),
        ("nvidia.com/gpu", 40000, "40,000"),
        ("nvidia.com/gpu", None, "?"),
    ],
)
def test_amounts_carry_their_unit(resource: str, number: int | None, said: str) -> None:
    assert wording.amount(resource, number) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s old"),
        (90, "90 s old"),
        (260, "4 min old"),
        (7300, "2 h old"),
        (777600, "9 days old"),
    ],
)
def test_ages_are_told_in_one_unit(seconds: int, said: str) -> None:
    assert wording.age(seconds) == said


def test_what_is_asked_is_told_by_role_where_roles_differ() -> None:
    assert wording.asks(DENIED) == "3 pods × 4 nvidia.com/gpu"
    assert wording.asks(WAITS) == "1 leader + 3 worker × 8 nvidia.com/gpu"
    bare = {f: getattr(DENIED, f) for f in DENIED.__struct_fields__} | {"groups": ()}
    assert wording.asks(Verdict(**bare)) == "3 pods · 12 nvidia.com/gpu"
    two = {"groups": (Group("", 1, {"a/gpu": 1, "b/gpu": 2}),), "pods": 1}
    assert wording.asks(Verdict(**bare | two)) == "1 pod with 1 a/gpu, 2 b/gpu"


def test_evidence_about_one_thing_shares_a_line() -> None:
    lines = wording.evidence_lines(
        (
            Evidence("q", "requests.nvidia.com/gpu asked", 4, None, "s"),
            Evidence("q", "requests.nvidia.com/gpu used", 8, None, "s"),
            Evidence("other", "requests.nvidia.com/gpu limit", 9, None, "s"),
            Evidence("q", "label team", None, "any value"),
            Evidence("q", "phase", "Terminating", "Active"),
        )
    )
    assert lines == [
        ("requests.nvidia.com/gpu", "asked 4 · used 8", "s"),
        ("requests.nvidia.com/gpu", "limit 9", "s"),
        ("label team", "is absent · should be any value", ""),
        ("phase", "is Terminating · should be Active", ""),
    ]


def test_nodes_fold_under_their_permanent_reason_largest_group_first() -> None:
    def short(used: int, *, permanent: bool = False) -> Shortfall:
        return Shortfall(
            "NodeResourcesFit", "Insufficient x/gpu", "p/i", 4, used, 8, permanent, "", "x/gpu"
        )

    cordoned = Shortfall("NodeUnschedulable", "node(s) were unschedulable", "p/c", permanent=True)
    nodes = (
        NodeVerdict("a", True),
        NodeVerdict("b", False, (short(6),)),
        NodeVerdict("c", False, (short(7),)),
        NodeVerdict("d", False, (short(8), cordoned)),
    )
    assert folded(nodes) == [
        "1 fit",
        "2 short of x/gpu (need 4, best has 2 free)",
        "1 cordoned",
    ]


@pytest.mark.parametrize(
    ("pointer", "said"),
    [
        ("/spec/replicas", "spec.replicas"),
        (
            "/spec/containers/0/resources/limits/nvidia.com~1gpu",
            'spec.containers[0].resources.limits["nvidia.com/gpu"]',
        ),
        ("/spec/tolerations/-", "spec.tolerations[+]"),
        ("", ""),
    ],
)
def test_fields_are_named_as_kubectl_names_them(pointer: str, said: str) -> None:
    assert wording.pointer(pointer) == said


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("a.yaml:3", ("a.yaml", 3)),
        ("a:b.yaml:3:7", ("a:b.yaml", 3)),
        ("deploy/x", ("", 0)),
        ("a:0", ("", 0)),
    ],
)
def test_a_place_is_a_file_and_a_line_or_nothing(location: str, found: tuple[str, int]) -> None:
    assert place(location) == found


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b.yaml", {"uri": "a%20b.yaml", "uriBaseId": "%SRCROOT%"}),
        ("./d/a.yaml", {"uri": "d/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("d\\a.yaml", {"uri": "d/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/d/a.yaml", {"uri": "file:///d/a.yaml"}),
        ("C:\\d\\a.yaml", {"uri": "file:///C:/d/a.yaml"}),
        ("<stdin>", {"uri": "%3Cstdin%3E", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_files_are_named_by_uri(file: str, uri: dict[str, str]) -> None:
    assert artifact(file) == uri


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("", "`  `"), ("a|b", "`a\\|b`")],
)
def test_code_spans_hold(text: str, span: str) -> None:
    assert code_span(text, cell=True) == span
