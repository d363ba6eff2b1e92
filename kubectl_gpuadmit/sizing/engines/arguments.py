"""Reads an engine's command line by a table of its flags; knows no engine.

Rules of this module
1. Of a flag that is given several times the last one counts, as argparse and clap do; if they
   differ, both are kept, so that a contradiction can be told.
2. A value that is not known (a blank) or not of the flag's type is never replaced by a default: the
   field is listed as not known, with why.
3. Flags that are not in the table are passed over together with what may be their value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.sizing.startup.blanks import Blanks, is_known

Type = Literal["text", "int", "human-int", "float", "flag", "not-flag", "ints", "bytes"]
"""``flag``: takes no value and sets True; ``not-flag``: sets False. ``human-int``: ``32k``."""


class Flag(Struct, frozen=True):
    """``names`` begin with their dashes; ``to`` is the field it fills, '' for one that matters to
    the memory in a way that nobody here knows."""

    names: tuple[str, ...]
    to: str
    type: Type = "text"


class Given(Struct, frozen=True):
    """One value with where it was written."""

    field: str
    value: Any
    text: str
    """As written: ``--tensor-parallel-size 4``."""
    where: str
    """``args``, ``command``, ``env X``, ``ConfigMap c key k``."""
    pointer: str = ""


class Parsed(Struct):
    """What a command line, an environment or a file gave, in the order of growing precedence."""

    given: list[Given]
    positional: list[str]
    missing: list[str]
    """Sentences: fields that were given and whose value is not known, and why."""
    odd: list[str]
    """Flags as written that may change the memory and that nobody here understands."""
    unknown_fields: set[str]

    @classmethod
    def empty(cls) -> Parsed:
        return cls([], [], [], [], set())

    def last(self, field: str) -> Given | None:
        return next((g for g in reversed(self.given) if g.field == field), None)

    def value(self, field: str) -> Any:
        found = self.last(field)
        return found.value if found is not None else None

    def add(self, other: Parsed) -> None:
        """``other`` overrides what is here."""
        self.given += other.given
        self.positional += other.positional
        self.missing += other.missing
        self.odd += other.odd
        known = {g.field for g in other.given}
        self.unknown_fields = (self.unknown_fields - known) | other.unknown_fields


class Style(Struct, frozen=True):
    """How an engine's own parser reads flags."""

    underscores: bool = True
    """``--max_model_len`` means ``--max-model-len``."""
    abbreviations: bool = True
    """argparse: a beginning that fits one flag only."""
    negations: bool = True
    """``--no-enable-x`` sets False."""


def parse(
    words: Sequence[str],
    table: Sequence[Flag],
    blanks: Blanks,
    *,
    where: str,
    pointers: Sequence[str] = (),
    style: Style | None = None,
    valued: Iterable[str] = (),
    bare: Iterable[str] = (),
) -> Parsed:
    """``pointers`` has the place of each word in the template, if words stand there one by one.
    ``valued`` and ``bare`` are flags outside the table that take a value, or none."""
    style = style or Style()
    by_name = {name: flag for flag in table for name in flag.names}
    takes, none = frozenset(valued), frozenset(bare)
    found = Parsed.empty()
    index = 0
    while index < len(words):
        word = words[index]
        at = pointers[index] if index < len(pointers) else ""
        index += 1
        if not _is_flag(word):
            found.positional.append(word)
            continue
        if word == "--":
            found.positional += words[index:]
            break
        name, equals, value = word.partition("=")
        flag, value_of_negation = _look_up(name, by_name, style)
        if flag is None:
            key = _dashed(name)
            takes_value = not equals and (
                key in takes
                or (key not in none and index < len(words) and not _is_flag(words[index]))
            )
            index += takes_value
            continue
        text = word
        if flag.type in ("flag", "not-flag"):
            if not equals and index < len(words) and words[index].lower() in ("true", "false"):
                value, equals = words[index], "="  # --enable-x True, as some parsers take it
                index += 1
            on = value.lower() not in ("false", "0") if equals else True
            on = on and not value_of_negation
            found.given.append(
                Given(flag.to, on == (flag.type == "flag"), blanks.shown(text), where, at)
            )
            continue
        if not equals:
            if index >= len(words):
                found.missing.append(f"{name} has no value")
                found.unknown_fields.add(flag.to)
                continue
            value = words[index]
            text = f"{word} {value}"
            index += 1
        extra: list[str] = []
        if flag.type == "ints":
            while index < len(words) and words[index].isdecimal():
                extra.append(words[index])
                index += 1
        take(found, flag, " ".join([value, *extra]), text, blanks, where=where, pointer=at)
    return found


