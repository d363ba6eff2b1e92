"""Functions on lists and sets.

Source: k8s.io/apiserver v0.37.2 pkg/cel/library/lists.go; github.com/google/cel-go v0.29.2
ext/lists.go, ext/sets.go.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kubectl_gpuadmit.cel import operators
from kubectl_gpuadmit.cel.folds import OverBudget, sort_with
from kubectl_gpuadmit.cel.functions import Overload, declare
from kubectl_gpuadmit.cel.values import (
    Duration,
    Fail,
    Uint,
    compare,
    has_order,
    same,
)

_SUMMABLE = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_LONGEST_RANGE = 1_000_000


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(a, b) <= 0 for a, b in pairwise(items))


def _sum(items: list[Any], zero: Any) -> Any:
    total = zero
    for one in items:
        total = operators.add(total, one)
    return total


def _most(items: list[Any], name: str, better: int) -> Any:
    if not items:
        raise Fail(f"{name} called on empty list")
    best = items[0]
    if not has_order(best):
        raise Fail("no such overload")
    for one in items[1:]:
        if not has_order(one):
            raise Fail("no such overload")
        if compare(best, one) == better:
            best = one
    return best


def _index_of(items: list[Any], item: Any) -> int:
    return next((place for place, one in enumerate(items) if same(one, item)), -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    places = range(len(items) - 1, -1, -1)
    return next((place for place in places if same(items[place], item)), -1)


def includes(target: Any, item: Any) -> bool:
    if isinstance(target, list | tuple):
        return any(same(one, item) for one in target)
    return same(target, item)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise Fail(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Fail(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise Fail(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise Fail("level must be non-negative")
    found: list[Any] = []
    for one in items:
        if isinstance(one, list | tuple) and depth:
            found += _flatten(list(one), depth - 1)
        else:
            found.append(one)
    return found


def _range(size: int) -> list[int]:
    if size < 0:
        raise Fail(f"lists.range: size must be non-negative, got {size}")
    if size > _LONGEST_RANGE:
        raise OverBudget("the expression is near the API server's cost limit")
    return list(range(size))


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in items:
        if not any(same(one, other) for other in found):
            found.append(one)
    return found


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(operators.contains(one, items) for one in part)


def _sort(items: list[Any]) -> list[Any]:
    return sort_with(list(items), list(items))


OVERLOADS: list[Overload] = [
    *(declare(f"list<{one}>::isSorted(): bool", _is_sorted) for one in _COMPARABLE),
    *(
        declare(f"list<{one}>::sum(): {one}", lambda items, z=zero: _sum(items, z))
        for one, zero in _SUMMABLE.items()
    ),
    *(
        declare(f"list<{one}>::max(): {one}", lambda items: _most(items, "max", -1))
        for one in _COMPARABLE
    ),
    *(
        declare(f"list<{one}>::min(): {one}", lambda items: _most(items, "min", 1))
        for one in _COMPARABLE
    ),
    declare("list<A>::indexOf(A): int", _index_of),
    declare("list<A>::lastIndexOf(A): int", _last_index_of),
    declare("dyn::includes(dyn): bool", includes, since=37),
    declare("list<A>::slice(int,int): list<A>", _slice, since=34),
    declare("list<list<A>>::flatten(): list<A>", _flatten, since=34),
    declare("list<dyn>::flatten(int): list<dyn>", _flatten, since=34),
    *(declare(f"list<{one}>::sort(): list<{one}>", _sort, since=34) for one in _COMPARABLE),
    declare("lists.range(int): list<int>", _range, since=34),
    declare("list<A>::reverse(): list<A>", lambda items: list(items[::-1]), since=34),
    declare("list<A>::distinct(): list<A>", _distinct, since=34),
    declare("sets.contains(list<A>,list<A>): bool", _contains, since=29),
    declare(
        "sets.equivalent(list<A>,list<A>): bool",
        lambda a, b: _contains(a, b) and _contains(b, a),
        since=29,
    ),
    declare(
        "sets.intersects(list<A>,list<A>): bool",
        lambda a, b: any(operators.contains(one, b) for one in a),
        since=29,
    ),
]
