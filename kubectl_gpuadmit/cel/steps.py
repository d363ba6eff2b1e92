"""The steps of a plan that counts what it costs: attributes, calls, chains, loops over entries.

Source: github.com/google/cel-go v0.29.2 interpreter/attributes.go, interpreter/interpretable.go,
interpreter/runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubectl_gpuadmit.cel import operators
from kubectl_gpuadmit.cel.costs import Failed, of_call
from kubectl_gpuadmit.cel.folds import sort_with
from kubectl_gpuadmit.cel.texts import shown
from kubectl_gpuadmit.cel.values import (
    NONE,
    Crash,
    Fail,
    Opt,
    Semver,
    from_key,
    go_type,
    to_key,
    type_name,
)

CANCELLED = "operation cancelled: actual cost limit exceeded"
"""What is said where an expression costs more than it may."""


class Cancelled(Exception):
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
        self.begin: Step | None = None
        """What gives the accumulator its first value, until that is read."""
        self.spent, self.limit = 0, limit
        self.arrange: Arrange | None = None

    def pay(self, cost: int) -> None:
        root = self.root
        root.spent += cost
        if root.spent > root.limit:
            raise Cancelled

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


class Step:
    """One step of the plan; an error is a value (``Failed``)."""

    __slots__ = ("run",)

    def __init__(self, run: Run) -> None:
        self.run = run


class Constant(Step):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(lambda frame: value)
        self.value = value


class Key:
    """``.field``, ``[key]`` or their optional forms on an attribute; ``key`` may be computed."""

    __slots__ = ("key", "optional", "test")

    def __init__(self, key: Any, *, optional: bool, test: bool = False) -> None:
        self.key, self.optional, self.test = key, optional, test

    def take(self, frame: Frame, holder: Any) -> Any:
        found = self._take(frame, holder)
        frame.pay(1)
        return found

    def _take(self, frame: Frame, holder: Any) -> Any:
        key = self.key.resolve(frame) if isinstance(self.key, Attribute) else self.key
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
        key = self.key.resolve(frame) if isinstance(self.key, Attribute) else self.key
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


class Attribute(Step):
    """A variable, a computed value or a choice of two, with the fields and keys read from it."""

    __slots__ = ("_cost", "_keys", "_parts", "_root", "test")

    def __init__(self, root: Run, *, parts: tuple[Attribute, ...] = ()) -> None:
        super().__init__(self._observed)
        self._root, self._parts = root, parts
        self._keys: list[Key] = []
        self._cost = 0 if parts else 1
        self.test = False

    def add(self, key: Key) -> None:
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


def turns(holder: Any, second: str, arrange: Arrange | None) -> Iterable[tuple[Any, Any]] | Failed:
    if isinstance(holder, dict):
        entries = [(from_key(key), value) for key, value in holder.items()]
        return arrange(entries) if arrange else entries
    if isinstance(holder, list | tuple):
        return enumerate(holder) if second else ((item, None) for item in holder)
    if second:
        return Failed(Fail(f"unsupported comprehension range type: {go_type(holder)}"))
    return Failed(Fail(f"got '{go_type(holder)}', expected iterable type"))


def attribute(step: Step) -> Attribute:
    return step if isinstance(step, Attribute) else Attribute(step.run)


def maker(make: Run, parts: list[Step], cost: int) -> Step:
    """What is made of constants is made once, and then costs nothing."""
    if all(isinstance(part, Constant) for part in parts):
        value = make(Frame({}, None, 0))
        if not isinstance(value, Failed):
            return Constant(value)
    return paid(make, cost)


def paid(make: Run, cost: int) -> Step:
    def run(frame: Frame) -> Any:
        value = make(frame)
        frame.pay(cost)
        return value

    return Step(run)


def chain(terms: list[Step], *, decisive: bool) -> Step:
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

    return Step(run)


def conditional(condition: Step, yes: Attribute, no: Attribute) -> Step:
    def choose(frame: Frame) -> Any:
        decided = condition.run(frame)
        if decided is True:
            return yes.resolve(frame)
        if decided is False:
            return no.resolve(frame)
        return decided if isinstance(decided, Failed) else Failed(Fail("no such overload"))

    return Attribute(choose, parts=(yes, no))


def either(name: str, left: Step, right: Step) -> Step:
    def choose(frame: Frame) -> Any:
        found = left.run(frame)
        if isinstance(found, Failed):
            return found
        if not isinstance(found, Opt):
            return Failed(Fail("no such overload"))
        if found.has:
            return found if name == "or" else found.value
        return right.run(frame)

    return Step(choose)


def not_strictly_false(arg: Step) -> Step:
    def run(frame: Frame) -> Any:
        value = arg.run(frame)
        frame.pay(1)
        return value is not False

    return Step(run)


def among(item: Step, constants: Any) -> Step | None:
    """``in`` of a written list of simple values: a look into a set, which costs nothing."""
    if not constants:
        return Constant(False)
    if not all(isinstance(one, bool | int | float | str) for one in constants):
        return None

    def run(frame: Frame) -> Any:
        value = item.run(frame)
        if isinstance(value, Failed):
            return value
        if isinstance(value, Semver):
            raise Crash("runtime error: hash of unhashable type cel.Semver")
        return operators.contains(value, constants)

    return Step(run)


def called(
    name: str, key: str, args: list[Step], function: Callable[..., Any], *, in_order: bool
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


WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "cel.@mapInsert": _insert,
    "@sortByAssociatedKeys": lambda items, keys: sort_with(list(items), list(keys)),
}
