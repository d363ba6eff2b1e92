"""The shipped JSON Schema says what the loader says."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit import rules
from kubectl_gpuadmit.errors import BadPolicy
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.policy.lint import lint
from kubectl_gpuadmit.policy.load import load_policy
from kubectl_gpuadmit.policy.schema import policy_schema
from kubectl_gpuadmit.policy.shape import UNSOUND, sound
from kubectl_gpuadmit.policy.starter import STARTER
from kubectl_gpuadmit.rule import REGISTRY
from tests.policy import texts

assert rules.__all__
SCHEMA = policy_schema(REGISTRY, {"spec/tiny": "Too small."})
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLE = (texts.ROOT / "examples/policy.yaml").read_text("utf-8")


def data(text: str) -> dict[str, Any]:
    read = yaml.safe_load(text)
    for exception in read.get("exceptions", ()):
        exception["expires"] = str(exception["expires"])
    for decision in read.get("ledger", {}).get("features", ()):
        decision["expires"] = str(decision["expires"])
    assert isinstance(read, dict)
    return read


WHOLE = [data(text) for text in (texts.FULL, STARTER, EXAMPLE)]


def test_our_own_policies_are_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for whole in WHOLE:
        assert [error.message for error in VALIDATOR.iter_errors(whole)] == []


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 200),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["off", "deny", "Deny", "90m", ">4", "labels/required", "pools", "level"]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in the data."""
    found = [path]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        found += spots(item, (*path, key))
    return found


@st.composite
def garbled(draw: st.DrawFn) -> dict[str, Any]:
    """A policy with a few values replaced, removed or added."""
    whole = copy.deepcopy(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([p for p in spots(whole) if p]))
        at = whole
        for key in path[:-1]:
            at = at[key]
        match draw(st.sampled_from(["replace", "remove", "rename", "add"])):
            case "replace":
                at[path[-1]] = draw(ODD)
            case "remove":
                del at[path[-1]]
            case "rename" if isinstance(at, dict):
                at[draw(st.text(min_size=1, max_size=6))] = at.pop(path[-1])
            case "add" if isinstance(at, dict):
                at[draw(st.text(max_size=6))] = draw(ODD)
    return whole


@given(garbled())
@settings(max_examples=300, deadline=None)
def test_our_reading_of_the_schema_agrees_with_a_schema_library(whole: dict[str, Any]) -> None:
    problems: list[str] = []
    clean = sound(whole, SCHEMA, "", lambda pointer, *_: problems.append(pointer))
    assert (problems == []) == VALIDATOR.is_valid(whole)
    if not problems:
        assert clean == whole or clean is not UNSOUND


@given(garbled())
@settings(max_examples=200, deadline=None)
def test_a_garbled_policy_is_read_or_refused_and_nothing_else(whole: dict[str, Any]) -> None:
    raw = yaml.safe_dump(whole, allow_unicode=True).encode("utf-8", "surrogatepass")
    try:
        assert isinstance(load_policy(raw, "p.yaml"), Policy)
    except BadPolicy as error:
        assert error.file == "p.yaml" and error.message
    lint(raw, "p.yaml")


@given(
    st.sampled_from([texts.FULL, texts.FAVORITES, texts.in_config_map("c.yaml", texts.POLICIES)]),
    st.integers(0, 2000),
    st.integers(0, 8),
    st.binary(max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused_and_nothing_else(
    text: str, at: int, gone: int, put: bytes
) -> None:
    raw = text.encode()
    raw = raw[: at % len(raw)] + put + raw[at % len(raw) + gone :]
    try:
        load_policy(raw, "p.yaml")
    except BadPolicy as error:
        assert error.file == "p.yaml" and error.message