def take(
    found: Parsed,
    flag: Flag,
    value: str,
    text: str,
    blanks: Blanks,
    *,
    where: str,
    pointer: str = "",
) -> None:
    """Notes one value of ``flag``, or that it is not known."""
    shown = blanks.shown(text)
    if not flag.to:
        found.odd.append(shown)
        return
    if not is_known(value):
        found.missing += [f"{shown}: {reason}" for reason in blanks.reasons(value)]
        found.unknown_fields.add(flag.to)
        return
    mark = placeholder(value)
    if mark:
        found.missing.append(f"{shown}: it is still the placeholder {mark}")
        found.unknown_fields.add(flag.to)
        return
    try:
        typed = converted(value, flag.type)
    except ValueError as problem:
        found.missing.append(f"{shown}: {problem}")
        found.unknown_fields.add(flag.to)
        return
    found.unknown_fields.discard(flag.to)
    found.given.append(Given(flag.to, typed, shown, where, pointer))


def settings(
    data: Mapping[str, Any],
    table: Sequence[Flag],
    blanks: Blanks,
    *,
    where: str,
    pointer: str = "",
) -> Parsed:
    """Values by name (``tensor_parallel_size: 8``) from a file or an object, read as flags."""
    by_name = {_bare(name): flag for flag in table for name in flag.names}
    found = Parsed.empty()
    for key, value in data.items():
        flag = by_name.get(_bare(str(key)))
        if flag is None or value is None:
            continue
        text = f"{key}: {value}"
        if flag.type in ("flag", "not-flag"):
            if isinstance(value, bool):
                found.given.append(
                    Given(flag.to, value == (flag.type == "flag"), text, where, pointer)
                )
            else:
                found.missing.append(f"{text}: expected true or false")
                found.unknown_fields.add(flag.to)
        elif isinstance(value, list) and flag.type == "ints":
            take(found, flag, " ".join(map(str, value)), text, blanks, where=where, pointer=pointer)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            take(found, flag, str(value), text, blanks, where=where, pointer=pointer)
        else:
            found.missing.append(f"{key}: {type(value).__name__} is not understood here")
            found.unknown_fields.add(flag.to)
    return found


def placeholder(text: str) -> str:
    """What a template engine or a person should have replaced: ``<MODEL_ID>``, ``${MODEL}``."""
    found = re.search(r"\$\{[^}]*\}|\$[A-Za-z_]\w*|\{\{.*?\}\}|<[A-Za-z][\w -]*>|\$\([^)]*\)", text)
    return found[0] if found else ""


_HUMAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgtKMGT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def converted(value: str, kind: Type) -> Any:
    """Raises ValueError with a sentence. ``human-int`` as vLLM reads it (engine/arg_utils.py
    human_readable_int): small letters are decimal, capitals binary."""
    value = value.strip()
    match kind:
        case "text":
            return value
        case "float":
            try:
                return _finite(float(value))
            except ValueError:
                raise ValueError(f"{value[:40]!r} is no number") from None
        case "ints":
            parts = re.split(r"[\s,]+", value.strip("[]"))
            if not all(part.isdecimal() and len(part) < 10 for part in parts):
                raise ValueError(f"{value[:40]!r} is no list of whole numbers")
            return tuple(int(part) for part in parts)
    if kind in ("human-int", "bytes"):
        scaled = _HUMAN.fullmatch(value)
        if scaled is not None:
            return int(float(scaled[1]) * {**_DECIMAL, **_BINARY}[scaled[2]])
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        raise ValueError(f"{value[:40]!r} is no whole number")
    return int(value)


def _finite(number: float) -> float:
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not re.fullmatch(r"-[0-9.]+", word)


def _dashed(name: str) -> str:
    return name[:2] + name[2:].replace("_", "-")


def _bare(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()


def _look_up(name: str, by_name: Mapping[str, Flag], style: Style) -> tuple[Flag | None, bool]:
    """The flag, and whether it is its ``--no-`` form."""
    if style.underscores and name.startswith("--"):
        name = _dashed(name)
    if name in by_name:
        return by_name[name], False
    if style.negations and name.startswith("--no-"):
        flag = by_name.get(f"--{name[5:]}")
        if flag is not None and flag.type in ("flag", "not-flag"):
            return flag, True
    if style.abbreviations and name.startswith("--") and len(name) > 7:
        fitting = {id(f): f for n, f in by_name.items() if n.startswith(name)}
        if len(fitting) == 1:
            return next(iter(fitting.values())), False
    return None, False


def contradictions(given: Iterable[Given], fields: Callable[[str], bool]) -> tuple[str, ...]:
    """Fields that one source says twice and differently: the last one counts, and it is told."""
    first: dict[tuple[str, str], Given] = {}
    found: list[str] = []
    for item in given:
        if not fields(item.field):
            continue
        before = first.setdefault((item.field, item.where), item)
        if before.value != item.value:
            found.append(f"{before.text} and {item.text}: the last one counts")
    return tuple(dict.fromkeys(found))
