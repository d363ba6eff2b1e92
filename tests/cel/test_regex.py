"""Go's regular expressions: what is found, where, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.cel.regex import RegexError, compiled
from kubectl_gpuadmit.cel.regex_machine import Machine
from kubectl_gpuadmit.cel.regex_reader import Reader
from kubectl_gpuadmit.cel.values import Unsure


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a$", "a\n", False),
        ("(?m)a$", "a\nb", True),
        (r"\s", "\v", False),
        (r"[[:alpha:]]+\d", "ab1", True),
        ("(?i)h100", "H100", True),
        ("a(?i)b", "aB", True),
        ("a(?i)b", "AB", False),
        ("x{,2}", "x{,2}", True),
        (r"\x41\x{42}", "AB", True),
        (r"\bH100\b", "an H100.", True),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", True),
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-", False),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, found: bool) -> None:
    assert compiled(pattern).matches(text) is found


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing closing ): `(`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[a", "missing closing ]: `[a`"),
    ],
)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, said: str) -> None:
    with pytest.raises(RegexError) as refused:
        compiled(pattern)
    assert str(refused.value) == f"error parsing regexp: {said}"


def test_properties_of_unicode_are_not_evaluated() -> None:
    with pytest.raises(Unsure):
        compiled(r"\pL")


def test_an_empty_match_right_behind_a_match_does_not_count() -> None:
    assert compiled("a*").find_all("baaac", -1) == ["", "aaa", ""]
    assert compiled("[0-9]+").find_all("a1b22c333", 2) == ["1", "22"]


PARTS = st.sampled_from(["a", "b", "[ab]", ".", "a|b", "ab", "", "b$", "^a"])


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(PARTS)
    inner = draw(patterns(depth - 1))
    shape = draw(st.sampled_from(["({})*?", "({})+", "({})?", "({})", "(?:{}){{1,2}}"]))
    return shape.format(inner) + (draw(patterns(depth - 1)) if draw(st.booleans()) else "")


@given(patterns(), st.text("ab", max_size=6))
def test_both_engines_find_the_same(pattern: str, text: str) -> None:
    known = compiled(pattern)
    machine = Machine(Reader(pattern).alternatives())
    assert machine.find(text, 0) == known.find(text, 0)
