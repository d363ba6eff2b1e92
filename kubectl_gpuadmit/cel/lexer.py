"""Splits the text of a CEL expression into tokens.

Source: github.com/google/cel-go v0.29.2 parser/gen/CEL.g4, parser/unescape.go.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.cel.values import Uint


class SyntaxFault(Exception):
    """The text is no expression; ``at`` is where."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at, self.message = at, message


class Token(Struct, frozen=True):
    kind: str
    """``name``, ``value``, ``end``, or the sign itself."""
    at: int
    text: str
    value: Any = None


_SPACE = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLOAT = re.compile(r"[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")
_HEX = re.compile(r"0x([0-9a-fA-F]+)([uU])?")
_INT = re.compile(r"([0-9]+)([uU])?")
_STRING = re.compile(
    r"""(?P<prefix>[rR]?[bB]?|[bB][rR])(?P<quote>\"{3}|'{3}|"|')""",
)
_SIGNS = re.compile(r"==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}]")
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})"
    r"|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_PLAIN = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def tokens(text: str) -> list[Token]:
    """All tokens and an ``end``. Raises SyntaxFault."""
    found: list[Token] = []
    at, end = 0, len(text)
    while True:
        space = _SPACE.match(text, at)
        if space:
            at = space.end()
        if at >= end:
            found.append(Token("end", at, "<EOF>"))
            return found
        token, at = _token(text, at)
        found.append(token)


def _token(text: str, at: int) -> tuple[Token, int]:
    quoted = _STRING.match(text, at)
    if quoted:
        return _string(text, at, quoted)
    name = _NAME.match(text, at)
    if name:
        word = name[0]
        if word in ("true", "false"):
            return Token("value", at, word, word == "true"), name.end()
        if word == "null":
            return Token("value", at, word, None), name.end()
        return Token("in" if word == "in" else "name", at, word), name.end()
    number = _FLOAT.match(text, at)
    if number:
        return Token("value", at, number[0], float(number[0])), number.end()
    number = _HEX.match(text, at)
    if number:
        return _whole(number, 16, at)
    number = _INT.match(text, at)
    if number:
        return _whole(number, 10, at)
    sign = _SIGNS.match(text, at)
    if sign:
        return Token(sign[0], at, sign[0]), sign.end()
    raise SyntaxFault(at, f"Syntax error: token recognition error at: '{text[at]}'")


def _whole(number: re.Match[str], base: int, at: int) -> tuple[Token, int]:
    value = int(number[1], base)
    if number[2]:
        if value >= 2**64:
            raise SyntaxFault(at, "invalid uint literal")
        return Token("value", at, number[0], Uint(value)), number.end()
    # 2**63 is legal behind a minus sign alone, which the parser knows
    return Token("value", at, number[0], value), number.end()


def _string(text: str, at: int, head: re.Match[str]) -> tuple[Token, int]:
    quote, prefix = head["quote"], head["prefix"].lower()
    raw, octets = "r" in prefix, "b" in prefix
    begin = place = head.end()
    while True:
        if place >= len(text) or (len(quote) == 1 and text[place] in "\r\n"):
            raise SyntaxFault(at, f"Syntax error: token recognition error at: '{text[at:place]}'")
        if text[place] == "\\" and not raw:
            place += 2
        elif text.startswith(quote, place):
            break
        else:
            place += 1
    body = text[begin:place]
    value: Any = body if raw else _unescaped(body, at, octets=octets)
    if octets and isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    return Token("value", at, text[at : place + len(quote)], value), place + len(quote)


def _unescaped(body: str, at: int, *, octets: bool) -> str | bytes:
    if "\\" not in body:
        return body
    parts: list[str | bytes] = []
    place = 0
    while place < len(body):
        if body[place] != "\\":
            until = body.find("\\", place)
            until = len(body) if until < 0 else until
            parts.append(body[place:until])
            place = until
            continue
        escape = _ESCAPE.match(body, place)
        if not escape:
            raise SyntaxFault(at, "unable to unescape string")
        plain, two, four, eight, octal = escape.groups()
        if plain:
            parts.append(_PLAIN.get(plain, plain))
        else:
            code = int(octal, 8) if octal else int(two or four or eight, 16)
            if octets and (four or eight):
                raise SyntaxFault(at, "unable to unescape string")
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise SyntaxFault(at, "invalid unicode code point")
            parts.append(bytes([code]) if octets else chr(code))
        place = escape.end()
    if octets:
        return b"".join(p if isinstance(p, bytes) else p.encode() for p in parts)
    return "".join(p for p in parts if isinstance(p, str))
