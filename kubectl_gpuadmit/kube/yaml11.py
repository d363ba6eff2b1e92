"""One YAML document as the plain data that kubectl would send; knows nothing of Kubernetes objects.

kubectl turns YAML into JSON with sigs.k8s.io/yaml v1.6.0 (go.yaml.in/yaml v2.4.4: resolve.go,
decode.go), and that is what this module does, value for value, compared with it on generated texts:

1. YAML 1.1 words are booleans (``yes``, ``on``, ``n``), ``017`` and ``0o17`` are 15, ``1_000`` is
   1000, there are no base-60 numbers, and dates stay text.
2. A number ends up as an int64 or a float64, as JSON has it: ``8.0`` is 8, what exceeds int64 is a
   float.
3. Keys become text: ``1:`` is ``"1"``, ``on:`` is ``"true"``. Null, collections and integers beyond
   int64 are no keys.
4. ``<<`` is applied where it stands: it overrides keys above it, keys below override it.
5. The last of two equal keys wins. kubectl does so in silence (sigs.k8s.io/yaml Unmarshal; only its
   UnmarshalStrict and other strict decoders refuse it), so this is a note, never an error.
6. Aliases are copied out, with go-yaml's bound on what they may grow to; a value that contains
   itself is an error.

Events come from libyaml through PyYAML, without nodes in between: no recursion, and faster than
PyYAML's C loader. Places are counted in a second pass, only when they are asked for. Where libyaml
and go-yaml's own copy of it part, libyaml has the say: ``[a:]`` is an error here and a mapping
there, ``! 12`` is a number here and text there, ``\\/`` is an escape here and an error there.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.yaml_faults import MAX_DEPTH, RENDER, translated
from kubectl_gpuadmit.kube.yaml_scalars import (
    LONG_TAG,
    Place,
    YamlError,
    in_json,
    key_text,
    resolve,
    tagged,
)


class Note(Struct, frozen=True):
    """Something that kubectl passes over in silence."""

    what: str
    """``duplicate-key``, ``merge-override`` or ``ignored-text``."""
    pointer: str
    at: Place
    key: str = ""


class Loaded(Struct, frozen=True):
    """The value of the first document of a stream."""

    value: Any
    at: Place
    items: tuple[Place, ...] = ()
    """Where the elements of a top-level ``items:`` list begin."""
    notes: tuple[Note, ...] = ()


_MISSING: Any = object()
_MERGE: Any = object()


class _Aliases:
    """Anchored values, and go-yaml's bound on how far aliases may blow a document up.

    Source: decode.go, allowedAliasRatio: 99 % of up to 400,000 values may come from aliases,
    falling to 10 % of 4,000,000.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.total = 0
        self.copied = 0

    def copy(self, name: str, at: Place) -> Any:
        value = self.values.get(name, _MISSING)
        if value is _MISSING:
            raise YamlError(f"the alias *{name} names no anchor &{name} above it", at)
        if type(value) is _Unfinished:
            raise YamlError(f"the anchor &{name} contains itself", at)
        return self._copy(value, at)

    def _copy(self, value: Any, at: Place) -> Any:
        self.total += 1
        self.copied += 1
        if self.copied > 100 and self.total > 1000:
            share = min(max((self.total - 400_000) / 3_600_000, 0.0), 1.0)
            if self.copied / self.total > 0.99 - 0.89 * share:
                raise YamlError("the aliases of this document expand to far too much", at)
        if type(value) is dict:
            self.total += len(value)
            self.copied += len(value)
            return {key: self._copy(item, at) for key, item in value.items()}
        if type(value) is list:
            return [self._copy(item, at) for item in value]
        return value


class _Unfinished:
    """Stands for an anchored collection while it is being read."""


def _events(raw: bytes) -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(raw)


def _mark(event: Any) -> Place:
    return event.start_mark.line, event.start_mark.column


def load(raw: bytes) -> Loaded | None:
    """The first document of a UTF-8 stream; None where there is only space and comments.

    Raises YamlError.
    """
    import yaml

    try:
        return _load(_events(raw))
    except yaml.YAMLError as problem:
        raise translated(problem, raw) from None
    except YamlError as problem:
        if b"{{" in raw:
            problem.hint = RENDER
        raise


