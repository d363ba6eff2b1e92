"""Files -> documents: how streams part, how kubectl reads scalars, and where everything stands."""

from __future__ import annotations

import gzip
import textwrap
from typing import Any

import pytest

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.manifests import Document, read_documents


def read(text: str | bytes, file: str = "m.yaml") -> list[Document | BadManifest]:
    raw = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    return list(read_documents(raw, file))


def data(text: str | bytes) -> list[dict[str, Any]]:
    found = read(text)
    for one in found:
        if isinstance(one, BadManifest):
            raise one
    return [one.data for one in found if isinstance(one, Document)]


def error(text: str | bytes) -> BadManifest:
    (found,) = read(text)
    assert isinstance(found, BadManifest)
    return found


def only(text: str | bytes) -> Document:
    (found,) = read(text)
    assert isinstance(found, Document), found
    return found


def told(found: Document | BadManifest) -> str:
    return (
        str(found) if isinstance(found, BadManifest) else f"{found.location} {found.data['kind']}"
    )


# -- streams ----------


def test_documents_part_at_separator_lines_and_empty_ones_are_left_out() -> None:
    found = read(
        """\
        # Source: chart/templates/empty.yaml
        ---
        # Source: chart/templates/a.yaml
        kind: A
        ---
        --- # nothing but a comment
        # here
        ---

        kind: B
        ...
        ---
        kind: C"""
    )
    assert [told(f) for f in found] == ["m.yaml:4 A", "m.yaml:10 B", "m.yaml:13 C"]
    assert [f.index for f in found if isinstance(f, Document)] == [0, 1, 2]


def test_a_broken_document_does_not_stop_the_others() -> None:
    found = read("kind: A\n---\nkind: [\n---\n- 1\n---\nkind: D\n")
    assert [told(f) for f in found] == [
        "m.yaml:1 A",
        "m.yaml:4:1: a value, or a closing ] or }, is missing here [bad-yaml]",
        "m.yaml:5: a manifest is a mapping, this is a list [not-a-mapping]",
        "m.yaml:7 D",
    ]


def test_text_after_a_separator_is_refused_as_kubectl_does() -> None:
    first, bad, last = read("kind: A\n--- kind: B\nkind: C\n---\nkind: D\n")
    assert [told(first), told(last)] == ["m.yaml:1 A", "m.yaml:5 D"]
    assert told(bad) == (
        "m.yaml:2:4: kubectl takes no text after ---, and here is 'kind: B' [bad-separator]"
    )


def test_three_dashes_inside_a_block_of_text_are_text() -> None:
    assert data("kind: A\nt: |\n  a\n  ---\n  b\n") == [{"kind": "A", "t": "a\n---\nb\n"}]


def test_text_after_an_end_marker_is_a_warning_because_kubectl_drops_it() -> None:
    document = only("kind: A\n...\nkind: B\n")
    assert document.data == {"kind": "A"}
    assert [(w.reason, w.level, w.evidence[0].subject) for w in document.warnings] == [
        ("manifest/ignored-text", "warn", "m.yaml:2")
    ]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    plain = "kind: A\nt: |\n  a\n  b\n---\nkind: B\n"
    mangled = b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode()
    assert data(mangled) == data(plain)
    assert [told(f) for f in read(mangled)] == ["m.yaml:1 A", "m.yaml:6 B"]


