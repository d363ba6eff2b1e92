"""The words of a shell script after quotes and expansions; knows no command.

What is not known becomes a blank: rules 1 and 2 of ``shell``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubectl_gpuadmit.sizing.startup.blanks import Blanks

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Word:
    """A word in the making: ``None`` parts split it where an unquoted value had white space."""

    def __init__(self) -> None:
        self.parts: list[str | None] = []
        self.started = False

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.started = True

    def add_split(self, text: str) -> None:
        """An unquoted expansion: white space separates words."""
        pieces = text.split()
        if text[:1].isspace() and self.started:
            self.parts.append(None)
        for number, piece in enumerate(pieces):
            if number:
                self.parts.append(None)
            self.add(piece)
        if text[-1:].isspace() and pieces:
            self.parts.append(None)

    def words(self) -> list[str]:
        found: list[str] = []
        current: list[str] = []
        begun = False
        for part in self.parts:
            if part is None:
                if begun:
                    found.append("".join(current))
                current, begun = [], False
            else:
                current.append(part)
                begun = True
        if begun:
            found.append("".join(current))
        return found


class Words:
    """A place in a script from which words are read, and what its variables are by then."""

    def __init__(
        self,
        text: str,
        variables: dict[str, str],
        blanks: Blanks,
        positional: Sequence[str] = (),
    ) -> None:
        self.text = text
        self.at = 0
        self.variables = variables
        self.arrays: dict[str, list[str]] = {}
        self._blanks = blanks
        self._positional = tuple(positional)

    def skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def end_of_line(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def read(self, *, quoted: bool = False) -> Word:
        """One word; with ``quoted`` (an assignment's value) expansions are not split."""
        word, text = Word(), self.text
        while self.at < len(text):
            char = text[self.at]
            if char in " \t\r\n;&|()<>":
                break
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following and following != "\n":
                    word.add(following)
                self.at += 2
            elif char == "'":
                end = text.find("'", self.at + 1)
                end = len(text) if end < 0 else end
                word.add(text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                self.at += 1
                self._double_quoted(word)
            elif char == "$" and text[self.at + 1 : self.at + 2] == "'":
                self.at += 2
                self._ansi(word)
            elif char in "$`":
                self._expansion(word, quoted=quoted)
            else:
                word.add(char)
                self.at += 1
        if quoted and not word.started:
            word.add("")
        return word

    def _double_quoted(self, word: Word) -> None:
        text = self.text
        word.add("")
        while self.at < len(text) and text[self.at] != '"':
            char = text[self.at]
            if char == "\\" and text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                word.add("" if text[self.at + 1] == "\n" else text[self.at + 1])
                self.at += 2
            elif char in "$`":
                self._expansion(word, quoted=True)
            else:
                word.add(char)
                self.at += 1
        self.at += 1

    def _ansi(self, word: Word) -> None:
        escapes = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
        text = self.text
        word.add("")
        while self.at < len(text) and text[self.at] != "'":
            if text[self.at] == "\\":
                following = text[self.at + 1 : self.at + 2]
                word.add(escapes.get(following, "\\" + following))
                self.at += 2
            else:
                word.add(text[self.at])
                self.at += 1
        self.at += 1

    def inside(self, text: str) -> str:
        """Expansions of a here-document."""
        inner = Words(text, self.variables, self._blanks, self._positional)
        word = Word()
        while inner.at < len(text):
            char = text[inner.at]
            if char == "\\" and text[inner.at + 1 : inner.at + 2] in ("$", "`", "\\"):
                word.add(text[inner.at + 1])
                inner.at += 2
            elif char in "$`":
                inner._expansion(word, quoted=True)
            else:
                word.add(char)
                inner.at += 1
        return "".join(word.words())

    # -- expansions ------------------------------------------------------------------------------

    def _expansion(self, word: Word, *, quoted: bool) -> None:
        put = word.add if quoted else word.add_split
        text = self.text
        if text[self.at] == "`":
            end = text.find("`", self.at + 1)
            end = len(text) if end < 0 else end
            put(self._output_of(text[self.at + 1 : end]))
            self.at = end + 1
            return
        following = text[self.at + 1 : self.at + 2]
        if following == "(":
            end = _closing(text, self.at + 1, "(", ")")
            put(self._output_of(text[self.at + 2 : end]))
            self.at = end + 1
        elif following == "{":
            end = _closing(text, self.at + 1, "{", "}")
            inside = text[self.at + 2 : end]
            self.at = end + 1
            self._parameter(inside, word, quoted=quoted)
        elif found := NAME.match(text, self.at + 1):
            self.at = found.end()
            put(self.variable(found[0]))
        elif following and following in "@*":
            self.at += 2
            self._several(self._positional[1:], word, quoted=quoted)
        elif following.isdecimal():
            self.at += 2
            number = int(following)
            put(self._positional[number] if number < len(self._positional) else "")
        elif following and following in "#?$!-":
            self.at += 2
            put(self._blanks.mark(f"${following} of the script"))
        else:
            self.at += 1
            put("$")

    def _several(self, items: Sequence[str], word: Word, *, quoted: bool) -> None:
        for number, item in enumerate(items):
            if number:
                word.parts.append(None)
            if quoted:
                word.add(item)
            else:
                word.add_split(item)

    def _parameter(self, inside: str, word: Word, *, quoted: bool) -> None:
        put = word.add if quoted else word.add_split
        found = NAME.match(inside)
        if found is None:
            if inside in ("@", "*"):
                self._several(self._positional[1:], word, quoted=quoted)
            else:
                put(self._blanks.mark(f"${{{inside[:40]}}} of the script"))
            return
        name, rest = found[0], inside[found.end() :]
        if rest in ("[@]", "[*]"):
            if name in self.arrays:
                self._several(self.arrays[name], word, quoted=quoted)
            else:
                put(self._blanks.mark(f"array {name}: the script does not set it"))
            return
        known = name in self.variables
        if rest == "":
            put(self.variable(name))
            return
        operator = re.match(r":?[-=+?]", rest)
        if operator is None:
            put(self._blanks.mark(f"${{{inside[:40]}}} of the script"))
            return
        other = rest[operator.end() :]
        value = self.variables.get(name, "")
        empty = not known or (operator[0][0] == ":" and value == "")
        match operator[0][-1]:
            case "-" | "=":
                put(self._nested(other) if empty else value)
            case "+":
                put("" if empty else self._nested(other))
            case _:
                put(self.variable(name))

    def _nested(self, text: str) -> str:
        inner = Words(text, self.variables, self._blanks, self._positional)
        word = Word()
        while inner.at < len(text):
            for part in inner.read(quoted=True).parts:
                word.add(part or "")
            if inner.at < len(text):
                word.add(text[inner.at])
                inner.at += 1
        return "".join(word.words())

    def variable(self, name: str) -> str:
        if name in self.variables:
            return self.variables[name]
        return self._blanks.mark(f"variable {name}: the pod does not set it, the image may")

    def _output_of(self, command: str) -> str:
        shown = " ".join(command.split())
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return self._blanks.mark(f"the output of `{self._blanks.shown(shown)}`")


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    """Where the bracket at ``start`` closes; the end of the text where it never does."""
    depth = 0
    quote = ""
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)
