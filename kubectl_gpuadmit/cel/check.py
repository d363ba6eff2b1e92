"""Checks the types of an expression as the API server does before it stores or runs it.

The check also settles what a name means: ``a.b.c()`` may be a function called ``a.b.c``, and then
the node is rewritten to a call without a target.

Source: github.com/google/cel-go v0.29.2 checker/checker.go, checker/errors.go;
k8s.io/apiserver v0.37.2 pkg/cel/environment/base.go (lists and maps of one type only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubectl_gpuadmit.cel import literals, types
from kubectl_gpuadmit.cel.expand import expanded
from kubectl_gpuadmit.cel.functions import Overload, Table
from kubectl_gpuadmit.cel.syntax import (
    Bind,
    Call,
    Comprehension,
    Const,
    Fold,
    Ident,
    ListOf,
    MapOf,
    Message,
    Node,
    OptMap,
    Select,
    dotted,
)
from kubectl_gpuadmit.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    Bindings,
    Type,
    is_dyn,
    is_dyn_or_error,
    list_of,
    map_of,
    most_general,
    optional_of,
    substitute,
    unwrapped,
)
from kubectl_gpuadmit.cel.values import Uint

CONSTANTS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}
_CLOSED = {
    *("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "kubernetes.NamedFormat"),
}
TYPE_NAMES = {
    "bool": BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": types.NULL,
    "string": STRING,
    "type": types.TYPE,
    "uint": types.UINT,
    "optional_type": optional_of(DYN),
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "kubernetes.Quantity": types.read("quantity"),
    "kubernetes.Semver": types.read("semver"),
    "net.IP": types.read("ip"),
    "net.CIDR": types.read("cidr"),
    "kubernetes.URL": types.read("url"),
}
"""Identifiers that stand for a type."""


class Structs(Protocol):
    """What the check must know about struct types."""

    def field(self, struct: str, name: str) -> Type | None:
        """The type of a field, or None where the struct has no such field."""

    def message(self, name: str) -> Type | None:
        """The type that ``name{…}`` makes, or None where there is no such type."""


class Checked:
    """The result: the type of each node (by identity) and what is wrong, with its place."""

    def __init__(self) -> None:
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, tuple[str, ...]] = {}
        """The keys of the overloads that fit, for each call."""
        self.expanded: dict[int, Node] = {}
        """What each macro stands for."""
        self.errors: list[tuple[int, str]] = []

    def of(self, node: Node) -> Type:
        return self.types.get(id(node), DYN)


def check(
    node: Node, variables: Mapping[str, Type], table: Table, structs: Structs, *, version: int
) -> Checked:
    """Types of all nodes; ``errors`` is empty where the expression is well typed."""
    checker = _Checker(variables, table, structs, version)
    checker.visit(node)
    result = checker.result
    result.types = {
        key: substitute(checker.bound, one, free_is_dyn=True) for key, one in result.types.items()
    }
    if not result.errors:
        literals.validate(node, result)
    return result


class _Checker:
    def __init__(
        self, variables: Mapping[str, Type], table: Table, structs: Structs, version: int
    ) -> None:
        self.result = Checked()
        self.bound: Bindings = {}
        self._scope: dict[str, Type] = dict(variables)
        self._table, self._structs, self._version = table, structs, version
        self._free = 0

    def visit(self, node: Node) -> Type:
        match node:
            case Const():
                found = CONSTANTS[node.value.__class__]
            case Ident():
                found = self._ident(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListOf():
                found = self._list(node)
            case MapOf():
                found = self._map(node)
            case Message():
                found = self._message(node)
            case Comprehension():
                found = self._comprehension(node)
            case Fold() | Bind() | OptMap():
                whole = self.result.expanded[id(node)] = expanded(node)
                found = self.visit(whole)
                if isinstance(whole, Comprehension) and isinstance(node, Fold):
                    result = whole.result
                    node.counted = isinstance(result, Call) and bool(result.key)
        self.result.types[id(node)] = found
        return found

    def _error(self, at: int, message: str) -> Type:
        self.result.errors.append((at, message))
        return ERROR

    def _new(self) -> Type:
        made = types.param(f"_var{self._free}")
        self._free += 1
        return made

    def _agree(self, one: Type, other: Type) -> bool:
        return types.assignable(self.bound, (one,), (other,))

    def _ident(self, node: Ident) -> Type:
        known = self._name(node.name)
        if known is not None:
            return known
        return self._error(node.at, _undeclared(node.name))

    def _name(self, name: str) -> Type | None:
        if name in self._scope:
            return self._scope[name]
        if name in TYPE_NAMES:
            return Type("type", "", (TYPE_NAMES[name],))
        return None

    def _select(self, node: Select) -> Type:
        name = dotted(node)
        if name and name in TYPE_NAMES and name.split(".")[0] not in self._scope:
            return Type("type", "", (TYPE_NAMES[name],))
        found = self._field(node, optional=node.optional)
        return BOOL if node.test else substitute(self.bound, found)

    def _field(self, node: Select, *, optional: bool) -> Type:
        whole = substitute(self.bound, self.visit(node.operand))
        target, was_optional = unwrapped(whole)
        result = ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            known = self._structs.field(target.name, node.field)
            if known is None:
                said = f"undefined field '{node.field}'"
                if target.name in _CLOSED:
                    said = f"unexpected failed resolution of '{target.name}'"
                self._error(node.at, said)
            else:
                result = known
        elif target.kind == "param":
            self._agree(DYN, target)
            result = DYN
        else:
            if not is_dyn_or_error(target):
                self._error(node.at, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if was_optional or optional else result

    def _call(self, node: Call) -> Type:
        args = [self.visit(arg) for arg in node.args]
        if node.target is None:
            overloads = self._named(node.function)
            if not overloads:
                return self._error(node.at, _undeclared(node.function))
            return self._resolve(node, overloads, args, member=False)
        prefix = dotted(node.target)
        if prefix and prefix.split(".")[0] not in self._scope:
            qualified = f"{prefix}.{node.function}"
            overloads = self._named(qualified)
            if overloads:
                node.function, node.target = qualified, None
                return self._resolve(node, overloads, args, member=False)
        target = self.visit(node.target)
        overloads = self._named(node.function)
        if not overloads:
            return self._error(node.at, _undeclared(node.function))
        return self._resolve(node, overloads, [target, *args], member=True)

    def _named(self, name: str) -> list[Overload]:
        found = self._table.named(name)
        return [one for one in found if one.since <= self._version]

    def _resolve(
        self, node: Call, overloads: list[Overload], args: list[Type], *, member: bool
    ) -> Type:
        if node.function in ("_&&_", "_||_"):
            # the chain is a balanced tree: an error below the root leaves the root a bool
            below_root = {0, 1} if len(args) == 2 else ({2} if len(args) == 3 else set())
            wrong = False
            for place, (arg, given) in enumerate(zip(node.args, args, strict=True)):
                if not self._agree(given, BOOL):
                    wrong = wrong or place in below_root
                    shown = substitute(self.bound, given)
                    self._error(arg.at, f"expected type 'bool' but found '{shown}'")
            self.result.overloads[id(node)] = (overloads[0].key,)
            return ERROR if wrong else BOOL
        result: Type | None = None
        fitting: list[str] = []
        for one in overloads:
            if one.member != member or len(one.params) != len(args):
                continue
            fresh: Bindings = {}
            params = tuple(self._instance(param, fresh) for param in one.params)
            if types.assignable(self.bound, tuple(args), params):
                fitting.append(one.key)
                found = substitute(self.bound, self._instance(one.result, fresh))
                if result is None:
                    result = found
                elif not is_dyn(result) and found != result:
                    result = DYN
        if result is not None:
            node.key = fitting[0] if len(fitting) == 1 else ""
            self.result.overloads[id(node)] = tuple(fitting)
            return result
        shown_args = [str(substitute(self.bound, arg, free_is_dyn=True)) for arg in args]
        signature = (
            f"{shown_args[0]}.({', '.join(shown_args[1:])})"
            if member
            else f"({', '.join(shown_args)})"
        )
        return self._error(
            node.at, f"found no matching overload for '{node.function}' applied to '{signature}'"
        )

    def _instance(self, one: Type, fresh: Bindings) -> Type:
        if one.kind == "param":
            if one not in fresh:
                fresh[one] = self._new()
            return fresh[one]
        if not one.params:
            return one
        inner = tuple(self._instance(each, fresh) for each in one.params)
        return Type(one.kind, one.name, inner)

    def _join(self, before: Type | None, now: Type) -> Type:
        if before is None:
            return now
        return most_general(before, now) if self._agree(before, now) else DYN

    def _entry(self, node: Node, *, optional: bool) -> Type:
        found = self.visit(node)
        if not optional:
            return found
        inner, was = unwrapped(found)
        if not was and not is_dyn(inner):
            self._error(node.at, f"expected type '{optional_of(found)}' but found '{found}'")
        return inner

    def _list(self, node: ListOf) -> Type:
        element: Type | None = None
        for index, item in enumerate(node.items):
            found = self._entry(item, optional=index in node.optional)
            element = self._join(element, found)
        return list_of(element if element is not None else self._new())

    def _map(self, node: MapOf) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._join(keys, self.visit(key))
            values = self._join(values, self._entry(value, optional=optional))
        if keys is None or values is None:
            return map_of(self._new(), self._new())
        return map_of(keys, values)

    def _message(self, node: Message) -> Type:
        made = self._structs.message(node.name)
        if made is None:
            return self._error(node.at, _undeclared(node.name))
        for name, value, optional, at in node.fields:
            given = self._entry(value, optional=optional)
            field = self._structs.field(made.name, name)
            if field is None:
                self._error(at, f"undefined field '{name}'")
            elif not self._agree(field, given):
                self._error(
                    at,
                    f"expected type of field '{name}' is '{field}' but provided type is '{given}'",
                )
        return made

    def _comprehension(self, node: Comprehension) -> Type:
        self.visit(node.over)
        accu = self.visit(node.init)
        names = self._turn(node)
        outer = self._scope
        self._scope = {**outer, node.accu: accu}
        inner = self._scope
        self._scope = {**inner, **names}
        self._must(node.condition, self.visit(node.condition), BOOL)
        self._must(node.step, self.visit(node.step), accu)
        self._scope = inner
        found = substitute(self.bound, self.visit(node.result))
        self._scope = outer
        return found

    def _turn(self, node: Comprehension) -> dict[str, Type]:
        """The types of the variables of a turn."""
        over = substitute(self.bound, self.result.types[id(node.over)])
        if over.kind == "list":
            types_ = (INT, over.params[0]) if node.second else (over.params[0], DYN)
        elif over.kind == "map":
            types_ = (over.params[0], over.params[1])
        elif over.kind in ("dyn", "error", "param"):
            self._agree(DYN, over)
            types_ = (DYN, DYN)
        else:
            self._error(
                node.over.at,
                f"expression of type '{over}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)",
            )
            types_ = (ERROR, ERROR)
        names = {node.first: types_[0]}
        if node.second:
            names[node.second] = types_[1]
        return names

    def _must(self, node: Node, found: Type, wanted: Type) -> None:
        if not self._agree(wanted, found):
            self._error(node.at, f"expected type '{wanted}' but found '{found}'")


def _undeclared(name: str) -> str:
    return f"undeclared reference to '{name}' (in container '')"


class NoStructs:
    """An environment without struct types."""

    def field(self, struct: str, name: str) -> Type | None:
        return None

    def message(self, name: str) -> Type | None:
        return None


def place(text: str, at: int, message: str) -> str:
    """An error as cel-go prints it, with the line and a mark below it."""
    before = text[:at]
    line = before.count("\n") + 1
    column = at - (before.rfind("\n") + 1)
    shown = text.split("\n")[line - 1].replace("\t", " ")
    mark = "".join("." if letter.isascii() else "．" for letter in shown[:column])
    mark += "^" if shown[column : column + 1].isascii() else "＾"
    return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {shown}\n | {mark}"
