"""JSON Patch as the API server applies it, with its own words where a patch does not apply.

Source: gopkg.in/evanphx/json-patch.v4 v4.13.0 patch.go.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from kubectl_gpuadmit.cel.values import Fail, Unsure

Json = dict[str, Any]

_MISSING = ": missing value"


class TestFailed(Exception):
    """A ``test`` operation does not hold: nothing of the patch is applied."""


def patched(document: Json, operations: list[Json]) -> Json:
    """The document with the patch applied. Raises Fail, TestFailed."""
    after: Json = apart(document)
    try:
        for one in operations:
            _apply(after, one)
    except Fail as fault:
        raise Fail(f"JSON Patch: {fault}") from None
    return after


def apart(value: Any) -> Any:
    """A copy of which no two parts are one."""
    if value.__class__ is dict:
        return {key: apart(one) for key, one in value.items()}
    if value.__class__ is list:
        return [apart(one) for one in value]
    return copy.deepcopy(value)


def _apply(document: Json, one: Json) -> None:
    kind, path = str(one["op"]), str(one["path"])
    if not path or (kind in ("move", "copy") and not one.get("from")):
        raise Unsure("how a patch of the whole object is applied")
    holder, key = _find(document, path)
    if kind == "add":
        if holder is None:
            raise Fail(f'add operation does not apply: doc is missing path: "{path}"{_MISSING}')
        _add(holder, key, copy.deepcopy(one.get("value")), f"error in add for path: '{path}': ")
    elif kind == "remove":
        if holder is None:
            raise Fail(f'remove operation does not apply: doc is missing path: "{path}"{_MISSING}')
        _remove(holder, key, f"error in remove for path: '{path}': ")
    elif kind == "replace":
        if holder is None:
            raise Fail(f"replace operation does not apply: doc is missing path: {path}{_MISSING}")
        if isinstance(holder, list) and not _has(holder, key):
            raise Fail(f"replace operation does not apply: doc is missing key: {path}{_MISSING}")
        _set(holder, key, copy.deepcopy(one.get("value")))
    elif kind == "test":
        if holder is None:
            raise Fail(f"test operation does not apply: is missing path: {path}{_MISSING}")
        if isinstance(holder, list):
            _index(holder, key, f"error in test for path: '{path}': ")
        if _has(holder, key) != ("value" in one):
            raise TestFailed
        if _has(holder, key) and _get(holder, key) != one["value"]:
            raise TestFailed
    elif kind in ("move", "copy"):
        _transfer(document, kind, str(one["from"]), path)
    else:
        raise Fail(f"Unexpected kind: {kind}")


def _transfer(document: Json, kind: str, origin: str, path: str) -> None:
    source, name = _find(document, origin)
    if source is None:
        raise Fail(f"{kind} operation does not apply: doc is missing from path: {origin}{_MISSING}")
    if isinstance(source, list):
        which = f"path: '{name}'" if kind == "move" else f"from: '{origin}'"
        _index(source, name, f"error in {kind} for {which}: ")
    value = copy.deepcopy(_get(source, name)) if _has(source, name) else None
    if kind == "move":
        _remove(source, name, f"error in move for path: '{name}': ")
    holder, key = _find(document, path)
    if holder is None:
        raise Fail(
            f"{kind} operation does not apply: doc is missing destination path: {path}{_MISSING}"
        )
    where = f"error in move for path: '{path}': "
    _add(holder, key, value, where if kind == "move" else "error while adding value during copy: ")


def _find(document: Any, path: str) -> tuple[Any, str]:
    """The container that a path ends in, or None, and the last part of the path."""
    parts = path.split("/")
    if len(parts) < 2:
        return None, ""
    holder = document
    for part in parts[1:-1]:
        key = _decoded(part)
        if not _has(holder, key):
            return None, ""
        holder = _get(holder, key)
        if not isinstance(holder, dict | list):
            return None, ""
    return holder, _decoded(parts[-1])


def _decoded(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _place(holder: list[Any], key: str) -> int | None:
    """The index of an item that is there; negative ones count from the end."""
    if not re.fullmatch(r"[+-]?[0-9]+", key, re.ASCII):
        return None
    place = int(key)
    place += len(holder) if place < 0 else 0
    return place if 0 <= place < len(holder) else None


def _has(holder: Any, key: str) -> bool:
    if isinstance(holder, list):
        return _place(holder, key) is not None
    return key in holder


def _get(holder: Any, key: str) -> Any:
    if isinstance(holder, list):
        place = _place(holder, key)
        assert place is not None
        return holder[place]
    return holder[key]


def _set(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, list):
        place = _place(holder, key)
        assert place is not None
        holder[place] = value
    else:
        holder[key] = value


def _number(key: str, where: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", key, re.ASCII):
        said = f'strconv.Atoi: parsing "{key}": invalid syntax'
        raise Fail(f"{where}{said}")
    return int(key)


def _index(holder: list[Any], key: str, where: str) -> int:
    number = _number(key, where)
    place = _place(holder, key)
    if place is None:
        raise Fail(f"{where}Unable to access invalid index: {number}: invalid index referenced")
    return place


def _add(holder: Any, key: str, value: Any, where: str) -> None:
    if isinstance(holder, dict):
        holder[key] = value
        return
    if key == "-":
        holder.append(value)
        return
    if not re.fullmatch(r"[+-]?[0-9]+", key, re.ASCII):
        _number(key, f"{where}value was not a proper array index: '{key}': ")
    place = int(key)
    size = len(holder) + 1
    if place >= size or place < -size:
        raise Fail(f"{where}Unable to access invalid index: {place}: invalid index referenced")
    holder.insert(place + size if place < 0 else place, value)


def _remove(holder: Any, key: str, where: str) -> None:
    if isinstance(holder, dict):
        if key not in holder:
            raise Fail(f"{where}Unable to remove nonexistent key: {key}{_MISSING}")
        del holder[key]
        return
    del holder[_index(holder, key, where)]
