"""Our answers beside measured starts: errors row by row, in sum, and with constants left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean, median
from typing import NamedTuple

from kubectl_gpuadmit.sizing import constants
from kubectl_gpuadmit.sizing.activations import capture_sizes
from kubectl_gpuadmit.sizing.defaults import Settled, settled
from kubectl_gpuadmit.sizing.ledger import NEIGHBOURS, behind_switch
from kubectl_gpuadmit.sizing.parameters import plan
from kubectl_gpuadmit.sizing.versions import CHEAP_SAMPLING, GRAPHS_PROFILED, release
from tests.sizing.rows import (
    EXPLAINED,
    GIB,
    Outcome,
    device_of,
    model_of,
    outcome,
    rows,
    serving_of,
)


class Judged(NamedTuple):
    """A row with errors as shares; None where either side has no figure."""

    outcome: Outcome
    weights: float | None
    cache: float | None
    tokens: float | None
    formula: float | None
    """Of tokens alone, from the cache's bytes as measured."""
    cache_bytes: float | None
    verdict: str
    """``right``, ``wrong``, ``unknown``, or ``-`` where the row has no result."""

    @property
    def id(self) -> str:
        return self.outcome.row.id

    @property
    def explained(self) -> str:
        return EXPLAINED.get(self.id, "")


def judged() -> list[Judged]:
    """Every row."""
    return [_judge(outcome(row)) for row in rows()]


def _judge(found: Outcome) -> Judged:
    row, ours = found.row, found.ours
    if ours is None or ours.weights is None:
        return Judged(found, None, None, None, None, None, _verdict(found))
    weights = ours.weights.likely
    serving = serving_of(row)
    if serving.engine == "sglang":  # it calls weights what loading took of the free memory
        _, product = device_of(row)
        hopper = behind_switch(product)
        weights += (constants.LIBRARIES_HOPPER if hopper else constants.LIBRARIES).likely
    cache = ours.kv_cache.likely if ours.kv_cache else None
    if serving.engine == "llama.cpp" and ours.kv_bytes_per_token and ours.max_model_len:
        cache = ours.kv_bytes_per_token * ours.max_model_len  # it takes what it needs
    alone = found.given_cache
    stated = row.cells["max_model_len"].strip().isdigit()
    ours_tokens = ours.kv_tokens.likely if ours.kv_tokens else None
    tokens = _error(ours_tokens, row.number("kv_tokens"))
    return Judged(
        found,
        _error(weights / GIB, row.number("weights_gib_per_gpu")),
        _error(None if cache is None else cache / GIB, row.number("kv_gib_per_gpu")),
        tokens,
        _error(
            alone.kv_tokens.likely if alone and alone.kv_tokens else None,
            row.number("kv_tokens"),
        )
        if stated or not _windows(row)
        else None,
        cache,
        _verdict(found),
    )


def _windows(row: object) -> bool:
    architecture = model_of(row)  # type: ignore[arg-type]
    return architecture is not None and bool(architecture.sliding_window)


