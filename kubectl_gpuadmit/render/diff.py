"""A mutation as a diff of the user's own YAML, made of the patch alone; sees no more."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.pointers import steps
from kubectl_gpuadmit.render.wording import cells, flow
from kubectl_gpuadmit.verdict import Mutation


class DiffLine(Struct, frozen=True):
    """``sign`` is ``+``, ``-`` or a blank for what only shows the way."""

    sign: str
    text: str


def lines(mutation: Mutation, *, width: int) -> list[DiffLine]:
    """The operations as changed lines under the keys that lead to them, each key once.

    Values go on one line where they fit into ``width`` columns, else as a block. What a ``replace``
    or ``remove`` takes away is shown where the mutation knows it (``before``, or a ``test`` op).
    """
    before = dict(mutation.before)
    before |= {op["path"]: op.get("value") for op in mutation.ops if op["op"] == "test"}
    out: list[DiffLine] = []
    shown: list[str] = []
    for op in mutation.ops:
        if op["op"] == "test":
            continue
        *way, key = steps(mutation.at + op["path"])
        longer = _appended(op, before)
        if longer is not None:
            way, key = [*way, key], "-"
        same = 0
        while same < min(len(way), len(shown)) and way[same] == shown[same]:
            same += 1
        for depth in range(same, len(way)):
            out.append(DiffLine(" ", "  " * depth + _step(way[depth])))
        shown = way
        indent = "  " * len(way)
        if longer is not None:
            for item in longer:
                out += _value("+", indent, key, item, width)
            continue
        if op["op"] in ("replace", "remove"):
            if op["path"] in before:
                out += _value("-", indent, key, before[op["path"]], width)
            elif op["op"] == "remove":
                out.append(DiffLine("-", indent + _step(key)))
        if op["op"] in ("move", "copy"):
            out.append(DiffLine("+", f"{indent}{_step(key)} ({op['op']} of {op.get('from', '')})"))
        elif op["op"] != "remove":
            out += _value("+", indent, key, op.get("value"), width)
    return out


def _appended(op: dict[str, Any], before: dict[str, Any]) -> list[Any] | None:
    """What a list that is written whole has at its end that the user's own list had not."""
    old, new = before.get(op["path"]), op.get("value")
    if op["op"] not in ("add", "replace") or not isinstance(old, list) or not isinstance(new, list):
        return None
    return new[len(old) :] if old and new[: len(old)] == old else None


def _step(token: str) -> str:
    """A key, or a place in a list as a comment can name it."""
    return f"- # item {token}" if token.isdigit() else "-" if token == "-" else f"{_key(token)}:"


def _key(token: str) -> str:
    return str(flow(token))


def _value(sign: str, indent: str, key: str, value: Any, width: int) -> list[DiffLine]:
    lead = f"{indent}- " if key == "-" or key.isdigit() else f"{indent}{_key(key)}: "
    line = lead + flow(value)
    if cells(line) <= width or not isinstance(value, dict | list) or not value:
        return [DiffLine(sign, line)]
    inner = indent + "  "
    items = list(value.items()) if isinstance(value, dict) else [("-", v) for v in value]
    out: list[DiffLine] = []
    for name, item in items:
        out += _value(sign, inner, str(name), item, width)
    if lead.endswith("- "):  # the first of its lines stands behind the dash
        return [DiffLine(sign, lead + out[0].text.removeprefix(inner)), *out[1:]]
    return [DiffLine(sign, lead.rstrip()), *out]
