"""Which CPUs the static CPU manager takes from those that are free: whole parts first, best fit.

Source: pkg/kubelet/cm/cpumanager/cpu_assignment.go of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import floor, inf, sqrt
from typing import overload

from kubectl_gpuadmit.placement.kubelet.devices import AllocationFailed
from kubectl_gpuadmit.placement.kubelet.machine import Cpus, ids, touching


class _Taking:
    """CPUs being gathered for one request."""

    def __init__(self, cpus: Cpus, free: int, needed: int) -> None:
        self.cpus = cpus
        self.free = free
        self.needed = needed
        self.taken = 0
        self._numa_first = cpus.sockets >= len(cpus.numa)

    def take(self, chosen: int) -> None:
        self.taken |= chosen
        self.free &= ~chosen
        self.needed -= chosen.bit_count()

    @property
    def done(self) -> bool:
        return self.needed < 1

    # -- orders: the part with the fewest free CPUs first, of equals the lower ID -----------------

    def _ordered(self, table: Mapping[int, int], within: int) -> list[int]:
        """Parts with a free CPU among ``within``, by how many free CPUs they hold in all."""
        parts = touching(table, self.free & within)
        return sorted(parts, key=lambda one: ((table[one] & self.free).bit_count(), one))

    def numa_nodes(self) -> list[int]:
        cpus = self.cpus
        if self._numa_first:
            return self._ordered(cpus.numa, cpus.all)
        return [
            numa
            for socket in self.sockets()
            for numa in self._ordered(cpus.numa, cpus.socket[socket])
        ]

    def sockets(self) -> list[int]:
        cpus = self.cpus
        if not self._numa_first:
            return self._ordered(cpus.socket, cpus.all)
        return [
            socket
            for numa in self._ordered(cpus.numa, cpus.all)
            for socket in self._ordered(cpus.socket, cpus.numa[numa])
        ]

    def cores(self) -> list[int]:
        cpus = self.cpus
        outer = (
            [cpus.socket[one] for one in self.sockets()]
            if self._numa_first
            else [cpus.numa[one] for one in self.numa_nodes()]
        )
        return [core for held in outer for core in self._ordered(cpus.core, held)]

    def caches(self) -> list[int]:
        cpus = self.cpus
        return [
            cache
            for numa in self.numa_nodes()
            for cache in self._ordered(cpus.uncore, cpus.numa[numa])
        ]

    # -- steps -----------------------------------------------------------------------------------

    def whole(self, order: Iterable[int], table: Mapping[int, int], size: int | None) -> None:
        """Takes parts that are wholly free and not larger than what is still needed."""
        wholly = [
            one
            for one in order
            if (table[one] & self.free).bit_count()
            == (table[one].bit_count() if size is None else size)
        ]
        for one in wholly:
            if self.needed >= table[one].bit_count():
                self.take(table[one])

    def largest_parts(self) -> None:
        cpus = self.cpus
        steps: list[Callable[[], None]] = [
            lambda: self.whole(self.numa_nodes(), cpus.numa, None),
            lambda: self.whole(self.sockets(), cpus.socket, cpus.per_socket),
        ]
        for step in steps if self._numa_first else reversed(steps):
            step()
            if self.done:
                return

    def by_cache(self) -> None:
        for cache in self.caches():
            if self.needed >= self.cpus.per_uncore:
                self.whole(self.caches(), self.cpus.uncore, None)
            if self.done:
                return
            self._part_of_cache(cache)
            if self.done:
                return

    def _part_of_cache(self, cache: int) -> None:
        cpus = self.cpus
        cores = -(-self.needed // cpus.per_core)
        chosen = touching(cpus.core, self.free & cpus.uncore[cache])[:cores]
        free = cpus.within(cpus.core, chosen) & self.free
        if self.needed % 2 and cpus.per_core > 1 and free.bit_count() > self.needed:
            free &= ~(1 << free.bit_length() - 1)
        if free.bit_count() == self.needed:
            self.take(free)

    def single(self, *, spread: bool) -> None:
        cpus = self.cpus
        outer = (
            [cpus.socket[one] for one in self.sockets()]
            if spread
            else [cpus.core[one] for one in self.cores()]
        )
        order = [cpu for held in outer for cpu in ids(held & self.free)]
        for cpu in order:
            self.take(1 << cpu)
            if self.done:
                return


def packed(cpus: Cpus, free: int, count: int, *, spread: bool = False, caches: bool = False) -> int:
    """``count`` CPUs on as few parts as possible. Raises AllocationFailed.

    ``spread`` puts them on different cores, ``caches`` keeps them behind one last-level cache.
    """
    taking = _Taking(cpus, free, count)
    if taking.done:
        return 0
    _enough(free, count)
    taking.largest_parts()
    if caches and not taking.done:
        taking.by_cache()
    if not spread and not taking.done:
        taking.whole(taking.cores(), cpus.core, cpus.per_core)
    if not taking.done:
        taking.single(spread=spread)
    if not taking.done:
        raise AllocationFailed("failed to allocate cpus")
    return taking.taken


def _enough(free: int, count: int) -> None:
    if count > free.bit_count():
        raise AllocationFailed(
            "not enough cpus available to satisfy request:"
            f" requested={count}, available={free.bit_count()}"
        )


def distributed(
    cpus: Cpus, free: int, count: int, *, group: int, spread: bool = False, by_socket: bool = False
) -> int:
    """``count`` CPUs evenly over as few NUMA nodes as can give them so, in groups of ``group``.

    Raises AllocationFailed. KEP-2902.
    """
    if count % group:
        return packed(cpus, free, count, spread=spread)
    taking = _Taking(cpus, free, count)
    if taking.done:
        return 0
    _enough(free, count)
    numas = taking.numa_nodes()
    groups = (count - 1) // group + 1
    per_numa = ((cpus.all.bit_count() - 1) // group) // len(cpus.numa) + 1
    least, most = (groups - 1) // per_numa + 1, min(groups, len(numas))
    for size in range(least, most + 1):
        chosen = _best_combination(taking, numas, size, count, group, by_socket=by_socket)
        if chosen is None:
            continue
        return _handed_out(taking, *chosen, count, group, spread=spread)
    return packed(cpus, free, count, spread=spread)


def _handed_out(
    taking: _Taking,
    combination: Sequence[int],
    remainders: Sequence[int],
    count: int,
    group: int,
    *,
    spread: bool,
) -> int:
    cpus = taking.cpus

    def left(numa: int) -> int:
        return (cpus.numa[numa] & taking.free).bit_count()

    share = count // len(combination) // group * group
    share = min([share, *(left(numa) // group * group for numa in combination)])
    for numa in combination:
        taking.take(packed(cpus, cpus.numa[numa] & taking.free, share, spread=spread))
    remainder = count - share * len(combination)
    while remainder > 0:
        before = remainder
        for numa in remainders:
            if remainder == 0:
                break
            if left(numa) < group:
                continue
            taking.take(packed(cpus, cpus.numa[numa] & taking.free, group, spread=spread))
            remainder -= group
        if remainder == before:
            break
    if taking.needed > 0:
        raise AllocationFailed(
            f"accounting error, not enough CPUs allocated, remaining: {taking.needed}"
        )
    return taking.taken


def _best_combination(
    taking: _Taking, numas: Sequence[int], size: int, count: int, group: int, *, by_socket: bool
) -> tuple[Sequence[int], Sequence[int]] | None:
    """The NUMA nodes over which CPUs leave the machine most balanced, and those for the rest."""
    cpus = taking.cpus
    available = {numa: (cpus.numa[numa] & taking.free).bit_count() for numa in numas}
    best: tuple[float, Sequence[int], Sequence[int], bool] | None = None
    for combination in _combinations(numas, size):
        if best is not None and best[0] == 0 and (not by_socket or best[3]):
            break
        if sum(available[numa] for numa in combination) < count:
            continue
        if sum(available[numa] // group for numa in combination) * group < count:
            continue
        share = count // size // group * group
        if by_socket:
            share = min([share, *(available[numa] // group * group for numa in combination)])
        if any(available[numa] < share for numa in combination):
            continue
        left = {**available, **{numa: available[numa] - share for numa in combination}}
        balance, rest = _best_rest(left, combination, count - share * size, group)
        one_socket = by_socket and _one_socket(taking, combination)
        better = balance < (best[0] if best else inf)
        if by_socket and one_socket != (best[3] if best else False):
            better = one_socket
        if better:
            best = (balance, combination, rest, one_socket)
    return None if best is None else (best[1], best[2])


def _best_rest(
    left: Mapping[int, int], combination: Sequence[int], remainder: int, group: int
) -> tuple[float, Sequence[int]]:
    """The best balance after handing out the remainder, and the NUMA nodes that give it."""
    if remainder == 0:
        return _deviation(left.values()), ()
    able = [numa for numa in combination if left[numa] >= group]
    best: tuple[float, Sequence[int]] = (inf, ())
    for size in range(len(able), 0, -1):
        for subset in _combinations(able, size):
            if sum(left[numa] for numa in subset) < remainder:
                continue
            after, rest = dict(left), remainder
            while rest > 0:
                before = rest
                for numa in subset:
                    if rest == 0:
                        break
                    if after[numa] >= group:
                        after[numa] -= group
                        rest -= group
                if rest == before:
                    return inf, ()  # the kubelet would never end here
            balance = _deviation(after.values())
            if balance < best[0]:
                best = (balance, subset)
    return best


def _one_socket(taking: _Taking, combination: Sequence[int]) -> bool:
    cpus = taking.cpus
    return len(touching(cpus.socket, cpus.within(cpus.numa, combination))) <= 1


def _deviation(values: Iterable[int]) -> float:
    """Standard deviation, rounded to thousandths twice, as the kubelet does."""
    values = list(values)
    mean = _round(sum(values) / len(values))
    return _round(sqrt(sum((value - mean) ** 2 for value in values) / len(values)))


def _round(value: float) -> float:
    return floor(value * 1000 + 0.5) / 1000


class _Combination(Sequence[int]):
    """The first members of a list that others may still write to."""

    def __init__(self, shared: list[int], size: int) -> None:
        self._shared = shared
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._shared[: self._size][index]


def _combinations(among: Sequence[int], size: int) -> Iterator[_Combination]:
    """Combinations in order. From four members on, one that is kept changes with those after it.

    The kubelet grows them with Go's append: a list of three has room for a fourth, which all
    combinations with the same first three write to. The best one, kept while the walk goes on, so
    ends with the last fourth member that was tried.
    """

    def walk(start: int, chosen: list[int], length: int) -> Iterator[_Combination]:
        if length == size:
            yield _Combination(chosen, size)
            return
        for i in range(start, len(among) - (size - length) + 1):
            grown = chosen if length < len(chosen) else [*chosen, *([0] * max(1, length))]
            grown[length] = among[i]
            yield from walk(i + 1, grown, length + 1)

    yield from walk(0, [], 0)