def _load(parser: Any) -> Loaded | None:
    from yaml import events as ev

    get = parser.get_event
    get()
    begin = get()
    if type(begin) is ev.StreamEndEvent:
        return None
    aliases = _Aliases()
    anchors = aliases.values
    notes: list[Note] = []
    items: list[Place] = []
    values: dict[str, Any] = {}
    keys: dict[str, str] = {}
    merged: dict[int, set[str]] = {}
    stack: list[tuple[Any, Any, str | None, Any]] = []  # container, pending key, anchor, mark
    box: Any = None
    key: Any = _MISSING
    root_at: Place = (0, 0)
    count = 0

    while True:
        event = get()
        kind = type(event)
        count += 1
        if kind is ev.ScalarEvent:
            if type(box) is dict and key is _MISSING and event.anchor is None:
                key = _key(event, keys)
                if key in box and key not in merged.get(id(box), ()):
                    path = _path(stack, key)
                    notes.append(Note("duplicate-key", path, _mark(event), key))
                continue
            value = _scalar(event, values)
            if event.anchor is not None:
                anchors[event.anchor] = value
        elif kind is ev.MappingStartEvent or kind is ev.SequenceStartEvent:
            if type(box) is dict and key is _MISSING:
                raise YamlError(
                    "a list or mapping cannot be a key here",
                    _mark(event),
                    "quote values that begin with { or [",
                )
            if len(stack) == 2 and stack[-1][1] == "items" and type(box) is list:
                items.append(_mark(event))
            if len(stack) >= MAX_DEPTH:
                raise YamlError(f"nested deeper than {MAX_DEPTH} levels", _mark(event))
            if not stack:
                root_at = _mark(event)
            unfinished = _Unfinished() if event.anchor is not None else None
            if unfinished is not None:
                anchors[event.anchor] = unfinished
            stack.append((box, key, event.anchor, unfinished))
            box = {} if kind is ev.MappingStartEvent else []
            key = _MISSING
            continue
        elif kind is ev.MappingEndEvent or kind is ev.SequenceEndEvent:
            value = box
            if merged:
                merged.pop(id(box), None)
            box, key, anchor, unfinished = stack.pop()
            if anchor is not None and anchors.get(anchor) is unfinished:
                anchors[anchor] = value
        elif kind is ev.AliasEvent:
            aliases.total = max(aliases.total, count)
            value = aliases.copy(event.anchor, _mark(event))
        else:
            raise YamlError("unexpected content", _mark(event))

        if type(box) is list:
            box.append(value)
        elif type(box) is dict:
            if key is _MISSING:  # an anchored or aliased key
                key = key_text(value, _mark(event))
                continue
            if key is _MERGE:
                _merge(box, value, merged, notes, stack, _mark(event))
            else:
                box[key] = value
                if merged:
                    merged.get(id(box), set()).discard(key)
            key = _MISSING
        else:
            if not isinstance(value, dict | list):
                root_at = _mark(event)
            break

    return Loaded(value, root_at, tuple(items), (*notes, *_rest(parser)))


def _key(event: Any, known: dict[str, str]) -> Any:
    """The text of a key, or ``_MERGE``; ``known``: plain keys that were read before."""
    text = event.value
    if event.implicit[0]:
        if text == "<<":
            return _MERGE
        key = known.get(text)
        if key is None:
            key = known[text] = key_text(resolve(text), _mark(event))
        return key
    if event.tag is None:
        return text
    if event.tag == LONG_TAG + "merge" and text == "<<":
        return _MERGE
    return key_text(tagged(event.tag, text, _mark(event)), _mark(event))


def _scalar(event: Any, known: dict[str, Any]) -> Any:
    """The value of a scalar; ``known``: plain ones that were read before."""
    text = event.value
    if event.implicit[0]:
        value = known.get(text, _MISSING)
        if value is _MISSING:
            value = known[text] = in_json(resolve(text), _mark(event))
        return value
    if event.tag is None:
        return text
    return in_json(tagged(event.tag, text, _mark(event)), _mark(event))


def _rest(parser: Any) -> tuple[Note, ...]:
    """kubectl reads one document between two ``---`` lines and drops what follows its ``...``."""
    from yaml import YAMLError
    from yaml.events import StreamEndEvent

    end = parser.get_event()
    at = end.end_mark.line, end.end_mark.column
    try:
        following = parser.get_event()
    except YAMLError:
        return (Note("ignored-text", "", at),)
    if type(following) is StreamEndEvent:
        return ()
    return (Note("ignored-text", "", _mark(following)),)


def _merge(
    box: dict[str, Any],
    value: Any,
    merged: dict[int, set[str]],
    notes: list[Note],
    stack: list[tuple[Any, Any, str | None, Any]],
    at: Place,
) -> None:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise YamlError("<< needs a mapping, or a list of mappings", at)
    mine = merged.setdefault(id(box), set())
    for source in reversed(sources):
        for key, item in source.items():
            if key in box and key not in mine:
                notes.append(Note("merge-override", _path(stack, key), at, key))
            box[key] = item
            mine.add(key)


def _path(stack: list[tuple[Any, Any, str | None, Any]], key: str) -> str:
    """The pointer of a key in the innermost mapping."""
    steps = []
    for box, step, _, _ in stack:
        if type(box) is list:
            steps.append(str(len(box)))
        elif type(box) is dict:
            steps.append("<<" if step is _MERGE else str(step))
    return "".join("/" + token(step) for step in (*steps, key))


def places(raw: bytes) -> dict[str, Place]:
    """RFC 6901 pointer -> where the key, or the list element, begins. ``load`` has read ``raw``.

    Of two equal keys the last counts. What an alias or ``<<`` brings in has no place of its own.
    """
    from yaml import events as ev

    parser = _events(raw)
    get = parser.get_event
    get()
    get()
    found: dict[str, Place] = {}
    stack: list[
        tuple[str, int | None]
    ] = []  # pointer of the container; next index, None for a mapping
    pending: str | None = None

    while True:
        event = get()
        kind = type(event)
        if kind is ev.MappingEndEvent or kind is ev.SequenceEndEvent:
            stack.pop()
            if not stack:
                return found
            continue
        if not stack:
            path = ""
            found[path] = _mark(event)
        elif stack[-1][1] is not None:
            base, index = stack[-1]
            path = f"{base}/{index}"
            stack[-1] = (base, index + 1)  # type: ignore[operator]
            found[path] = _mark(event)
        elif pending is None:
            if kind is ev.ScalarEvent and event.implicit[0] and event.value != "<<":
                step = key_text(resolve(event.value), (0, 0))
            else:
                step = event.value if kind is ev.ScalarEvent else f"*{event.anchor}"
            pending = f"{stack[-1][0]}/{token(step)}"
            found[pending] = _mark(event)
            continue
        else:
            path, pending = pending, None
        if kind is ev.MappingStartEvent:
            stack.append((path, None))
        elif kind is ev.SequenceStartEvent:
            stack.append((path, 0))
        elif not stack:
            return found