def test_nothing_at_all_is_no_document() -> None:
    assert [read(t) for t in ("", "\n \n", "---\n", "# c\n", "---\n---\n# c", "null\n", "~")] == [
        []
    ] * 7


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("kind: A".encode("utf-16"), "this is UTF-16 or UTF-32 text"),
        ("kind: A".encode("utf-16-be"), "this is UTF-16 or UTF-32 text"),
        (gzip.compress(b"kind: A"), "this is compressed data"),
        (b"PK\x03\x04rest", "this is compressed data"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "this is binary data"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(raw: bytes, message: str) -> None:
    found = error(raw)
    assert (found.ref, found.line, found.message.startswith(message)) == ("not-text", 1, True)
    assert found.hint


def test_a_bad_byte_is_named_with_its_line() -> None:
    found = error(b"kind: A\nname: \xff\n")
    assert (found.ref, found.line, found.column) == ("bad-yaml", 2, 7)


# -- scalars, as kubectl's reader has them ----------


def test_plain_scalars_resolve_as_in_kubectl() -> None:
    text = """\
        yes: [yes, n, on, Off, true, y]
        int: [017, 0o17, 0x1F, 0b11, 1_000, 08, -1, +1]
        float: [1.0, 1e3, .5, 1., 1_0.5, 1e400, 1e21]
        big: [9223372036854775807, 9223372036854775808, 123456789012345678901234567890]
        text: [12:30:45, 2001-01-01, 1e, 0x, ., 1.2.3, <<, =]
        none: [~, null, Null, '', ]
        tagged: [!!str 1, !!int "3", !!float 1, !mine x, !!binary aGk=]
        """
    (found,) = data(text)
    assert found == {
        "true": [True, False, True, False, True, True],
        "int": [15, 15, 31, 3, 1000, 8, -1, 1],
        "float": [1, 1000, 0.5, 1, 10.5, "1e400", 1e21],
        "big": [9223372036854775807, 9.223372036854775808e18, 1.2345678901234568e29],
        "text": ["12:30:45", "2001-01-01", "1e", "0x", ".", "1.2.3", "<<", "="],
        "none": [None, None, None, ""],
        "tagged": ["1", 3, 1, "x", "hi"],
    }
    assert [type(n) for n in found["float"]] == [int, int, float, int, float, str, float]
    assert [type(n) for n in found["int"]] == [int] * 8


def test_keys_become_text() -> None:
    assert data("{1: a, 1.5: b, on: c, 0x10: d, 1e6: e, 2001-01-01: f, 0.1: g}") == [
        {"1": "a", "1.5": "b", "true": "c", "16": "d", "1e+06": "e", "2001-01-01": "f", "0.1": "g"}
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: A\n~: 1\n", "m.yaml:2:1: an empty key cannot be used in a manifest"),
        ("kind: A\n18446744073709551615: 1\n", "m.yaml:2:1: the key 18446744073709551615 cannot"),
        ("kind: A\n[a]: 1\n", "m.yaml:2:1: a list or mapping cannot be a key here"),
        ("kind: A\nn: .nan\n", "m.yaml:2:4: nan is not a number that JSON can carry"),
        ("kind: A\nn: !!int x\n", "m.yaml:2:4: 'x' cannot be read as !!int"),
    ],
)
def test_what_json_cannot_carry_is_refused(text: str, told: str) -> None:
    assert str(error(text)).startswith(told)


# -- anchors, merges, duplicates ----------


def test_aliases_are_copies() -> None:
    (found,) = data("a: &x {k: [1]}\nb: *x\nc: &x 5\nd: *x\n&y e: *y\n")
    assert found == {"a": {"k": [1]}, "b": {"k": [1]}, "c": 5, "d": 5, "e": "e"}
    assert found["a"] is not found["b"]


def test_a_merge_is_applied_where_it_stands() -> None:
    text = """\
        x: &x {p: 1, q: 1}
        below: {<<: *x, p: 2}
        list: {<<: [*x, {q: 3, r: 3}]}
        above: {p: 2, <<: *x}
        quoted: {"<<": 1}
        """
    document = only(text)
    assert document.data == {
        "x": {"p": 1, "q": 1},
        "below": {"p": 2, "q": 1},
        "list": {"p": 1, "q": 1, "r": 3},
        "above": {"p": 1, "q": 1},
        "quoted": {"<<": 1},
    }
    assert [(w.reason, w.field, w.evidence[0].subject) for w in document.warnings] == [
        ("manifest/merge-override", "/above/p", "m.yaml:4")
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x\n  b: *x\n", "m.yaml:2:6: the anchor &x contains itself [bad-yaml]"),
        ("a: &x [*x]\n", "m.yaml:1:8: the anchor &x contains itself [bad-yaml]"),
        ("a: *x\n", "m.yaml:1:4: the alias *x names no anchor &x above it [bad-yaml]"),
        ("a: {<<: 1}\n", "m.yaml:1:9: << needs a mapping, or a list of mappings [bad-yaml]"),
    ],
)
def test_a_senseless_anchor_is_one_clear_error(text: str, told: str) -> None:
    assert str(error(text)) == told


