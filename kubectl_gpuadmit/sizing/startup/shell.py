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
from kubectl_gpuadmit.sizing.startup.words import NAME, Words

MOST = 1 << 20
"""Longest script that is read; a longer one is no start command."""

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
    source = Words(text[:MOST], dict(variables), blanks, positional)
    reader = _Reader(source, blanks)
    reader.run()
    return Script(tuple(reader.commands), source.variables)


class _Reader:
    """Puts words together to commands, in one pass over the script."""

    def __init__(self, source: Words, blanks: Blanks) -> None:
        self.source = source
        self.text = source.text
        self.variables = source.variables
        self.arrays = source.arrays
        self.blanks = blanks
        self.commands: list[Command] = []
        self.pending: list[tuple[str, bool, bool]] = []
        """Here-documents to come: last line, whether it was quoted, whether tabs are stripped."""
        self.depth = 0
        self._after_or = False
        self._start()

    def _start(self) -> None:
        self.words: list[str] = []
        self.local: dict[str, str] = {}
        self.output = ""
        self.input: str | None = None

    def run(self) -> None:
        text = self.text
        while self.source.at < len(text):
            char = text[self.source.at]
            if char == "\n":
                self.source.at += 1
                self._here_documents()
                self._end()
            elif char in " \t\r":
                self.source.at += 1
            elif char == "#":
                self.source.at = self.source.end_of_line()
            elif char == "\\" and text[self.source.at + 1 : self.source.at + 2] == "\n":
                self.source.at += 2
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
        two = self.text[self.source.at : self.source.at + 2]
        if two == "&>":
            self.source.at += 1
            self._redirection()
            return
        self.source.at += 2 if two in ("&&", "||", ";;", "|&") else 1
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
                if equals and NAME.fullmatch(name):
                    self._set(name, value, conditional=conditional)
            words = []
        elif words and words[0] in ("unset", "read"):
            for name in words[1:]:
                if NAME.fullmatch(name):
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
        self._start()

    def _set(self, name: str, value: str, *, conditional: bool) -> None:
        if conditional and self.variables.get(name) != value:
            value = self.blanks.mark(f"variable {name}: a branch of the script sets it")
        self.variables[name] = value

    def _word(self) -> None:
        begins = not self.words
        found = _ASSIGNMENT.match(self.text, self.source.at) if begins else None
        if found is not None:
            self._assignment(found)
            return
        start = self.source.at
        words = self.source.read().words()
        plain = self.text[start : self.source.at]
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
        self.source.skip(" \t")
        found = _ASSIGNMENT.match(self.text, self.source.at)
        if found is not None:
            self.source.at = found.end()
            value = "".join(self.source.read(quoted=True).words())
            self.words.append(f"{found[1]}={value}")

    def _assignment(self, found: re.Match[str]) -> None:
        name = found[1]
        self.source.at = found.end()
        if self.text[self.source.at : self.source.at + 1] == "(":
            self.source.at += 1
            items = self._array()
            before = self.arrays.get(name, []) if found[2] else []
            self.arrays[name] = [*before, *items]
            if self.depth:
                self.arrays[name] = [
                    self.blanks.mark(f"array {name}: a branch of the script sets it")
                ]
            return
        value = "".join(self.source.read(quoted=True).words())
        if found[2]:
            value = self.local.get(name, self.source.variable(name)) + value
        self.local[name] = value

    def _array(self) -> list[str]:
        items: list[str] = []
        while self.source.at < len(self.text) and self.text[self.source.at] != ")":
            char = self.text[self.source.at]
            if char.isspace():
                self.source.at += 1
            elif char == "#":
                self.source.at = self.source.end_of_line()
            elif char in ";&|(<>":
                self.source.at += 1
            else:
                items += self.source.read().words()
        self.source.at += 1
        return items

    def _loop_head(self, kind: str) -> None:
        """``for NAME in …`` and ``case WORD in``: the name is a blank inside and after."""
        end = re.compile(r"\n|;|\bin\b").search(self.text, self.source.at)
        head = self.text[self.source.at : end.start() if end else len(self.text)]
        name = head.strip()
        if kind != "case" and NAME.fullmatch(name):
            self.variables[name] = self.blanks.mark(
                f"variable {name}: a loop of the script sets it"
            )
        stop = re.compile(r"\n|;" if kind != "case" else r"\bin\b").search(
            self.text, self.source.at
        )
        self.source.at = stop.end() if stop else len(self.text)

    # -- redirections ----------------------------------------------------------------------------

    def _redirection(self) -> None:
        found = re.compile(r"<<<|<<-?|>>|>&|<&|>\||[<>]").match(self.text, self.source.at)
        assert found is not None
        self.source.at = found.end()
        if self.words and self.words[-1].isdecimal() and self.text[found.start() - 1].isdecimal():
            self.words.pop()  # 2>file
        self.source.skip(" \t")
        start = self.source.at
        target = "".join(self.source.read(quoted=True).words())
        if found[0].startswith("<<") and found[0] != "<<<":
            raw = self.text[start : self.source.at]
            quoted = any(c in raw for c in "'\"\\")
            self.pending.append((re.sub(r"['\"\\]", "", raw), quoted, found[0].endswith("-")))
            if self.text.find("\n", self.source.at) >= 0:
                self._rest_of_line()
        elif found[0] == "<<<":
            self.input = target
        elif found[0] in (">", ">>", ">|"):
            self.output = target

    def _rest_of_line(self) -> None:
        """What follows on the line still belongs to the command that reads the here-document."""
        while self.source.at < len(self.text) and self.text[self.source.at] != "\n":
            char = self.text[self.source.at]
            if char in " \t\r":
                self.source.at += 1
            elif char in "<>":
                self._redirection()
            elif char in ";&|()":
                break
            else:
                self._word()
        if self.source.at < len(self.text) and self.text[self.source.at] == "\n":
            self.source.at += 1
            self._here_documents()
            self._end()

    def _here_documents(self) -> None:
        for end, quoted, tabs in self.pending:
            lines: list[str] = []
            while self.source.at < len(self.text):
                stop = self.source.end_of_line()
                line = self.text[self.source.at : stop]
                self.source.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if tabs else line
                if line.rstrip("\r") == end:
                    break
                lines.append(line)
            text = "".join(f"{line}\n" for line in lines)
            self.input = text if quoted else self.source.inside(text)
        self.pending = []