def _error(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or not theirs else ours / theirs - 1


def _verdict(found: Outcome) -> str:
    refused = found.row.refused
    if refused is None:
        return "-"
    if found.ours is None or found.ours.fits == "unknown":
        return "unknown"
    return "right" if (found.ours.fits == "exceeds") == refused else "wrong"


class Summary(NamedTuple):
    """What the thresholds are about. Shares."""

    weights_mean: float
    weights_rows: int
    tokens_median: float
    tokens_rows: int
    formula_median: float
    formula_rows: int
    wrong: tuple[str, ...]
    unknown: tuple[str, ...]
    rows: int


def summary(found: list[Judged]) -> Summary:
    """Over all rows that have a figure on both sides: none is left out for its error."""
    weights = [abs(j.weights) for j in found if j.weights is not None]
    tokens = [abs(j.tokens) for j in found if j.tokens is not None]
    formula = [abs(j.formula) for j in found if j.formula is not None]
    return Summary(
        mean(weights),
        len(weights),
        median(tokens),
        len(tokens),
        median(formula),
        len(formula),
        tuple(j.id for j in found if j.verdict == "wrong"),
        tuple(j.id for j in found if j.verdict == "unknown"),
        len(found),
    )


def _unknown(found: list[Judged]) -> dict[str, list[str]]:
    """Rows without an answer by what is missing."""
    reasons: dict[str, list[str]] = {}
    for j in found:
        if j.verdict == "unknown":
            reasons.setdefault("; ".join(j.outcome.missing), []).append(j.id)
    return reasons


def table(found: list[Judged]) -> Iterable[str]:
    """Lines of the table."""
    yield (
        f"{'row':>4}  {'model':34} {'weights GiB':>18} {'':>7} {'cache GiB':>18} {'':>7} "
        f"{'tokens':>21} {'':>7} {'alone':>7}  verdict"
    )
    for j in found:
        row, ours = j.outcome.row, j.outcome.ours
        model = row.cells["model"].rpartition("/")[2][:34]
        if ours is None or ours.weights is None:
            yield f"{j.id:>4}  {model:34} unknown: {'; '.join(j.outcome.missing)}"
        else:
            cells = (
                _pair(ours.weights.likely / GIB, row.number("weights_gib_per_gpu"), 2),
                _share(j.weights),
                _pair(
                    None if j.cache_bytes is None else j.cache_bytes / GIB,
                    row.number("kv_gib_per_gpu"),
                    2,
                ),
                _share(j.cache),
                _pair(
                    ours.kv_tokens.likely if ours.kv_tokens else None, row.number("kv_tokens"), 0
                ),
                _share(j.tokens),
                _share(j.formula),
            )
            yield (
                f"{j.id:>4}  {model:34} {cells[0]:>18} {cells[1]:>7} {cells[2]:>18} {cells[3]:>7} "
                f"{cells[4]:>21} {cells[5]:>7} {cells[6]:>7}  {j.verdict}"
            )
        if j.explained:
            yield f"      {j.explained}"


def _pair(ours: float | None, theirs: float | None, digits: int) -> str:
    left = "-" if ours is None else f"{ours:,.{digits}f}"
    right = "-" if theirs is None else f"{theirs:,.{digits}f}"
    return f"{left} / {right}"


def _share(error: float | None) -> str:
    return "" if error is None else f"{error * 100:+.1f}%"


class LeftOut(NamedTuple):
    """A constant, what rows imply for it, and the cache's error where each row is judged by a
    constant fitted without it."""

    name: str
    likely: float
    unit: str
    rows: int
    implied: float
    error: float
    error_left_out: float


_Times = Callable[[Judged, Settled], float | None]


def _sampling(newer: bool) -> _Times:
    def times(j: Judged, chosen: Settled) -> float | None:
        serving = serving_of(j.outcome.row)
        if serving.engine != "vllm" or serving.runner == "pooling":
            return None
        architecture = model_of(j.outcome.row)
        if (release(serving.version) >= CHEAP_SAMPLING) is not newer or architecture is None:
            return None
        return min(chosen.sequences, chosen.batched) * plan(architecture).vocabulary * 4.0

    return times


def _libraries(hopper: bool) -> _Times:
    def times(j: Judged, chosen: Settled) -> float | None:
        serving = serving_of(j.outcome.row)
        _, product = device_of(j.outcome.row)
        alone = serving.engine == "vllm" and (serving.tensor_parallel_size or 1) == 1
        return 1.0 if alone and behind_switch(product) is hopper else None

    return times


def _peers(fabric: bool) -> _Times:
    def times(j: Judged, chosen: Settled) -> float | None:
        serving = serving_of(j.outcome.row)
        _, product = device_of(j.outcome.row)
        others = (serving.tensor_parallel_size or 1) - 1
        used = serving.engine == "vllm" and others and behind_switch(product) is fabric
        return float(others if fabric else min(others, NEIGHBOURS)) if used else None

    return times


def _graphs(j: Judged, chosen: Settled) -> float | None:
    serving = serving_of(j.outcome.row)
    profiled = serving.profile_cuda_graphs or release(serving.version) >= GRAPHS_PROFILED
    if serving.engine != "vllm" or chosen.eager or not profiled:
        return None
    return float(capture_sizes(chosen.sequences) + capture_sizes(max(1, chosen.sequences // 2)))


def _tensorrt(j: Judged, chosen: Settled) -> float | None:
    return chosen.share if serving_of(j.outcome.row).engine == "tensorrt-llm" else None


FITTED: tuple[tuple[str, float, str, _Times], ...] = (
    ("SORTED_SAMPLING", 1.0, "copies", _sampling(newer=False)),
    ("SAMPLING", 1.0, "copies", _sampling(newer=True)),
    ("LIBRARIES", GIB, "GiB", _libraries(hopper=False)),
    ("LIBRARIES_HOPPER", GIB, "GiB", _libraries(hopper=True)),
    ("PEER", GIB, "GiB", _peers(fabric=False)),
    ("PEER_FABRIC", GIB, "GiB", _peers(fabric=True)),
    ("GRAPH", 1 << 20, "MiB", _graphs),
    ("TENSORRT_BASE", GIB, "GiB", _tensorrt),
)
"""Constant, bytes of its unit, unit, and how often a row pays it; None: not at all."""


def unjudged(found: list[Judged]) -> list[str]:
    """Constants that fewer than two rows pay: they rest on their causes, and have wide ranges."""
    judged_names = {item.name for item in left_out(found)}
    return sorted(set(constants.ALL) - judged_names)


def left_out(found: list[Judged]) -> list[LeftOut]:
    """Each constant judged by rows that did not inform it.

    A row implies the value with which its cache would be exact, all else as it is. The row is then
    judged with the median of what the *other* rows imply.
    """
    results = []
    for name, size, unit, times in FITTED:
        constant = getattr(constants, name)
        paid: list[tuple[float, float, float]] = []
        for j in found:
            ours, theirs = j.outcome.ours, j.outcome.row.number("kv_gib_per_gpu")
            architecture = model_of(j.outcome.row)
            if ours is None or ours.kv_cache is None or not theirs or architecture is None:
                continue
            if j.explained:
                continue
            serving = serving_of(j.outcome.row)
            mib, product = device_of(j.outcome.row)
            chosen = settled(
                architecture,
                serving,
                capacity=mib * 0.99 * (1 << 20) if mib else None,
                product=product,
            )
            count = times(j, chosen)
            if count:
                implied = constant.likely + (ours.kv_cache.likely - theirs * GIB) / count
                paid.append((implied, count, theirs * GIB))
        if len(paid) < 2:
            continue
        errors = [abs(count * (constant.likely - implied) / of) for implied, count, of in paid]
        without = [
            abs(
                count
                * (median(other for k, (other, _, _) in enumerate(paid) if k != i) - implied)
                / of
            )
            for i, (implied, count, of) in enumerate(paid)
        ]
        results.append(
            LeftOut(
                name,
                constant.likely / size,
                unit,
                len(paid),
                median(implied for implied, _, _ in paid) / size,
                median(errors),
                median(without),
            )
        )
    return results


def report() -> Iterable[str]:
    """The whole report, line by line."""
    found = judged()
    if not found:
        yield "The measured rows are not here: set GPU_ADMIT_CORPUS."
        return
    yield from table(found)
    s = summary(found)
    yield ""
    yield "ours / theirs; alone: tokens from the measured bytes of the cache"
    yield f"weights   mean error   {s.weights_mean:.2%}  over {s.weights_rows} rows  (at most 0.5%)"
    yield f"tokens    median error {s.tokens_median:.2%}  over {s.tokens_rows} rows  (at most 2%)"
    yield f"  alone   median error {s.formula_median:.2%}  over {s.formula_rows} rows"
    yield f"verdicts  wrong {len(s.wrong)} {', '.join(s.wrong)}".rstrip()
    yield f"unknown   {len(s.unknown)} of {s.rows} rows ({len(s.unknown) / s.rows:.0%}):"
    for reason, ids in _unknown(found).items():
        yield f"  {len(ids):>2}  {reason}: rows {', '.join(ids)}"
    yield ""
    yield "constants, each left out of its own fit (error of the cache, median)"
    yield f"  {'':18} {'in code':>14} {'rows imply':>14} {'rows':>5} {'error':>7} {'left out':>9}"
    for item in left_out(found):
        yield (
            f"  {item.name:18} {item.likely:>7.2f} {item.unit:6} {item.implied:>7.2f} "
            f"{item.unit:6} {item.rows:>5} {item.error:>7.2%} {item.error_left_out:>9.2%}"
        )
    yield f"  not judged here, for want of rows: {', '.join(unjudged(found))}"
