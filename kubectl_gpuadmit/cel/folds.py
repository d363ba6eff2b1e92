"""Runs comprehensions: all, exists, exists_one, map, filter, transform…, sortBy.

An error of one turn is kept as CEL's expansion of the macro would keep it: ``all`` and ``exists``
forget it once a turn decides, ``map`` and ``filter`` go on and fail at the end.

Source: github.com/google/cel-go v0.29.2 parser/macro.go, ext/comprehensions.go, ext/lists.go,
interpreter/interpretable.go (evalFold).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any

from kubectl_gpuadmit.cel.syntax import Fold, Node, children
from kubectl_gpuadmit.cel.texts import shown
from kubectl_gpuadmit.cel.values import (
    Crash,
    Fail,
    Unsure,
    compare,
    from_key,
    go_type,
    has_order,
    to_key,
    type_name,
)

Env = dict[str, Any]
Run = Callable[[Env], Any]

BUDGET = "@budget"
"""The variable that holds how many more node visits a run may make, as a list of one number."""


class OverBudget(Unsure):
    """The run comes near what the API server allows an expression to cost."""


def counted(run: Run) -> Run:
    """The receiver of distinct, sort and sortBy: cel-go counts its elements even of an error."""

    def receive(env: Env) -> Any:
        try:
            value = run(env)
        except Fail:
            raise Crash(_NO_LIST.format("*types.Err", "Add")) from None
        if not isinstance(value, list | tuple):
            raise Crash(_NO_LIST.format(go_type(value), "Contains"))
        return value

    return receive


_NO_LIST = "interface conversion: {} is not traits.Lister: missing method {}"


def fold(node: Fold, plan: Callable[[Node], Run]) -> Run:
    """The function of a comprehension. ``plan`` makes those of its parts."""
    over, body = plan(node.over), plan(node.body)
    keep = plan(node.keep) if node.keep is not None else None
    weight = 2 + _size(node.body) + (_size(node.keep) if node.keep is not None else 0)
    turn = _TURNS[node.loop]
    if node.loop == "sortBy" and node.counted:

        def sort(env: Env) -> Any:
            try:
                return turn(_Turns(node, over(env), env, weight), body, None)
            except Fail as fault:
                if str(fault).startswith("list elements"):
                    raise
                raise Crash(_NO_LIST.format("*types.Err", "Add")) from None

        return sort

    def run(env: Env) -> Any:
        turns = _Turns(node, over(env), env, weight)
        return turn(turns, body, keep)

    return run


def _size(node: Node) -> int:
    return 1 + sum(_size(child) for child in children(node))


class _Turns:
    """One environment per turn of the loop, each paid for from the budget."""

    def __init__(self, node: Fold, over: Any, env: Env, weight: int) -> None:
        self._node, self.over, self._env, self._weight = node, over, env, weight
        if not isinstance(over, dict | list | tuple):
            if node.second:
                raise Fail(f"unsupported comprehension range type: {go_type(over)}")
            raise Fail(f"got '{go_type(over)}', expected iterable type")

    def __iter__(self) -> Iterator[tuple[Env, Any, Any]]:
        first, second = self._node.first, self._node.second
        budget = self._env.get(BUDGET)
        env = dict(self._env)
        pairs: Iterator[tuple[Any, Any]]
        if isinstance(self.over, dict):
            pairs = iter([(from_key(key), value) for key, value in self.over.items()])
        elif second:
            pairs = iter(enumerate(self.over))
        else:
            pairs = iter([(item, None) for item in self.over])
        for one, two in pairs:
            if budget is not None:
                budget[0] -= self._weight
                if budget[0] < 0:
                    raise OverBudget("the expression is near the API server's cost limit")
            env = {**self._env, first: one}
            if second:
                env[second] = two
            yield env, one, two


def _quantify(turns: _Turns, body: Run, *, decisive: bool) -> Any:
    failed: Fail | None = None
    unsure: Unsure | None = None
    for env, _, _ in turns:
        try:
            value = body(env)
        except OverBudget:
            raise
        except Fail as fault:
            failed = failed or fault
            continue
        except Unsure as fault:
            unsure = unsure or fault
            continue
        if value is decisive:
            return decisive
        if value is not (not decisive):
            failed = failed or Fail("no such overload")
    if unsure is not None:
        raise unsure
    if failed is not None:
        raise failed
    return not decisive


def _all(turns: _Turns, body: Run, keep: Run | None) -> Any:
    return _quantify(turns, body, decisive=False)


def _exists(turns: _Turns, body: Run, keep: Run | None) -> Any:
    return _quantify(turns, body, decisive=True)


def _gather(turns: _Turns, keep: Run | None, take: Callable[[Env, Any], None]) -> None:
    """``keep ? take : nothing``: the last failure of keep counts, of take the first."""
    failed: Fail | None = None
    for env, one, _ in turns:
        if keep is not None:
            try:
                kept = keep(env)
                if kept.__class__ is not bool:
                    raise Fail("no such overload")
            except Fail as fault:
                failed = fault
                continue
            if not kept:
                continue
        if failed is None:
            try:
                take(env, one)
            except Fail as fault:
                failed = fault
    if failed is not None:
        raise failed


def _exists_one(turns: _Turns, body: Run, keep: Run | None) -> bool:
    found: list[None] = []
    _gather(turns, body, lambda env, one: found.append(None))
    return len(found) == 1


def _filter(turns: _Turns, body: Run, keep: Run | None) -> list[Any]:
    found: list[Any] = []
    _gather(turns, body, lambda env, one: found.append(one))
    return found


def _map(turns: _Turns, body: Run, keep: Run | None) -> list[Any]:
    found: list[Any] = []
    _gather(turns, keep, lambda env, one: found.append(body(env)))
    return found


def _insert(found: dict[Any, Any], key: Any, value: Any) -> None:
    if key in found:
        raise Fail(f"insert failed: key {shown(from_key(key))} already exists")
    found[key] = value


def _transform_map(turns: _Turns, body: Run, keep: Run | None) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    _gather(turns, keep, lambda env, one: _insert(found, to_key(one), body(env)))
    return found


def _transform_entry(turns: _Turns, body: Run, keep: Run | None) -> dict[Any, Any]:
    found: dict[Any, Any] = {}

    def take(env: Env, one: Any) -> None:
        entry = body(env)
        if not isinstance(entry, dict):
            raise Fail(f"no such overload: cel.@mapInsert(map, {type_name(entry)})")
        for key, value in entry.items():
            _insert(found, key, value)

    _gather(turns, keep, take)
    return found


def _sort_by(turns: _Turns, body: Run, keep: Run | None) -> list[Any]:
    keys: list[Any] = []
    _gather(turns, None, lambda env, one: keys.append(body(env)))
    return sort_with(list(turns.over), keys)


def sort_with(items: list[Any], keys: list[Any]) -> list[Any]:
    """The items in the order of their keys. Raises Fail where keys cannot be ordered."""
    if not keys:
        return []
    if not has_order(keys[0]):
        raise Fail("list elements must be comparable")
    kind = type_name(keys[0])
    if any(type_name(key) != kind for key in keys):
        raise Fail("list elements must have the same type")

    def order(one: int, other: int) -> int:
        return compare(keys[one], keys[other])

    return [items[place] for place in sorted(range(len(items)), key=cmp_to_key(order))]


_TURNS: dict[str, Callable[[_Turns, Run, Run | None], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
    "sortBy": _sort_by,
}
