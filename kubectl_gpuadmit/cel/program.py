"""Turns a checked expression into a Python function of its variables.

Terms of ``&&`` and ``||`` and the turns of a comprehension swallow errors as CEL says: an error
counts only where no other term decides. A value that is not known goes before an error, for the
truth might be either.

Source: github.com/google/cel-go v0.29.2 interpreter/interpretable.go, interpreter/attributes.go,
common/types.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kubectl_gpuadmit.cel import operators
from kubectl_gpuadmit.cel.check import TYPE_NAMES
from kubectl_gpuadmit.cel.folds import counted, fold
from kubectl_gpuadmit.cel.functions import Table, caller
from kubectl_gpuadmit.cel.regex import RegexError, compiled
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
    to_key,
    type_name,
)

Env = dict[str, Any]
Run = Callable[[Env], Any]

_CONVERSIONS = {
    *("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"),
}
_PATTERNS = {"matches": 1, "find": 1, "findAll": 1}
"""Functions with a regular expression, and its place among receiver and arguments."""


class PlanError(Exception):
    """A constant part of the expression fails, so that it cannot be made into a program."""


def plan(node: Node, table: Table, version: int) -> Run:
    """A function of the variables. It raises Fail or Unsure."""
    return _Planner(table, version).plan(node)


class _Planner:
    def __init__(self, table: Table, version: int) -> None:
        self._table, self._version = table, version

    def plan(self, node: Node) -> Run:
        match node:
            case Const():
                value = node.value
                return lambda env: value
            case Ident():
                return _ident(node.name)
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
            case Fold():
                return fold(node, self.plan)
            case Comprehension():
                raise AssertionError("programs run the macros themselves")
            case Bind():
                return self._bind(node)
            case OptMap():
                return self._opt_map(node)

    def _select(self, node: Select) -> Run:
        name = dotted(node)
        if name in TYPE_NAMES:
            named = TypeValue(name)
            return lambda env: named
        operand, field = self.plan(node.operand), node.field
        if node.test:
            return lambda env: operators.present(operand(env), field)
        if node.optional:
            return lambda env: operators.optional_index(operand(env), field)

        def select(env: Env) -> Any:
            holder = operand(env)
            try:
                if isinstance(holder, dict):
                    value = holder[field]
                    if value.__class__ is Unknown:
                        raise Unsure(value.what)
                    return value
            except KeyError:
                raise Fail(f"no such key: {field}") from None
            return operators.index(holder, field)

        return select

    def _call(self, node: Call) -> Run:
        name = node.function
        if name == "_&&_":
            return operators.all_of([self.plan(arg) for arg in node.args])
        if name == "_||_":
            return operators.any_of([self.plan(arg) for arg in node.args])
        if name == "_?_:_":
            return _conditional(*(self.plan(arg) for arg in node.args))
        nodes = [*([node.target] if node.target is not None else []), *node.args]
        run = self._run_of(node, nodes)
        if len(nodes) == 1 and name in _CONVERSIONS and _is_constant(nodes[0]):
            try:
                value = run({})
            except Fail as fault:
                raise PlanError(str(fault)) from None
            except Unsure:
                return run
            return lambda env: value
        if nodes and all(isinstance(arg, Const) for arg in nodes):
            return _folded(run)
        return run

    def _run_of(self, node: Call, nodes: list[Node]) -> Run:
        name = node.function
        args = [self.plan(arg) for arg in nodes]
        if name in ("or", "orValue") and len(args) == 2:
            return _or(name, args[0], args[1])
        if name == "@in" and isinstance(nodes[1], ListOf) and _is_constant(nodes[1]):
            return _in_constants(args[0], args[1])
        simple = operators.BINARY.get(name) if len(args) == 2 else None
        if simple is not None:
            return _binary(simple, args[0], args[1])
        one = operators.UNARY.get(name) if len(args) == 1 else None
        if one is not None:
            return _unary(one, args[0])
        call = caller(node, self._table, self._version)
        if name == "distinct" or (name == "sort" and node.key):
            return _unary(call, counted(args[0]))
        if name in _PATTERNS and len(nodes) > 1 and isinstance(nodes[1], Const):
            call = _with_pattern(nodes[1].value, call)
        if len(args) == 1:
            return _unary(call, args[0])
        if len(args) == 2:
            return _binary(call, args[0], args[1])
        return lambda env: call(*(arg(env) for arg in args))

    def _list(self, node: ListOf) -> Run:
        items = [self.plan(item) for item in node.items]
        optional = node.optional
        if not optional:
            return lambda env: [item(env) for item in items]

        def make(env: Env) -> Any:
            out: list[Any] = []
            for place, item in enumerate(items):
                value = item(env)
                if place in optional:
                    if not isinstance(value, Opt):
                        raise Fail(
                            "cannot initialize optional list element from non-optional value"
                            f" {operators.text(value)}"
                        )
                    if value.has:
                        out.append(value.value)
                else:
                    out.append(value)
            return out

        return make

    def _map(self, node: MapOf) -> Run:
        entries = [(self.plan(key), self.plan(value), opt) for key, value, opt in node.entries]

        def make(env: Env) -> Any:
            out: dict[Any, Any] = {}
            for key, value, optional in entries:
                name, item = key(env), value(env)
                if optional:
                    if not isinstance(item, Opt):
                        raise Fail(
                            f"cannot initialize optional entry '{operators.text(name)}' from"
                            f" non-optional value {operators.text(item)}"
                        )
                    if not item.has:
                        continue
                    item = item.value
                out[to_key(name)] = item
            return out

        return make

    def _message(self, node: Message) -> Run:
        name = node.name
        fields = [(field, self.plan(value), optional) for field, value, optional, _ in node.fields]

        def make(env: Env) -> Any:
            out: dict[str, Any] = {}
            for field, value, optional in fields:
                item = value(env)
                if optional:
                    if not isinstance(item, Opt):
                        raise Fail(
                            f"cannot initialize optional entry '{field}' from non-optional value"
                            f" {operators.text(item)}"
                        )
                    if not item.has:
                        continue
                    item = item.value
                out[field] = item
            return MessageValue(name, out)

        return make

    def _bind(self, node: Bind) -> Run:
        value, body, name = self.plan(node.value), self.plan(node.body), node.name

        def bind(env: Env) -> Any:
            return body({**env, name: Later(value, env)})

        return bind

    def _opt_map(self, node: OptMap) -> Run:
        target, body, name = self.plan(node.target), self.plan(node.body), node.name
        flat = node.flat

        def opt_map(env: Env) -> Any:
            found = target(env)
            if not isinstance(found, Opt):
                raise Fail(f"no such overload: hasValue({type_name(found)})")
            if not found.has:
                return NONE
            value = body({**env, name: found.value})
            return value if flat else Opt(value)

        return opt_map


class Later:
    """A value that is computed when it is first read: cel.bind."""

    def __init__(self, run: Run, env: Env) -> None:
        self._run, self._env = run, env
        self._done = False
        self._value: Any = None

    def get(self) -> Any:
        if not self._done:
            self._value = self._run(self._env)
            self._done = True
        return self._value


def _ident(name: str) -> Run:
    named = TypeValue(name) if name in TYPE_NAMES else None

    def read(env: Env) -> Any:
        try:
            value = env[name]
        except KeyError:
            if named is not None:
                return named
            raise Fail(f"no such attribute(s): {name}") from None
        if value.__class__ is Unknown:
            raise Unsure(value.what)
        if value.__class__ is Later:
            return value.get()
        return value

    return read


def _is_constant(node: Node) -> bool:
    """What cel-go computes while it plans: literals, lists of them, and conversions of either."""
    if isinstance(node, Const):
        return True
    if isinstance(node, ListOf):
        return all(_is_constant(item) for item in node.items)
    if isinstance(node, Call) and node.target is None and node.function in _CONVERSIONS:
        return len(node.args) == 1 and _is_constant(node.args[0])
    return False


def _with_pattern(pattern: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A regular expression that is written out is compiled once, when the program is made."""
    try:
        compiled(pattern)
    except RegexError as fault:
        raise PlanError(str(fault)) from None
    except Unsure:
        return call

    def run(*args: Any) -> Any:
        if not isinstance(args[0], str):
            raise Fail("no such overload")
        return call(*args)

    return run


