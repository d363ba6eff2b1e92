"""What a call may cost at most and how large its result may be, function by function.

Source: github.com/google/cel-go v0.29.2 checker/cost.go (functionCost), ext/lists.go, ext/sets.go;
k8s.io/apiserver v0.37.2 pkg/cel/library/cost.go (EstimateCallCost), pkg/cel/limits.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel.sizes import (
    LIST,
    MOST,
    ONE,
    PATTERN,
    STRUCT,
    TRAVERSAL,
    UNKNOWN,
    Size,
    both,
    fixed,
    plus,
    product,
    scaled,
    times,
    union,
)
from kubectl_gpuadmit.cel.types import Type

Found = tuple[int, Size | None]
"""The cost of the call without its arguments', and the size of the result where it is known."""

_CHECK = 350_000
"""Asking the authorizer."""
_LONGEST_FORMAT, _FORMAT_PATTERN = 64, 128
_ADDRESS: Size = (4, 16)


class Path:
    """From a variable to a value: names of fields, ``@items``, ``@keys``, ``@values`` …

    cel-go keeps paths in Go slices that share their memory: a step that is added to a path which
    has room left replaces the step that was added to the same path before. The estimates depend on
    it (in ``m.all(k, v, …)`` the key is taken to be as large as the value), so it is so here.
    """

    __slots__ = ("_count", "_room", "_steps")

    def __init__(self, steps: list[str], room: int, count: int) -> None:
        self._steps, self._room, self._count = steps, room, count

    @staticmethod
    def of(*steps: str) -> Path:
        return Path(list(steps), len(steps), len(steps))

    def then(self, step: str) -> Path:
        if self._count < self._room:
            self._steps[self._count :] = [step, *self._steps[self._count + 1 :]]
            return Path(self._steps, self._room, self._count + 1)
        room = max(1, 2 * self._count)
        return Path([*self.steps, step], room, self._count + 1)

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self._steps[: self._count])


NOWHERE = Path.of()


class Part(Struct, frozen=True):
    """The receiver or an argument of a call."""

    type: Type
    path: Path
    computed: Size | None
    value: Any
    """Of a literal."""
    size_of: Callable[[tuple[str, ...]], Size | None]

    @property
    def size(self) -> Size:
        if self.computed is not None:
            return self.computed
        steps = self.path.steps
        return (self.size_of(steps) if steps else None) or UNKNOWN

    def text(self, factor: float = TRAVERSAL) -> int:
        """The cost of going through the value once."""
        return scaled(self.size[1], factor)

    def element(self) -> Part | None:
        """An element of a list; None where the type has no parameters."""
        if not self.type.params:
            return None
        steps = self.path.steps
        path = Path.of(*steps, "@items") if steps else NOWHERE
        return Part(self.type.params[0], path, None, None, self.size_of)

    def number(self, otherwise: int) -> int:
        """A written integer, not below 0."""
        if self.value.__class__ is not int:
            return otherwise
        return max(int(self.value), 0)


def of_function(name: str, key: str, target: Part | None, args: list[Part]) -> Found | None:
    """None where only ``of_operator`` knows."""
    listed = _LISTS.get(key)
    if listed is not None:
        return listed(target, args)
    found = _FUNCTIONS.get(name)
    return found(key, target, args) if found is not None else None


# -- lists and sets --------------------------------------------------------------------------------


def _made(factor: float, size: Size) -> Found:
    return plus(scaled(size[1], factor), 1, LIST), size


def _slice(target: Part | None, args: list[Part]) -> Found:
    assert target is not None
    count = args[1].number(target.size[1]) - args[0].number(0)
    return _made(1, fixed(count % 2**64))


def _range(target: Part | None, args: list[Part]) -> Found:
    return _made(1, fixed(args[0].number(MOST)))


def _reverse(target: Part | None, args: list[Part]) -> Found:
    assert target is not None
    return _made(1, target.size)


def _flatten(target: Part | None, args: list[Part]) -> Found:
    assert target is not None
    return _made(float(args[0].number(MOST)) if args else 1.0, target.size)


def _distinct(target: Part | None, args: list[Part]) -> Found:
    assert target is not None
    return _made(2, product(target.size, target.size))


