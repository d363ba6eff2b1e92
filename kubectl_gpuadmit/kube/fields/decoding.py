"""Plain data against the fields of its type, as Kubernetes' strict JSON decoder reads it.

What is found is told in the decoder's own words and order. Keys are sorted first: so does kubectl
before it sends an object. Nothing is said of doubled keys (``manifests`` warns of them, kubectl
sends the last) and nothing of values that fit their type.

Rules of the decoder
1. Names are compared exactly, upper and lower case too. ``null`` fits every type.
2. Unknown fields are collected, each path once and a hundred at most.
3. The first value of a wrong type is the error, and unknown fields are then not told. A type that
   reads its JSON itself (a quantity, a time, a number-or-text) ends the reading at once and wins
   over an earlier wrong type.

Source: sigs.k8s.io/json v0.0.0-20250730193827 internal/golang/encoding/json (decode.go,
kubernetes_patch.go), k8s.io/apimachinery v0.37.2 pkg/runtime/error.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.kube.fields.scalars import MISFIT, complaint, quoted
from kubectl_gpuadmit.kube.fields.table import Type, table
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.versions import LATEST

_MOST = 100
"""Unknown fields that the decoder keeps."""


class Problem(Struct, frozen=True):
    """One field that the decoder does not know or whose value does not fit."""

    what: Literal["unknown", "type"]
    pointer: str
    """RFC 6901, from the root of the data."""
    path: str
    """As the decoder writes it: ``spec.containers[0].resources.limit``."""
    message: str
    """The decoder's words on this one."""
    holder: Type
    """The struct that has no such field, or whose field has the wrong value."""
    name: str
    """The last key."""
    wanted: Type | None = None
    """The type that the value should have had."""
    ends: bool = False
    """Whether the decoder stops here."""
    around: dict[str, Type] = {}
    """Pointer -> the structs on the way from the root."""


class Decoded(Struct, frozen=True):
    """What the decoder makes of one object."""

    problems: tuple[Problem, ...] = ()
    """All of them, in the order of reading; the decoder itself tells fewer."""
    message: str = ""
    """The one text in which the API server refuses it, '' where it does not."""


def decoded(data: dict[str, Any], *, kubernetes: str = LATEST) -> Decoded:
    """Reads an object whose kind the table has; any other is taken for good."""
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return Decoded()
    of = table(kubernetes).of(api_version, kind)
    if of is None or fits(data, of):
        return Decoded()
    found = problems_of(data, of)
    version = api_version.rpartition("/")[2]
    return Decoded(
        found, f'{kind} in version "{version}" cannot be handled as a {kind}: {_said(found)}'
    )


def problems_of(data: Any, of: Type, pointer: str = "") -> tuple[Problem, ...]:
    """Everything that does not fit. ``pointer``: where the data lies in the manifest."""
    return tuple(_walk(data, of, _Spot(pointer, "", of, (), "", {})))


def _said(found: tuple[Problem, ...]) -> str:
    wrong = [one for one in found if one.what == "type"]
    if wrong:
        return next((one for one in wrong if one.ends), wrong[0]).message
    texts = list(dict.fromkeys(one.message for one in found))[:_MOST]
    return "strict decoding error: " + ", ".join(texts)


def fits(value: Any, of: Type) -> bool:
    """Whether nothing is wrong: the same walk without words, for nearly all documents."""
    if value is None:
        return True
    kind = of.kind
    if kind == "string":
        return value.__class__ is str
    if kind == "struct":
        if value.__class__ is not dict:
            return False
        fields = of.fields
        for name, inner in value.items():
            field = fields.get(name)
            if field is None or not fits(inner, field.type):
                return False
        return True
    if kind == "list" or (kind == "bytes" and value.__class__ is not str):
        if value.__class__ is not list:
            return False
        item = of.item
        return all(fits(one, item) for one in value)
    if kind == "map":
        if value.__class__ is not dict:
            return False
        item = of.item
        return all(fits(one, item) for one in value.values())
    return not complaint(value, of)[0]


class _Spot(Struct, frozen=True):
    """Where the reading is, in the three ways of writing it."""

    pointer: str
    path: str
    """``spec.containers[0].env``"""
    holder: Type
    """The struct that the decoder's messages name."""
    stack: tuple[str, ...]
    """Its fields from the root, embedded structs between them, no indices."""
    name: str
    around: dict[str, Type]

    def key(self, name: str) -> _Spot:
        """Inside a map."""
        path = f"{self.path}.{name}" if self.path else name
        return _Spot(
            f"{self.pointer}/{token(name)}", path, self.holder, self.stack, name, self.around
        )

    def index(self, number: int) -> _Spot:
        path = f"{self.path}[{number}]"
        return _Spot(
            f"{self.pointer}/{number}", path, self.holder, self.stack, self.name, self.around
        )


def _walk(value: Any, of: Type, at: _Spot) -> Iterator[Problem]:
    if value is None:
        return
    if of.kind == "struct" and isinstance(value, dict):
        fields = of.fields
        around = {**at.around, at.pointer: of}
        for name in sorted(value):
            below = at.key(name)
            field = fields.get(name)
            if field is None:
                message = f"unknown field {quoted(below.path)}"
                yield Problem(
                    "unknown", below.pointer, below.path, message, of, name, around=around
                )
            else:
                stack = (*at.stack, *field.embedded, name)
                spot = _Spot(below.pointer, below.path, of, stack, name, around)
                yield from _walk(value[name], field.type, spot)
    elif of.kind == "map" and isinstance(value, dict):
        for name in sorted(value):
            yield from _walk(value[name], of.item, at.key(name))
    elif of.kind in ("list", "bytes") and isinstance(value, list):
        for number, one in enumerate(value):
            yield from _walk(one, of.item, at.index(number))
    else:
        text, ends = complaint(value, of)
        if text:
            message = _in_context(text, at) if text.startswith(MISFIT) else text
            yield Problem(
                "type", at.pointer, at.path, message, at.holder, at.name, wanted=of, ends=ends
            )


def _in_context(text: str, at: _Spot) -> str:
    if not at.stack:
        return text
    head, _, tail = text.partition(" into Go value of type ")
    field = f"{at.holder.short}.{'.'.join(at.stack)}"
    return f"{head} into Go struct field {field} of type {tail}"
