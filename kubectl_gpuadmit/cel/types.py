"""The types of CEL and when one may stand for another; knows no expression and no value.

Source: github.com/google/cel-go v0.29.2 checker/types.go (assignability, type parameters),
checker/format.go (how a type is written).
"""

from __future__ import annotations

from msgspec import Struct


class Type(Struct, frozen=True):
    """``kind`` is what it is; ``name`` tells structs, opaque types and type parameters apart."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind in ("struct", "opaque", "param"):
            inner = ", ".join(str(one) for one in self.params)
            return f"{self.name}({inner})" if inner else self.name
        if self.kind in ("list", "map", "type") and self.params:
            return f"{self.kind}({', '.join(str(one) for one in self.params)})"
        return _WRITTEN.get(self.kind, self.kind)


_WRITTEN = {
    "null": "null",
    "error": "!error!",
}

DYN = Type("dyn")
ANY = Type("any")
ERROR = Type("error")
NULL = Type("null")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")


def list_of(element: Type) -> Type:
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def struct(name: str) -> Type:
    return Type("struct", name)


def param(name: str) -> Type:
    return Type("param", name)


def is_dyn(one: Type) -> bool:
    return one.kind in ("dyn", "any")


def is_dyn_or_error(one: Type) -> bool:
    return one.kind in ("dyn", "any", "error")


def unwrapped(one: Type) -> tuple[Type, bool]:
    """The value's type of an optional, and whether it was one."""
    if one.kind == "opaque" and one.name == "optional_type":
        return one.params[0], True
    return one, False


Bindings = dict[Type, Type]
"""What each type parameter stands for so far."""


def substitute(bound: Bindings, one: Type, *, free_is_dyn: bool = False) -> Type:
    """The type with its parameters replaced; with ``free_is_dyn`` also those still open."""
    known = bound.get(one)
    if known is not None:
        return substitute(bound, known, free_is_dyn=free_is_dyn)
    if one.kind == "param":
        return DYN if free_is_dyn else one
    if not one.params:
        return one
    inner = tuple(substitute(bound, each, free_is_dyn=free_is_dyn) for each in one.params)
    return Type(one.kind, one.name, inner)


def assignable(bound: Bindings, ones: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
    """Whether each of ``ones`` may be used as the other; binds parameters only if all may."""
    trial = dict(bound)
    if len(ones) != len(others):
        return False
    if not all(_assign(trial, one, other) for one, other in zip(ones, others, strict=True)):
        return False
    bound.update(trial)
    return True


def _assign(bound: Bindings, one: Type, other: Type) -> bool:
    if other.kind == "param":
        valid, known = _stands_for(bound, one, other)
        if valid:
            return True
        if known:
            return False
    if one.kind == "param":
        return _stands_for(bound, other, one)[0]
    if is_dyn_or_error(one) or is_dyn_or_error(other):
        return True
    if one.kind == "null":
        return _nullable(other)
    if other.kind == "null":
        return _nullable(one)
    if one.kind == "type":
        return other.kind == "type"
    if one.kind in ("list", "map", "opaque"):
        return (
            one.kind == other.kind
            and one.name == other.name
            and len(one.params) == len(other.params)
            and all(_assign(bound, a, b) for a, b in zip(one.params, other.params, strict=True))
        )
    return one.kind == other.kind and one.name == other.name


def _nullable(one: Type) -> bool:
    return one.kind in ("null", "opaque", "struct", "any", "duration", "timestamp")


def _stands_for(bound: Bindings, one: Type, parameter: Type) -> tuple[bool, bool]:
    """Whether the parameter may be ``one``, and whether it was bound before."""
    if one == parameter:
        return True, True
    known = bound.get(parameter)
    if known is not None:
        if one == known:
            return True, True
        if _assign(bound, one, known):
            wider = most_general(one, known)
            if not _occurs(bound, parameter, wider):
                bound[parameter] = wider
            return True, True
        return False, True
    if not _occurs(bound, parameter, one):
        bound[parameter] = one
        return True, False
    return False, False


def _occurs(bound: Bindings, parameter: Type, within: Type) -> bool:
    if parameter == within:
        return True
    if within.kind == "param":
        known = bound.get(within)
        return known is not None and _occurs(bound, parameter, known)
    return any(_occurs(bound, parameter, each) for each in within.params)


def most_general(one: Type, other: Type) -> Type:
    """The less specific of two types that agree."""
    return one if _covers(one, other) else other


def _covers(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "param":
        return True
    if is_dyn(other) or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind in ("list", "map", "opaque"):
        return one.name == other.name and all(
            _covers(a, b) for a, b in zip(one.params, other.params, strict=True)
        )
    return one.kind == "type" or one == other


_NAMES = {
    one.kind: one
    for one in (DYN, ANY, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, TYPE)
}


_SHORT = {
    "quantity": struct("kubernetes.Quantity"),
    "semver": struct("kubernetes.Semver"),
    "ip": Type("opaque", "net.IP"),
    "cidr": Type("opaque", "net.CIDR"),
    "url": struct("kubernetes.URL"),
    "format": struct("kubernetes.NamedFormat"),
}


def read(text: str) -> Type:
    """A type as this package writes signatures: ``list<A>``, ``map<string,dyn>``, ``?int``.

    One capital letter is a type parameter, a name with a dot a struct, ``?`` an optional.
    """
    text = text.strip()
    if text.startswith("?"):
        return optional_of(read(text[1:]))
    head, bracket, rest = text.partition("<")
    if bracket:
        inner = tuple(read(part) for part in split(rest[:-1]))
        return Type(head, "", inner)
    if head in _NAMES:
        return _NAMES[head]
    if head in _SHORT:
        return _SHORT[head]
    if len(head) == 1:
        return param(head)
    return struct(head)


def split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]