def _in_constants(item: Run, items: Run) -> Run:
    """A list of constants becomes a set, in which nothing is looked up where it is empty."""
    constants = items({})
    if not constants:
        return lambda env: False

    def run(env: Env) -> bool:
        value = item(env)
        if isinstance(value, Semver):
            raise Crash("runtime error: hash of unhashable type cel.Semver")
        return operators.contains(value, constants)

    return run


def _folded(run: Run) -> Run:
    """A call of constants, computed once; one that fails still fails each time."""
    try:
        value = run({})
    except (Fail, Unsure):
        return run
    return lambda env: value


def _binary(call: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    def run(env: Env) -> Any:
        try:
            first = left(env)
        except Fail:
            with suppress(Fail, Unsure):
                right(env)  # evaluated as well, and it may crash
            raise
        return call(first, right(env))

    return run


def _unary(call: Callable[[Any], Any], arg: Run) -> Run:
    return lambda env: call(arg(env))


def _conditional(condition: Run, yes: Run, no: Run) -> Run:
    def choose(env: Env) -> Any:
        decided = condition(env)
        if decided is True:
            return yes(env)
        if decided is False:
            return no(env)
        raise Fail("no such overload")

    return choose


def _or(name: str, left: Run, right: Run) -> Run:
    def choose(env: Env) -> Any:
        found = left(env)
        if not isinstance(found, Opt):
            raise Fail("no such overload")
        if found.has:
            return found if name == "or" else found.value
        return right(env)

    return choose
