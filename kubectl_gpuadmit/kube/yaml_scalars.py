"""YAML 1.1 scalars as go-yaml v2 reads them and JSON carries them on; knows no documents.

Source: go.yaml.in/yaml v2.4.4 resolve.go; sigs.k8s.io/yaml v1.6.0 yaml.go, for keys.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import Any

Place = tuple[int, int]
"""(line, column), both from 0, as libyaml counts them."""


class YamlError(Exception):
    """A document that cannot be read. ``str()`` is one sentence; ``at`` where it was noticed."""

    def __init__(self, message: str, at: Place, hint: str = "") -> None:
        super().__init__(message)
        self.at = at
        self.hint = hint


LONG_TAG = "tag:yaml.org,2002:"
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_INT = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_NUMERIC = frozenset("+-.0123456789")


def resolve(text: str) -> str | bool | int | float | None:
    """A plain scalar as go-yaml reads it, before it becomes JSON: floats stay floats."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if text[0] == ".":
        return _float(text, text) if _DOT_FLOAT.fullmatch(text) else text
    plain = text.replace("_", "")
    whole = _INT.fullmatch(plain)
    if whole and len(plain) <= 80:
        sign, hexadecimal, binary, octal, decimal = whole.groups()
        number = int(hexadecimal or binary or octal or decimal, _base(whole))
        if -(2**63) <= (-number if sign == "-" else number) < 2**63:
            return -number if sign == "-" else number
        if number < 2**64 and not sign:
            return number
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _base(match: re.Match[str]) -> int:
    return 16 if match[2] else 2 if match[3] else 8 if match[4] else 10


def _float(text: str, instead: str) -> float | str:
    """A float64; a text that is out of its range stays text, as strconv.ParseFloat fails there."""
    number = float(text)
    return instead if number in (float("inf"), float("-inf")) else number


def in_json(value: Any, at: Place) -> Any:
    """A resolved scalar as it comes back from JSON: whole floats are integers, big ones floats."""
    if type(value) is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise YamlError(f"{value} is not a number that JSON can carry", at, "quote it")
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    if type(value) is int and value >= 2**63:
        return float(value)
    return value


def key_text(value: Any, at: Place) -> str:
    """A key as text. Raises YamlError for what sigs.k8s.io/yaml does not take as a key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value < 2**63:
        return str(value)
    if isinstance(value, float):
        return _float_key(value)
    what = "an empty key" if value is None else f"the key {value}"
    raise YamlError(f"{what} cannot be used in a manifest", at, "quote it if text was meant")


def _float_key(value: float) -> str:
    """strconv.FormatFloat(value, 'g', -1, 32): shortest digits of the float32."""
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    if single != single:
        return ".nan"
    if single in (float("inf"), float("-inf")):
        return ".inf" if single > 0 else "-.inf"
    text = ""
    for precision in range(9):
        text = f"{single:.{precision}e}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            break
    digits, _, power = text.partition("e")
    exponent = int(power)
    if exponent < -4 or exponent >= 6:
        return f"{digits}e{exponent:+03d}"
    decimals = max(len(digits.lstrip("-").replace(".", "")) - 1 - exponent, 0)
    return f"{float(text):.{decimals}f}"


def tagged(tag: str, text: str, at: Place) -> Any:
    """A scalar with an explicit tag: ``!!str 1`` is text; a tag of one's own changes nothing."""
    short = tag.removeprefix(LONG_TAG) if tag.startswith(LONG_TAG) else ""
    if short == "binary":
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise YamlError("!!binary is not valid base64", at) from None
    wanted: dict[str, tuple[type, ...]] = {
        "bool": (bool,),
        "int": (int,),
        "float": (float, int),
        "null": (type(None),),
    }
    if short not in wanted:
        return text
    value = resolve(text)
    if type(value) not in wanted[short]:
        raise YamlError(f"{text!r} cannot be read as !!{short}", at)
    return float(value) if short == "float" and isinstance(value, int) else value