def _sort(text: bool) -> Callable[[Part | None, list[Part]], Found]:
    def sort(target: Part | None, args: list[Part]) -> Found:
        keys = args[0] if args else target
        assert keys is not None
        return _made(2 + TRAVERSAL if text else 2, product(keys.size, keys.size))

    return sort


def _set(factor: float) -> Callable[[Part | None, list[Part]], Found]:
    def compare(target: Part | None, args: list[Part]) -> Found:
        size = product(args[0].size, args[1].size)
        return plus(scaled(size[1], factor), 1), None

    return compare


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_LISTS: dict[str, Callable[[Part | None, list[Part]], Found]] = {
    "list<A>::slice(int,int)": _slice,
    "list<list<A>>::flatten()": _flatten,
    "list<dyn>::flatten(int)": _flatten,
    "lists.range(int)": _range,
    "list<A>::reverse()": _reverse,
    "list<A>::distinct()": _distinct,
    **{f"list<{one}>::sort()": _sort(one in ("string", "bytes")) for one in _COMPARABLE},
    **{
        f"list<A>::@sortByAssociatedKeys(list<{one}>)": _sort(one in ("string", "bytes"))
        for one in _COMPARABLE
    },
    "sets.contains(list<A>,list<A>)": _set(1),
    "sets.intersects(list<A>,list<A>)": _set(1),
    "sets.equivalent(list<A>,list<A>)": _set(2),
}

# -- Kubernetes' own -------------------------------------------------------------------------------

_Costs = Callable[[str, Part | None, list[Part]], Found | None]


def _flat(cost: int) -> _Costs:
    return lambda key, target, args: (cost, None)


def _selector(key: str, target: Part | None, args: list[Part]) -> Found | None:
    length = args[0].size[1]
    requirements = scaled(scaled(length, 0.5), LIST + STRUCT)
    return plus(LIST, scaled(length, TRAVERSAL), requirements), None


def _searched(name: str) -> _Costs:
    def search(key: str, target: Part | None, args: list[Part]) -> Found | None:
        if target is None:
            return None
        element = target.element()
        if element is not None:
            each = 1
            if element.type.kind in ("string", "bytes"):
                each = plus(each, element.text())
            return times(target.size[1], each), None
        if name == "includes":
            return target.size[1], None
        return target.text(), None

    return search


def _parsed(factor: float = TRAVERSAL, *, keeps_size: bool = False) -> _Costs:
    """The first argument is gone through."""

    def parse(key: str, target: Part | None, args: list[Part]) -> Found | None:
        if not args:
            return None
        return args[0].text(factor), args[0].size if keeps_size else None

    return parse


def _changed(key: str, target: Part | None, args: list[Part]) -> Found | None:
    return (target.text(), target.size) if target is not None else None


def _replace(key: str, target: Part | None, args: list[Part]) -> Found | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    most, kept_most = 0, 0
    if old[0] == 0:
        most, kept_most = plus(size[1], 1), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = math.ceil(float(size[1]) / float(old[0]))
    least, kept_least = 0, 0
    if old[1] == 0:
        least, kept_least = plus(size[0], 1), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = math.ceil(float(size[0]) / float(old[1]))
    result = both(product((least, min(most, MOST)), new), (kept_least, kept_most))
    return target.text(2 * TRAVERSAL), result


def _split(key: str, target: Part | None, args: list[Part]) -> Found | None:
    if target is None:
        return None
    most = target.size[1]
    if len(args) > 1 and args[1].value.__class__ is int:
        most = int(args[1].value) % 2**64
    return target.text(2 * TRAVERSAL), (0, most)


def _join(key: str, target: Part | None, args: list[Part]) -> Found | None:
    if target is None:
        return None
    result: Size = (0, 0)
    element = target.element()
    if element is not None:
        result = product(target.size, element.size)
    if args:
        signs = (max(target.size[0] - 1, 0), max(target.size[1] - 1, 0))
        result = both(result, product(args[0].size, signs))
    return scaled(result[1], TRAVERSAL), result


def _find(key: str, target: Part | None, args: list[Part]) -> Found | None:
    if target is None or not args:
        return None
    return _regex(target, args[0]), (0, target.size[1])


