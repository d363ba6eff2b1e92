"""Takes a DRA selector apart: which of its ``&&`` terms fails on a device, and what it reads.

A selector whose operands are joined by ``&&``, also inside of one ``cel.bind``, falls into terms;
any other is one term. Each term is compiled and asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.cel import dra
from kubectl_gpuadmit.cel.lexer import Token, tokens
from kubectl_gpuadmit.cel.syntax import Bind, Call, Const, Ident, Node, Select, children
from kubectl_gpuadmit.cel.values import DomainMap, Quantity, Semver

Kind = Literal["attribute", "capacity", "driver", "allowMultipleAllocations"]


class Read(Struct, frozen=True):
    """Something of the device that a term looks at."""

    kind: Kind
    domain: str = ""
    name: str = ""
    """'' where the term looks at the domain as a whole."""

    def value(self, device: dra.Device) -> str | None:
        """The device's value as text; None where it has none."""
        holder = device.variables["device"]
        if self.kind == "driver":
            return str(holder["driver"])
        if self.kind == "allowMultipleAllocations":
            return "true" if holder["allowMultipleAllocations"] else "false"
        domains: DomainMap = holder["attributes" if self.kind == "attribute" else "capacity"]
        found = domains.get(self.domain, {}).get(self.name)
        return None if found is None else shown(found)

    def __str__(self) -> str:
        if self.kind in ("driver", "allowMultipleAllocations"):
            return self.kind
        return f"{self.domain}/{self.name}" if self.name else self.domain


class Term(Struct, frozen=True):
    """One operand of ``&&`` and what it says of a device."""

    text: str
    """As written, spaces between lines joined."""
    answer: dra.Answer
    reads: tuple[Read, ...]


class Part(Struct, frozen=True):
    text: str
    selector: dra.Selector
    reads: tuple[Read, ...]


def terms(selector: dra.Selector, device: dra.Device) -> tuple[Term, ...]:
    """Each term with its answer, in the order written."""
    return tuple(
        Term(part.text, part.selector.matches(device), part.reads) for part in parts(selector)
    )


def parts(selector: dra.Selector) -> tuple[Part, ...]:
    """The terms without a device."""
    return _parts(selector.expression, selector)


_cache: dict[str, tuple[Part, ...]] = {}


def _parts(expression: str, selector: dra.Selector) -> tuple[Part, ...]:
    known = _cache.get(expression)
    if known is not None:
        return known
    found: list[Part] = []
    for text, whole in _split(expression):
        compiled = dra.compile(whole)
        if not isinstance(compiled, dra.Selector):
            found = []
            break
        found.append(Part(" ".join(text.split()), compiled, _reads(compiled.program.node)))
    if not found:
        text = " ".join(expression.split())
        found = [Part(text, selector, _reads(selector.program.node))]
    if len(_cache) > 4096:
        _cache.clear()
    _cache[expression] = tuple(found)
    return _cache[expression]


@lru_cache(maxsize=4096)
def _split(expression: str) -> tuple[tuple[str, str], ...]:
    """(text of the term, expression that evaluates it) for each term."""
    found: list[tuple[str, str]] = []
    for text in _operands(expression):
        inner = _unwrapped(text)
        if inner != text:
            found += _split(inner)
            continue
        bound = _bind(text)
        if bound is None:
            found.append((text, text))
            continue
        head, body = bound
        found += [(part, f"{head}{whole})") for part, whole in _split(body)]
    return tuple(found)


def _operands(expression: str) -> list[str]:
    """At ``&&`` outside of brackets; the whole where ``||`` or ``?:`` binds it together."""
    depth, cuts = 0, []
    for token in _tokens(expression):
        depth += token.kind in ("(", "[", "{")
        depth -= token.kind in (")", "]", "}")
        if depth == 0 and token.kind in ("||", "?"):
            return [expression]
        if depth == 0 and token.kind == "&&":
            cuts.append(token.at)
    begins = [0, *(cut + 2 for cut in cuts)]
    ends = [*cuts, len(expression)]
    return [expression[a:b].strip() for a, b in zip(begins, ends, strict=True)]


def _tokens(expression: str) -> Iterator[Token]:
    return iter(tokens(expression)[:-1])


def _unwrapped(text: str) -> str:
    """Without brackets around the whole."""
    if not text.startswith("("):
        return text
    depth = 0
    for token in _tokens(text):
        depth += token.kind == "("
        depth -= token.kind == ")"
        if depth == 0:
            whole = token.at == len(text) - 1
            return text[1:-1].strip() if whole else text
    return text


def _bind(text: str) -> tuple[str, str] | None:
    """``cel.bind(name, value, `` and the body, where the whole is one such call."""
    found = list(_tokens(text))
    if [one.text for one in found[:4]] != ["cel", ".", "bind", "("] or found[-1].text != ")":
        return None
    depth, commas = 0, []
    for token in found[3:]:
        depth += token.kind in ("(", "[", "{")
        depth -= token.kind in (")", "]", "}")
        if depth == 1 and token.kind == ",":
            commas.append(token.at)
        if depth == 0 and token is not found[-1]:
            return None
    if len(commas) != 2:
        return None
    cut = commas[1] + 1
    return text[:cut] + " ", text[cut:-1].strip()


def _reads(node: Node) -> tuple[Read, ...]:
    found: dict[Read, None] = {}
    _collect(node, {}, found)
    return tuple(found)


def _collect(node: Node, bound: dict[str, Node], found: dict[Read, None]) -> None:
    read = _read(node, bound)
    if read is not None:
        found.setdefault(read)
        return
    if isinstance(node, Bind):
        _collect(node.body, {**bound, node.name: node.value}, found)
        return
    for child in children(node):
        _collect(child, bound, found)


def _read(node: Node, bound: dict[str, Node]) -> Read | None:
    path = _path(node, bound)
    if path is None or path[0] != "device" or len(path) < 2:
        return None
    if path[1] == "driver":
        return Read("driver")
    if path[1] == "allowMultipleAllocations":
        return Read("allowMultipleAllocations")
    if path[1] in ("attributes", "capacity") and len(path) in (3, 4):
        kind: Kind = "attribute" if path[1] == "attributes" else "capacity"
        return Read(kind, path[2], path[3] if len(path) == 4 else "")
    return None


def _path(node: Node, bound: dict[str, Node]) -> list[str] | None:
    """``device.attributes["d"].x`` -> [device, attributes, d, x]; None for anything else."""
    if isinstance(node, Ident):
        known = bound.get(node.name)
        if known is not None:
            return _path(known, {k: v for k, v in bound.items() if k != node.name})
        return [node.name]
    if isinstance(node, Select):
        path = _path(node.operand, bound)
        return [*path, node.field] if path is not None else None
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]"):
        path = _path(node.args[0], bound)
        key = node.args[1]
        if path is None or not isinstance(key, Const) or not isinstance(key.value, str):
            return None
        return [*path, key.value]
    return None


def shown(value: Any) -> str:
    """A value as a person reads it."""
    if isinstance(value, Quantity):
        return str(value.amount)
    if isinstance(value, Semver):
        pre = f"-{'.'.join(value.pre)}" if value.pre else ""
        build = f"+{'.'.join(value.build)}" if value.build else ""
        return f"{value.major}.{value.minor}.{value.patch}{pre}{build}"
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(shown(one) for one in value)}]"
    return str(value)
