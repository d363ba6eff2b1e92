"""However a known text is wrapped, quoted, coloured or set into a table: same causes."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.diagnosis import pasted
from kubectl_gpuadmit.diagnosis.cause import Diagnosis
from kubectl_gpuadmit.diagnosis.pasted import statements
from kubectl_gpuadmit.diagnosis.reading import read

TEXTS = [
    row["text"]
    for table in sorted(Path(__file__).parent.glob("*.yaml"))
    for row in yaml.safe_load(table.read_text("utf-8"))
    if "\n" not in row["text"] and "   " not in row["text"]
]
"""Messages; rows of a table are no text that anybody wraps."""

WHOLE = [text for text in TEXTS if not text.startswith("des are")]
"""Those whose beginning is not cut off: in a table a message stands whole."""


def same(diagnosis: Diagnosis) -> list[tuple[object, ...]]:
    """Causes without blanks: of a line's end nobody can tell whether one stood there."""
    return [
        (
            cause.reason,
            cause.who,
            re.sub(r"\s", "", cause.detail),
            cause.next,
            [(e.what, re.sub(r"\s", "", str(e.observed)), e.wanted) for e in cause.evidence],
        )
        for cause in diagnosis.causes
    ]  # fmt: skip


def hard(text: str, width: int) -> Iterator[str]:
    for at in range(0, len(text), width):
        yield text[at : at + width]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(4, 120), st.integers(0, 40))
def test_words_wrapped_at_any_width_and_indented(text: str, width: int, indent: int) -> None:
    lines = textwrap.wrap(text, width)
    wrapped = ("\n" + " " * indent).join(lines)
    assert same(read(wrapped)) == same(read(text))


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(4, 120))
def test_lines_cut_within_words_at_any_width(text: str, width: int) -> None:
    lines = list(hard(text, width))
    # "resource: x" cut before its "source: x" leaves a line that is a field of an Event: nobody can
    # tell the two apart
    assume(not any(pasted._START.match(line) for line in lines[1:]))
    assert same(read("\n".join(lines))) == same(read(text))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WHOLE), st.integers(10, 80))
def test_the_message_column_of_describe(text: str, width: int) -> None:
    head = "  Warning  FailedScheduling  3s (x3 over 3s)  default-scheduler  "
    lines = textwrap.wrap(text, width)
    table = head + ("\n" + " " * len(head)).join(lines)
    assert same(read(f"Events:\n  Type     Reason  Age  From  Message\n{table}")) == same(
        read(text)
    )


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TEXTS))
def test_a_message_in_a_json_event(text: str) -> None:
    event = json.dumps({"kind": "Event", "type": "Warning", "reason": "X", "message": text})
    assert same(read(event)) == same(read(text))
    assert same(
        read(json.dumps({"items": [{"status": {"conditions": [{"message": text}]}}]}))
    ) == same(read(text))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TEXTS), st.integers(30, 90), st.sampled_from(["'", '"', None]))
def test_a_message_in_a_yaml_status(text: str, width: int, style: str | None) -> None:
    status = yaml.dump(
        {"status": {"conditions": [{"message": text, "reason": "Unschedulable"}]}},
        default_style=style,
        width=width,
    )
    assert same(read(status)) == same(read(text))


@pytest.mark.parametrize("text", TEXTS)
def test_colours_and_typographic_quotes_do_not_matter(text: str) -> None:
    coloured = "\x1b[1;31m" + text.replace(" ", " \x1b[0m", 1) + "\x1b[0m"
    assert same(read(coloured)) == same(read(text))
    assert same(read(text.replace("'", "\u2019"))) == same(read(text))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400))
def test_any_text_makes_statements_whose_bare_text_has_no_blank(text: str) -> None:
    for statement in statements(text):
        assert not re.search(r"\s", statement.bare)
        said = statement.said(0, len(statement.bare))
        assert re.sub(r"\s", "", said) == statement.bare


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(max_size=600),
        st.binary(max_size=600).map(lambda raw: raw.decode("utf-8", "replace")),
        st.lists(
            st.one_of(
                st.sampled_from(TEXTS),
                st.sampled_from(TEXTS).flatmap(
                    lambda t: st.integers(0, len(t)).map(lambda n: t[:n])
                ),
                st.sampled_from(TEXTS).flatmap(
                    lambda t: st.integers(0, len(t)).map(lambda n: t[n:])
                ),
                st.text(max_size=30),
            ),
            max_size=5,
        ).map(" ".join),
    )
)
def test_any_text_has_causes_or_is_said_not_to_be_understood(text: str) -> None:
    diagnosis = read(text)
    if text.strip() and any(s.bare for s in statements(text)):
        assert diagnosis.causes or diagnosis.not_understood
    for cause in diagnosis.causes:
        assert cause.detail and cause.next and cause.speaker
