"""Reads the text of a CEL expression into nodes; macros are expanded by ``macros``.

Source: github.com/google/cel-go v0.29.2 parser/gen/CEL.g4, parser/parser.go (places of errors,
reserved words, how deep an expression may nest).
"""

from __future__ import annotations

from typing import Any

from kubectl_gpuadmit.cel import macros
from kubectl_gpuadmit.cel.lexer import SyntaxFault, Token, tokens
from kubectl_gpuadmit.cel.syntax import (
    Call,
    Const,
    Ident,
    ListOf,
    MapOf,
    Message,
    Node,
    Select,
    dotted,
)
from kubectl_gpuadmit.cel.values import Uint

DEEPEST = 200
"""Nested brackets and operators; cel-go stops at 250 levels of its own, finer, recursion."""

_RELATIONS = {"<", "<=", ">", ">=", "==", "!=", "in"}
_RESERVED = {
    *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
    *("loop", "package", "namespace", "return", "var", "void", "while"),
}


def parse(text: str) -> Node:
    """The expression. Raises SyntaxFault."""
    reader = _Reader(tokens(text))
    node = reader.expression()
    if reader.next.kind != "end":
        raise reader.unexpected()
    return node


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._place = 0
        self._depth = 0
        self.next = found[0]

    def _take(self) -> Token:
        token = self.next
        self._place += 1
        self.next = self._tokens[min(self._place, len(self._tokens) - 1)]
        return token

    def _expect(self, kind: str) -> Token:
        if self.next.kind != kind:
            raise self.unexpected()
        return self._take()

    def _accept(self, kind: str) -> bool:
        if self.next.kind == kind:
            self._take()
            return True
        return False

    def unexpected(self) -> SyntaxFault:
        return SyntaxFault(
            self.next.at,
            f"Syntax error: mismatched input '{self.next.text}'"
            if self.next.kind != "end"
            else "Syntax error: mismatched input '<EOF>'",
        )

    # -- operators ---------------------------------------------------------------------------------

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise SyntaxFault(self.next.at, "expression recursion limit exceeded: 250")
        node = self._chain("||")
        if self.next.kind == "?":
            at = self._take().at
            yes = self._chain("||")
            self._expect(":")
            no = self.expression()
            node = Call(at, "_?_:_", [node, yes, no])
        self._depth -= 1
        return node

    def _chain(self, sign: str) -> Node:
        below = self._chain_and if sign == "||" else self._relation
        terms, signs = [below()], []
        while self.next.kind == sign:
            signs.append(self._take().at)
            terms.append(below())
        if not signs:
            return terms[0]
        # cel-go makes a balanced tree of the chain, and its root is the sign in the middle
        return Call(signs[len(signs) // 2], f"_{sign}_", terms)

    def _chain_and(self) -> Node:
        return self._chain("&&")

    def _relation(self) -> Node:
        node = self._sum()
        while self.next.kind in _RELATIONS:
            token = self._take()
            name = "@in" if token.kind == "in" else f"_{token.kind}_"
            node = Call(token.at, name, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while self.next.kind in ("+", "-"):
            token = self._take()
            node = Call(token.at, f"_{token.kind}_", [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self.next.kind in ("*", "/", "%"):
            token = self._take()
            node = Call(token.at, f"_{token.kind}_", [node, self._unary()])
        return node

    def _unary(self) -> Node:
        if self.next.kind not in ("!", "-"):
            return self._member()
        first = self.next
        count = 0
        while self.next.kind == first.kind:
            self._take()
            count += 1
        follows = self.next
        number = follows.kind == "value" and isinstance(follows.value, int | float)
        if first.kind == "-" and number and not isinstance(follows.value, bool):
            if isinstance(follows.value, Uint):
                raise self.unexpected()
            if count == 1:
                self._take()
                at = first.at
                return self._members(Const(at, _fits(-follows.value, at)))
        node = self._member()
        if count % 2 == 0:
            return node
        return Call(first.at, "!_" if first.kind == "!" else "-_", [node])

    # -- members -----------------------------------------------------------------------------------

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        while True:
            if self.next.kind == ".":
                at = self._take().at
                optional = self._accept("?")
                field = self.next
                if field.kind != "name":
                    raise self.unexpected()
                self._take()
                if self.next.kind == "(" and not optional:
                    opened = self._take().at
                    args = self._arguments(")")
                    expanded = macros.member(opened, field.text, node, args)
                    node = expanded or Call(opened, field.text, args, node)
                else:
                    node = Select(at, node, field.text, optional=optional)
            elif self.next.kind == "[":
                at = self._take().at
                optional = self._accept("?")
                index = self.expression()
                self._expect("]")
                node = Call(at, "_[?_]" if optional else "_[_]", [node, index])
            elif self.next.kind == "{" and (name := dotted(node)):
                node = self._message(name)
            else:
                return node

    def _arguments(self, closing: str) -> list[Node]:
        args: list[Node] = []
        while self.next.kind != closing:
            args.append(self.expression())
            if not self._accept(","):
                break
        self._expect(closing)
        return args

    def _message(self, name: str) -> Node:
        at = self._expect("{").at
        fields: list[tuple[str, Node, bool, int]] = []
        while self.next.kind != "}":
            optional = self._accept("?")
            field = self._expect("name")
            colon = self._expect(":").at
            fields.append((field.text, self.expression(), optional, colon))
            if not self._accept(","):
                break
        self._expect("}")
        return Message(at, name, fields)

    def _primary(self) -> Node:
        token = self.next
        if token.kind == "value":
            self._take()
            return Const(token.at, _fits(token.value, token.at))
        if token.kind == "(":
            self._take()
            node = self.expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            return self._map()
        leading = token.kind == "."
        if leading:
            self._take()
        name = self.next
        if name.kind != "name":
            raise self.unexpected()
        self._take()
        if self.next.kind == "(":
            opened = self._take().at
            args = self._arguments(")")
            return macros.plain(opened, name.text, args) or Call(opened, name.text, args)
        if name.text in _RESERVED:
            raise SyntaxFault(name.at, f"reserved identifier: {name.text}")
        return Ident(name.at, name.text)

    def _list(self) -> Node:
        at = self._expect("[").at
        items: list[Node] = []
        optional: set[int] = set()
        while self.next.kind != "]":
            if self._accept("?"):
                optional.add(len(items))
            items.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListOf(at, items, frozenset(optional))

    def _map(self) -> Node:
        at = self._expect("{").at
        entries: list[tuple[Node, Node, bool]] = []
        while self.next.kind != "}":
            optional = self._accept("?")
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        return MapOf(at, entries)


def _fits(value: Any, at: int) -> Any:
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise SyntaxFault(at, "invalid int literal")
    return value
