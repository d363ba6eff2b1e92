"""Reads a well-formed command line without typer, whose import takes longer than a verdict.

Rules of this module
1. It never says that something is wrong: whatever it does not read with certainty (an unknown flag,
   a missing value, help, completion) is ``None``, and typer gets the whole line.
2. What it does read, it reads as typer would: a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_gpuadmit.cli.options import OPTIONS, OUTPUTS, Argument, Option

_BY_FLAG = {flag: option for option in OPTIONS for flag in option.flags}


def parse(args: Sequence[str], argument: Argument) -> dict[str, Any] | None:
    """Option and argument names with their values, or None for typer to judge."""
    values: dict[str, Any] = {option.name: option.default for option in OPTIONS}
    loose: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            loose += rest
            break
        if not word.startswith("-") or word == "-":
            loose.append(word)
            continue
        flag, has_value, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:
            flag, has_value, value = word[:2], "joined", word[2:]
        option = _BY_FLAG.get(flag)
        if option is None or (option.kind == "flag" and has_value):
            return None
        if option.kind != "flag" and not has_value:
            if not rest or (rest[0].startswith("-") and rest[0] != "-"):
                return None
            value = rest.pop(0)
        if not _take(option, value, values):
            return None
    return {**values, argument.name: tuple(loose)}


def _take(option: Option, value: str, values: dict[str, Any]) -> bool:
    match option.kind:
        case "flag":
            values[option.name] = True
        case "texts":
            values[option.name] = (*values[option.name], value)
        case "text":
            values[option.name] = value
        case "output":
            values[option.name] = value
            return value in OUTPUTS
        case "number":
            plain = value.isascii() and value.isdigit() and len(value) < 4
            values[option.name] = int(value) if plain else 0
            return plain and int(value) <= 125
    return True
