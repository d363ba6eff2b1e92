"""Runs an expression once more, as cel-go's interpreter steps through it, and counts what it costs.

It is slower than ``program`` and is asked only where the cost may matter: selectors whose estimate
is high, and admission policies. What is known of a value decides what is run, so a value that is
not known ends the count (Unsure).

Source: github.com/google/cel-go v0.29.2 interpreter/runtimecost.go, interpreter/planner.go,
interpreter/attributes.go, interpreter/interpretable.go, interpreter/decorators.go;
k8s.io/apiserver v0.37.2 pkg/cel/environment/base.go (constants are folded, has() is free).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kubectl_gpuadmit.cel import operators
from kubectl_gpuadmit.cel.check import TYPE_NAMES, Checked
from kubectl_gpuadmit.cel.costs import Failed
from kubectl_gpuadmit.cel.functions import Table, caller
from kubectl_gpuadmit.cel.sizes import LIST, MAP, STRUCT
from kubectl_gpuadmit.cel.steps import (
    WRITTEN_OUT,
    Arrange,
    Attribute,
    Cancelled,
    Constant,
    Frame,
    Key,
    Step,
    among,
    attribute,
    called,
    chain,
    conditional,
    either,
    maker,
    not_strictly_false,
    paid,
    turns,
)
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
from kubectl_gpuadmit.cel.texts import shown
from kubectl_gpuadmit.cel.values import (
    Crash,
    Fail,
    MessageValue,
    Opt,
    TypeValue,
    Unknown,
    Unsure,
    to_key,
)

_CONVERSIONS = {
    *("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"),
}
_PATTERNS = {"matches", "find", "findAll"}
_ONE_FOR_ALL = {"matches", "@sortByAssociatedKeys"}
"""Functions with one implementation for all of their overloads (cel-go's singletons)."""


class Meter:
    """The plan of one expression."""

    def __init__(self, node: Node, checked: Checked, table: Table, version: int) -> None:
        self._step = _Planner(checked, table, version).plan(node)

    def cost(self, variables: dict[str, Any], limit: int, arrange: Arrange | None = None) -> int:
        """The cost; one above the limit means that the evaluation is cancelled there.

        ``arrange`` puts the entries of each map in the order in which they are gone through, which
        Go leaves to chance. Raises Unsure where a value is not known.
        """
        frame = Frame(variables, None, limit)
        frame.arrange = arrange
        with suppress(Cancelled, Crash):
            self._step.run(frame)
        return frame.spent


class _Planner:
    def __init__(self, checked: Checked, table: Table, version: int) -> None:
        self._checked, self._table, self._version = checked, table, version
        self._local: list[str] = []

    def plan(self, node: Node) -> Step:
        match node:
            case Const():
                return Constant(node.value)
            case Ident():
                return self._ident(node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Message():
                return self._message(node)
            case Comprehension():
                return self._comprehension(node)
            case Fold() | Bind() | OptMap():
                return self.plan(self._checked.expanded[id(node)])

    # -- attributes --------------------------------------------------------------------------------

    def _ident(self, name: str) -> Step:
        if name in TYPE_NAMES and name not in self._local:
            return Constant(TypeValue(name))

        def read(frame: Frame) -> Any:
            try:
                value = frame.find(name)
            except KeyError:
                return Failed(Fail(f"no such attribute(s): {name}"))
            if value.__class__ is Unknown:
                raise Unsure(value.what)
            return value

        return Attribute(read)

    def _select(self, node: Select) -> Step:
        name = dotted(node)
        if name in TYPE_NAMES and name.partition(".")[0] not in self._local:
            return Constant(TypeValue(name))
        found = attribute(self.plan(node.operand))
        found.add(Key(node.field, optional=node.optional, test=node.test))
        found.test = node.test
        return found

    def _index(self, holder: Step, place: Step, *, optional: bool) -> Step:
        found = attribute(holder)
        key = place.value if isinstance(place, Constant) else attribute(place)
        found.add(Key(key, optional=optional))
        return found

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Step:
        nodes = [*([node.target] if node.target is not None else []), *node.args]
        args = [self.plan(arg) for arg in nodes]
        name = node.function
        if name in ("_&&_", "_||_"):
            return chain(args, decisive=name == "_||_")
        if name == "_?_:_":
            return conditional(args[0], attribute(args[1]), attribute(args[2]))
        if name in ("_[_]", "_[?_]"):
            return self._index(args[0], args[1], optional=name == "_[?_]")
        if name in ("or", "orValue") and len(args) == 2:
            return either(name, args[0], args[1])
        key = node.key
        function = self._function(node, len(args))
        if name == "@not_strictly_false":
            return not_strictly_false(args[0])
        if name in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant):
            try:
                return Constant(function(args[0].value))
            except (Fail, Unsure):
                pass
        if key == "@in(A,list<A>)" and isinstance(args[1], Constant):
            folded = among(args[0], args[1].value)
            if folded is not None:
                return folded
        written = name in _PATTERNS and len(args) > 1 and isinstance(args[1], Constant)
        in_order = len(args) > 2 or name == "format" or written or (not key and self._many(name))
        return Step(called(name, key, args, function, in_order=in_order))

    def _many(self, name: str) -> bool:
        """Whether cel-go finds the function for the arguments only when it has them all."""
        if name in operators.BINARY or name in _ONE_FOR_ALL:
            return False
        return len([one for one in self._table.named(name) if one.since <= self._version]) > 1

    def _function(self, node: Call, count: int) -> Callable[..., Any]:
        name = node.function
        if count == 2 and name in operators.BINARY:
            return operators.BINARY[name]
        if count == 1 and name in operators.UNARY:
            return operators.UNARY[name]
        if name in WRITTEN_OUT:
            return WRITTEN_OUT[name]
        return caller(node, self._table, self._version)

    # -- literals ----------------------------------------------------------------------------------

    def _list(self, node: ListOf) -> Step:
        items = [self.plan(item) for item in node.items]
        optional = node.optional

        def make(frame: Frame) -> Any:
            out: list[Any] = []
            for place, item in enumerate(items):
                value = item.run(frame)
                if isinstance(value, Failed):
                    return value
                if place in optional:
                    if not isinstance(value, Opt):
                        return Failed(Fail(f"cannot initialize optional list element {value}"))
                    if not value.has:
                        continue
                    value = value.value
                out.append(value)
            return out

        return maker(make, items, LIST)

    def _map(self, node: MapOf) -> Step:
        entries = [(self.plan(key), self.plan(value), opt) for key, value, opt in node.entries]

        def make(frame: Frame) -> Any:
            out: dict[Any, Any] = {}
            for key, value, optional in entries:
                name = key.run(frame)
                item = name if isinstance(name, Failed) else value.run(frame)
                if isinstance(item, Failed):
                    return item
                if optional:
                    if not isinstance(item, Opt):
                        return Failed(Fail(f"cannot initialize optional entry '{shown(name)}'"))
                    if not item.has:
                        continue
                    item = item.value
                try:
                    out[to_key(name)] = item
                except Fail as fault:
                    return Failed(fault)
            return out

        return maker(make, [one for key, value, _ in entries for one in (key, value)], MAP)

    def _message(self, node: Message) -> Step:
        name = node.name
        fields = [(field, self.plan(value), optional) for field, value, optional, _ in node.fields]

        def make(frame: Frame) -> Any:
            out: dict[str, Any] = {}
            for field, value, optional in fields:
                item = value.run(frame)
                if isinstance(item, Failed):
                    return item
                if optional:
                    if not isinstance(item, Opt):
                        return Failed(Fail(f"cannot initialize optional entry '{field}'"))
                    if not item.has:
                        continue
                    item = item.value
                out[field] = item
            return MessageValue(name, out)

        return paid(make, STRUCT)

    # -- comprehensions ----------------------------------------------------------------------------

    def _comprehension(self, node: Comprehension) -> Step:
        begin, over = self.plan(node.init), self.plan(node.over)
        depth = len(self._local)
        self._local += [node.accu, node.first, node.second]
        condition, step = self.plan(node.condition), self.plan(node.step)
        del self._local[depth + 1 :]
        result = self.plan(node.result)
        del self._local[depth:]
        first, second, accu = node.first, node.second, node.accu

        def run(frame: Frame) -> Any:
            holder = over.run(frame)
            if isinstance(holder, Failed):
                return holder
            inner = Frame({}, frame, 0)
            inner.accu, inner.begin = accu, begin
            entries = turns(holder, second, frame.root.arrange)
            if isinstance(entries, Failed):
                return entries
            names = inner.names
            for one, two in entries:
                names[first] = one
                if second:
                    names[second] = two
                if condition.run(inner) is False:
                    break
                names[accu] = step.run(inner)
                inner.begin = None
            for name in (first, second):
                if name != accu:
                    names.pop(name, None)
            return result.run(inner)

        return Step(run)
