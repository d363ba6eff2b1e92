"""The few changes that suffice, found in few tries."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kubectl_gpuadmit.snapshots.narrowing import Tries, smallest


@given(st.sets(st.integers(0, 199), min_size=1, max_size=4), st.integers(200, 400))
def test_exactly_the_needed_changes_are_found(needed: set[int], count: int) -> None:
    asked = 0

    def holds(chosen: Sequence[int]) -> bool:
        nonlocal asked
        asked += 1
        return needed <= set(chosen)

    found, minimal = smallest(range(count), holds, Tries(200))
    assert (set(found), minimal) == (needed, True)
    assert asked <= 11 * len(needed) + 4


def test_of_several_answers_the_first_is_given() -> None:
    found, minimal = smallest(range(100), lambda some: bool({7, 50} & set(some)), Tries(50))
    assert (found, minimal) == ((7,), True)


@given(st.integers(0, 8))
def test_when_tries_run_out_what_suffices_so_far_is_given(tries: int) -> None:
    needed = {3, 90}

    def holds(chosen: Sequence[int]) -> bool:
        return needed <= set(chosen)

    found, minimal = smallest(range(100), holds, Tries(tries))
    assert holds(found)
    assert not minimal


def test_an_effect_that_comes_and_goes_leaves_no_idle_change() -> None:
    def holds(chosen: Sequence[int]) -> bool:
        return set(chosen) == {5} or len(chosen) > 7

    found, minimal = smallest(range(10), holds, Tries(100))
    assert holds(found)
    assert minimal
