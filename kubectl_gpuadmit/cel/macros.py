"""Which calls of CEL are macros, and the nodes that they become.

Source: github.com/google/cel-go v0.29.2 parser/macro.go, ext/comprehensions.go, ext/bindings.go,
ext/lists.go (sortBy), cel/library.go (optMap, optFlatMap).
"""

from __future__ import annotations

from kubectl_gpuadmit.cel.lexer import SyntaxFault
from kubectl_gpuadmit.cel.syntax import (
    Bind,
    Const,
    Fold,
    Ident,
    Loop,
    MapOf,
    Node,
    OptMap,
    Select,
)

_QUANTIFIERS: dict[str, Loop] = {
    "all": "all",
    "exists": "exists",
    "exists_one": "exists_one",
    "existsOne": "exists_one",
}
_TRANSFORMS: dict[str, Loop] = {
    "transformList": "map",
    "transformMap": "transformMap",
    "transformMapEntry": "transformMapEntry",
}


def plain(at: int, name: str, args: list[Node]) -> Node | None:
    """``has(a.b)``. None where it is a call like any other. Raises SyntaxFault."""
    if name != "has" or len(args) != 1:
        return None
    field = args[0]
    if not isinstance(field, Select) or field.test or field.optional:
        raise SyntaxFault(at, "invalid argument to has() macro")
    return Select(at, field.operand, field.field, test=True)


def member(at: int, name: str, target: Node, args: list[Node]) -> Node | None:
    """``target.name(args)`` where it is a macro, else None. Raises SyntaxFault."""
    count = len(args)
    if name in _QUANTIFIERS and count == 2 and name != "existsOne":
        return Fold(at, _QUANTIFIERS[name], target, _variable(args[0]), "", args[1])
    if name in _QUANTIFIERS and count == 3:
        first, second = _variables(args)
        return Fold(at, _QUANTIFIERS[name], target, first, second, args[2])
    if name == "filter" and count == 2:
        first = _variable(args[0])
        return Fold(at, "filter", target, first, "", args[1])
    if name == "map" and count in (2, 3):
        keep = args[1] if count == 3 else None
        return Fold(at, "map", target, _variable(args[0]), "", args[-1], keep)
    if name in _TRANSFORMS and count in (3, 4):
        first, second = _variables(args)
        keep = args[2] if count == 4 else None
        return Fold(at, _TRANSFORMS[name], target, first, second, args[-1], keep)
    if name == "sortBy" and count == 2:
        if isinstance(target, Const | MapOf):
            raise SyntaxFault(
                target.at,
                "sortBy can only be applied to a list, identifier, comprehension, call or select"
                " expression",
            )
        return Fold(at, "sortBy", target, _variable(args[0]), "", args[1])
    if name in ("optMap", "optFlatMap") and count == 2:
        return OptMap(at, target, _variable(args[0]), args[1], name == "optFlatMap")
    if name == "bind" and count == 3 and isinstance(target, Ident) and target.name == "cel":
        return Bind(at, _variable(args[0]), args[1], args[2])
    return None


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise SyntaxFault(node.at, "argument must be a simple name")
    if node.name in ("__result__", "@result"):
        raise SyntaxFault(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(args: list[Node]) -> tuple[str, str]:
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise SyntaxFault(args[1].at, f"duplicate variable name: {first}")
    return first, second
