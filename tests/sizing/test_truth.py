"""Our figures against starts that engines measured; needs the corpus of real inputs."""

from __future__ import annotations

from functools import cache

from tests.corpus import needs_corpus
from tests.sizing.report import Judged, judged, left_out, summary
from tests.sizing.rows import EXPLAINED, rows


@cache
def found() -> tuple[Judged, ...]:
    return tuple(judged())


@needs_corpus
def test_weights_are_right_within_half_a_percent_on_average() -> None:
    assert summary(list(found())).weights_mean <= 0.005


@needs_corpus
def test_tokens_of_the_cache_are_right_within_two_percent_at_the_median() -> None:
    result = summary(list(found()))
    assert result.tokens_median <= 0.02
    assert result.formula_median <= 0.001


@needs_corpus
def test_hybrid_latent_and_windowed_caches_count_tokens_as_their_engines_print_them() -> None:
    kinds = {
        "134": "hybrid",
        "155": "hybrid",
        "156": "hybrid",
        "157": "hybrid",
        "175": "hybrid",
        "140": "windows",
        "146": "latent",
        "147": "latent",
    }
    errors = {j.id: j.formula for j in found() if j.id in kinds}
    assert errors.keys() == kinds.keys()
    assert all(error is not None and abs(error) < 0.002 for error in errors.values())


@needs_corpus
def test_every_recorded_refusal_is_refused_and_every_success_admitted() -> None:
    assert summary(list(found())).wrong == ()


@needs_corpus
def test_rows_that_are_far_off_are_explained() -> None:
    far = [j.id for j in found() if j.tokens is not None and abs(j.tokens) > 0.06]
    assert [row for row in far if row not in EXPLAINED] == []


@needs_corpus
def test_what_is_explained_is_a_row_of_the_corpus() -> None:
    assert set(EXPLAINED) <= {row.id for row in rows()}


@needs_corpus
def test_no_constant_rests_on_the_rows_that_it_is_judged_by() -> None:
    worse = {
        item.name: round(item.error_left_out - item.error, 4)
        for item in left_out(list(found()))
        if item.error_left_out > item.error + 0.02
    }
    assert worse == {}
