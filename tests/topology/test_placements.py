"""Islands, the best set against brute force over every set, and clean placements by hand."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.topology import shapes
from kubectl_gpuadmit.topology.islands import Island, islands
from kubectl_gpuadmit.topology.model import PCIE_LEVELS, Gpu, NodeMap
from kubectl_gpuadmit.topology.placements import SIZES, best_set, clean_placements, groups
from tests.topology.build import all_to_all, from_rows

# -- the same by the definition, over every set --------------------------------------------------


class Brute:
    def __init__(self, found: NodeMap) -> None:
        self.lanes = {(link.a, link.b): link.lanes for link in found.links or ()}
        self.far = {
            (link.a, link.b): PCIE_LEVELS.index(link.type) if link.type in PCIE_LEVELS else 0
            for link in found.links or ()
        }
        every = [gpu.numa for gpu in found.gpus]
        self.numa = {g.index: 0 if None in every else g.numa for g in found.gpus}
        self.all = [gpu.index for gpu in found.gpus]
        self.memo: dict[tuple[frozenset[int], int], int] = {}

    def weakest(self, chosen: Collection[int]) -> int:
        return min((self.lanes[pair] for pair in itertools.combinations(chosen, 2)), default=-1)

    def nodes(self, chosen: Collection[int]) -> int:
        return len({self.numa[index] for index in chosen})

    def clean(self, chosen: Collection[int]) -> bool:
        joined = (
            self.nodes(one)
            for one in itertools.combinations(self.all, len(chosen))
            if self.weakest(one)
        )
        least = self.fewest.setdefault(len(chosen), min(joined, default=0))
        return bool(self.weakest(chosen)) and self.nodes(chosen) <= least

    fewest: dict[int, int]

    def packed(self, free: frozenset[int], size: int) -> int:
        if len(free) < size:
            return 0
        if (free, size) not in self.memo:
            first = min(free)
            most = self.packed(free - {first}, size)
            for rest in itertools.combinations(sorted(free - {first}), size - 1):
                if self.clean((first, *rest)):
                    most = max(most, 1 + self.packed(free - {first, *rest}, size))
            self.memo[free, size] = most
        return self.memo[free, size]

    def best(self, free: Collection[int], size: int) -> tuple[int, ...]:
        def key(chosen: tuple[int, ...]) -> tuple[object, ...]:
            left = frozenset(free) - set(chosen)
            return (
                -self.weakest(chosen),
                self.nodes(chosen),
                sum(self.far[pair] for pair in itertools.combinations(chosen, 2)),
                tuple(-self.packed(left, one) for one in reversed(SIZES)),
                chosen,
            )

        return min(itertools.combinations(sorted(free), size), key=key, default=())


def brute(found: NodeMap) -> Brute:
    one = Brute(found)
    one.fewest = {}
    return one


@st.composite
def irregular(draw: st.DrawFn) -> NodeMap:
    count = draw(st.integers(1, 7))
    cells = draw(st.sampled_from((("NV1", "NV2", "SYS"), ("NV4", "PIX", "PHB", "SYS"), ("NV18",))))
    table = [["X"] * count for _ in range(count)]
    for a, b in itertools.combinations(range(count), 2):
        table[a][b] = table[b][a] = draw(st.sampled_from(cells))
    numa = [draw(st.integers(0, 1)) for _ in range(count)] if draw(st.booleans()) else ()
    return from_rows([" ".join(row) for row in table], numa)


@st.composite
def regular(draw: st.DrawFn) -> NodeMap:
    """Up to 16 GPUs in islands of one size, NUMA nodes of another, as machines are built."""
    island, many = draw(st.sampled_from(((2, 2), (2, 4), (4, 2), (4, 4), (8, 1), (8, 2), (16, 1))))
    count = island * many
    apart = draw(st.sampled_from(("SYS", "NODE")))
    rows = [
        " ".join(
            "X" if a == b else "NV12" if a // island == b // island else apart for b in range(count)
        )
        for a in range(count)
    ]
    per = draw(st.sampled_from((count, count // 2, max(count // 4, 1))))
    return from_rows(rows, [index // per for index in range(count)])


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(st.data(), irregular())
def test_the_best_set_of_any_machine_is_that_of_brute_force(data, found) -> None:  # type: ignore[no-untyped-def]
    free = data.draw(st.sets(st.sampled_from([gpu.index for gpu in found.gpus]), min_size=1))
    size = data.draw(st.integers(1, len(free)))
    truth = brute(found)
    assert best_set(found, free, size) == truth.best(free, size)
    assert clean_placements(found, free) == {
        one: truth.packed(frozenset(free), one) for one in SIZES
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), regular())
def test_the_best_set_of_a_machine_of_up_to_16_gpus_is_that_of_brute_force(data, found) -> None:  # type: ignore[no-untyped-def]
    indexes = [gpu.index for gpu in found.gpus]
    free = data.draw(st.sets(st.sampled_from(indexes), min_size=1, max_size=9))
    size = data.draw(st.integers(1, len(free)))
    assert best_set(found, free, size) == brute(found).best(free, size)


# -- by hand -------------------------------------------------------------------------------------

CUBE = next(one for one in shapes.shapes() if one.matrix)
HGX = all_to_all(8, numa=(0, 0, 0, 0, 1, 1, 1, 1))
SNC = all_to_all(8, numa=(0, 0, 1, 1, 2, 2, 3, 3))
PAIRS = from_rows(
    ["X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"], (0, 0, 1, 1)
)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (HGX, [Island((0, 1, 2, 3, 4, 5, 6, 7), "all-to-all", 18)]),
        (PAIRS, [Island((0, 1), "all-to-all", 12), Island((2, 3), "all-to-all", 12)]),
        (from_rows(CUBE.matrix), [Island((0, 1, 2, 3, 4, 5, 6, 7), "partial", 0)]),
        (from_rows(["X PHB", "PHB X"]), [Island((n,), "all-to-all", 0) for n in (0, 1)]),
        (from_rows(["X"]), [Island((0,), "all-to-all", 0)]),
        (from_rows(["X ?", "? X"]), None),
        (from_rows(["X NV4 NV4", "NV4 X ?", "NV4 ? X"]), [Island((0, 1, 2), "unknown", 4)]),
        (from_rows(["X NV4 ?", "NV4 X SYS", "? SYS X"]), None),
        (NodeMap("n", "labels", count=8), None),
    ],
)  # fmt: skip
def test_islands_are_what_nvlink_joins(found: NodeMap, told: list[Island] | None) -> None:
    assert islands(found) == (None if told is None else tuple(told))


@pytest.mark.parametrize(
    ("found", "free", "told"),
    [
        (HGX, range(8), {1: 8, 2: 4, 4: 2, 8: 1}),
        (HGX, (0, 1, 2, 4, 5, 6), {1: 6, 2: 2, 4: 0, 8: 0}),
        (SNC, range(8), {1: 8, 2: 4, 4: 2, 8: 1}),
        (SNC, (0, 2, 4, 6), {1: 4, 2: 0, 4: 0, 8: 0}),
        (PAIRS, range(4), {1: 4, 2: 2, 4: 0, 8: 0}),
        (PAIRS, (0, 2), {1: 2, 2: 0, 4: 0, 8: 0}),
    ],
)
def test_a_clean_placement_is_joined_and_on_few_numa_nodes(
    found: NodeMap, free: Collection[int], told: dict[int, int]
) -> None:
    assert clean_placements(found, free) == told


@pytest.mark.parametrize(
    ("found", "free", "size", "chosen"),
    [
        (HGX, range(8), 2, (0, 1)),
        (HGX, (0, 1, 2, 4, 5, 6, 7), 2, (0, 1)),
        (HGX, (0, 1, 2, 4, 5, 6, 7), 1, (0,)),
        (HGX, (0, 4, 5, 6, 7), 1, (0,)),
        (HGX, (3, 4, 5, 6, 7), 4, (4, 5, 6, 7)),
        (PAIRS, (1, 2, 3), 2, (2, 3)),
        (PAIRS, (1, 2, 3), 1, (1,)),
        (from_rows(CUBE.matrix), range(8), 2, (0, 3)),
        (from_rows(CUBE.matrix), range(8), 4, (0, 1, 2, 3)),
        (HGX, (0, 1), 4, ()),
        (NodeMap("n", "labels", count=8, gpus=tuple(map(Gpu, range(8)))), range(8), 2, None),
    ],
)
def test_the_best_set_keeps_what_is_whole(
    found: NodeMap, free: Collection[int], size: int, chosen: tuple[int, ...] | None
) -> None:
    assert best_set(found, free, size) == chosen


def test_groups_are_counted_without_regard_to_numa() -> None:
    assert groups(HGX, (0, 1, 2, 4, 5, 6), 2) == 3
    assert groups(HGX, (0, 1, 2, 4, 5, 6), 4) == 1
    assert groups(PAIRS, range(4), 4) == 0