def _regex(text: Part, pattern: Part) -> int:
    # one more than the text has, so that an empty text does not make the pattern cost nothing
    return times(scaled(plus(text.size[1], 1), TRAVERSAL), pattern.text(PATTERN))


def _ip(key: str, target: Part | None, args: list[Part]) -> Found | None:
    return (1, None) if key == "cidr::ip()" else _parsed()(key, target, args)


def _contains_ip(key: str, target: Part | None, args: list[Part]) -> Found | None:
    cost = scaled(2 * _ADDRESS[1], TRAVERSAL)
    if key == "cidr::containsIP(string)":
        cost = plus(cost, args[0].text())
    return cost, None


def _contains_cidr(key: str, target: Part | None, args: list[Part]) -> Found | None:
    cost = plus(scaled(2 * _ADDRESS[1], TRAVERSAL), scaled(_ADDRESS[1], TRAVERSAL), 1)
    if key == "cidr::containsCIDR(string)":
        cost = plus(cost, args[0].text())
    return cost, None


def _validate(key: str, target: Part | None, args: list[Part]) -> Found | None:
    return (scaled(args[0].text(), _FORMAT_PATTERN * PATTERN), None) if args else None


def _equal(key: str, target: Part | None, args: list[Part]) -> Found | None:
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    name = args[0].type.name
    if name in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
        return 1, None
    if name.startswith("kubernetes.authorization."):
        return 1, None
    if name == "kubernetes.NamedFormat":
        return scaled(_LONGEST_FORMAT, TRAVERSAL), None
    if name == "kubernetes.URL":
        size = union(args[1].computed or ONE, args[1].computed or ONE)
        return scaled(size[1], TRAVERSAL), None
    return None


_FUNCTIONS: dict[str, _Costs] = {
    "check": _flat(_CHECK),
    **dict.fromkeys(
        (
            *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"),
            *("allowed", "reason", "error", "errored", "masked", "prefixLength", "family"),
            *("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast"),
            *("isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger"),
            *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub"),
            *("major", "minor", "patch", "getScheme", "getHostname", "getHost", "getPort"),
            *("getEscapedPath", "getQuery"),
        ),
        _flat(1),
    ),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **{
        name: _searched(name)
        for name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes")
    },
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _parsed(keeps_size=True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _changed),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parsed()
    ),
    "ip": _ip,
    "ip.isCanonical": _parsed(2 * TRAVERSAL),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equal,
}

# -- operators and cel-go's own --------------------------------------------------------------------

SUMS = ("_+_(string,string)", "_+_(bytes,bytes)", "_+_(list<A>,list<A>)")
_TEXTS = ("string", "bytes")
_COMPARED = {
    *("_==_(A,A)", "_!=_(A,A)"),
    *(f"_{sign}_({one},{one})" for sign in ("<", "<=", ">", ">=") for one in _TEXTS),
}


def of_operator(key: str, target: Part | None, args: list[Part]) -> Found:
    """One unit where nothing says otherwise."""
    if key in SUMS:
        size = both(args[0].size, args[1].size)
        return (1 if key == SUMS[2] else scaled(size[1], TRAVERSAL)), size
    if key in _COMPARED:
        return scaled(min(args[0].size[1], args[1].size[1]), TRAVERSAL), None
    match key:
        case "string::format(list<dyn>)" if target is not None:
            return target.text(), None
        case "bytes(string)":
            least, most = args[0].size
            return args[0].text(), (least, most * 4 % 2**64)
        case "string(bytes)":
            least, most = args[0].size
            return args[0].text(), (least // 4, most)
        case "strings.quote(string)":
            least, most = args[0].size
            return args[0].text(), ((least + 2) % 2**64, (most * 2 + 2) % 2**64)
        case "string::startsWith(string)" | "string::endsWith(string)":
            return args[0].text(), None
        case "@in(A,list<A>)":
            return args[1].size[1], None
        case "string::matches(string)" if target is not None:
            return _regex(target, args[0]), None
        case "matches(string,string)":
            return _regex(args[0], args[1]), None
        case "string::contains(string)" if target is not None:
            return times(target.text(), args[0].text()), None
    return 1, None
