"""JSON texts as plain data with places: several in a row, duplicate keys, offsets of fields.

Numbers become what the API's JSON reader makes of them, int64 or float64, and whole floats
integers, as kubectl would send them on. Knows nothing of Kubernetes objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.yaml11 import Note
from kubectl_gpuadmit.kube.yaml_faults import MAX_DEPTH
from kubectl_gpuadmit.kube.yaml_scalars import Place

_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}]+")
_LONE = re.compile("[\ud800-\udfff]")


class JsonError(Exception):
    """``str()`` is one sentence; ``offset`` counts characters of the text.

    ``syntax`` is False for what is JSON, but more than can be held.
    """

    def __init__(self, message: str, offset: int, hint: str = "", *, syntax: bool = True) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint
        self.syntax = syntax


class Decoder:
    """Reads one value at a time; ``doubled`` says whether an object in it repeated a key."""

    def __init__(self) -> None:
        self.doubled = False
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_constant,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            self.doubled = True
        return made

    def read(self, text: str, start: int) -> tuple[Any, int]:
        """The value that begins at ``start`` and where it ends. Raises JsonError."""
        self.doubled = False
        try:
            value, end = self._json.raw_decode(text, start)
        except json.JSONDecodeError as problem:
            raise _explained(problem, text) from None
        except RecursionError:
            raise _depth(start) from None
        except _NotJson as problem:
            at = max(text.find(problem.text, start), start)
            syntax = problem.text[-1:] in ("y", "N")  # NaN, Infinity
            raise JsonError(str(problem), at, "quote it", syntax=syntax) from None
        if _too_deep(value):
            raise _depth(start)
        if "\\u" in text:
            value = _clean(value)
        return value, end


def _depth(at: int) -> JsonError:
    return JsonError(f"nested deeper than {MAX_DEPTH} levels", at, syntax=False)


class _NotJson(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(f"{text} is not a number that JSON can carry")
        self.text = text


def _constant(text: str) -> Any:
    raise _NotJson(text)


def _integer(text: str) -> int | float:
    number: int | float = int(text) if len(text) < 25 else float(text)
    if isinstance(number, int) and -(2**63) <= number < 2**63:
        return number
    return _fraction(text)


def _fraction(text: str) -> int | float:
    """A float64 as kubectl sends it on: without a fraction it is an integer."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _NotJson(text if len(text) < 50 else text[:47] + "…")
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for box in level
            for inner in (box.values() if type(box) is dict else box)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def _clean(value: Any) -> Any:
    """Half a surrogate pair (``\\ud800``) becomes U+FFFD, as in Go; it could not be printed."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_LONE.sub("\ufffd", key): _clean(item) for key, item in value.items()}
    return value


def _explained(problem: json.JSONDecodeError, text: str) -> JsonError:
    offset = problem.pos
    if not text[offset:].strip() or problem.msg.startswith("Unterminated string"):
        return JsonError("the JSON ends in the middle of a value: was the file cut?", offset)
    said = problem.msg[0].lower() + problem.msg[1:]
    hint = ""
    if "{{" in text[:100_000] or "${" in text[offset : offset + 2]:
        hint = "render the template first: helm template, kustomize build or envsubst"
    elif said.startswith("expecting ',' delimiter"):
        hint = "is a comma missing before it?"
    return JsonError(f"not JSON: {said}", offset, hint)


def skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def elements(text: str, start: int) -> Iterator[int]:
    """Offsets of the elements of the array that begins at ``start``. The text is valid JSON."""
    plain = json.JSONDecoder()
    at = skip_space(text, start + 1)
    while text[at] != "]":
        yield at
        _, end = plain.raw_decode(text, at)
        at = skip_space(text, end)
        if text[at] == ",":
            at = skip_space(text, at + 1)


def _skip(text: str, start: int) -> int:
    """Where the value that begins at ``start`` ends."""
    first = text[start]
    if first == '"':
        return _end(_STRING, text, start)
    if first not in "{[":
        return _end(_SCALAR, text, start)
    depth = 0
    for found in _TOKEN.finditer(text, start):
        if found[0] in ("{", "["):
            depth += 1
        elif found[0] in ("}", "]"):
            depth -= 1
            if not depth:
                return found.end()
    return len(text)


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else len(text)


def members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Key, its offset and its value's offset, of the object that begins at ``start``."""
    at = skip_space(text, start + 1)
    while at < len(text) and text[at] == '"':
        end = _end(_STRING, text, at)
        value = skip_space(text, skip_space(text, end) + 1)
        yield _LONE.sub("\ufffd", json.loads(text[at:end])), at, value
        at = skip_space(text, _skip(text, value))
        if at < len(text) and text[at] == ",":
            at = skip_space(text, at + 1)


def find(text: str, start: int, steps: list[str]) -> tuple[int, int]:
    """Offsets of the field at the end of a path, its key and its value, or of what there is of it.

    Of two equal keys the last counts.
    """
    field = value = start
    for step in steps:
        found: tuple[int, int] | None = None
        if text[value] == "{":
            for key, at, inner in members(text, value):
                if key == step:
                    found = at, inner
        elif text[value] == "[" and step.isdecimal():
            at = skip_space(text, value + 1)
            for _ in range(int(step)):
                if text[at] == "]":
                    break
                at = skip_space(text, _skip(text, at))
                at = skip_space(text, at + 1) if text[at] == "," else at
            found = (at, at) if text[at] != "]" else None
        if found is None:
            break
        field, value = found
    return field, value


def doubles(text: str, start: int, place: Place, pointer: str = "") -> Iterator[Note]:
    """A note for each key that an object repeats. ``place`` is that of offset ``start``."""
    stack = [(start, pointer)]
    while stack:
        at, path = stack.pop()
        if text[at] == "{":
            seen: set[str] = set()
            for key, key_at, value in members(text, at):
                inner = f"{path}/{token(key)}"
                if key in seen:
                    yield Note("duplicate-key", inner, moved(text, start, key_at, place), key)
                seen.add(key)
                stack.append((value, inner))
        elif text[at] == "[":
            stack.extend((item, f"{path}/{n}") for n, item in enumerate(elements(text, at)))


def moved(text: str, start: int, end: int, place: Place) -> Place:
    """The place of offset ``end``, where ``place`` is that of ``start``."""
    lines = text.count("\n", start, end)
    if not lines:
        return place[0], place[1] + end - start
    return place[0] + lines, end - text.rfind("\n", start, end) - 1
