"""Whatever the bytes, reading gives documents or BadManifest, and what was dumped reads back."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.decode import decode_bulk, decode_object
from kubectl_gpuadmit.kube.manifests import Document, read_documents

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no failure."""

GOOD = b"""\
# Source: chart/templates/a.yaml
apiVersion: v1
kind: Pod
metadata: {name: a, labels: &l {app: "a"}}
spec:
  nodeSelector:
    <<: *l
    zone: 'x'
  containers:
  - name: c
    args: [--model, "m", 1.5, yes]
    command:
    - |
      exec x
    resources:
      limits: {nvidia.com/gpu: 1, memory: 16Gi}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}
"""
GOOD_JSON = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [
            {"metadata": {"name": "a"}, "spec": {"priority": 1, "nodeSelector": {"\u00e9": "1"}}}
        ],
    },
    indent=1,
).encode()

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
    | st.sampled_from(["y", "no", "1e3", "0x1", "017", "2001-01-01", "~", "<<", "a: b", " x", "\n"])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abn1.<-:# é", max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
MAPPINGS = st.dictionaries(st.text("abn1.<-:# é", max_size=5), TREES, max_size=5)


def read(raw: bytes) -> list[Document | BadManifest]:
    """Reads, asks each document all it can be asked, and lets nothing but BadManifest through."""
    found = list(read_documents(raw, "f"))
    for one in found:
        if isinstance(one, BadManifest):
            assert one.message and "\n" not in one.message
            continue
        line, column = one.position("")
        assert (one.line, line >= 1, column >= 1) == (line, True, True)
        for pointer in pointers(one.data):
            assert one.position(pointer) >= (1, 1)
        for warning in one.warnings:
            assert one.position(warning.field) >= (1, 1)
        try:
            decode_object(one)
        except BadManifest as error:
            assert error.message and error.line
    return found


def pointers(data: Any, base: str = "") -> list[str]:
    steps = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    found = [base]
    for key, value in steps:
        step = str(key).replace("~", "~0").replace("/", "~1")
        found += pointers(value, f"{base}/{step}")
    return found[:50]


@relaxed
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
@example(b"{\x00")
@example(b"\xef\xbb\xbf{")
@example(b"- &a [*a]")
@example(b'{"a": "\\ud800"}')
@example(b"%YAML 1.1\n---\n? a\n: b\n")
@example(b"a: 9" + b"9" * 5000)
@example(b'{"kind": "A", "n": ' + b"9" * 5000 + b"}")
@example(b"kind: A\r---\rkind: B\r")
@example(b"\xe2\x80\xa8kind: A")
def test_any_bytes_are_documents_or_one_clear_error_each(raw: bytes) -> None:
    read(raw)
    try:
        decode_bulk(raw, "f")
    except BadManifest as error:
        assert error.message


@relaxed
@given(
    st.sampled_from([GOOD, GOOD_JSON]),
    st.lists(
        st.tuples(
            st.integers(0, 600),
            st.integers(0, 30),
            st.sampled_from(
                [b"", b"\t", b"\n", b"---\n", b"&a ", b"*a", b"<<: ", b"{", b"]", b'"', b"'", b": ",
                 b"- ", b"#", b"\x00", b"\xff", b"!!int ", b"{{ x }}", b"null", b"...\n", b"%"]
            ),
        ),
        min_size=1,
        max_size=4,
    ),
)  # fmt: skip
def test_a_mutated_manifest_is_read_or_refused_but_never_crashes(
    raw: bytes, cuts: list[tuple[int, int, bytes]]
) -> None:
    for at, length, put in cuts:
        raw = raw[:at] + put + raw[at + length :]
    read(raw)
    try:
        decode_bulk(raw, "f")
    except BadManifest as error:
        assert error.message


@relaxed
@given(st.sampled_from([GOOD, GOOD_JSON]), st.integers(0, 700))
def test_a_cut_manifest_is_read_or_refused_but_never_crashes(raw: bytes, end: int) -> None:
    read(raw[:end])


@relaxed
@given(st.lists(MAPPINGS, min_size=1, max_size=3), st.booleans())
def test_what_pyyaml_writes_reads_back(data: list[dict[str, Any]], flow: bool) -> None:
    text = "---\n".join(
        yaml.dump(d, Dumper=Quoting, default_flow_style=flow, allow_unicode=True) for d in data
    )
    assert [d.data for d in documents(text.encode())] == data


@relaxed
@given(st.lists(MAPPINGS, min_size=1, max_size=3), st.sampled_from([None, 1]))
def test_what_json_writes_reads_back(data: list[dict[str, Any]], indent: int | None) -> None:
    text = "\n".join(json.dumps(d, indent=indent) for d in data)
    assert [d.data for d in documents(text.encode())] == data


class Quoting(yaml.SafeDumper):
    """Quotes all text: PyYAML writes ``n`` and ``1e3`` plain, which are no text to kubectl."""


Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def documents(raw: bytes) -> list[Document]:
    found = read(raw)
    assert not [one for one in found if isinstance(one, BadManifest)], found
    return [one for one in found if isinstance(one, Document)]


@relaxed
@given(MAPPINGS, st.sampled_from([None, 1]))
def test_json_and_the_same_as_yaml_have_the_same_values_and_places(
    data: dict[str, Any], indent: int | None
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    (as_json,) = documents(text.encode())
    (as_yaml,) = documents(f"---\n{text}\n".encode())
    assert as_json.data == as_yaml.data
    for pointer in pointers(data):
        line, column = as_yaml.position(pointer)
        assert as_json.position(pointer) == (line - 1, column)
