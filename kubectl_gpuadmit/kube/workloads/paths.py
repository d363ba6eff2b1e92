"""Paths by which people declare where a pod template lies; they stand for RFC 6901 pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve, steps, token

_PART = re.compile(
    r"\.?(?P<key>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<quote>['\"])(?P<quoted>.+?)(?P=quote)\]"
    r"|\[(?P<index>[0-9]+)\]|(?P<every>\[\*\]|\.\*)"
)

EVERY = "*"


def parse_path(path: str) -> tuple[str, ...]:
    """``.spec.roles[*].template``, ``$.spec['a.b']`` or ``/spec/template`` -> its steps.

    ``[*]`` stands for every item of a list or every value of a map and comes out as ``EVERY``.
    Raises ValueError with the place where it stops making sense.
    """
    text = path.strip()
    if text.startswith("/"):
        return tuple(steps(text))
    text = text.removeprefix("$")
    found: list[str] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if not part:
            raise ValueError(f"path {path!r} is not understood from {text[at:]!r} on")
        found.append(part["key"] or part["quoted"] or part["index"] or EVERY)
        at = part.end()
    if not found:
        raise ValueError("path is empty")
    return tuple(found)


def matches(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every place that ``path`` names: (pointer, what each ``EVERY`` stood for), in document
    order."""

    def walk(
        at: Any, rest: tuple[str, ...], pointer: str, bound: tuple[str, ...]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        if not rest:
            if at is not None:
                yield pointer, bound
            return
        step, further = rest[0], rest[1:]
        if step != EVERY:
            below = resolve(at, f"/{token(step)}")
            yield from walk(below, further, f"{pointer}/{token(step)}", bound)
        elif isinstance(at, dict):
            for key, value in at.items():
                if isinstance(key, str):
                    yield from walk(value, further, f"{pointer}/{token(key)}", (*bound, key))
        elif isinstance(at, list):
            for index, value in enumerate(at):
                yield from walk(value, further, f"{pointer}/{index}", (*bound, str(index)))

    yield from walk(data, path, "", ())


def bind(path: tuple[str, ...], bound: tuple[str, ...]) -> str:
    """The pointer of ``path`` with its first ``EVERY`` steps replaced by ``bound``."""
    left = list(bound)
    return "".join(f"/{token(left.pop(0) if s == EVERY and left else s)}" for s in path)
