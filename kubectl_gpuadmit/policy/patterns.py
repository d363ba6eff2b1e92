"""Shell patterns (``research-*``) over names and labels, and which of several is most specific.

Label and namespace names cannot hold ``*``, so a plain name is never taken for a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from kubectl_gpuadmit.verdict import Level


def matches(text: str, pattern: str) -> bool:
    """Shell pattern, case-sensitive."""
    return text == pattern or (("*" in pattern or "?" in pattern) and fnmatchcase(text, pattern))


def has_all(given: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """True where every key of ``wanted`` is given with a value that matches its pattern."""
    return all(key in given and matches(given[key], value) for key, value in wanted.items())


def pairs(keys: Mapping[str, str], given: Mapping[str, str]) -> str:
    """``a=x, b=y`` of these keys as given."""
    return ", ".join(f"{key}={given.get(key, value)}" for key, value in keys.items())


def most_specific(levels: Mapping[str, Level], namespace: str) -> Level | None:
    """The level of the namespace itself, else of the longest pattern that matches it."""
    if not levels:
        return None
    if namespace in levels:
        return levels[namespace]
    for pattern in _by_length(tuple(levels)):
        if matches(namespace, pattern):
            return levels[pattern]
    return None


@lru_cache(maxsize=256)
def _by_length(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(patterns, key=lambda p: (-len(p), p)))
