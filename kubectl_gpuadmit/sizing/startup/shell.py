"""The commands in a POSIX or bash script, as far as reading it tells; nothing is ever run.

Rules of this module
1. A variable that the pod does not set may be set by the image: it is a blank, not an empty text.
   ``${NAME:-word}`` gives ``word``: that is what its author meant where the pod says nothing.
2. What a command would print (``$(…)``, backticks) is a blank that shows the command.
3. Branches are not decided: their commands are marked ``conditional``, and a variable that a branch
   sets is a blank from there on, unless it is set to what it was.

Grammar: POSIX.1-2024 Shell Command Language 2.2-2.9; arrays, ``$'…'`` and ``+=`` as in bash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from kubectl_gpuadmit.sizing.startup.blanks import Blanks

MOST = 1 << 20
"""Longest script that is read; a longer one is no start command."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_OPENING = frozenset({"if", "for", "while", "until", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_SKIPPED = frozenset({"then", "else", "elif", "do", "!", "{", "}", "time", "if", "while", "until"})


class Command(Struct, frozen=True):
    """One simple command after expansion. ``conditional``: a branch, loop or ``||`` decides."""

    words: tuple[str, ...]
    environment: dict[str, str]
    """Set for this command alone: ``A=B command``."""
    conditional: bool = False
    output: str = ""
    """The file that its output goes to."""
    input: str | None = None
    """Text of a here-document."""


class Script(Struct, frozen=True):
    commands: tuple[Command, ...]
    variables: dict[str, str]
    """As they stand at its end."""


def read(
    text: str,
    variables: dict[str, str],
    blanks: Blanks,
    *,
    positional: Sequence[str] = (),
) -> Script:
    """``positional`` are ``$0``, ``$1`` …, as ``sh -c TEXT $0 $1 …`` gives them."""
    reader = _Reader(text[:MOST], dict(variables), blanks, tuple(positional))
    reader.run()
    return Script(tuple(reader.commands), reader.variables)


class _Word:
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