def test_a_small_file_that_expands_to_a_huge_one_is_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    found = error("\n".join(lines))
    assert (found.ref, found.message) == (
        "bad-yaml",
        "the aliases of this document expand to far too much",
    )


def test_the_last_of_two_equal_keys_counts_and_is_warned_about() -> None:
    document = only("kind: A\nspec:\n  replicas: 1\n  m:\n  - a: 1\n    a: 2\n  replicas: 3\n")
    assert document.data == {"kind": "A", "spec": {"replicas": 3, "m": [{"a": 2}]}}
    assert [(w.field, w.evidence[0].subject) for w in document.warnings] == [
        ("/spec/m/0/a", "m.yaml:6"),
        ("/spec/replicas", "m.yaml:7"),
    ]
    assert document.position("/spec/replicas") == (7, 3)
    assert document.warnings[1].detail == (
        "key replicas is written twice in one mapping; kubectl keeps the last"
    )


def test_equal_keys_in_json_are_warned_about_too() -> None:
    document = only('{"kind": "A",\n "spec": {"n": 1, "n": 2}}')
    assert document.data == {"kind": "A", "spec": {"n": 2}}
    assert [(w.field, w.evidence[0].subject) for w in document.warnings] == [
        ("/spec/n", "m.yaml:2")
    ]
    assert document.position("/spec/n") == (2, 19)


# -- messages ----------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "kind: A\nspec:\n\treplicas: 1\n",
            "m.yaml:3:1: a tab is used where YAML needs spaces [bad-yaml]",
            "indent with spaces",
        ),
        (
            "kind: A\nspec:\n  a: 1\n b: 2\n",
            "m.yaml:4:2: a key was expected here [bad-yaml]",
            "compare its indentation with the lines above",
        ),
        (
            "kind: A\nname: a: b\n",
            "m.yaml:2:8: a key is not expected here [bad-yaml]",
            "compare its indentation with the lines above; quote a text that holds ': '",
        ),
        (
            "kind: A\nspec: {{ .Values.spec }}\n",
            "m.yaml:2:8: a list or mapping cannot be a key here [bad-yaml]",
            "render it first: helm template, kustomize build or envsubst",
        ),
        (
            "{{- if .Values.on }}\nkind: A\n{{- end }}\n",
            "m.yaml:1:2: not JSON: expecting property name enclosed in double quotes [bad-json]",
            "render the template first: helm template, kustomize build or envsubst",
        ),
        (
            'kind: A\nname: "abc\n',
            "m.yaml:3:1: the document ends in the middle of a value: was the file cut? [bad-yaml]",
            "",
        ),
        ("kind:A\n", "m.yaml:1: a manifest is a mapping, this is text [not-a-mapping]", "each"),
        (
            "hello\n",
            "m.yaml:1: a manifest is a mapping, this is text [not-a-mapping]",
            "a manifest",
        ),
        ("[1]\n", "m.yaml:1: a manifest is a mapping, this is a list [not-a-mapping]", "put the"),
        ('{"kind": "A"', "m.yaml:1:13: the JSON ends in the middle of a value", ""),
        ('{"a": 1 "b": 2}', "m.yaml:1:9: not JSON: expecting ',' delimiter", "is a comma missing"),
        ('{"kind" "A"}', "m.yaml:1:9: not JSON: expecting ':' delimiter [bad-json]", ""),
        ('{"n": 1e999}', "m.yaml:1:7: 1e999 is not a number that JSON can carry", "quote it"),
    ],
)
def test_an_error_says_where_what_and_what_to_do(text: str, message: str, hint: str) -> None:
    found = error(text)
    assert str(found)[: len(message)] == message
    assert found.hint[: len(hint)] == hint


