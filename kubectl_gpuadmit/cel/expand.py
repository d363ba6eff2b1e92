"""Writes macros out as the comprehensions that cel-go makes of them, one level at a time.

Programs run the macros' own nodes; types and costs are those of what is written out here.

Source: github.com/google/cel-go v0.29.2 parser/macro.go, ext/comprehensions.go, ext/bindings.go,
ext/lists.go (sortBy), cel/library.go (optMap, optFlatMap).
"""

from __future__ import annotations

from copy import deepcopy

from kubectl_gpuadmit.cel.syntax import (
    Bind,
    Call,
    Comprehension,
    Const,
    Fold,
    Ident,
    ListOf,
    MapOf,
    Node,
    OptMap,
)

ACCU = "@result"
_UNUSED = "#unused"
_SORTED = "@__sortBy_input__"


def expanded(node: Fold | Bind | OptMap) -> Node:
    """The node's parts are shared with the result, save for an optMap's target: it is copied."""
    match node:
        case Fold():
            return _sort_by(node) if node.loop == "sortBy" else _fold(node)
        case Bind():
            return bound(node.at, node.name, node.value, node.body)
        case OptMap():
            return _opt_map(node)


def bound(at: int, name: str, value: Node, body: Node) -> Comprehension:
    """``cel.bind``: a comprehension of no turns, whose accumulator is the value."""
    empty, never = ListOf(at, []), Const(at, False)
    return Comprehension(at, empty, _UNUSED, "", name, value, never, Ident(at, name), body)


def is_bind(node: Comprehension) -> bool:
    return (
        isinstance(node.over, ListOf)
        and not node.over.items
        and isinstance(node.condition, Const)
        and node.condition.value is False
        and node.accu != ACCU
    )


def _fold(node: Fold) -> Comprehension:
    at = node.at

    def accu() -> Node:
        return Ident(at, ACCU)

    init: Node = ListOf(at, [])
    condition: Node = Const(at, True)
    result = accu()
    step: Node
    keep = node.keep
    match node.loop:
        case "all":
            init = Const(at, True)
            condition = Call(at, "@not_strictly_false", [accu()])
            step = Call(at, "_&&_", [accu(), node.body])
        case "exists":
            init = Const(at, False)
            condition = Call(at, "@not_strictly_false", [Call(at, "!_", [accu()])])
            step = Call(at, "_||_", [accu(), node.body])
        case "exists_one":
            init = Const(at, 0)
            step, keep = Call(at, "_+_", [accu(), Const(at, 1)]), node.body
            result = Call(at, "_==_", [accu(), Const(at, 1)])
        case "filter":
            step, keep = Call(at, "_+_", [accu(), ListOf(at, [Ident(at, node.first)])]), node.body
        case "transformMap":
            init = MapOf(at, [])
            step = Call(at, "cel.@mapInsert", [accu(), Ident(at, node.first), node.body])
        case "transformMapEntry":
            init = MapOf(at, [])
            step = Call(at, "cel.@mapInsert", [accu(), node.body])
        case _:
            step = Call(at, "_+_", [accu(), ListOf(at, [node.body])])
    if keep is not None:
        step = Call(at, "_?_:_", [keep, step, accu()])
    return Comprehension(
        at, node.over, node.first, node.second, ACCU, init, condition, step, result
    )


def _sort_by(node: Fold) -> Comprehension:
    at = node.at
    keys = Fold(at, "map", Ident(at, _SORTED), node.first, "", node.body)
    body = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, _SORTED))
    return bound(at, _SORTED, node.over, body)


def _opt_map(node: OptMap) -> Call:
    at = node.at
    value = Call(at, "value", [], deepcopy(node.target))
    made: Node = bound(at, node.name, value, node.body)
    if not node.flat:
        made = Call(at, "optional.of", [made])
    has = Call(at, "hasValue", [], node.target)
    return Call(at, "_?_:_", [has, made, Call(at, "optional.none", [])])