class _Reader:
    def __init__(
        self, text: str, variables: dict[str, str], blanks: Blanks, positional: tuple[str, ...]
    ) -> None:
        self.text = text
        self.at = 0
        self.variables = variables
        self.arrays: dict[str, list[str]] = {}
        self.blanks = blanks
        self.positional = positional
        self.commands: list[Command] = []
        self.depth = 0
        self._after_or = False
        self._start()

    def _start(self) -> None:
        self.words: list[str] = []
        self.local: dict[str, str] = {}
        self.output = ""
        self.input: str | None = None
        self.pending: list[tuple[str, bool, bool]] = []

    def run(self) -> None:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "\n":
                self.at += 1
                self._here_documents()
                self._end()
            elif char in " \t\r":
                self.at += 1
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char == "\\" and text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif char in ";&|()":
                self._operator()
            elif char in "<>":
                self._redirection()
            else:
                self._word()
        self._here_documents()
        self._end()

    # -- commands --------------------------------------------------------------------------------

    def _operator(self) -> None:
        two = self.text[self.at : self.at + 2]
        if two == "&>":
            self.at += 1
            self._redirection()
            return
        self.at += 2 if two in ("&&", "||", ";;", "|&") else 1
        self._end()
        self._after_or = two == "||"

    def _end(self) -> None:
        """Closes the command in hand: assignments alone set variables, the rest is kept."""
        conditional = self.depth > 0 or self._after_or
        words, self._after_or = self.words, False
        while words and words[0] in _SKIPPED:
            words = words[1:]
        if words and words[0] in ("export", "declare", "local", "readonly", "typeset"):
            for word in words[1:]:
                name, equals, value = word.partition("=")
                if equals and _NAME.fullmatch(name):
                    self._set(name, value, conditional=conditional)
            words = []
        elif words and words[0] in ("unset", "read"):
            for name in words[1:]:
                if _NAME.fullmatch(name):
                    self.variables[name] = self.blanks.mark(
                        f"variable {name}: {words[0]} in the script"
                    )
            words = []
        elif not words:
            for name, value in self.local.items():
                self._set(name, value, conditional=conditional)
        if words:
            self.commands.append(
                Command(tuple(words), self.local, conditional, self.output, self.input)
            )
        pending = self.pending
        self._start()
        self.pending = pending

    def _set(self, name: str, value: str, *, conditional: bool) -> None:
        if conditional and self.variables.get(name) != value:
            value = self.blanks.mark(f"variable {name}: a branch of the script sets it")
        self.variables[name] = value

    def _word(self) -> None:
        begins = not self.words
        found = _ASSIGNMENT.match(self.text, self.at) if begins else None
        if found is not None:
            self._assignment(found)
            return
        start = self.at
        words = self._read_word().words()
        plain = self.text[start : self.at]
        if begins and plain in _OPENING:
            self.depth += 1
            if plain in ("for", "select", "case"):
                self._loop_head(plain)
                return
        elif begins and plain in _CLOSING:
            self.depth = max(self.depth - 1, 0)
            self._end()
            return
        if begins and plain in _SKIPPED:
            return
        self.words += words
        if self.words and self.words[0] in ("export", "declare", "local", "readonly"):
            self._exported()

    def _exported(self) -> None:
        """``export A="$B c"``: the value is not split."""
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        found = _ASSIGNMENT.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            value = "".join(self._read_word(quoted=True).words())
            self.words.append(f"{found[1]}={value}")

    def _assignment(self, found: re.Match[str]) -> None:
        name = found[1]
        self.at = found.end()
        if self.text[self.at : self.at + 1] == "(":
            self.at += 1
            items = self._array()
            self.arrays[name] = [*(self.arrays.get(name, []) if found[2] else []), *items]
            if self.depth:
                self.arrays[name] = [
                    self.blanks.mark(f"array {name}: a branch of the script sets it")
                ]
            return
        value = "".join(self._read_word(quoted=True).words())
        if found[2]:
            value = self.local.get(name, self._variable(name)) + value
        self.local[name] = value

    def _array(self) -> list[str]:
        items: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char.isspace():
                self.at += 1
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in ";&|(<>":
                self.at += 1
            else:
                items += self._read_word().words()
        self.at += 1
        return items

    def _loop_head(self, kind: str) -> None:
        """``for NAME in …`` and ``case WORD in``: the name is a blank inside and after."""
        end = re.compile(r"\n|;|\bin\b").search(self.text, self.at)
        head = self.text[self.at : end.start() if end else len(self.text)]
        name = head.strip()
        if kind != "case" and _NAME.fullmatch(name):
            self.variables[name] = self.blanks.mark(
                f"variable {name}: a loop of the script sets it"
            )
        stop = re.compile(r"\n|;" if kind != "case" else r"\bin\b").search(self.text, self.at)
        self.at = stop.end() if stop else len(self.text)

    # -- redirections ----------------------------------------------------------------------------

    def _redirection(self) -> None:
        found = re.compile(r"<<<|<<-?|>>|>&|<&|>\||[<>]").match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        if self.words and self.words[-1].isdecimal() and self.text[found.start() - 1].isdecimal():
            self.words.pop()  # 2>file
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        start = self.at
        target = "".join(self._read_word(quoted=True).words()) if self.at < len(self.text) else ""
        if found[0].startswith("<<") and found[0] != "<<<":
            raw = self.text[start : self.at]
            quoted = any(c in raw for c in "'\"\\")
            self.pending.append((re.sub(r"['\"\\]", "", raw), quoted, found[0].endswith("-")))
            if self.text.find("\n", self.at) >= 0:
                self._rest_of_line()
        elif found[0] == "<<<":
            self.input = target
        elif found[0] in (">", ">>", ">|"):
            self.output = target

    def _rest_of_line(self) -> None:
        """What follows on the line still belongs to the command that reads the here-document."""
        while self.at < len(self.text) and self.text[self.at] != "\n":
            char = self.text[self.at]
            if char in " \t\r":
                self.at += 1
            elif char in "<>":
                self._redirection()
            elif char in ";&|()":
                break
            else:
                self._word()
        if self.at < len(self.text) and self.text[self.at] == "\n":
            self.at += 1
            self._here_documents()
            self._end()

    def _here_documents(self) -> None:
        for end, quoted, tabs in self.pending:
            lines: list[str] = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if tabs else line
                if line.rstrip("\r") == end:
                    break
                lines.append(line)
            text = "".join(f"{line}\n" for line in lines)
            self.input = text if quoted else self._inside(text)
        self.pending = []

    def _inside(self, text: str) -> str:
        """Expansions of a here-document."""
        inner = _Reader(text, self.variables, self.blanks, self.positional)
        word = _Word()
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

    # -- words -----------------------------------------------------------------------------------

    def _read_word(self, *, quoted: bool = False) -> _Word:
        """One word; with ``quoted`` (an assignment's value) expansions are not split."""
        word, text = _Word(), self.text
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

    def _double_quoted(self, word: _Word) -> None:
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

    def _ansi(self, word: _Word) -> None:
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

    # -- expansions ------------------------------------------------------------------------------

    def _expansion(self, word: _Word, *, quoted: bool) -> None:
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
        elif found := _NAME.match(text, self.at + 1):
            self.at = found.end()
            put(self._variable(found[0]))
        elif following and following in "@*":
            self.at += 2
            self._several(self.positional[1:], word, quoted=quoted)
        elif following.isdecimal():
            self.at += 2
            number = int(following)
            put(self.positional[number] if number < len(self.positional) else "")
        elif following and following in "#?$!-":
            self.at += 2
            put(self.blanks.mark(f"${following} of the script"))
        else:
            self.at += 1
            put("$")

    def _several(self, items: Sequence[str], word: _Word, *, quoted: bool) -> None:
        for number, item in enumerate(items):
            if number:
                word.parts.append(None)
            if quoted:
                word.add(item)
            else:
                word.add_split(item)

    def _parameter(self, inside: str, word: _Word, *, quoted: bool) -> None:
        put = word.add if quoted else word.add_split
        found = _NAME.match(inside)
        if found is None:
            if inside in ("@", "*"):
                self._several(self.positional[1:], word, quoted=quoted)
            else:
                put(self.blanks.mark(f"${{{inside[:40]}}} of the script"))
            return
        name, rest = found[0], inside[found.end() :]
        if rest in ("[@]", "[*]"):
            if name in self.arrays:
                self._several(self.arrays[name], word, quoted=quoted)
            else:
                put(self.blanks.mark(f"array {name}: the script does not set it"))
            return
        known = name in self.variables
        if rest == "":
            put(self._variable(name))
            return
        operator = re.match(r":?[-=+?]", rest)
        if operator is None:
            put(self.blanks.mark(f"${{{inside[:40]}}} of the script"))
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
                put(self._variable(name))

    def _nested(self, text: str) -> str:
        inner = _Reader(text, self.variables, self.blanks, self.positional)
        word = _Word()
        while inner.at < len(text):
            for part in inner._read_word(quoted=True).parts:
                word.add(part or "")
            if inner.at < len(text):
                word.add(text[inner.at])
                inner.at += 1
        return "".join(word.words())

    def _variable(self, name: str) -> str:
        if name in self.variables:
            return self.variables[name]
        return self.blanks.mark(f"variable {name}: the pod does not set it, the image may")

    def _output_of(self, command: str) -> str:
        shown = " ".join(command.split())
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return self.blanks.mark(f"the output of `{self.blanks.shown(shown)}`")


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
