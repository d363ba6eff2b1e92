"""A table of objects that forks share: each fork pays for its own changes, not for the table.

Answers and order are those of a dict. Knows nothing of what the objects mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_FOLDED_FROM = 64
"""So many changes are always carried along; of more, no more than a quarter of the table."""


class Table(Generic[K, V]):
    """``base`` is shared and never changed from now on."""

    __slots__ = ("_added", "_base", "_gone", "_replaced")

    def __init__(self, base: dict[K, V] | None = None) -> None:
        self._base: dict[K, V] = {} if base is None else base
        self._gone: set[K] = set()
        """Keys of the base that were taken out; those that came back are in ``_added``."""
        self._replaced: dict[K, V] = {}
        """Keys of the base that keep their place."""
        self._added: dict[K, V] = {}

    def copy(self) -> Table[K, V]:
        """A table of its own with the same content."""
        changes = len(self._gone) + len(self._replaced) + len(self._added)
        if changes > max(_FOLDED_FROM, len(self._base) // 4):
            return Table(dict(self.items()))
        twin = Table(self._base)
        twin._gone = set(self._gone)
        twin._replaced = dict(self._replaced)
        twin._added = dict(self._added)
        return twin

    def get(self, key: K) -> V | None:
        found = self._added.get(key)
        if found is not None:
            return found
        if key in self._gone:
            return None
        found = self._replaced.get(key)
        return found if found is not None else self._base.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        if key in self._base and key not in self._gone:
            self._replaced[key] = value
        else:
            self._added[key] = value

    def __delitem__(self, key: K) -> None:
        """Raises KeyError."""
        if key in self._added:
            del self._added[key]
        elif key in self._base and key not in self._gone:
            self._gone.add(key)
            self._replaced.pop(key, None)
        else:
            raise KeyError(key)

    def items(self) -> Iterator[tuple[K, V]]:
        if not (self._gone or self._replaced):
            yield from self._base.items()
        else:
            for key, value in self._base.items():
                if key not in self._gone:
                    yield key, self._replaced.get(key, value)
        yield from self._added.items()
