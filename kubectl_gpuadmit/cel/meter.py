"""Runs an expression once more, as cel-go's interpreter steps through it, and counts what it costs.

It is slower than ``program`` and is asked only where the cost may matter: selectors whose estimate
is high, and admission policies. What is known of a value decides what is run, so a value that is
not known ends the count (Unsure).

Source: github.com/google/cel-go v0.29.2 interpreter/runtimecost.go, interpreter/planner.go,
interpreter/attributes.go, interpreter/interpretable.go, interpreter/decorators.go;
k8s.io/apiserver v0.37.2 pkg/cel/environment/base.go (constants are folded, has() is free).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from kubectl_gpuadmit.cel import operators
from kubectl_gpuadmit.cel.check import TYPE_NAMES, Checked
from kubectl_gpuadmit.cel.costs import Failed, of_call
from kubectl_gpuadmit.cel.folds import sort_with
from kubectl_gpuadmit.cel.functions import Table, caller
from kubectl_gpuadmit.cel.sizes import LIST, MAP, STRUCT
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
from kubectl_gpuadmit.cel.values import (
    NONE,
    Crash,
    Fail,
    MessageValue,
    Opt,
    Semver,
    TypeValue,
    Unknown,
    Unsure,
    from_key,
    go_type,
    shown,
    to_key,
    type_name,
)

CANCELLED = "operation cancelled: actual cost limit exceeded"
"""What is said where an expression costs more than it may."""


class _Cancelled(Exception):
    """The limit is passed."""


Entries = list[tuple[Any, Any]]
Arrange = Callable[[Entries], Entries]


class Frame:
    """The variables of a run or of one comprehension, and what was spent so far."""

    __slots__ = ("accu", "arrange", "begin", "limit", "names", "outer", "root", "spent")

    def __init__(self, names: dict[str, Any], outer: Frame | None, limit: int) -> None:
        self.names, self.outer = names, outer
        self.root: Frame = outer.root if outer else self
        self.accu = ""
        self.begin: _Step | None = None
        """What gives the accumulator its first value, until that is read."""
        self.spent, self.limit = 0, limit
        self.arrange: Arrange | None = None

    def pay(self, cost: int) -> None:
        root = self.root
        root.spent += cost
        if root.spent > root.limit:
            raise _Cancelled

    def find(self, name: str) -> Any:
        """The value; KeyError where there is none."""
        frame: Frame | None = self
        while frame is not None:
            if name == frame.accu:
                if frame.begin is not None:
                    begin, frame.begin = frame.begin, None
                    assert frame.outer is not None
                    frame.names[name] = begin.run(frame.outer)
                return frame.names[name]
            if name in frame.names:
                return frame.names[name]
            frame = frame.outer
        raise KeyError(name)


Run = Callable[[Frame], Any]


class _Step:
    """One step of the plan; an error is a value (``Failed``)."""

    __slots__ = ("run",)

    def __init__(self, run: Run) -> None:
        self.run = run


class _Constant(_Step):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(lambda frame: value)
        self.value = value


class _Key:
    """``.field``, ``[key]`` or their optional forms on an attribute; ``key`` may be computed."""

    __slots__ = ("key", "optional", "test")

    def __init__(self, key: Any, *, optional: bool, test: bool = False) -> None:
        self.key, self.optional, self.test = key, optional, test

    def take(self, frame: Frame, holder: Any) -> Any:
        found = self._take(frame, holder)
        frame.pay(1)
        return found

    def _take(self, frame: Frame, holder: Any) -> Any:
        key = self.key.resolve(frame) if isinstance(self.key, _Attribute) else self.key
        if isinstance(key, Failed):
            return key
        try:
            if self.test:
                return operators.present(holder, key)
            return operators.index(holder, key)
        except Fail as fault:
            return Failed(fault)

    def take_if_present(self, frame: Frame, holder: Any) -> Any:
        """An optional; only what is there costs."""
        key = self.key.resolve(frame) if isinstance(self.key, _Attribute) else self.key
        if isinstance(key, Failed):
            return key
        try:
            if self.test:
                found = Opt(True) if operators.present(holder, key) else NONE
            else:
                found = operators.optional_index(holder, key)
        except Fail as fault:
            return Failed(fault)
        if found.has:
            frame.pay(1)
        return found


class _Attribute(_Step):
    """A variable, a computed value or a choice of two, with the fields and keys read from it."""

    __slots__ = ("_cost", "_keys", "_parts", "_root", "test")

    def __init__(self, root: Run, *, parts: tuple[_Attribute, ...] = ()) -> None:
        super().__init__(self._observed)
        self._root, self._parts = root, parts
        self._keys: list[_Key] = []
        self._cost = 0 if parts else 1
        self.test = False

    def add(self, key: _Key) -> None:
        for part in self._parts:
            part.add(key)
        if not self._parts:
            self._keys.append(key)

    def _observed(self, frame: Frame) -> Any:
        found = self.resolve(frame)
        frame.pay(self._cost - 1 if self.test else self._cost)
        if self.test and isinstance(found, Opt):
            return found.has
        return found

    def resolve(self, frame: Frame) -> Any:
        """The value, without what reading the attribute as a whole costs."""
        value = self._root(frame)
        if isinstance(value, Failed) or self._parts:
            return value
        optional = isinstance(value, Opt)
        if isinstance(value, Opt):
            if not value.has:
                return value
            value = value.value
        for key in self._keys:
            optional = optional or key.optional
            if optional:
                found = key.take_if_present(frame, value)
                if isinstance(found, Failed) or not found.has:
                    return found
                value = found.value
            else:
                value = key.take(frame, value)
                if isinstance(value, Failed):
                    return value
        return Opt(value) if optional else value


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
        with suppress(_Cancelled, Crash):
            self._step.run(frame)
        return frame.spent


class _Planner:
    def __init__(self, checked: Checked, table: Table, version: int) -> None:
        self._checked, self._table, self._version = checked, table, version
        self._local: list[str] = []

    def plan(self, node: Node) -> _Step:
        match node:
            case Const():
                return _Constant(node.value)
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

    def _ident(self, name: str) -> _Step:
        if name in TYPE_NAMES and name not in self._local:
            return _Constant(TypeValue(name))

        def read(frame: Frame) -> Any:
            try:
                value = frame.find(name)
            except KeyError:
                return Failed(Fail(f"no such attribute(s): {name}"))
            if value.__class__ is Unknown:
                raise Unsure(value.what)
            return value

        return _Attribute(read)

    def _select(self, node: Select) -> _Step:
        name = dotted(node)
        if name in TYPE_NAMES and name.partition(".")[0] not in self._local:
            return _Constant(TypeValue(name))
        found = _attribute(self.plan(node.operand))
        found.add(_Key(node.field, optional=node.optional, test=node.test))
        found.test = node.test
        return found

    def _index(self, holder: _Step, place: _Step, *, optional: bool) -> _Step:
        found = _attribute(holder)
        key = place.value if isinstance(place, _Constant) else _attribute(place)
        found.add(_Key(key, optional=optional))
        return found

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, node: Call) -> _Step:
        nodes = [*([node.target] if node.target is not None else []), *node.args]
        args = [self.plan(arg) for arg in nodes]
        name = node.function
        if name in ("_&&_", "_||_"):
            return _chain(args, decisive=name == "_||_")
        if name == "_?_:_":
            return _conditional(args[0], _attribute(args[1]), _attribute(args[2]))
        if name in ("_[_]", "_[?_]"):
            return self._index(args[0], args[1], optional=name == "_[?_]")
        if name in ("or", "orValue") and len(args) == 2:
            return _or(name, args[0], args[1])
        key = node.key
        function = self._function(node, len(args))
        if name == "@not_strictly_false":
            return _not_strictly_false(args[0])
        if name in _CONVERSIONS and len(args) == 1 and isinstance(args[0], _Constant):
            try:
                return _Constant(function(args[0].value))
            except (Fail, Unsure):
                pass
        if key == "@in(A,list<A>)" and isinstance(args[1], _Constant):
            folded = _among(args[0], args[1].value)
            if folded is not None:
                return folded
        written = name in _PATTERNS and len(args) > 1 and isinstance(args[1], _Constant)
        in_order = len(args) > 2 or name == "format" or written or (not key and self._many(name))
        return _Step(_called(name, key, args, function, in_order=in_order))

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
        if name in _WRITTEN_OUT:
            return _WRITTEN_OUT[name]
        return caller(node, self._table, self._version)

    # -- literals ----------------------------------------------------------------------------------

    def _list(self, node: ListOf) -> _Step:
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

        return _maker(make, items, LIST)

    def _map(self, node: MapOf) -> _Step:
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

        return _maker(make, [one for key, value, _ in entries for one in (key, value)], MAP)

    def _message(self, node: Message) -> _Step:
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

        return _paid(make, STRUCT)

    # -- comprehensions ----------------------------------------------------------------------------

    def _comprehension(self, node: Comprehension) -> _Step:
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
            turns = _turns(holder, second, frame.root.arrange)
            if isinstance(turns, Failed):
                return turns
            names = inner.names
            for one, two in turns:
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

        return _Step(run)


def _turns(holder: Any, second: str, arrange: Arrange | None) -> Iterable[tuple[Any, Any]] | Failed:
    if isinstance(holder, dict):
        entries = [(from_key(key), value) for key, value in holder.items()]
        return arrange(entries) if arrange else entries
    if isinstance(holder, list | tuple):
        return enumerate(holder) if second else ((item, None) for item in holder)
    if second:
        return Failed(Fail(f"unsupported comprehension range type: {go_type(holder)}"))
    return Failed(Fail(f"got '{go_type(holder)}', expected iterable type"))


def _attribute(step: _Step) -> _Attribute:
    return step if isinstance(step, _Attribute) else _Attribute(step.run)


def _maker(make: Run, parts: list[_Step], cost: int) -> _Step:
    """What is made of constants is made once, and then costs nothing."""
    if all(isinstance(part, _Constant) for part in parts):
        value = make(Frame({}, None, 0))
        if not isinstance(value, Failed):
            return _Constant(value)
    return _paid(make, cost)


def _paid(make: Run, cost: int) -> _Step:
    def run(frame: Frame) -> Any:
        value = make(frame)
        frame.pay(cost)
        return value

    return _Step(run)


def _chain(terms: list[_Step], *, decisive: bool) -> _Step:
    def run(frame: Frame) -> Any:
        failed: Failed | None = None
        for term in terms:
            value = term.run(frame)
            if value is decisive:
                return decisive
            if isinstance(value, Failed):
                failed = failed or value
            elif value is not (not decisive):
                failed = failed or Failed(Fail("no such overload"))
        return failed if failed is not None else not decisive

    return _Step(run)


def _conditional(condition: _Step, yes: _Attribute, no: _Attribute) -> _Step:
    def choose(frame: Frame) -> Any:
        decided = condition.run(frame)
        if decided is True:
            return yes.resolve(frame)
        if decided is False:
            return no.resolve(frame)
        return decided if isinstance(decided, Failed) else Failed(Fail("no such overload"))

    return _Attribute(choose, parts=(yes, no))


def _or(name: str, left: _Step, right: _Step) -> _Step:
    def choose(frame: Frame) -> Any:
        found = left.run(frame)
        if isinstance(found, Failed):
            return found
        if not isinstance(found, Opt):
            return Failed(Fail("no such overload"))
        if found.has:
            return found if name == "or" else found.value
        return right.run(frame)

    return _Step(choose)


def _not_strictly_false(arg: _Step) -> _Step:
    def run(frame: Frame) -> Any:
        value = arg.run(frame)
        frame.pay(1)
        return value is not False

    return _Step(run)


def _among(item: _Step, constants: Any) -> _Step | None:
    """``in`` of a written list of simple values: a look into a set, which costs nothing."""
    if not constants:
        return _Constant(False)
    if not all(isinstance(one, bool | int | float | str) for one in constants):
        return None

    def run(frame: Frame) -> Any:
        value = item.run(frame)
        if isinstance(value, Failed):
            return value
        if isinstance(value, Semver):
            raise Crash("runtime error: hash of unhashable type cel.Semver")
        return operators.contains(value, constants)

    return _Step(run)


def _called(
    name: str, key: str, args: list[_Step], function: Callable[..., Any], *, in_order: bool
) -> Run:
    def run(frame: Frame) -> Any:
        values: list[Any] = []
        failed: Failed | None = None
        for place, arg in enumerate(args):
            value = arg.run(frame)
            values.append(value)
            if isinstance(value, Failed):
                failed = failed or value
                if in_order and place < len(args) - 1:
                    return failed  # arguments are missing, and nothing is counted
        result: Any
        if failed is not None:
            result = failed
        else:
            try:
                result = function(*values)
            except Fail as fault:
                result = Failed(fault)
        frame.pay(of_call(name, key, values, result))
        return result

    if key == "lists.range(int)":

        def ranged(frame: Frame) -> Any:
            count = args[0].run(frame)
            if count.__class__ is int and count > frame.root.limit:
                frame.pay(count)  # as many units as there are numbers, which are not made here
            result: Any = count
            if not isinstance(count, Failed):
                try:
                    result = function(count)
                except Fail as fault:
                    result = Failed(fault)
            frame.pay(of_call(name, key, [count], result))
            return result

        return ranged

    return run


def _insert(found: dict[Any, Any], *entry: Any) -> dict[Any, Any]:
    if len(entry) == 2:
        more = {to_key(entry[0]): entry[1]}
    elif isinstance(entry[0], dict):
        more = entry[0]
    else:
        raise Fail(f"no such overload: cel.@mapInsert(map, {type_name(entry[0])})")
    for key in more:
        if key in found:
            raise Fail(f"insert failed: key {shown(from_key(key))} already exists")
    return {**found, **more}


_WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "cel.@mapInsert": _insert,
    "@sortByAssociatedKeys": lambda items, keys: sort_with(list(items), list(keys)),
}
