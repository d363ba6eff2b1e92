"""Makes a case that disagrees as small as it gets: drops objects and fields while it does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.vocabulary import Json

FIXED = {
    "kind",
    "apiVersion",
    "namespace",
    "uid",
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "operator",
}
"""Without these an object means something else, or is one that no cluster holds."""


def shrink(case: Json, disagrees: Callable[[Json], bool], *, tries: int = 1500) -> Json:
    """Greedy: every part that can go without ending the disagreement goes."""
    best = copy.deepcopy(case)
    for _ in range(4):
        changed = False
        for path in list(paths(best)):
            smaller = without(best, path)
            if smaller is None:
                continue
            tries -= 1
            if tries < 0:
                return best
            if disagrees(smaller):
                best, changed = smaller, True
        if not changed:
            return best
    return best


def paths(value: Any, prefix: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every removable part, outer ones first, list items from the end: indexes stay valid."""
    if isinstance(value, dict):
        for key in list(value):
            named = key in ("metadata", "name") and "metadata" in (key, *prefix[-1:])
            if key not in FIXED and not named and not (prefix == () and key in ("pod", "objects")):
                yield (*prefix, key)
        for key, item in list(value.items()):
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for index in reversed(range(len(value))):
            yield (*prefix, index)
        for index in reversed(range(len(value))):
            yield from paths(value[index], (*prefix, index))


def without(case: Json, path: tuple[str | int, ...]) -> Json | None:
    smaller = copy.deepcopy(case)
    target: Any = smaller
    try:
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return smaller
