"""The table that forks share answers as a dict does, whatever is done to it and its copies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.kube.table import Table

KEYS = st.integers(0, 90)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(1, 9)),
        st.tuples(st.just("del"), KEYS),
        st.tuples(st.just("copy")),
        st.tuples(st.just("go on with the origin")),
    ),
    max_size=120,
)


@given(st.integers(0, 80), STEPS)
@settings(max_examples=200, deadline=None)
def test_content_order_and_copies_are_those_of_a_dict(size: int, steps: list[Any]) -> None:
    plain = dict.fromkeys(range(size), 0.5)
    table = Table(dict(plain))
    others: list[tuple[Table[int, float], dict[int, float]]] = []
    for step in steps:
        match step:
            case ("set", key, value):
                plain[key] = table[key] = value
            case ("del", key) if key in plain:
                del plain[key]
                del table[key]
            case ("del", key):
                with pytest.raises(KeyError):
                    del table[key]
            case ("copy",):
                others.append((table, dict(plain)))
                table = table.copy()
            case _ if others:
                there = (table, dict(plain))
                table, plain = others.pop(0)
                others.append(there)
    for made, expected in [(table, plain), *others]:
        assert list(made.items()) == list(expected.items())
        assert {key: made.get(key) for key in range(91)} == {
            key: expected.get(key) for key in range(91)
        }
