"""What one call costs while an expression runs, by the values it is given.

Source: github.com/google/cel-go v0.29.2 interpreter/runtimecost.go (costCall), ext/lists.go,
ext/sets.go; k8s.io/apiserver v0.37.2 pkg/cel/library/cost.go (CallCost), library/format.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel.sizes import LIST, MOST, PATTERN, STRUCT, TRAVERSAL, scaled
from kubectl_gpuadmit.cel.values import (
    Crash,
    Fail,
    Opaque,
    Opt,
    Quantity,
    Semver,
    from_key,
)


class Failed(Struct, frozen=True):
    """In the place of a value: the error that was met."""

    fault: Fail


_CHECK = 350_000
_PATTERNS = {
    **dict.fromkeys(("dns1123Label", "dns1035Label", "dns1123LabelPrefix"), 30),
    **dict.fromkeys(("dns1035LabelPrefix",), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uri": 1103,
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}
"""Characters of the regular expression that stands for a named format."""

Args = Sequence[Any]


def size(value: Any) -> int:
    """Characters, bytes, elements or entries; 1 of anything else, of an error too."""
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value)
    if isinstance(value, Opaque) and value.kind == "net.IP":
        return 4 if value.value.version == 4 else 16
    if isinstance(value, Opaque) and value.kind == "net.CIDR":
        return math.ceil(int(value.value.length) / 8)
    return 1


def _inner(value: Any) -> int:
    """The size, of an optional that of its value."""
    if isinstance(value, Opt) and value.has:
        return _inner(value.value)
    return size(value)


def _traversal(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list | tuple):
        return sum(_traversal(one) for one in value)
    if isinstance(value, dict):
        pairs = value.items()
        return sum(_traversal(from_key(key)) + _traversal(one) for key, one in pairs)
    return 1


def of_call(name: str, key: str, args: Args, result: Any) -> int:
    """``key`` is that of the one overload which the check found, '' where there are several."""
    listed = _LISTS.get(key)
    if listed is not None:
        return listed(args, result)
    found = _FUNCTIONS.get(name)
    if found is not None:
        cost = found(key, args, result)
        if cost is not None:
            return cost
    return _of_operator(key, args)


# -- lists and sets --------------------------------------------------------------------------------


def _made(factor: float, count: int) -> int:
    return min(int(float(count) * (factor if factor >= 0 else 1.0)) + 1 + LIST, MOST)


def _result(args: Args, result: Any) -> int:
    return _made(1, size(result))


def _flatten(args: Args, result: Any) -> int:
    depth = 1.0
    if len(args) == 2:
        if isinstance(args[1], Failed):
            raise Crash("interface conversion: ref.Val is *types.Err, not types.Int")
        depth = float(args[1])
    return _made(depth, size(args[0]))


def _compared(place: int) -> Callable[[Args, Any], int]:
    def compare(args: Args, result: Any) -> int:
        items = args[place]
        if not isinstance(items, list | tuple):
            raise Crash("interface conversion: ref.Val is not traits.Lister")
        text = bool(items) and isinstance(items[0], str | bytes)
        return _made(2 + TRAVERSAL if text else 2, min(len(items) ** 2, MOST))

    return compare


def _set(factor: float) -> Callable[[Args, Any], int]:
    return lambda args, result: 1 + int(float(size(args[0]) * size(args[1])) * factor)


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_LISTS: dict[str, Callable[[Args, Any], int]] = {
    "list<A>::slice(int,int)": _result,
    "list<list<A>>::flatten()": _flatten,
    "list<dyn>::flatten(int)": _flatten,
    "lists.range(int)": _result,
    "list<A>::reverse()": _result,
    "list<A>::distinct()": _compared(0),
    **{f"list<{one}>::sort()": _compared(0) for one in _COMPARABLE},
    **{f"list<A>::@sortByAssociatedKeys(list<{one}>)": _compared(1) for one in _COMPARABLE},
    "sets.contains(list<A>,list<A>)": _set(1),
    "sets.intersects(list<A>,list<A>)": _set(1),
    "sets.equivalent(list<A>,list<A>)": _set(2),
}

# -- Kubernetes' own -------------------------------------------------------------------------------

_Cost = Callable[[str, Args, Any], int | None]


def _flat(cost: int) -> _Cost:
    return lambda key, args, result: cost


def _selector(key: str, args: Args, result: Any) -> int | None:
    length = size(args[1])
    return LIST + scaled(length, TRAVERSAL) + scaled(scaled(length, 0.5), LIST + STRUCT)


def _traversed(key: str, args: Args, result: Any) -> int | None:
    return _traversal(args[0])


def _first(factor: float = TRAVERSAL) -> _Cost:
    return lambda key, args, result: math.ceil(float(size(args[0])) * factor)


def _join(key: str, args: Args, result: Any) -> int | None:
    return math.ceil(float(size(result)) * 2 * TRAVERSAL)


def _regex(text: int, pattern: int) -> int:
    return math.ceil((1.0 + float(text)) * TRAVERSAL) * math.ceil(float(pattern) * PATTERN)


def _find(key: str, args: Args, result: Any) -> int | None:
    return _regex(size(args[0]), size(args[1]))


def _ip(key: str, args: Args, result: Any) -> int | None:
    return 1 if key == "cidr::ip()" else scaled(size(args[0]), TRAVERSAL)


def _contains_ip(key: str, args: Args, result: Any) -> int | None:
    cost = scaled(2 * size(args[0]), TRAVERSAL)
    if key == "cidr::containsIP(string)":
        cost += scaled(size(args[1]), TRAVERSAL)
    return cost


def _contains_cidr(key: str, args: Args, result: Any) -> int | None:
    own = size(args[0])
    cost = scaled(2 * own, TRAVERSAL) + scaled(own, TRAVERSAL) + 1
    if key == "cidr::containsCIDR(string)":
        cost += scaled(size(args[1]), TRAVERSAL)
    return cost


def _validate(key: str, args: Args, result: Any) -> int | None:
    named = args[0]
    if not isinstance(named, Opaque) or named.kind != "kubernetes.NamedFormat":
        return None
    return _regex(size(args[1]), _PATTERNS[named.value])


_FUNCTIONS: dict[str, _Cost] = {
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
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversed
    ),
    **dict.fromkeys(
        (
            *("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"),
            *("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"),
        ),
        _first(),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first(2 * TRAVERSAL)),
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    "ip": _ip,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}

# -- operators and cel-go's own --------------------------------------------------------------------

_TEXTS = ("string", "bytes")
_COMPARED = {
    *("_==_(A,A)", "_!=_(A,A)"),
    *(f"_{sign}_({one},{one})" for sign in ("<", "<=", ">", ">=") for one in _TEXTS),
}


def _of_operator(key: str, args: Args) -> int:
    """One unit where nothing says otherwise."""
    if key in _COMPARED:
        first = args[0]
        if key == "_==_(A,A)" and isinstance(first, Opaque | Quantity | Semver):
            return 1
        return scaled(min(_inner(first), _inner(args[1])), TRAVERSAL)
    match key:
        case "string::startsWith(string)" | "string::endsWith(string)":
            return scaled(_inner(args[1]), TRAVERSAL)
        case (
            "bytes(string)"
            | "string(bytes)"
            | "strings.quote(string)"
            | "string::format(list<dyn>)"
        ):
            return scaled(_inner(args[0]), TRAVERSAL)
        case "@in(A,list<A>)":
            return _inner(args[1])
        case "_+_(string,string)" | "_+_(bytes,bytes)":
            return scaled(_inner(args[0]) + _inner(args[1]), TRAVERSAL)
        case "matches(string,string)" | "string::matches(string)":
            return _regex(_inner(args[0]), _inner(args[1]))
        case "string::contains(string)":
            return scaled(_inner(args[0]), TRAVERSAL) * scaled(_inner(args[1]), TRAVERSAL)
    return 1