@pytest.mark.parametrize("opening", ["[", '{"a":', "- ", "a: {b: ["])
def test_nesting_without_end_is_refused(opening: str) -> None:
    for repeat in (300, 2_000, 50_000):
        found = read("kind: A\nx:\n  " + opening * repeat)
        assert [f.ref for f in found if isinstance(f, BadManifest)] == ["bad-yaml"]


def test_json_nested_without_end_is_refused() -> None:
    for repeat in (300, 2_000, 100_000):
        assert error('{"a":' * repeat + "1" + "}" * repeat).ref == "bad-json"


# -- JSON ----------


def test_json_documents_may_follow_one_another_in_any_way() -> None:
    text = '{"kind": "A"}{"kind": "B"}\n{"kind": "C"}\n\n  {"kind": "D"}'
    assert [told(f) for f in read(text)] == ["m.yaml:1 A", "m.yaml:1 B", "m.yaml:2 C", "m.yaml:4 D"]


def test_json_documents_may_be_parted_like_yaml() -> None:
    assert [told(f) for f in read('{"kind": "A"}\n---\n{"kind": "B"}\n---\nkind: C\n')] == [
        "m.yaml:1 A",
        "m.yaml:3 B",
        "m.yaml:5 C",
    ]


def test_what_follows_json_after_a_separator_has_its_own_error() -> None:
    assert [told(f) for f in read('{"kind": "A"}\n---\n- 1\n')] == [
        "m.yaml:1 A",
        "m.yaml:3: a manifest is a mapping, this is a list [not-a-mapping]",
    ]


def test_a_broken_line_of_json_does_not_stop_the_next() -> None:
    found = read('{"kind": "A"}\n{"kind": "B"}\n{"kind": ]}\n{"kind": "C"}\n')
    assert [told(f) for f in found] == [
        "m.yaml:1 A",
        "m.yaml:2 B",
        "m.yaml:3:10: not JSON: expecting value [bad-json]",
        "m.yaml:4 C",
    ]


def test_yaml_in_braces_is_read_as_yaml() -> None:
    assert data("{kind: A, # comment\n m: 1}") == [{"kind": "A", "m": 1}]


def test_json_numbers_are_those_that_kubectl_sends_on() -> None:
    (found,) = data('{"n": [1.0, 1e3, 0.5, 9223372036854775808, -0.0, 1e21, "\\ud800x"]}')
    assert found == {"n": [1, 1000, 0.5, 9.223372036854775808e18, 0, 1e21, "\ufffdx"]}
    assert [type(n) for n in found["n"][:3]] == [int, int, float]


# -- Lists ----------

YAML_LIST = """\
apiVersion: v1
kind: List
items:
- kind: A
  metadata:
    name: a
- # comment
  kind: List
  items:
  - {kind: B, metadata: {name: b}}
- text
- kind: C
"""
JSON_LIST = """\
{"apiVersion": "v1", "kind": "List", "items": [
  {"kind": "A", "metadata": {
    "name": "a"}},
  {"kind": "List", "items": [{"kind": "B", "metadata": {"name": "b"}}]},
  "text",
  {"kind": "C"}
]}
"""


