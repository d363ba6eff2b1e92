"""What an expression may cost at most, as the API server reckons before it stores it.

Only the upper end is reckoned: the API server asks for nothing else. A size that nothing bounds
makes the cost endless (``sizes.MOST``).

Source: github.com/google/cel-go v0.29.2 checker/cost.go; the costs of functions: ``estimates``.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kubectl_gpuadmit.cel import estimates
from kubectl_gpuadmit.cel.check import TYPE_NAMES, Checked
from kubectl_gpuadmit.cel.estimates import NOWHERE, Path
from kubectl_gpuadmit.cel.expand import ACCU, is_bind
from kubectl_gpuadmit.cel.sizes import (
    LIST,
    MAP,
    ONE,
    STRUCT,
    UNKNOWN,
    Size,
    fixed,
    plus,
    times,
    union,
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
from kubectl_gpuadmit.cel.types import Type
from kubectl_gpuadmit.cel.values import Uint

Sizes = Callable[[tuple[str, ...]], Size | None]
"""How large what lies at a path may be; None where that is not known."""

_SCALARS = {"bool", "double", "duration", "int", "timestamp", "uint"}


class _Entries(Struct, frozen=True):
    """The sizes of the keys (or places) and of the values of a list or a map."""

    kind: str
    key: Size
    value: Size


class _Local(Struct, frozen=True):
    path: Path
    size: Size | None
    entries: _Entries | None


def estimate(node: Node, checked: Checked, size_of: Sizes) -> int:
    """The greatest cost, in cost units."""
    return _Coster(checked, size_of).cost(node)


class _Coster:
    def __init__(self, checked: Checked, size_of: Sizes) -> None:
        self._checked, self._size_of = checked, size_of
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    # -- costs -------------------------------------------------------------------------------------

    def cost(self, node: Node) -> int:
        match node:
            case Const():
                return 0
            case Ident():
                local = self._local(node)
                self._paths[id(node)] = local.path if local else Path.of(node.name)
                return 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Message():
                return plus(STRUCT, *(self.cost(value) for _, value, _, _ in node.fields))
            case Comprehension():
                return self._bind(node) if is_bind(node) else self._comprehension(node)
            case Fold() | Bind() | OptMap():
                whole = self._checked.expanded[id(node)]
                cost = self.cost(whole)
                self._copy(node, whole)
                return cost

    def _select(self, node: Select) -> int:
        if node.test:
            return self.cost(node.operand)
        name = dotted(node)
        if name in TYPE_NAMES and not self._locals.get(name.partition(".")[0]):
            self._paths[id(node)] = Path.of(name)
            return 1
        operand = self.cost(node.operand)
        if node.optional:
            self._size(node)
            return plus(1, operand)
        self._paths[id(node)] = self._path(node.operand).then(node.field)
        kind = self._checked.of(node.operand).kind
        return plus(operand, 1 if kind in ("map", "struct") else 0)

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            inner = plus(1, self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return inner
        costs = [self.cost(arg) for arg in node.args]
        args = [self._part(arg) for arg in node.args]
        keys = self._checked.overloads.get(id(node), ())
        if not keys:
            return 0
        own, target = 0, None
        if node.target is not None:
            own = self.cost(node.target)
            target = self._part(node.target)
        most, size = 0, None
        for key in keys:
            found, result = self._function(node, key, target, args, costs)
            most = max(most, found)
            if result is not None:
                size = result if size is None else union(size, result)
            if key in ("_[_](list<A>,int)", "_[_](map<A,B>,A)"):
                entries = self._entries_of(node.args[0])
                size = entries.value if entries else None
                step = "@items" if "list" in key else "@values"
                self._paths[id(node)] = self._path(node.args[0]).then(step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return plus(own, most)

    def _function(
        self,
        node: Call,
        key: str,
        target: estimates.Part | None,
        args: list[estimates.Part],
        costs: list[int],
    ) -> tuple[int, Size | None]:
        known = estimates.of_function(node.function, key, target, args)
        if known is not None:
            return plus(known[0], *costs), known[1]
        if node.function in ("_&&_", "_||_"):
            return plus(*costs), None
        if node.function == "_?_:_":
            yes, no = node.args[1], node.args[2]
            entries = _joined(self._entries_of(yes), self._entries_of(no))
            if entries is not None:
                self._entries[id(node)] = entries
            size = union(self._size(yes) or UNKNOWN, self._size(no) or UNKNOWN)
            return plus(costs[0], max(costs[1], costs[2])), size
        if key in estimates.SUMS:
            one, other = node.args
            entries = _joined(self._entries_of(one), self._entries_of(other))
            if entries is not None:
                self._entries[id(node)] = entries
        cost, result = estimates.of_operator(key, target, args)
        return plus(cost, *costs), result

    def _list(self, node: ListOf) -> int:
        cost = LIST
        item: Size = (UNKNOWN[1], 0) if node.items else (0, 0)
        for one in node.items:
            cost = plus(cost, self.cost(one))
            item = union(item, self._size(one) or UNKNOWN)
        self._entries[id(node)] = _Entries("list", ONE, item)
        return cost

    def _map(self, node: MapOf) -> int:
        cost = MAP
        keys: Size = (UNKNOWN[1], 0) if node.entries else (0, 0)
        values = keys
        for key, value, _ in node.entries:
            cost = plus(cost, self.cost(key), self.cost(value))
            keys = union(keys, self._size(key) or UNKNOWN)
            values = union(values, self._size(value) or UNKNOWN)
        self._entries[id(node)] = _Entries("map", keys, values)
        return cost

    def _bind(self, node: Comprehension) -> int:
        cost = plus(self.cost(node.over), self.cost(node.init))
        self._push(node.accu, self._as_local(node.init))
        cost = plus(cost, self.cost(node.result))
        self._locals[node.accu].pop()
        self._copy(node, node.result)
        return cost

    def _comprehension(self, node: Comprehension) -> int:
        cost = plus(self.cost(node.over), self.cost(node.init))
        self._push(node.accu, self._as_local(node.init))
        if node.second:
            self._push(node.first, self._variable(node.over, place=True))
            self._push(node.second, self._variable(node.over, place=False))
        else:
            is_list = self._container(node.over) == "list"
            self._push(node.first, self._variable(node.over, place=not is_list))
        turn = plus(self.cost(node.condition), self.cost(node.step))
        for name in (node.first, node.second):
            if name:
                self._locals[name].pop()
        cost = plus(cost, self.cost(node.result))
        self._locals[node.accu].pop()
        turns = self._size(node.over) or UNKNOWN
        if isinstance(node.init, Const):
            size = self._size(node.init)
            if size is not None:
                self._sizes[id(node)] = size
        else:
            self._sizes[id(node)] = turns
            entries = self._entries_of(node.step)
            if entries is not None:
                self._entries[id(node)] = entries
        return plus(cost, times(turns[1], turn))

    # -- variables, paths and sizes ----------------------------------------------------------------

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _as_local(self, node: Node) -> _Local:
        return _Local(self._path(node), self._size(node), self._entries_of(node))

    def _container(self, over: Node) -> str:
        entries = self._entries_of(over)
        return entries.kind if entries else self._checked.of(over).kind

    def _variable(self, over: Node, *, place: bool) -> _Local:
        """A variable of the turns: the key or place of an entry, or its value."""
        entries = self._entries_of(over)
        is_list = self._container(over) == "list"
        if place:
            step, size = "@indices" if is_list else "@keys", entries.key if entries else None
        else:
            step, size = "@items" if is_list else "@values", entries.value if entries else None
        return _Local(self._path(over).then(step), size, None)

    def _local(self, node: Node) -> _Local | None:
        if not isinstance(node, Ident):
            return None
        known = self._locals.get(node.name)
        return known[-1] if known else None

    def _path(self, node: Node) -> Path:
        local = self._local(node)
        return local.path if local else self._paths.get(id(node), NOWHERE)

    def _part(self, node: Node) -> estimates.Part:
        path = self._path(node)
        if path.steps[:1] == (ACCU,):
            path = NOWHERE
        value = node.value if isinstance(node, Const) else None
        return estimates.Part(self._checked.of(node), path, self._size(node), value, self._size_of)

    def _copy(self, node: Node, source: Node) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[id(node)] = size
        if entries is not None:
            self._entries[id(node)] = entries

    def _entries_of(self, node: Node) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is not None:
            return known
        local = self._local(node)
        return local.entries if local else None

    def _size(self, node: Node) -> Size | None:
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        written = _written(node)
        if written is not None:
            return fixed(written)
        steps = self._path(node).steps
        declared = self._size_of(steps) if steps else None
        if declared is not None:
            self._sizes[id(node)] = declared
            return declared
        if is_scalar(self._checked.of(node)):
            return ONE
        local = self._local(node)
        return local.size if local else None


def _joined(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.kind, union(one.key, other.key), union(one.value, other.value))


def is_scalar(one: Type) -> bool:
    """Whether all values of the type have one size."""
    if one.kind == "opaque" and one.name == "optional_type":
        return is_scalar(one.params[0])
    return one.kind in _SCALARS


def _written(node: Node) -> int | None:
    """The size of a literal."""
    if isinstance(node, ListOf):
        return len(node.items)
    if isinstance(node, MapOf):
        return len(node.entries)
    if not isinstance(node, Const):
        return None
    if isinstance(node.value, str | bytes):
        return len(node.value)
    return 1 if isinstance(node.value, bool | int | float | Uint | None) else None
