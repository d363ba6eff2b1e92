"""Checks plain data against the policy's schema, keeps what is sound and says what is not.

The subset of JSON Schema that ``policy.schema`` uses, with what a schema library does not give:
every problem with its pointer, "did you mean", and a copy of the data without the unsound parts so
that later checks still see the rest.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from kubectl_gpuadmit.errors import BadPolicy
from kubectl_gpuadmit.kube.pointers import steps, token
from kubectl_gpuadmit.policy.schema import DEFS

Severity = Literal["error", "warning"]


class Problem(Struct, frozen=True):
    """One thing wrong with a policy file: an ``error`` keeps it from being used."""

    severity: Severity
    ref: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    field: str = ""
    """Dotted path as people write it: ``static[1].match.resources``."""
    hint: str = ""

    def as_error(self) -> BadPolicy:
        return BadPolicy(
            self.ref,
            self.message,
            file=self.file,
            line=self.line,
            column=self.column,
            field=self.field,
            hint=self.hint,
        )


Report = Callable[..., None]
"""``report(pointer, ref, message, hint="", severity="error")``."""


class _Unsound:
    """What an unsound value becomes: its parent drops it."""


UNSOUND = _Unsound()


def entries(items: Iterable[Any] | None) -> Iterator[tuple[int, Any]]:
    """The sound items of a list with their index in the file."""
    return ((i, item) for i, item in enumerate(items or ()) if item is not UNSOUND)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, '' if none is near."""
    choices = list(known)
    by_lower = {choice.lower(): choice for choice in choices}
    if word.lower() in by_lower:
        return by_lower[word.lower()]
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if close:
        return close[0]
    # ``required`` for ``labels/required``
    tails = [choice for choice in choices if choice.endswith("/" + word)]
    return tails[0] if len(tails) == 1 else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the likely word, else what there is to choose from (at most 12)."""
    choices = sorted(known)
    if near := nearest(word, choices):
        return f"did you mean {near}?"
    if not choices:
        return ""
    more = f" and {len(choices) - 12} more" if len(choices) > 12 else ""
    return "known: " + ", ".join(choices[:12]) + more


def sound(value: Any, schema: dict[str, Any], pointer: str, report: Report) -> Any:
    """The value without its unsound parts, or UNSOUND. Every problem is reported once."""
    if "$ref" in schema:
        schema = DEFS[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return sound(value, _branch(value, schema["anyOf"]), pointer, report)
    if "const" in schema or "enum" in schema:
        allowed = schema["enum"] if "enum" in schema else [schema["const"]]
        if any(value == choice and type(value) is type(choice) for choice in allowed):
            return value
        texts = [choice for choice in allowed if isinstance(choice, str)]
        hint = did_you_mean(value, texts) if isinstance(value, str) else ""
        wanted = " or ".join(texts) if len(texts) < 3 else "one of " + ", ".join(texts)
        report(pointer, "policy-bad-value", f"{_show(value)} must be {wanted}", hint)
        return UNSOUND
    kind = schema.get("type")
    if kind and not _is(value, kind):
        hint = ""
        if kind == "string" and isinstance(value, int | float | bool):
            hint = "put it in quotes"
        report(pointer, "policy-wrong-type", f"must be {_KINDS[kind]}, is {_name(value)}", hint)
        return UNSOUND
    if kind == "object":
        return _object(value, schema, pointer, report)
    if kind == "array":
        kept = [
            sound(item, schema["items"], f"{pointer}/{index}", report)
            for index, item in enumerate(value)
        ]
        if len(value) < schema.get("minItems", 0):
            report(pointer, "policy-bad-value", "must not be empty")
            return UNSOUND
        if schema["items"].get("type") != "object":
            return [item for item in kept if item is not UNSOUND]
        return kept  # keeps its holes, so that an entry's index is still its place in the file
    return _scalar(value, schema, pointer, report)


def _object(value: dict[Any, Any], schema: dict[str, Any], pointer: str, report: Report) -> Any:
    properties: dict[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties", False)
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            report(
                pointer, "policy-wrong-type", f"key {_show(key)} must be text", "put it in quotes"
            )
            continue
        at = f"{pointer}/{token(key)}"
        if key in properties:
            clean = sound(item, properties[key], at, report)
        elif others is not False:
            clean = sound(item, others, at, report)
        else:
            what = "rule" if pointer == "/rules" else "setting" if _in_settings(pointer) else "key"
            report(
                at, f"policy-unknown-{what}", f"unknown {what} {key}", did_you_mean(key, properties)
            )
            continue
        if clean is not UNSOUND:
            kept[key] = clean
    missing = [key for key in schema.get("required", ()) if key not in value]
    for key in missing:
        report(pointer, "policy-missing-key", f"{key} is missing")
    if len(value) < schema.get("minProperties", 0):
        names = ", ".join(properties)
        report(
            pointer,
            "policy-bad-value",
            "must not be empty",
            f"give one of {names}" if names else "",
        )
        return UNSOUND
    return UNSOUND if any(key not in kept for key in schema.get("required", ())) else kept


def _scalar(value: Any, schema: dict[str, Any], pointer: str, report: Report) -> Any:
    problem = ""
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            problem = "must not be empty"
        elif "pattern" in schema and not re.search(schema["pattern"], value):
            problem = f"must be such as {', '.join(schema['examples'])}, is {_show(value)}"
    elif "minimum" in schema and not value >= schema["minimum"]:  # nan is below everything
        problem = f"{_show(value)} is below {schema['minimum']}"
    elif "maximum" in schema and value > schema["maximum"]:
        problem = f"{_show(value)} is above {schema['maximum']}"
    if problem:
        report(pointer, "policy-bad-value", problem)
        return UNSOUND
    return value


_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _branch(value: Any, branches: list[dict[str, Any]]) -> dict[str, Any]:
    """The alternative whose type the value has; else the first."""
    for branch in branches:
        if ("type" in branch and _is(value, branch["type"])) or value in branch.get("enum", ()):
            return branch
    for branch in branches:
        if "enum" in branch and not isinstance(value, dict | list):
            return branch
    return branches[0]


def _in_settings(pointer: str) -> bool:
    tokens = pointer.split("/")
    return tokens[1:2] == ["rules"] and tokens[-1] == "settings"


def _name(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return _show(value)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number beyond 64 bits"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def dotted(pointer: str) -> str:
    """``/static/0/match`` -> ``static[0].match``; a key that holds a dot or slash is quoted."""
    text = ""
    for key in steps(pointer):
        if key.isdigit():
            text += f"[{key}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)?", key):
            text += ("." if text else "") + key
        else:
            text += f'["{key}"]'
    return text