@pytest.mark.parametrize(
    ("text", "places", "names"),
    [
        (YAML_LIST, ["m.yaml:4 A", "m.yaml:10 B", "m.yaml:12 C"], [(6, 5), (10, 26)]),
        (JSON_LIST, ["m.yaml:2 A", "m.yaml:4 B", "m.yaml:6 C"], [(3, 5), (4, 57)]),
    ],
    ids=["yaml", "json"],
)
def test_a_list_is_taken_apart_with_the_place_of_each_item(
    text: str, places: list[str], names: list[tuple[int, int]]
) -> None:
    found = read(text)
    documents = [f for f in found if isinstance(f, Document)]
    assert [told(d) for d in documents] == places
    assert [d.pointer for d in documents] == ["/items/0", "/items/1/items/0", "/items/3"]
    assert [d.position("/metadata/name") for d in documents[:2]] == names
    (bad,) = [f for f in found if isinstance(f, BadManifest)]
    assert (bad.message, bad.field) == ("an item of a List is an object, this is text", "items[2]")


@pytest.mark.parametrize("form", ["{}", "---\n{}"], ids=["json", "yaml"])
def test_items_of_a_typed_list_get_its_kind(form: str) -> None:
    text = (
        '{"apiVersion": "v1", "kind": "PodList", "items": '
        '[{"metadata": {"name": "a"}}, {"kind": "X", "apiVersion": "y/v1"}]}'
    )
    assert data(form.format(text)) == [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"kind": "X", "apiVersion": "y/v1"},
    ]


def test_a_kind_that_only_sounds_like_a_list_is_left_whole() -> None:
    assert data("kind: AllowList\nspec: {items: [1]}\n") == [
        {"kind": "AllowList", "spec": {"items": [1]}}
    ]


def test_an_empty_list_holds_nothing_and_a_senseless_one_is_refused() -> None:
    assert read("kind: List\nitems: []\n---\nkind: PodList\nitems:\n---\nkind: List\n") == []
    assert str(error("kind: List\nitems:\n  kind: A\n")) == (
        "m.yaml:2:1 items: items is not a list [not-a-list]"
    )


def test_a_warning_inside_a_list_belongs_to_its_item() -> None:
    first, second = read("kind: List\nitems:\n- {kind: A}\n- kind: B\n  m: 1\n  m: 2\n")
    assert isinstance(first, Document) and isinstance(second, Document)
    assert [w.field for w in first.warnings] == []
    assert [w.field for w in second.warnings] == ["/m"]


# -- places ----------

PLACED = """\
# comment
---
kind: A
metadata:
  labels:
    a.b/c~d: x
    on: y
spec:
  list: [{m: 1}, two]
  items:
  - name: c
    from: &f {deep: 1}
  - name: d
    from: *f
    <<: {merged: 1}
"""


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (3, 1)),
        ("/kind", (3, 1)),
        ("/metadata/labels/a.b~1c~0d", (6, 5)),
        ("/metadata/labels/true", (7, 5)),
        ("/spec/list/0/m", (9, 11)),
        ("/spec/list/1", (9, 18)),
        ("/spec/items/0", (11, 5)),
        ("/spec/items/0/from/deep", (12, 15)),
        ("/spec/items/1/from/deep", (14, 5)),
        ("/spec/items/1/merged", (13, 5)),
        ("/spec/absent/deeper", (8, 1)),
        ("/spec/items/7", (10, 3)),
        ("/nowhere", (3, 1)),
    ],
)
def test_every_field_has_a_place(pointer: str, place: tuple[int, int]) -> None:
    assert only(PLACED).position(pointer) == place


@pytest.mark.parametrize(
    ("pointer", "place"),
    [("", (2, 3)), ("/a", (2, 4)), ("/a/1/b~1c", (3, 7)), ("/a/9", (2, 4)), ("/é/x", (4, 2))],
)
def test_every_field_of_json_has_a_place(pointer: str, place: tuple[int, int]) -> None:
    text = '\n  {"a": [1,\n     {"b/c": "}]"}],\n "é": {"y": -1.5e3}}'
    assert only(text.encode()).position(pointer) == place


def test_a_document_made_by_hand_has_the_place_of_its_line() -> None:
    document = Document(file="live", index=0, line=1, data={"kind": "A"})
    assert (document.location, document.position("/kind")) == ("live:1", (1, 1))
