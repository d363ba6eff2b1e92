"""Which few of many changes suffice for an effect, found by trying; knows not what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")


class Tries(Struct):
    """How often may still be tried."""

    left: int

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def smallest(
    changes: Sequence[T], holds: Callable[[Sequence[T]], bool], tries: Tries
) -> tuple[tuple[T, ...], bool]:
    """Changes that together have the effect, and whether none of them can be left out.

    ``holds`` says whether these changes, all others left alone, have it; it was seen to hold for
    all of them and not for none. Of several answers it is the one that lies first in ``changes``.
    About log2(n) tries for each change of the answer; when they run out, what suffices so far is
    given.

    Invariant: ``needed`` with all of ``open`` has the effect.
    """
    needed: list[T] = []
    open_: list[T] = list(changes)
    while True:
        if needed:
            if not tries.take():
                return (*needed, *open_), False
            if holds(needed):
                break
        low, high = 0, len(open_)  # the first `low` of open_ are too few, the first `high` enough
        while high - low > 1:
            middle = (low + high) // 2
            if not tries.take():
                return (*needed, *open_[:high]), False
            if holds([*needed, *open_[:middle]]):
                high = middle
            else:
                low = middle
        needed.append(open_[high - 1])
        open_ = open_[: high - 1]
    return _without_idle(needed, holds, tries)


def _without_idle(
    needed: list[T], holds: Callable[[Sequence[T]], bool], tries: Tries
) -> tuple[tuple[T, ...], bool]:
    """An effect that comes and goes as changes are added may leave idle ones: try without each."""
    for one in list(needed) if len(needed) > 1 else ():
        if not tries.take():
            return tuple(needed), False
        rest = [other for other in needed if other is not one]
        if rest and holds(rest):
            needed = rest
    return tuple(needed), True
